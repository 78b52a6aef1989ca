"""Pods that were taken over and have lost both labels by which they are watched: nobody would see them go. Pure.

Such a pod keeps our finalizer, and its Workload asks for it while there is one (`seeking`). Of one without a Workload
two things are known. What left a watch of who leads with our finalizer on is read once. What left before is named by
one list at the start of a term, of the pods that no watch shows and no node has: what waits at our gate has none, so
the list is as long as the scheduler's queue, not as the cluster. Neighbours: `intake` says what left, `owners` lets go.

One of several objects that was let go is known as it was until it was read: without it the others would seem to be all
that runs (HD-610). What runs on in its group's place and no watch shows is read again from time to time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.commands import ListOutOfSight
from gatelift.core.api.events import OutOfSightListed, ReadFailed
from gatelift.core.api.inflight import pause
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.user_objects import UserObject
from gatelift.core.records.work import Owner
from gatelift.core.state import api_requests, forgetting
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.versions import is_last
from gatelift_kube.values.resources import ObjectRef

if TYPE_CHECKING:
    from gatelift.core.state.core import Core

LEFT_MAX = 10_000
"""Pods that left a watch and are yet to be read, 2 MB at most; above, the oldest waits for the next term's list."""
KEPT_MAX = 1_000
"""Pods that are still known though nothing of ours is on them: a few KB each, for far longer than a watch is behind."""
AGAIN_SECONDS = 60.0
"""After so long it is looked again whether what was taken out of its queue may be let go. It costs no request."""


@dataclass(slots=True)
class OutOfSight:
    """What one leader knows of them. `left`: object -> UID of what left its watch, until it is found or known gone.

    `kept`: object -> UID of what was let go, and is still known: a watch that is behind may yet tell of it as it was.
    """

    left: dict[ObjectRef, str] = field(default_factory=dict)
    kept: dict[ObjectRef, str] = field(default_factory=dict)
    sought: dict[ObjectRef, str] = field(default_factory=dict)
    """Those of several that left their watch and are known still: object -> UID, until it was read."""
    again_at: dict[ObjectRef, float] = field(default_factory=dict)
    """When those are read again that run on out of sight."""
    read_id: int = 0
    listed: bool = False
    failures: int = 0
    asks_at: float = 0.0

    def found(self, ref: ObjectRef) -> None:
        """Take that what left its watch is in sight again."""
        self.left.pop(ref, None)

    def was_read(self, ref: ObjectRef) -> None:
        """Take that an object was read: it is there as it is known now, or is gone."""
        self.sought.pop(ref, None)

    def has_gone(self, ref: ObjectRef) -> None:
        """Take that an object is known no more."""
        self.sought.pop(ref, None)
        self.again_at.pop(ref, None)


def remember(core: Core, owner: Owner) -> None:
    """Remember what left its watch and was not seen to end: with our finalizer on it may be there for ever."""
    if not core.leads(core.now) or owner.kind.release_step(owner.object) is None:
        return
    left = core.out_of_sight.left
    left[owner.ref] = owner.object.metadata.uid
    if len(left) > LEFT_MAX:
        del left[next(iter(left))]
    core.agenda.mark(owner.look)


def reads_first(core: Core, ref: ObjectRef, obj: KubeObject) -> bool:
    """Say whether one of several that a watch calls gone was let go, and not seen to end: it is read before it goes."""
    known = core.knowledge.owners.get(ref)
    if known is None or known.object.metadata.uid != obj.metadata.uid or is_last(obj.metadata):
        return False
    work = core.knowledge.works.of_object(known.name)
    if work is None or work.gathered is None or not work.gathered.has_run(obj.metadata.uid):
        return False
    core.out_of_sight.sought[ref] = obj.metadata.uid
    core.mark_owner_alone(known)
    return True


