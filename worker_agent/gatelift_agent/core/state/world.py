"""What the machine knows, and the small moves that all its parts share. No decision of the protocol is made here.

Everything is rebuilt at a start from the worker's objects and the manager's confirmations; nothing else is kept.
Neighbours: `asking` asks the API server for things, `placing` says what objects carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from gatelift_agent.core.admission.backend import Request
from gatelift_agent.core.admission.desk import Desk, MakeBackend, quota_of
from gatelift_agent.core.memory.epochs import EpochMemory
from gatelift_agent.core.memory.keeper import Keeper
from gatelift_agent.core.placement.failures import Failures
from gatelift_agent.core.placement.placements import Placement, PlacementState, Tracked
from gatelift_agent.core.state.condemned import Condemned
from gatelift_agent.core.state.gate_waits import GateWaits
from gatelift_agent.core.state.last_words import LastWords
from gatelift_agent.core.state.late import Late
from gatelift_agent.core.state.leadership import Leadership
from gatelift_agent.core.state.newcomers import Newcomers
from gatelift_agent.core.state.untaken import AgentUntaken
from gatelift_agent.core.values.asked import Asked, Writes
from gatelift_agent.core.values.commands import AgentNote, Command
from gatelift_agent.core.values.settings import AgentMode, AgentSettings
from gatelift_agent.core.values.templates import Templates
from gatelift_agent.core.values.wakes import Alarms
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.nodes import Nodes
from gatelift_agent.core.watched.objects import Held, Objects
from gatelift_kinds.kind import Kind
from gatelift_kinds.shared.values import Maker, Placing
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.objects.kueue import ResourceFlavor
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource
from gatelift_wire.values.inventory import ForeignRun
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Message, PodSetRequest

WRITES_IN_FLIGHT_MAX = 1024
"""Writes asked for and not answered. A quarter of what the executor takes, so that it is never found full."""
MANY_OBJECTS = 32
"""A placement that has more is gone through in parts: so much of it is asked for in one call, and the rest at once
after it, so that no call takes long."""
AT_ONCE = 0.0
"""A moment that has come already."""

CLEARED_REMEMBERED_MAX = 10_000
"""UIDs of objects that we removed: late watch events of theirs say nothing new. Watches lag by seconds, not by more
removals than this."""


@lru_cache(maxsize=256)
def _owner_labels(key: PlacementKey, origin: str) -> dict[str, str]:
    """Return them once for each placement, which asks for each of its objects; nobody changes what is returned."""
    return Placing(key=key, origin=origin, namespace="").owner_labels


@dataclass(slots=True, kw_only=True)
class SessionStanding:
    """Where the agent stands with the manager. `session` 0: there is none. `open`: messages flow.

    `lease_until` is the end of the right to start that the present session granted; `away_since` counts when closed.
    `version`: what is spoken in it. `keeps_quota`: nothing is given back before the end of a placement, as its manager
    says; until it has said: nothing.
    """

    origin: str = ""
    session: int = 0
    open: bool = False
    lease_until: float = 0.0
    away_since: float = 0.0
    keeps_quota: bool = True
    version: int = 0


@dataclass(slots=True, kw_only=True)
class ApiHealth:
    """What the adapter sees of the worker's API server."""

    reachable: bool = True
    latency_seconds: float = 0.0
    throttled: bool = False


