"""Scripted histories (HD-420): past the policy, somebody takes off a group's Workload what says that it is one."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER
from gatelift_kinds.shared.markers import IS_GROUP_WORKLOAD
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]
PLACES = {"home": "stays", "worker": "travels"}

places = pytest.mark.parametrize("place", PLACES)


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def running(history: History, place: str) -> list[str]:
    """Return which pods of the group run."""
    return groups_at_home.running(history) if place == "home" else groups.run_there(history)


def until_all_run(history: History, place: str) -> None:
    """Have a group of three run; nothing of it is to end by itself."""
    for name in ABC:
        if place == "home":
            groups_at_home.make(history, name)
        else:
            groups.make(history, name)
    history.until("all run", lambda: running(history, place) == ABC, 60.0)
    history.passes(5.0)


def edit(history: History, **notes: str | None) -> None:
    keys = {"mark": IS_GROUP_WORKLOAD, "owner": ANNOTATION_OWNER}
    history.edit(
        "home", WORKLOAD, GROUP, {"metadata": {"annotations": {keys[key]: said for key, said in notes.items()}}}
    )


def said(history: History) -> tuple[Any, Any]:
    """Return whose Workload the group's says it is: mark and annotation."""
    notes = groups.workload(history)["metadata"].get("annotations", {})
    return notes.get(IS_GROUP_WORKLOAD), notes.get(ANNOTATION_OWNER)


def uids(history: History) -> dict[str, str]:
    return {name: groups.uid(history, name) for name in ABC}


def another_leads(history: History) -> None:
    history.until("another leads", history.leads)
    history.passes(60.0)


@places
@pytest.mark.parametrize("mark", [None, "false"])
def test_hd_420_the_mark_of_a_groups_workload_goes_and_is_written_back(
    history: History, place: str, mark: str | None
) -> None:
    """HD-420: what runs goes on, charged, and ends with its user's deletion as ever."""
    until_all_run(history, place)
    before = said(history), uids(history)
    edit(history, mark=mark)
    history.passes(30.0)
    assert running(history, place) == ABC
    assert (said(history), uids(history)) == before
    assert history.leader.charges(PLACES[place]) == 1500
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing is left", lambda: not groups.names(history) and not groups.workload(history), 200.0)


@places
def test_hd_420_mark_and_owner_go_in_one_patch_and_are_written_back(history: History, place: str) -> None:
    until_all_run(history, place)
    before = said(history), uids(history)
    edit(history, mark=None, owner=None)
    history.passes(30.0)
    assert running(history, place) == ABC
    assert (said(history), uids(history)) == before


@places
def test_hd_420_a_leader_that_has_never_seen_the_mark_writes_it_back(history: History, place: str) -> None:
    until_all_run(history, place)
    before = said(history), uids(history)
    history.kill_leader()
    edit(history, mark=None)
    another_leads(history)
    assert running(history, place) == ABC
    assert (said(history), uids(history)) == before


@places
def test_hd_420_nothing_that_runs_is_ended_where_nobody_saw_whose_it_was(history: History, place: str) -> None:
    """HD-420: mark and owner go while nobody leads: nothing says any more that it is the group's, but what runs."""
    until_all_run(history, place)
    before = uids(history)
    history.kill_leader()
    edit(history, mark=None, owner=None)
    another_leads(history)
    assert (running(history, place), uids(history)) == (ABC, before)
    assert history.leader.charges(PLACES[place]) == 1500
    for name in ABC:
        history.edit("home", POD, name, {"metadata": {"annotations": {"example.com/touched": "1"}}})
    history.passes(60.0)
    assert (running(history, place), uids(history)) == (ABC, before)
    history.kill_leader()
    another_leads(history)
    assert (running(history, place), uids(history)) == (ABC, before)


@places
def test_hd_420_a_group_that_waits_keeps_its_workload(history: History, place: str) -> None:
    """HD-420: one that has no quota is the group's, too, and comes to run."""
    make: Any = groups_at_home.make if place == "home" else groups.make
    for name in ABC:
        make(history, name, cpu="50")
    history.passes(5.0)
    before = said(history)
    edit(history, mark=None)
    history.passes(10.0)
    assert said(history) == before
    assert groups.workload(history)["status"].get("admission") is None


def test_hd_420_a_workload_that_somebody_marks_is_not_the_groups_for_that(history: History) -> None:
    """HD-420: it says that it is a group's, and not of which pods; the group's pods wait, and it is left alone."""
    theirs: Doc = {
        "metadata": {"name": GROUP, "namespace": TEAM, "annotations": {f"{K}is-group-workload": "true"}},
        "spec": {"queueName": "stays", "podSets": [_a_pod_set()]},
        "apiVersion": WORKLOAD.api_version,
        "kind": WORKLOAD.kind,
    }
    history.home.create(WORKLOAD, theirs)
    history.passes(2.0)
    for name in ABC:
        groups_at_home.make(history, name)
    history.passes(20.0)
    assert groups_at_home.running(history) == []
    assert groups.workload(history)["metadata"].get("ownerReferences", []) == []


def _a_pod_set() -> Doc:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}


def owners(history: History) -> list[str]:
    """Return which pods the group's Workload names as its owners."""
    return sorted(one["name"] for one in groups.workload(history)["metadata"].get("ownerReferences", []))


def take_off(history: History, *names: str) -> None:
    """Take these pods off the owners of the group's Workload."""
    kept = [one for one in groups.workload(history)["metadata"]["ownerReferences"] if one["name"] not in names]
    history.edit("home", WORKLOAD, GROUP, {"metadata": {"ownerReferences": kept or None}})


@places
@pytest.mark.parametrize("names", [ABC, ["b"]], ids=["all", "one"])
@pytest.mark.parametrize("led", [True, False], ids=["while a leader sees it", "while nobody leads"])
def test_hd_438_owners_of_a_groups_workload_that_go_are_written_back(
    history: History, place: str, names: list[str], *, led: bool
) -> None:
    """HD-438: by them it is known who ends with the Workload, and who runs for it."""
    until_all_run(history, place)
    before = uids(history)
    if not led:
        history.kill_leader()
    take_off(history, *names)
    if not led:
        history.until("another leads", history.leads)
    history.until("they are written back", lambda: owners(history) == ABC, 60.0)
    history.passes(10.0)
    assert (uids(history), running(history, place)) == (before, ABC)
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing is left", lambda: groups.names(history) == [] and not running(history, place), 120.0)


@places
def test_hd_438_who_was_named_ends_with_the_workload_that_names_it_no_more(history: History, place: str) -> None:
    until_all_run(history, place)
    take_off(history, *ABC)
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing is left", lambda: groups.names(history) == [] and not running(history, place), 120.0)
