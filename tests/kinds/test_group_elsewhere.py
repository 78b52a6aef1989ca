"""What is known of members' runs at a worker: what has stopped there has, and what home shows is no word of it."""

from __future__ import annotations

from gatelift_kinds.pod_group.elsewhere import RunsElsewhere
from gatelift_kinds.pod_group.member import Elsewhere

PLACED = ("a", 1)


def placed(**over: bool) -> RunsElsewhere:
    found = RunsElsewhere()
    found.placed(PLACED, over)
    return found


def test_hd_276_what_has_stopped_does_not_run_again_in_its_placement_by_any_later_word() -> None:
    runs = placed(a=False)
    assert runs.put("a", Elsewhere.STOPPED) == ["a"]
    assert runs.put("a", Elsewhere.MAY_RUN) == []
    assert runs.of("a") is Elsewhere.STOPPED
    runs.placed(("a", 2), {"a": False})
    assert runs.of("a") is Elsewhere.MAY_RUN


def test_hd_369_who_showed_its_end_runs_all_the_same_where_its_worker_says_so() -> None:
    runs = placed(a=True, b=False)
    assert (runs.of("a"), runs.of("b")) == (Elsewhere.NOWHERE, Elsewhere.MAY_RUN)
    assert runs.put("a", Elsewhere.MAY_RUN) == ["a"]
