"""Exceptions while one thing is handled: it is set aside, told and tried again, and everybody else goes on. Pure.

Neighbours: `machine` catches at the boundary of each pass.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from gatelift.core.api.agenda import Key, Look
from gatelift.core.records.knowledge import key_of
from gatelift.core.state.core import Core
from gatelift_admission.values.model import Fault
from gatelift_kube.deciding.contained import Failure
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.values.resources import WORKLOAD, ObjectKey, ObjectRef

INTERNAL_ERROR = "InternalError"
"""Reason of the event on an object that could not be handled."""
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
        if not isinstance(error, Exception):
            return False
        self._failed(*self._about, error, self._now)
        return True


def pass_failed(core: Core, key: Key, error: Exception, now: float) -> None:
    """Take that a look at a key raised an exception: what it is about stays as it is, charged if it was."""
    failure = core.contained.failed(key, error, now)
    core.agenda.wake(key, failure.again_at)
    _say(core, f"{key.look} {key.object}", failure, now)
    ref, uid = _object_of(core, key)
    if key.look is Look.WORKLOAD and uid and uid not in core.attempts:
        core.caution.cannot_read(uid)
    if ref is not None and uid:
        text = f"Gatelift could not handle this object, leaves it as it is and tries again: {failure.text}"
        core.event(ref, uid, INTERNAL_ERROR, text, warning=True)


def stop_failed(core: Core, key: Key, error: Exception, now: float) -> None:
    """Take that not even a stop of what is set aside could be said: it is tried again with the next look."""
    _say(core, f"stop of {key.object}", core.contained.failed(f"stop of {key.object}", error, now), now)


def pass_done(core: Core, key: Key) -> None:
    """Take that a look at a key came to its end."""
    if core.contained.resting:
        core.contained.well(key)
    if core.caution.set_aside and key.look is Look.WORKLOAD:
        core.caution.can_read(_object_of(core, key)[1])


def undecided(core: Core, fault: Fault, now: float) -> None:
    """Take that deciding on the quota of one Workload raised an exception: it is set aside, others have their turn."""
    pass_failed(core, Key(Look.UNDECIDED, fault.key), fault.error, now)


def decide_again(core: Core, key: ObjectKey, _now: float) -> None:
    """Let a Workload that could not be decided on have its turn again: it has rested."""
    known = core.knowledge.workloads.get(key)
    if known is None:
        core.contained.well(Key(Look.UNDECIDED, key))
        return
    core.ledger.engine.look_again(known.metadata.uid)


def object_failed(core: Core, event: ObjectSeen | ObjectGone, error: Exception, now: float) -> None:
    """Take that an object that came in raised an exception: what was known of it before stands."""
    ref = ObjectRef(event.resource, key_of(event.object.metadata))
    _say(core, f"{ref.resource.kind} {ref.key}", core.contained.failed(ref, error, now), now)


def word_failed(core: Core, cluster: str, error: Exception, now: float) -> None:
    """Take that what a cluster said raised an exception: its session ends, the next one begins with an inventory."""
    _say(core, f"word of cluster {cluster}", core.contained.failed(cluster, error, now), now)


def rebuild_failed(core: Core, key: ObjectKey, error: Exception, now: float) -> None:
    """Take that a record could not be read after a start: nothing is concluded about its placements before it can.

    What it says to be reserved the engine charges all the same: it reads Workloads by itself.
    """
    pass_failed(core, Key(Look.WORKLOAD, key), error, now)
    core.agenda.mark(Key(Look.WORKLOAD, key))


def _say(core: Core, what: str, failure: Failure, now: float) -> None:
    text = f"{what}: {failure.text}; it is left as it is and tried again in {failure.again_at - now:g} s"
    core.note(text, warning=True, fields=(("traceback", failure.where),))


def _object_of(core: Core, key: Key) -> tuple[ObjectRef | None, str]:
    """Return the object that a key is about, and its UID."""
    if key.look is Look.WORKLOAD or key.look is Look.UNDECIDED:
        known = core.knowledge.workloads.get(key.object)
        return ObjectRef(WORKLOAD, key.object), known.metadata.uid if known is not None else ""
    if key.resource is not None:
        ref = ObjectRef(key.resource, key.object)
        owner = core.knowledge.owners.get(ref)
        return ref, owner.object.metadata.uid if owner is not None else ""
    return None, ""
