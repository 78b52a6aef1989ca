"""Objects are taken in, each within its own boundary: one that raises is kept, and taken again. Pure.

By the watch, as the answer to a write or a read, or again: it is one way. Neighbours: `machine` and `answers` call,
`intake` takes in, `containment` says what becomes of what raises, `untaken` keeps it.
"""

from __future__ import annotations

from gatelift.core.api.agenda import Key, Look
from gatelift.core.rules import containment
from gatelift.core.rules.containment import Boundary
from gatelift.core.state.core import Core
from gatelift.core.state.untaken import Version, ref_of
from gatelift.core.works import intake, looking
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.values.resources import ObjectRef


def take(core: Core, version: Version, now: float) -> None:
    """Take an object that came in, from whatever watch; the caller has its boundary."""
    if isinstance(version, ObjectSeen):
        intake.seen(core, version.resource, version.object, version.raw, now)
    elif not intake.lost_its_mark(core, ref_of(version), version.object):
        core.inflight.overtake(ref_of(version), version.object.metadata.uid)
        intake.gone(core, version.resource, version.object)
    core.untaken.taken(version)


def tried(core: Core, version: Version, now: float) -> None:
    """Let what rests be tried again soon, since something came of its object."""
    if core.contained.resting:
        looking.changed(core, ref_of(version), now)


def taken_again(core: Core, ref: ObjectRef) -> None:
    """Take that nothing is left that could not be taken of an object."""
    looking.look_at(core, ref)
    containment.pass_done(core, Key(Look.UNTAKEN, ref.key, ref.resource))


def look_at(core: Core, ref: ObjectRef, now: float) -> None:
    """Look soon at what an answer was about; what raises is done again after its rest (`take_again`)."""
    with Boundary(containment.pass_failed, core, Key(Look.UNTAKEN, ref.key, ref.resource), now=now):
        looking.look_at(core, ref)
        core.forget_trouble(ref)


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