class World:
    """All facts, by what they are about."""

    def __init__(self, settings: AgentSettings, backend: MakeBackend = quota_of) -> None:
        self.settings, self.kinds = settings, settings.registry
        self.local = settings.mode is AgentMode.LOCAL
        """The objects are the user's own."""
        self.leadership, self.standing, self.api = Leadership(), SessionStanding(), ApiHealth()
        self.cordoned = self.namespace_left = self.ready = False
        self.fresh = self.unheard = True
        """What vanished before this process watched may run: not all nodes were heard of since, or a namespace with
        placements by the manager's record is not listed (`doubts`)."""
        self.listed: set[str] = set()
        """Namespaces whose lists are complete; "" where all are watched at once."""
        self.unlisted: set[str] = set()
        """Namespaces that are there and not listed yet: the manager has named them, or a start did not wait."""
        self.shut: dict[str, str] = {}
        """Namespaces that nobody lets us list, each with what the API server says (`unlisted`)."""
        self.late = Late()
        self.unread: dict[ObjectRef | PlacementKey, float] = {}
        """What raised an exception and may be of a placement that is not known, and when it is read again (never by
        time: when it was taken). While there is any, absence proves nothing."""
        self.untaken = AgentUntaken()
        self.early: dict[str, tuple[Resource, KubeObject]] = {}
        """What watches called gone before placements were made of what is there, by UID (`early`)."""
        self.namespaces: dict[str, Namespace] = {}
        self.condemned: dict[str, Condemned] = {}
        """Of these, those that are being deleted."""
        self.flavors: dict[str, ResourceFlavor] = {}
        self.objects = Objects(self._tracks, self.job_marked, settings.registry.maker_of)
        self.nodes, self.failures, self.epochs, self.templates = Nodes(), Failures(), EpochMemory(), Templates()
        self.admission = Desk(
            backend(settings, lambda: self.standing.origin),
            settings.registry,
            number=self._number,
            give=self._want,
        )
        self.writes, self.newcomers = Writes(), Newcomers()
        self.placements: dict[PlacementKey, Placement] = {}
        self.wakes: Alarms[PlacementKey] = Alarms()
        self.commands: list[Command] = []
        self.outgoing: list[Message] = []
        self.last_words, self.gate_waits = LastWords(), GateWaits()
        self.keeper = Keeper(settings.own_namespace, settings.registry, keeps=settings.mode is AgentMode.REMOTE)
        self.capacity_changed = self.foreign_changed = True
        """Something that another management cluster left here came, changed or went."""
        self.foreign: tuple[ForeignRun, ...] = ()
        self.contained: Contained[PlacementKey | ObjectRef | str] = Contained()  # what could not be handled, and rests
        self.kept: dict[PlacementKey, None] = {}
        """What has ended and stays to be looked at, oldest first (`kept`)."""
        self._dirty: dict[PlacementKey, bool] = {}  # whether all objects of it are to be looked at
        self._by_object: dict[ObjectRef, dict[PlacementKey, None]] = {}
        self._by_uid: dict[str, dict[PlacementKey, None]] = {}
        self._cleared: dict[str, None] = {}
        self._stalled: dict[PlacementKey, None] = {}

    # --- placements ---------------------------------------------------------------------------------------------

    def add(self, placement: Placement) -> None:
        """Know a placement, and look at it."""
        self.placements[placement.key] = placement
        self._by_uid.setdefault(placement.key.uid, {})[placement.key] = None
        for tracked in placement.objects.values():
            self._by_object.setdefault(tracked.ref, {})[placement.key] = None
        self.look(placement.key)

    def track(self, placement: Placement, tracked: Tracked) -> None:
        """Know one more object of a placement."""
        placement.objects[tracked.name] = tracked
        if placement.calm is not None:
            placement.calm.stir(tracked.name)
        self._by_object.setdefault(tracked.ref, {})[placement.key] = None

    def untrack(self, placement: Placement, tracked: Tracked) -> None:
        """Know an object as none of a placement's."""
        self._forget_place(tracked, placement.key)
        if tracked.name in placement.objects and placement.calm is not None:
            placement.calm.forget(tracked.name)
        placement.objects.pop(tracked.name, None)  # behind all that may raise: then it goes once more

    def _forget_place(self, tracked: Tracked, key: PlacementKey) -> None:
        self._by_object.get(tracked.ref, {}).pop(key, None)
        if not self._by_object.get(tracked.ref):
            self._by_object.pop(tracked.ref, None)

    def remove(self, placement: Placement) -> None:
        """Know a placement no more; its epoch stays used (R5)."""
        key = placement.key
        self.give_room_back(placement)
        self.failures.forget(placement)
        for tracked in tuple(placement.objects.values()):
            self._forget_place(tracked, key)
        self.placements.pop(key, None)  # behind all that may raise an exception: then it is removed another time
        self._by_uid.get(key.uid, {}).pop(key, None)
        if not self._by_uid.get(key.uid):
            self._by_uid.pop(key.uid, None)
        self.kept.pop(key, None)
        self.newcomers.closes((placement.namespace, placement.name), key)
        self.wakes.drop(key)
        self._dirty.pop(key, None)
        self.capacity_changed = True
        self.namespace_left = self.namespace_left or placement.namespace not in self.namespaces
        for other in self._by_uid.get(key.uid, ()):  # a newer attempt may have waited for this one's end
            self.look(other)

    def ask_room(
        self,
        placement: Placement,
        now: float,
        *,
        placed: bool,
        pod_sets: tuple[PodSetRequest, ...] | None = None,
    ) -> None:
        """Ask the remote admission for room; asking again changes nothing but what it is asked for.

        `pod_sets`: for these instead, while more of it runs than its size grants.
        """
        placement.room_given_back = False
        placement.room_reclaimed = ()
        request = Request(
            key=placement.key,
            namespace=placement.namespace,
            name=placement.name,
            pod_sets=placement.pod_sets if pod_sets is None else pod_sets,
            placed=placed,
        )
        self.admission.ask(request, now)

    def reclaim_room(self, placement: Placement, over: tuple[tuple[str, int], ...]) -> None:
        """Give back the room of so many pods per pod set while the others run (KEP-78); fewer than before: take it."""
        if self.standing.keeps_quota:
            over = ()
        if over != placement.room_reclaimed:
            placement.room_reclaimed = over
            self.admission.reclaim(placement.key, dict(over))
            self.capacity_changed = True

    def _number(self, asked: Asked) -> int:
        return self.writes.ask(asked)

    def _want(self, command: Command) -> None:
        self.commands.append(command)

    def give_room_back(self, placement: Placement) -> None:
        """Release what a placement was given or asked for, once, however often its end is looked at."""
        if not placement.room_given_back:
            placement.room_given_back = True
            self.admission.release(placement.key)

    def has_accepted(self, key: PlacementKey) -> bool:
        """Say whether a commit of this placement was accepted: something of it may exist."""
        found = self.placements.get(key)
        return found is not None and found.state not in {PlacementState.OFFERED, PlacementState.HELD}

    def of_workload(self, uid: str) -> tuple[Placement, ...]:
        """Return the placements of a workload, oldest known first."""
        return tuple(self.placements[key] for key in self._by_uid.get(uid, ()))

    def placements_at(self, ref: ObjectRef) -> tuple[Placement, ...]:
        """Return the placements that want or have an object there: more than one while an older attempt ends."""
        keys = self._by_object.get(ref)
        return tuple([self.placements[key] for key in keys]) if keys else ()

    def _tracks(self, ref: ObjectRef, uid: str) -> bool:
        """Say whether a placement has this object, or wants one of its name and knows none yet."""
        for key in self._by_object.get(ref, ()):
            tracked = self.placements[key].objects[ref.key.name]
            if tracked.uid in {"", uid}:
                return True
        return False

    def placements_of(self, maker: Maker, namespace: str) -> tuple[Placement, ...]:
        """Return the placements whose object this is: more than one at `local`, while an older attempt ends."""
        found = self.placements_at(ObjectRef(maker.resource, ObjectKey(namespace, maker.name)))
        return tuple(each for each in found if each.objects[maker.name].uid == maker.uid)

    def job_marked(self, pod: Pod) -> Maker | None:
        """Return the tracked object that made a pod, as its mark says; None where it has none, or one of nobody."""
        for mark in ownership.marks(self.kinds, pod):
            if mark.origin != self.standing.origin:
                continue
            placement = self.placements.get(mark.key)
            tracked = placement.objects.get(mark.job) if placement is not None else None
            for resource in self.kinds.makers:
                maker = ObjectRef(resource, ObjectKey(pod.metadata.namespace, mark.job))
                if tracked is not None and tracked.uid and tracked.ref == maker:
                    return Maker(mark.job, tracked.uid, resource)
                found = Maker(mark.job, mark.job_uid, resource)
                if found.uid and self.placements_of(found, pod.metadata.namespace):
                    return found  # at `local`: made for another attempt of what is tracked for this one
        return None

    def children(self, placement: Placement) -> tuple[Pod, ...]:
        """Return the pods that the objects of a placement made."""
        makers, kind = self.kinds.makers, self.kinds.named(placement.kind)
        if kind is not None and not kind.pods_are_children:
            return ()
        found: tuple[Pod, ...] = ()
        for each in placement.objects.values():
            if each.uid and each.ref.resource in makers:
                found += self.objects.children(each.uid)
        return found

    def look(self, key: PlacementKey) -> None:
        """Look at this placement, at all its objects, before the present event is over."""
        self._dirty[key] = True

    def look_at(self, placement: Placement, name: str) -> None:
        """Look at one object of a placement, of which something else is known now, and at what is not at rest."""
        if placement.calm is not None and name in placement.objects:
            placement.calm.stir(name)
        self._dirty.setdefault(placement.key, False)

    def look_on(self, key: PlacementKey) -> None:
        """Look at what is not at rest of a placement."""
        self._dirty.setdefault(key, False)

    def look_at_all(self) -> None:
        """Look at every placement."""
        self._dirty.update(dict.fromkeys(self.placements, True))

    @property
    def has_dirty(self) -> bool:
        """Say whether a placement wants to be looked at."""
        return bool(self._dirty)

    @property
    def stirred(self) -> bool:
        """Say whether there is anything to look at, to say, to ask for, or to tell of the capacity."""
        return bool(self._dirty or self.outgoing or self.commands or self.capacity_changed)

    def next_dirty(self) -> Placement | None:
        """Return a placement to look at, None when all are as they should be."""
        while self._dirty:
            key = next(iter(self._dirty))
            at_all = self._dirty.pop(key)
            placement = self.placements.get(key)
            if placement is not None:
                if at_all:
                    placement.stirs()
                return placement
        return None

    # --- kinds --------------------------------------------------------------------------------------------------

    def kind(self, placement: Placement) -> Kind[Any]:
        """Return what is known of the placement's kind; it was checked when the placement was accepted."""
        found = self.kinds.named(placement.kind)
        if found is None:
            raise LookupError(f"placement {placement.key}: kind {placement.kind} was accepted but is not served")
        return found

    def owner_labels(self, placement: Placement) -> dict[str, str]:
        """Return the labels by which the objects of a placement are known as its."""
        return _owner_labels(placement.key, self.standing.origin)

    def runs_as_placed(self, kind: Kind[Any], obj: KubeObject) -> bool:
        """Say whether an object was let go, at `local` with what the lift adds: anybody may let go the user's own."""
        return kind.let_go_here(obj) if self.local else kind.lifted(obj)

    # --- writes -------------------------------------------------------------------------------------------------

    def has_room(self, placement: Placement) -> bool:
        """Say whether one more write may be asked for now; if not, the placement is looked at when there is room."""
        if len(placement.objects) > MANY_OBJECTS and len(self.commands) >= MANY_OBJECTS:
            self.wakes.ask(placement.key, AT_ONCE)
            return False
        if self.can_ask:
            return True
        self._stalled[placement.key] = None
        return False

    @property
    def can_ask(self) -> bool:
        """Say whether one more request may be made now."""
        return self.api.reachable and self.writes.count < WRITES_IN_FLIGHT_MAX

    def room_again(self) -> None:
        """Look at a placement that waited for room."""
        if self._stalled and self.writes.count < WRITES_IN_FLIGHT_MAX:
            key = next(iter(self._stalled))
            del self._stalled[key]
            self.look(key)

    # --- the rest -----------------------------------------------------------------------------------------------

    def say(self, message: Message) -> None:
        """Report to the manager when this event is over; lost when no session is open, then said anew after it is."""
        self.outgoing.append(message)

    def note(self, level: str, text: str, placement: Placement | None = None, **fields: str) -> None:
        """Tell the log."""
        key = placement.key if placement is not None else PlacementKey("", 0)
        self.commands.append(
            AgentNote(level=level, text=text, workload=key.uid, epoch=key.epoch, fields=tuple(fields.items()))
        )

    def mark_cleared(self, uid: str) -> None:
        """Remember that an object was removed by us."""
        self._cleared[uid] = None
        if len(self._cleared) > CLEARED_REMEMBERED_MAX:
            del self._cleared[next(iter(self._cleared))]

    def was_cleared(self, uid: str) -> bool:
        """Say whether this object was removed by us: what a watch still says of it is old."""
        return uid in self._cleared

    def held(self, tracked: Tracked) -> Held | None:
        """Return the newest known version of a tracked object."""
        return self.objects.get(tracked.ref)