def is_sought(core: Core, owner: Owner, now: float) -> bool:
    """Say whether one of several has to be read before anything is decided on it; then that is asked for."""
    uid = owner.object.metadata.uid
    if core.out_of_sight.sought.get(owner.ref) != uid:
        return False
    if not api_requests.blocked(core, owner.ref, owner.look, now, uid=uid):
        api_requests.read(core, owner.ref, Purpose.READ_AS_IT_LEFT, uid)
    return True


def follow(core: Core, owner: Owner, now: float) -> None:
    """Have one of several read from time to time that runs on and that no watch shows: its end counts for all."""
    mine, kind, obj = core.out_of_sight, owner.kind, owner.object
    if not kind.out_of_sight(obj) or kind.suspended(obj):
        mine.again_at.pop(owner.ref, None)
        return
    due = mine.again_at.setdefault(owner.ref, now + AGAIN_SECONDS)
    if now >= due:
        mine.again_at[owner.ref] = due = now + AGAIN_SECONDS
        mine.sought[owner.ref] = obj.metadata.uid
        core.mark_owner_alone(owner)
    core.agenda.wake(owner.look, due)


def look_up(core: Core, ref: ObjectRef, look: Key, now: float) -> None:
    """Read what left its watch, which the answer puts in sight or shows to be gone."""
    left = core.out_of_sight.left
    uid = left.get(ref)
    if uid is None:
        return
    if core.knowledge.saw_object_go((ref.resource, ref.key.namespace, ref.key.name, uid)):
        del left[ref]
        forgetting.forget_trouble(core, ref)
    elif not api_requests.blocked(core, ref, look, now, uid=uid):
        api_requests.read(core, ref, Purpose.READ_AS_IT_LEFT, uid)


def keep(core: Core, owner: Owner) -> None:
    """Know for a while what has nothing of ours any more: no watch will say that it is gone."""
    kept = core.out_of_sight.kept
    kept[owner.ref] = owner.object.metadata.uid
    if len(kept) > KEPT_MAX:
        ref = next(iter(kept))
        core.knowledge.drop_owner(ref, kept.pop(ref))


def held(core: Core, owner: Owner) -> bool:
    """Say whether something of ours may yet be told of what has no Workload: it is not let go before (R7)."""
    place = UserObject(owner.ref.resource.kind, owner.ref.key.namespace, owner.ref.key.name)
    return bool(core.caution.halted) or not owner.kind.suspended(owner.object) or bool(core.predecessors.at(place))


def ask(core: Core, now: float) -> float:
    """Have the pods listed that nothing shows, once in a term; return when to come again, 0 where there is no need."""
    mine = core.out_of_sight
    if mine.listed or mine.read_id or not any(core.kinds.sight(each).lost for each in core.kinds.travelling):
        return 0.0
    if mine.asks_at > now:
        return mine.asks_at
    mine.read_id = core.ids.take()
    core.command(ListOutOfSight(read_id=mine.read_id))
    return 0.0


def listed(core: Core, event: OutOfSightListed) -> None:
    """Read what was listed, each by itself: what is known of it by then may be newer than the list."""
    mine = core.out_of_sight
    if event.read_id != mine.read_id:
        return
    mine.read_id = 0
    for ref, uid in event.objects[:LEFT_MAX]:
        if ref not in core.knowledge.owners:
            mine.left[ref] = uid
            core.agenda.mark(Key(Look.OWNER, ref.key, ref.resource))
    mine.listed = True


def not_taken(core: Core, now: float) -> None:
    """Ask for the list again that came and could not be taken, later each time in a row."""
    mine = core.out_of_sight
    mine.failures += 1
    mine.asks_at = now + pause(mine.failures)


def not_listed(core: Core, event: ReadFailed, now: float) -> bool:
    """Ask for the list again, later each time in a row; False when it was another request."""
    mine = core.out_of_sight
    if not mine.read_id or event.read_id != mine.read_id:
        return False
    mine.read_id = 0
    mine.failures += 1
    mine.asks_at = now + pause(mine.failures)
    core.note(f"Pods that nothing shows could not be listed: {event.message}; asked again", warning=True)
    return True
