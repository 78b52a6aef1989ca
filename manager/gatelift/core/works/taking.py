"""Objects are taken in, each within its own boundary: one that raises is kept, and taken again. Pure.

By the watch, as the answer to a write or a read, or again: it is one way. Neighbours: `machine` and `answers` call,
`intake` takes in, `containment` says what becomes of what raises, `untaken` keeps it.
"""

from __future__ import annotations

from collections.abc import Callable

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.events import Event
from gatelift.core.conclusions import recovery
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state import forgetting, out_of_sight
from gatelift.core.state.core import Core
from gatelift.core.state.untaken import Version, ref_of
from gatelift.core.works import intake, looking
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectRef

PassOn = Callable[[Event, float], None]
"""Hands an event to the links."""


def take(core: Core, version: Version, now: float, pass_on: PassOn) -> None:
    """Take an object that came in; should that raise, it is kept."""
    with Boundary(containment.object_failed, core, version, now=now):
        _take(core, version, now, pass_on)
    if core.contained.resting:
        with Boundary(containment.answer_failed, core, f"what rests of {ref_of(version).key}", now=now):
            looking.changed(core, ref_of(version), now)


def take_again(core: Core, ref: ObjectRef, now: float, pass_on: PassOn) -> None:
    """Take what could not be taken of an object, oldest first, up to what raises again."""
    for version in core.untaken.of(ref):
        with Boundary(containment.object_failed, core, version, now=now):
            _take(core, version, now, pass_on)
            continue
        return
    looking.look_at(core, ref)
    containment.pass_done(core, Key(Look.UNTAKEN, ref.key, ref.resource))


def look_at(core: Core, ref: ObjectRef, now: float) -> None:
    """Look soon at what an answer was about; what raises is done again after its rest (`take_again`)."""
    with Boundary(containment.pass_failed, core, Key(Look.UNTAKEN, ref.key, ref.resource), now=now):
        looking.look_at(core, ref)
        forgetting.forget_trouble(core, ref)


def answered(core: Core, version: Version, now: float) -> bool:
    """Take an object as the answer to what was asked for; False where that raises."""
    with Boundary(containment.object_failed, core, version, now=now):
        if isinstance(version, ObjectSeen):
            intake.seen(core, version.resource, version.object, version.raw, now)
        else:
            intake.gone(core, version.resource, version.object)
        core.untaken.taken(version)
        return True
    return False


def _take(core: Core, version: Version, now: float, pass_on: PassOn) -> None:
    ref = ref_of(version)
    if version.resource == WORKER_CLUSTER:
        pass_on(version, now)
        recovery.take(core, version)
    elif isinstance(version, ObjectSeen):
        intake.seen(core, version.resource, version.object, version.raw, now)
    elif not intake.lost_its_mark(core, ref, version.object):
        core.inflight.overtake(ref, version.object.metadata.uid)
        if not out_of_sight.reads_first(core, ref, version.object):
            intake.gone(core, version.resource, version.object)
    core.untaken.taken(version)
