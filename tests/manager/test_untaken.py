"""Versions that could not be taken (IS-4): which are kept, until when, and what counts as news meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.api import events
from gatelift.core.api.inflight import Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.owed_steps import LEAD, SEEN, OwedSteps
from gatelift.core.records.chains import SliceIndex
from gatelift.core.rules import containment, seeking
from gatelift.core.state.untaken import Untaken
from gatelift.core.told import telling
from gatelift.core.works import answers, intake, taking
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, WriteDone
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from support.manager.builders import a_setting
from support.manager.world import a_running_pod, a_world, workload_ref

REF = ObjectRef(POD, ObjectKey("team", "one"))


def meta(version: int, uid: str = "a") -> ObjectMeta:
    return ObjectMeta(name="one", namespace="team", uid=uid, resource_version=str(version))


def seen(version: int, uid: str = "a") -> ObjectSeen:
    return ObjectSeen(POD, Pod(metadata=meta(version, uid)), b"")


def gone(version: int, uid: str = "a") -> ObjectGone:
    return ObjectGone(POD, Pod(metadata=meta(version, uid)))


def kept(*versions: ObjectSeen | ObjectGone) -> Untaken:
    made = Untaken()
    for version in versions:
        made.keep(version)
    return made


def test_of_each_object_the_newest_version_is_kept_and_that_it_is_gone() -> None:
    made = kept(seen(5), seen(7), seen(6), gone(8), seen(9, "b"))
    assert made.of(REF) == (seen(7), gone(8), seen(9, "b"))
    assert made.latest(REF) == seen(9, "b")
    assert (len(made), bool(made), made.refs()) == (1, True, (REF,))


@pytest.mark.parametrize(
    ("taken", "left"),
    [
        (seen(7), (gone(8), seen(9, "b"))),
        (seen(6), (seen(7), gone(8), seen(9, "b"))),
        (gone(8), (seen(9, "b"),)),
        (seen(9, "b"), (seen(7), gone(8))),
        (gone(10, "b"), (seen(7), gone(8))),
        (seen(11, "c"), (seen(7), gone(8), seen(9, "b"))),
    ],
)
def test_what_was_taken_takes_what_came_before_of_the_same_object_along(
    taken: ObjectSeen | ObjectGone, left: tuple[ObjectSeen | ObjectGone, ...]
) -> None:
    made = kept(seen(7), gone(8), seen(9, "b"))
    made.taken(taken)
    assert made.of(REF) == left


def test_a_version_that_may_be_known_by_half_is_news_and_an_older_one_is_not() -> None:
    made = kept(seen(7))
    assert made.is_news(REF, meta(7), meta(7))
    assert not made.is_news(REF, meta(6), meta(7))
    assert made.is_news(REF, meta(8), meta(7))
    assert not kept(seen(7, "b")).is_news(REF, meta(7), meta(7))
    made.taken(seen(7))
    assert not made.is_news(REF, meta(7), meta(7))
    assert not made


def test_the_books_are_in_doubt_until_the_object_is_taken_or_charged() -> None:
    made = kept(seen(7))
    made.doubt(REF)
    made.settled(REF)
    assert not made.in_doubt
    made.doubt(REF)
    made.taken(seen(8))
    assert not made.in_doubt


def test_is_4_the_object_of_an_answer_that_raises_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)
    world = a_world(a_setting())
    core = world.machine.core
    with monkeypatch.context() as broken:

        def raises(*_: Any) -> None:
            raise LookupError("on purpose")

        broken.setattr(intake, "seen", raises)
        assert escaped(lambda: taking.answered(core, seen(7), world.now)) is None
    assert core.untaken.of(REF) == (seen(7),)
    assert core.agenda.next_time() is not None
    assert taking.answered(core, seen(7), world.now)
    assert not core.untaken


def test_is_4_an_answer_that_raises_counts_as_one_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)

    def raises(*_: Any) -> None:
        raise LookupError("on purpose")

    world = a_world(a_setting())
    monkeypatch.setattr(telling, "written", raises)
    core = world.machine.core
    core.inflight.begin(7, Outstanding(ref=REF, purpose=Purpose.MIRROR))
    done = WriteDone(write_id=7, object=seen(7).object)
    assert escaped(lambda: answers.written(core, done, world.now)) is None
    assert core.inflight.hindrance(REF, world.now) == (True, True, world.now), "it is read first"
    assert not core.inflight.busy(REF)
    core.inflight.begin(8, Outstanding(ref=REF, purpose=Purpose.READ_AFTER_DOUBT, uid="a"))
    monkeypatch.setattr(seeking, "found_out", raises)
    read = events.ReadDone(read_id=8, ref=REF, object=None)
    assert escaped(lambda: answers.read(core, read, world.now)) is None
    wait, _, until = core.inflight.hindrance(REF, world.now)
    assert wait
    assert until > world.now, "and asked for again after a pause"


def test_hd_529_a_workload_whose_going_raises_at_first_is_forgotten_at_the_next_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)
    world, _ = a_running_pod()
    core, ref = world.machine.core, workload_ref(world)
    known = core.knowledge.workloads[ref.key]
    with monkeypatch.context() as broken:

        def raises(*_: Any) -> None:
            raise LookupError("on purpose")

        broken.setattr(SliceIndex, "drop", raises)
        assert not taking.answered(core, ObjectGone(ref.resource, known), world.now)
    assert core.untaken.holds(ref)
    assert taking.answered(core, ObjectGone(ref.resource, known), world.now)
    assert not core.untaken
    assert core.knowledge.saw_go(known.metadata.uid)


def escaped(call: Callable[[], object]) -> Exception | None:
    """Return what came out of a call."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - which one is what is asked
        return error
    return None


def test_is_4_an_exception_that_came_out_of_the_engine_is_told_from_others() -> None:
    engine = a_world(a_setting()).machine.core.ledger.engine
    inside = escaped(lambda: engine.flavor_changed(None))  # type: ignore[arg-type]
    outside = escaped(lambda: intake.gone(None, POD, None))  # type: ignore[arg-type]
    assert inside is not None
    assert outside is not None
    assert containment.came_out_of(inside, containment.ENGINE)
    assert not containment.came_out_of(outside, containment.ENGINE)


def test_steps_are_owed_once_each_and_that_it_leads_comes_first() -> None:
    owed = OwedSteps()
    assert not owed
    assert owed.next_time() is None
    for kind, at in (("stream 3 is over", 5.0), (SEEN, 6.0), (LEAD, 7.0), (SEEN, 8.0)):
        owed.owe("w1", kind, lambda *_: None, at)
    owed.owe("w2", SEEN, lambda *_: None, 6.5)
    assert [kind for kind, _ in owed.of("w1")] == [LEAD, SEEN, "stream 3 is over"]
    assert (owed.next_time(), owed.due(7.0), owed.due(8.0)) == (6.5, ["w2"], ["w1", "w2"])
    for kind in (LEAD, SEEN, "stream 3 is over"):
        assert owed.owes("w1", kind)
        owed.paid("w1", kind)
    assert owed.due(9.0) == ["w2"]
    owed.clear()
    assert not owed
