"""An exception in a function that is about one object, in each scenario (IS-4): a small share, the same at each run.

`make simulate` lives through many more (`support.sweep.many`).
"""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from gatelift.core.works import intake, reconcile
from gatelift_kube.deciding.contained import Contained
from support.on_purpose import OnPurposeError
from support.sweep.many import ENGINE, Case, contained, counted, drawn, lived, named
from support.sweep.raising import SIDES, About, Place, Raising
from support.sweep.scenarios import BAD, SCENARIOS

SEED = 4
SEEN = Place("gatelift.core.works.intake", "workload_seen")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_is_4_what_raises_about_one_object_spoils_its_own_work_at_most(scenario: str) -> None:
    case = drawn(scenario, "manager", SEED)
    assert lived(case) == [], str(case)


@pytest.mark.parametrize("side", SIDES)
def test_is_4_what_is_drawn_does_not_depend_on_the_engine_nor_on_what_ran_before(
    side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the engine runs compiled it shows no functions, and another case was drawn: nobody could repeat it."""
    case = drawn("group_replaced", side, SEED)
    lived(case)
    counted.cache_clear()
    without = tuple(each for each in counted("group_replaced", side) if not each[0].module.startswith(ENGINE))
    monkeypatch.setattr("support.sweep.many.counted", lambda *_: without)
    assert drawn("group_replaced", side, SEED) == case
    assert named(str(case)) == case


def test_is_4_the_census_finds_what_is_about_the_object_and_nothing_else() -> None:
    found = dict(counted("pod_delete", "manager"))
    assert found[SEEN] > 2
    assert found[Place("gatelift.core.works.following", "case_of")] > 2
    assert not any(place.module == "gatelift.core.machine" for place in found), "who contains is not swept"
    assert len(found) > 200


def test_is_4_the_sweep_sees_a_process_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: without containment the same case ends the leader."""
    case = Case("pod_delete", "manager", SEEN, 1, always=False)
    assert lived(case) == []
    monkeypatch.setattr("support.sweep.many.contained", nullcontext)
    (problem,) = lived(case)
    assert problem.startswith("a process ends")


def test_is_4_the_sweep_sees_what_does_not_come_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it pass where the object's own end never comes."""
    monkeypatch.setattr(intake, "_mark_owned", lambda *_: None)
    monkeypatch.setattr(reconcile, "_next_step", lambda *_: None)
    assert lived(Case("pod_delete", "manager", SEEN, 1, always=False))


def test_is_4_a_function_raises_as_often_as_asked_and_is_whole_afterwards() -> None:
    def about(name: str) -> SimpleNamespace:
        return SimpleNamespace(metadata=SimpleNamespace(name=name, uid=""))

    place = Place("gatelift.core.works.deciding", "_preempt")
    raising = Raising(Place("gatelift_kube.objects.versions", "is_last"), About(BAD))
    with pytest.raises(KeyError), raising.armed("manager"):
        pass
    assert place not in {found for found, _ in counted("pod_finish", "manager")}
    once = Raising(SEEN, About(BAD), 2)
    with once.armed("manager"):
        for name, raises in (("bad", False), ("good", False), ("bad", True), ("bad", False)):
            expected: type[Exception] = OnPurposeError if raises else AttributeError
            with pytest.raises(expected):
                intake.workload_seen(None, about(name), 0.0)  # type: ignore[arg-type]
    assert once.raised == 1


def test_is_4_all_sides_are_swept_and_containment_is_as_it_was() -> None:
    assert set(SIDES) == {"manager", "agent", "kinds"}
    assert drawn("pod_delete", "manager", SEED) == drawn("pod_delete", "manager", SEED)
    before = Contained.surfaces
    with contained():
        assert not Contained.surfaces
    assert Contained.surfaces is before
