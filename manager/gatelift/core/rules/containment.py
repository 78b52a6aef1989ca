"""Exceptions while one thing is handled: it is set aside, told and tried again, and everybody else goes on. Pure.

Neighbours: `machine` catches at the boundary of each pass.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import msgspec

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.user_objects import UserObject, is_of_members
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.rules import kept_record
from gatelift.core.state.core import Core
from gatelift.core.state.untaken import SAID_EVERY_SECONDS, Version, ref_of
from gatelift_admission.values.model import Fault
from gatelift_kinds.shared.made_for import owners_of
from gatelift_kube.deciding.contained import PAUSE_SECONDS_MAX, Failure
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef

INTERNAL_ERROR = "InternalError"
"""Reason of the event on an object that could not be handled."""
ENGINE = "gatelift_admission"
NAMED_MAX = 5
"""Objects that are named in one line."""
DECIDING = Key(Look.DECIDING, ObjectKey("", ""))
"""Marked when deciding on quota, which failed, is tried again."""


class Boundary:
    """Where an exception ends: `with Boundary(failed, *about, now=now):` tells `failed(*about, error, now)` of it."""

    __slots__ = ("_about", "_failed", "_now")

    def __init__(self, failed: Callable[..., None], *about: object, now: float) -> None:
        self._failed, self._about, self._now = failed, about, now

    def __enter__(self) -> None:
        """Nothing is needed: what is tried stands inside."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Take an exception; what is none of ours (`KeyboardInterrupt`, ...) goes on."""
        if error is None or not isinstance(error, Exception):
            return False
        self._failed(*self._about, error, self._now)
        return True


def pass_failed(core: Core, key: Key, error: Exception, now: float) -> None:
    """Take that a look at a key raised an exception: what it is about stays as it is, charged if it was."""
    failure = core.contained.failed(key, error, now)
    core.agenda.wake(key, failure.again_at)
    _say(core, f"{key.look} {key.object}", failure, now)
    ref, uid = _object_of(core, key)
    if key.look is Look.WORKLOAD and uid:
        if uid not in core.attempts:
            core.caution.cannot_read(uid)
        with Boundary(answer_failed, core, f"victims beside {key.object}", now=now):
            core.ledger.engine.set_unreachable(uid, unreachable=True)  # who preempts it would wait for a look that ends
    if ref is not None and uid and core.leads(now):
        text = f"Gatelift could not handle this object, leaves it as it is and tries again: {failure.text}"
        core.event(ref, uid, INTERNAL_ERROR, text, warning=True)


def stop_failed(core: Core, key: Key, error: Exception, now: float) -> None:
    """Take that not even a stop of what is set aside could be said: it is tried again with the next look."""
    _say_once(core, f"stop of {key.object}", error, now)


def pass_done(core: Core, key: Key) -> None:
    """Take that a look at a key came to its end."""
    if core.contained.resting:
        core.contained.well(key)
    if core.caution.set_aside and key.look is Look.WORKLOAD:
        core.caution.can_read(_object_of(core, key)[1])
    if core.untaken.in_doubt and key.look is Look.WORKLOAD:
        core.untaken.settled(ObjectRef(WORKLOAD, key.object))


def not_compared(core: Core, cluster: str, uid: str, error: Exception, now: float) -> None:
    """Take that comparing a placement with its cluster's inventory raised: nothing is concluded of it, nor begun.

    What nobody has a Workload of is left alone until the next inventory.
    """
    key = core.knowledge.workload_by_uid.get(uid)
    if key is None:
        _say_once(core, f"placement of {uid} on cluster {cluster}", error, now)
        return
    core.caution.cannot_compare(cluster, uid)
    pass_failed(core, Key(Look.UNCOMPARED, key), error, now)
    core.agenda.mark(Key(Look.WORKLOAD, key))  # to stop it where that is asked for


def compared(core: Core, uid: str) -> None:
    """Take that a placement was compared with its cluster's inventory, after it could not be."""
    key = core.knowledge.workload_by_uid.get(uid)
    if key is not None and uid not in core.caution.uncompared:
        core.contained.well(Key(Look.UNCOMPARED, key))
        core.agenda.mark(Key(Look.WORKLOAD, key))


def compare_again(core: Core, key: ObjectKey, now: float) -> list[str]:
    """Let what could not be compared be compared again; return the clusters that are to list anew for that."""
    known = core.knowledge.workloads.get(key)
    uid = known.metadata.uid if known is not None else ""
    for cluster in sorted(core.caution.uncompared.get(uid, ())):
        if core.view(cluster) is None:
            core.caution.compared(cluster, uid)
    if uid not in core.caution.uncompared:
        compared(core, uid)
        return []
    core.agenda.wake(Key(Look.UNCOMPARED, key), now + PAUSE_SECONDS_MAX)  # who is away now may come back as it was
    return sorted(core.caution.uncompared[uid])


