"""Where the core asks its backend: numbers what that wants written, and keeps a release that raised for another try.

All else that a backend raises belongs to the placement that is looked at, and is caught where the machine looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from gatelift_agent.core.admission.backend import (
    Answered,
    Backend,
    BackendCommand,
    Heard,
    Judgement,
    Request,
    RoomVerdict,
)
from gatelift_agent.core.admission.node_quota import NodeQuota
from gatelift_agent.core.admission.quota import WorkerQuota
from gatelift_agent.core.values.asked import Asked, WritePurpose
from gatelift_agent.core.values.commands import Command
from gatelift_agent.core.values.events import RoomSeen
from gatelift_agent.core.values.settings import AgentSettings
from gatelift_kinds.registry import Registry
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, Patch, WriteDone, WriteFailed
from gatelift_kube.values.resources import POD
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CapacityEntry

MakeBackend = Callable[[AgentSettings, Callable[[], str]], Backend]
"""Makes the backend of a process that begins to lead; the function says which origin is served at the moment."""


class NotABackendsWriteError(Exception):
    """A backend wants something written that only `progress` may write (R1)."""


def quota_of(settings: AgentSettings, origin: Callable[[], str]) -> Backend:
    """Return the quota that the settings ask for."""
    if settings.capacity_from_nodes and not settings.capacity:
        return NodeQuota(origin)
    return WorkerQuota(settings.capacity)


class Desk:
    """The backend as the core asks it. `number`: makes a write one that is under way. `give`: has it carried out."""

    __slots__ = ("_backend", "_give", "_not_its", "_number", "_under_way", "unreleased")

    def __init__(
        self, backend: Backend, kinds: Registry, number: Callable[[Asked], int], give: Callable[[Command], None]
    ) -> None:
        self._backend, self._number, self._give = backend, number, give
        self._not_its = frozenset({POD, *kinds.travelling})
        self._under_way: dict[int, ApiWrite] = {}
        self.unreleased: dict[PlacementKey, Exception | None] = {}
        """Releases that raised; None once that was told."""

    def judge(self, request: Request) -> Judgement:
        """Say whether it may be served here at all."""
        return self._backend.judge(request)

    def ask(self, request: Request, now: float) -> None:
        """Ask for room, and have done what the backend wants for it."""
        self.unreleased.pop(request.key, None)
        self._carry_out(request.key, self._backend.ask(request, now))

    def verdict(self, key: PlacementKey, now: float) -> RoomVerdict:
        """Say what came of it."""
        return self._backend.verdict(key, now)

    def reclaim(self, key: PlacementKey, over: Mapping[str, int]) -> None:
        """Give back the room of pods that need none any more, and have done what the backend wants for it."""
        self._carry_out(key, self._backend.reclaim(key, over))

    def release(self, key: PlacementKey) -> bool:
        """Give room back; False where the backend raised: who gives it back goes on, and it is tried again."""
        try:
            self._carry_out(key, self._backend.release(key))
        except Exception as error:  # noqa: BLE001 (containment: `containment.release_again` tells it)
            self.unreleased[key] = error
            return False
        self.unreleased.pop(key, None)
        return True

    def answered(self, asked: Asked, outcome: WriteDone | WriteFailed) -> Heard:
        """Take the outcome of a write of the backend."""
        command = self._under_way.pop(outcome.write_id, None)
        if command is None or asked.key is None:
            return Heard()
        return self._heard(Answered(key=asked.key, command=command, outcome=outcome), asked.key)

    def room_seen(self, event: RoomSeen) -> Heard:
        """Take what the nodes have."""
        return self._heard(event, PlacementKey("", 0))

    def entries(self) -> tuple[CapacityEntry, ...]:
        """Return the capacity as the manager is told it."""
        return self._backend.entries()

    def _heard(self, event: RoomSeen | Answered, key: PlacementKey) -> Heard:
        heard = self._backend.hear(event)
        self._carry_out(key, heard.commands)
        return heard

    def _carry_out(self, key: PlacementKey, wanted: Iterable[BackendCommand]) -> None:
        for command in wanted:
            if not isinstance(command, Create | Patch | Delete):
                self._give(command)
                continue
            if command.ref.resource in self._not_its:
                raise NotABackendsWriteError(f"{key}: {type(command).__name__} of {command.ref}")
            write_id = self._number(Asked(purpose=WritePurpose.ROOM, key=key, name=command.ref.key.name, at=0.0))
            self._under_way[write_id] = command
            self._give(replace(command, write_id=write_id))
