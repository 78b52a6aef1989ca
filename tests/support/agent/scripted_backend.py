"""A remote admission that takes its time: it asks by a ConfigMap in the cluster, and says what a test tells it to say.

The script is the world outside: what was said, and how often the backend was called, outlives the agent's process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from gatelift_agent.core.admission.backend import (
    GRANTED,
    Answered,
    BackendCommand,
    Heard,
    Judgement,
    Request,
    RoomAnswer,
    RoomVerdict,
)
from gatelift_agent.core.values.events import RoomSeen
from gatelift_agent.core.values.node_room import RoomOfNodes
from gatelift_agent.core.values.settings import AgentSettings
from gatelift_kube.deciding.writes import ApiWrite, Create, WriteDone, WriteError
from gatelift_kube.values.resources import CONFIG_MAP, ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CapacityEntry
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.agent.values import KEY
from support.on_purpose import OnPurposeError

NOT_YET = RoomVerdict(answer=RoomAnswer.NOT_YET, text="two before it")
REFUSED = RoomVerdict(answer=RoomAnswer.REFUSED, text="its queue was closed", refusal=Refusal.QUOTA_NEVER_FITS)
RETRY_SECONDS = 7.0


def request_of(key: PlacementKey, namespace: str) -> ObjectRef:
    """Return what stands in the cluster for a request."""
    return ObjectRef(CONFIG_MAP, ObjectKey(namespace, f"room-{key.uid}-{key.epoch}"))


@dataclass
class Script:
    """What the backend says, by placement, and what it was called for."""

    grants_at_once: bool = False
    """Grants as soon as the request stands in the cluster."""
    said: dict[PlacementKey, RoomVerdict] = field(default_factory=dict)
    calls: Counter[tuple[str, PlacementKey]] = field(default_factory=Counter)
    raises: set[tuple[str, PlacementKey]] = field(default_factory=set)
    writes: Callable[[Request], ApiWrite | None] = lambda _request: None
    """What it wants written instead."""
    over: dict[PlacementKey, dict[str, int]] = field(default_factory=dict)
    """Pods that need room no longer, as it was told last."""
    held: set[PlacementKey] = field(default_factory=set)
    """Of what is placed: what holds room, or asks for it, and was not released."""

    def backend(self, _settings: AgentSettings, _origin: Callable[[], str]) -> ScriptedBackend:
        """Make the backend of an agent's process."""
        return ScriptedBackend(self)

    def stage(self) -> Stage:
        """Return a stage whose agent has this backend, and leads."""
        stage = Stage(backend=self.backend)
        stage.start()
        return stage

    def say(self, stage: Stage, verdict: RoomVerdict, key: PlacementKey = KEY) -> None:
        """Let the backend say something, and the agent hear that it did."""
        self.said[key] = verdict
        stage.post(RoomSeen(room=RoomOfNodes()))

    def times(self, name: str, key: PlacementKey = KEY) -> int:
        """Return how often something was called."""
        return self.calls[name, key]

    def call(self, name: str, key: PlacementKey) -> None:
        """Take a call."""
        if (name, key) in self.raises:
            raise OnPurposeError(name)
        self.calls[name, key] += 1


NOBODY = PlacementKey("", 0)


class ScriptedBackend:
    """One process's backend."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._asked: dict[PlacementKey, Request] = {}
        self._retry_at: dict[PlacementKey, float] = {}
        self._under_way: set[PlacementKey] = set()
        self._stands: set[PlacementKey] = set()
        self._now = 0.0

    def judge(self, request: Request) -> Judgement:
        self._script.call("judge", request.key)
        return Judgement(cost=0.5)

    def ask(self, request: Request, now: float) -> tuple[BackendCommand, ...]:
        key = request.key
        self._script.call("ask placed" if request.placed else "ask", key)
        if request.placed:
            self._script.held.add(key)
        self._asked[key], self._now = request, now
        unasked = key not in self._under_way and key not in self._stands
        if not request.placed or not unasked or self._retry_at.get(key, 0.0) > now:
            return ()
        self._under_way.add(key)
        other = self._script.writes(request)
        if other is not None:
            return (other,)
        ref = request_of(key, request.namespace)
        named = {"name": ref.key.name, "namespace": ref.key.namespace}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named}
        return (Create(write_id=0, ref=ref, body=msgspec.json.encode(body)),)

    def verdict(self, key: PlacementKey, now: float) -> RoomVerdict:
        self._script.call("verdict", key)
        if self._script.grants_at_once and key in self._stands:
            return GRANTED
        said = self._script.said.get(key, NOT_YET)
        again_at = self._retry_at.get(key)
        return replace(said, again_at=again_at) if again_at is not None and again_at > now else said

    def reclaim(self, key: PlacementKey, over: Mapping[str, int]) -> tuple[BackendCommand, ...]:
        self._script.call("reclaim", key)
        self._script.over[key] = dict(over)
        return ()

    def release(self, key: PlacementKey) -> tuple[BackendCommand, ...]:
        self._script.call("release", key)
        self._script.held.discard(key)
        self._asked.pop(key, None)
        return ()

    def hear(self, event: RoomSeen | Answered) -> Heard:
        if isinstance(event, RoomSeen):
            self._script.call("hear", NOBODY)
            return Heard(keys=tuple(self._asked))
        self._script.call("hear", event.key)
        self._under_way.discard(event.key)
        failed = event.outcome
        if isinstance(failed, WriteDone) or failed.error is WriteError.ALREADY_EXISTS:
            self._stands.add(event.key)
        else:
            self._retry_at[event.key] = self._now + RETRY_SECONDS
        return Heard(keys=(event.key,))

    def entries(self) -> tuple[CapacityEntry, ...]:
        self._script.call("entries", NOBODY)
        return ()