def is_set_aside(core: Core, key: Key) -> Attempt | None:
    """Return the attempt of a Workload of whose placement nothing was said until now, since nobody could read it."""
    if not core.caution.set_aside or key.look is not Look.WORKLOAD:
        return None
    uid = _object_of(core, key)[1]
    return core.attempts.get(uid) if uid in core.caution.set_aside else None


def undecided(core: Core, fault: Fault, now: float) -> None:
    """Take that deciding on the quota of one Workload raised an exception: it is set aside, others have their turn."""
    pass_failed(core, Key(Look.UNDECIDED, fault.key), fault.error, now)


def decide_again(core: Core, key: ObjectKey, now: float) -> None:
    """Let a Workload that could not be decided on have its turn again: it has rested."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        core.contained.well(Key(Look.UNDECIDED, key))
        return
    core.ledger.engine.workload_changed(kept_record.charged(core, known), now)  # what it has of it may be half
    core.ledger.engine.look_again(known.metadata.uid)


def object_failed(core: Core, version: Version, error: Exception, now: float) -> None:
    """Take that an object that came in raised an exception: it is kept, and taken again.

    Nobody looks at it until then but to stop it, nor at what belongs to it (`is_held`). What it reserves is charged.
    """
    ref = ref_of(version)
    core.untaken.keep(version)
    pass_failed(core, Key(Look.UNTAKEN, ref.key, ref.resource), error, now)
    if ref.resource == WORKLOAD:
        uid = version.object.metadata.uid
        if uid not in core.attempts and not _is_gone(core, ref, uid, now):
            core.caution.cannot_read(uid)
        core.agenda.mark(Key(Look.WORKLOAD, ref.key))
    elif came_out_of(error, ENGINE):
        _doubt(core, ref, now)
    if isinstance(version.object, Workload) and isinstance(version, ObjectSeen):
        with Boundary(_not_charged, core, ref, now=now):
            charge(core, version.object, now)
            core.untaken.settled(ref)
        with Boundary(answer_failed, core, f"place of {ref.key}", now=now):
            core.ledger.block(version.object.metadata.uid)  # it has no turn before it could be taken
    with Boundary(answer_failed, core, f"Workloads of {ref.key}", now=now):
        for key in _workloads_of(core, ref):
            core.agenda.mark(Key(Look.WORKLOAD, key))  # to stop it where that is what this version says


def _is_gone(core: Core, ref: ObjectRef, uid: str, now: float) -> bool:
    """Say whether a Workload was seen to go; not where that cannot be said either."""
    with Boundary(answer_failed, core, f"whether {ref.key} is gone", now=now):
        return core.knowledge.saw_go(uid)
    return False


def came_out_of(error: Exception, package: str) -> bool:
    """Say whether an exception was raised inside of a package."""
    step = error.__traceback__
    while step is not None:
        if str(step.tb_frame.f_globals.get("__name__", "")).startswith(package):
            return True
        step = step.tb_next
    return False


def charge(core: Core, seen: Workload, now: float) -> None:
    """Charge what a Workload reserves by its record alone; what is charged already stands."""
    engine, uid = core.ledger.engine, seen.metadata.uid
    if not engine.charged(uid):
        status = msgspec.structs.replace(seen.status, reclaimable_pods=())  # who freed that nobody has looked at
        engine.workload_changed(msgspec.structs.replace(seen, status=status), now)


def _not_charged(core: Core, ref: ObjectRef, error: Exception, now: float) -> None:
    """Take that not even that could be done: nothing is decided until it can."""
    _say_once(core, f"charge of {ref.key}", error, now)
    _doubt(core, ref, now)


def _doubt(core: Core, ref: ObjectRef, now: float) -> None:
    core.untaken.doubt(ref)
    if not core.agenda.waits(DECIDING):
        tell_doubts(core, now)


def tell_doubts(core: Core, now: float) -> None:
    """Say once a minute that nothing is decided anew, as long as that is so."""
    if core.untaken.in_doubt:
        names = ", ".join(sorted(f"{ref.resource.kind} {ref.key}" for ref in core.untaken.in_doubt)[:NAMED_MAX])
        core.note(f"nothing is decided on quota: what these reserve or lend is not counted: {names}", warning=True)
        core.agenda.wake(DECIDING, now + SAID_EVERY_SECONDS)


def is_held(core: Core, key: Key) -> bool:
    """Say whether nobody looks at a Workload or a user's object: a version of it, or of its other half, is untaken.

    Of several objects none is looked at while one of them is untaken: nobody knows how many run (HD-514). Where even
    this raises, nobody looks (HD-513).
    """
    with Boundary(answer_failed, core, f"whether {key.object} is held", now=core.now):
        return _is_held(core, key)
    return True


def _is_held(core: Core, key: Key) -> bool:
    if key.look in {Look.WORKLOAD, Look.WORK}:
        known = core.knowledge.workloads.get(key.object)
        return (known is not None and known.metadata.uid in core.caution.uncompared) or _is_untaken(core, key.object)
    if key.look is not Look.OWNER or key.resource is None:
        return False
    ref = ObjectRef(key.resource, key.object)
    return core.untaken.holds(ref) or any(_is_untaken(core, each) for each in _workloads_of(core, ref))


def _is_untaken(core: Core, key: ObjectKey) -> bool:
    """Say whether something could not be taken of a Workload, or of an object that it was made for.

    Asked of the few that are untaken, by their places: a Workload may name thousands, and this is before each look.
    """
    if not core.untaken:
        return False
    if core.untaken.holds(ObjectRef(WORKLOAD, key)):
        return True
    there = core.knowledge.by_place
    return any(
        key in there.get(UserObject(ref.resource.kind, ref.key.namespace, ref.key.name), ())
        for ref in core.untaken.refs()
        if ref.resource in core.kinds.travelling
    )


def member_refs_of(core: Core, known: Workload) -> list[ObjectRef]:
    """Return where the objects are that a Workload of several names, none where it is of one."""
    named = known.metadata.owner_references if is_of_members(known) else ()
    found = ((each, core.kinds.resource_of(each)) for each in named)
    return [ObjectRef(kind, ObjectKey(known.metadata.namespace, each.name)) for each, kind in found if kind is not None]


def owner_refs_of(core: Core, known: Workload) -> list[ObjectRef]:
    """Return where the objects that a Workload was made for live, of kinds that travel."""
    found = ((each, core.kinds.resource_of(each)) for each in owners_of(known))
    return [ObjectRef(kind, ObjectKey(known.metadata.namespace, each.name)) for each, kind in found if kind is not None]


def _workloads_of(core: Core, ref: ObjectRef) -> set[ObjectKey]:
    """Return where the Workloads of a user's object are, or its one is to be."""
    owner = core.knowledge.owners.get(ref)
    if owner is None:
        return set()
    return {owner.workload, *core.knowledge.workloads_of(owner.name)}


def answer_failed(core: Core, about: str, error: Exception, now: float) -> None:
    """Tell that an answer, or a step behind it, raised an exception: it is taken again with what it belongs to."""
    _say_once(core, about, error, now)


def word_failed(core: Core, cluster: str, error: Exception, now: float) -> None:
    """Take that what a cluster said raised an exception: its session ends, the next one begins with an inventory."""
    _say_once(core, f"word of cluster {cluster}", error, now)


def rebuild_failed(core: Core, key: ObjectKey, error: Exception, now: float) -> None:
    """Take that a record could not be read after a start: nothing is concluded about its placements before it can.

    What it says to be reserved the engine charges all the same: it reads Workloads by itself.
    """
    pass_failed(core, Key(Look.WORKLOAD, key), error, now)
    core.agenda.mark(Key(Look.WORKLOAD, key))


def not_counted(core: Core, cluster: str, error: Exception, now: float) -> None:
    """Take that it could not be counted what is at a cluster, for its status: that is done again after its rest."""
    key = Key(Look.CLUSTER, ObjectKey("", cluster))
    failure = core.contained.failed(counts_of(cluster), error, now)
    _say(core, counts_of(cluster), failure, now)
    core.agenda.wake(key, failure.again_at)


def counts_of(cluster: str) -> str:
    """Return what rests when it cannot be counted what is at a cluster."""
    return f"counts of cluster {cluster}"


def remembered_failed(core: Core, known: Workload, error: Exception, now: float) -> None:
    """Take that what runs beside a record could not be charged: it is kept free everywhere, or nothing is decided."""
    key = key_of(known.metadata)
    rebuild_failed(core, key, error, now)
    with Boundary(_not_charged, core, ObjectRef(WORKLOAD, key), now=now):
        core.ledger.engine.set_ghost(known.metadata.uid, runs=True)


def _say_once(core: Core, what: str, error: Exception, now: float) -> None:
    """Tell of what has no rest of its own: it is tried again with something that has."""
    _say(core, what, core.contained.failed(what, error, now), now)
    core.contained.well(what)


def _say(core: Core, what: str, failure: Failure, now: float) -> None:
    text = f"{what}: {failure.text}; it is left as it is and tried again in {failure.again_at - now:g} s"
    core.note(text, warning=True, fields=(("traceback", failure.where),))


def _object_of(core: Core, key: Key) -> tuple[ObjectRef | None, str]:
    """Return the object that a key is about, and its UID."""
    if key.look in {Look.WORKLOAD, Look.UNDECIDED, Look.UNCOMPARED}:
        known = core.knowledge.workloads.get(key.object)
        return ObjectRef(WORKLOAD, key.object), known.metadata.uid if known is not None else ""
    if key.look is Look.UNTAKEN and key.resource is not None:
        ref = ObjectRef(key.resource, key.object)
        kept = core.untaken.latest(ref)
        return ref, kept.object.metadata.uid if kept is not None else ""
    if key.resource is not None:
        ref = ObjectRef(key.resource, key.object)
        owner = core.knowledge.owners.get(ref)
        return ref, owner.object.metadata.uid if owner is not None else ""
    return None, ""
