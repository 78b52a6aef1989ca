"""Scripted histories (HD-421): past the webhook, somebody changes what a pod of a group that runs says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP, K
from support.sim import groups, groups_at_home
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager

ABC = ["a", "b", "c"]
PLACES = {"home": "stays", "worker": "travels"}
places = pytest.mark.parametrize("place", PLACES)

LABELS = (
    "podset",
    "pod-group-name",
    "pod-group-role",
    "pod-group-pod-index",
    "queue-name",
    "managed",
    "priority-class",
)
NOTES = (
    "pod-group-name", "pod-group-total-count", "role-hash", "pod-group-fast-admission", "pod-group-serving",
    "pod-group-sets", "prebuilt-workload-name", "workload", "pod-suspending-parent",
)  # fmt: skip
OURS = ("gatelift.dev/origin", "gatelift.dev/workload-uid", "gatelift.dev/epoch")
MARKS = [
    *[("labels", f"{K}{key}", value) for key in LABELS for value in ("other", None)],
    *[("annotations", f"{K}{key}", value) for key in NOTES for value in ("7", None)],
    *[("labels", key, value) for key in OURS for value in ("2", None)],
    ("finalizers", "", None),
]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def running(history: History, place: str) -> list[str]:
    return groups_at_home.running(history) if place == "home" else groups.run_there(history)


def ran(history: History, place: str) -> dict[str, str]:
    """Return what runs by name, with its UID."""
    found = groups.placed(history).items() if place == "worker" else ((n, groups.at_home(history, n)) for n in ABC)
    return {name: one["metadata"]["uid"] for name, one in found if one and one["status"].get("phase") == "Running"}


def until_all_run(history: History, place: str, roles: bool = True) -> None:
    """Have a group of two roles run: `a` and `b` are alike, `c` asks for less."""
    make: Any = groups_at_home.make if place == "home" else groups.make
    for name in ABC:
        make(history, name, cpu="250m" if name == "c" and roles else "500m")
    history.until("all run", lambda: running(history, place) == ABC, 60.0)
    history.passes(5.0)


def change(history: History, where: str, key: str, value: Any, *names: str) -> None:
    for name in names:
        history.edit("home", POD, name, {"metadata": {where: {key: value} if where != "finalizers" else None}})


def touch(history: History) -> None:
    for name in ABC:
        change(history, "annotations", "example.com/touched", "1", name)
    history.passes(20.0)


def another_leads(history: History) -> None:
    history.kill_leader()
    history.until("another leads", history.leads)
    history.passes(60.0)


@places
@pytest.mark.parametrize(("where", "key", "value"), MARKS, ids=[f"{k or w}={v}" for w, k, v in MARKS])
@pytest.mark.parametrize("led", [True, False], ids=["while a leader sees it", "while nobody leads"])
def test_hd_421_no_mark_of_a_member_ends_what_runs(
    history: History, place: str, where: str, key: str, value: Any, led: bool
) -> None:
    """HD-421: each mark that membership is read from, changed or taken off: all run on, once, and no other one does."""
    until_all_run(history, place)
    before = ran(history, place)
    if not led:
        history.kill_leader()
    change(history, where, key, value, "b")
    if not led:
        history.until("another leads", history.leads)
    history.passes(60.0)
    touch(history)
    assert ran(history, place) == before
    if led:
        another_leads(history)
        assert ran(history, place) == before


def test_hd_421_who_ends_under_another_hash_counts_in_the_role_that_it_ran_as(history: History) -> None:
    """HD-421: the hash is changed while nobody leads, and the pod runs at a worker; the group ends with its pods."""
    for name in ABC:
        groups.make(history, name, cpu="250m" if name == "c" else "500m", seconds=150.0)
    history.until("all run", lambda: groups.run_there(history) == ABC, 60.0)
    history.kill_leader()
    change(history, "annotations", f"{K}role-hash", "other", "b")
    history.until("another leads", history.leads)
    history.until("it has succeeded", lambda: groups.condition(history, "Finished")[1] == "Succeeded", 300.0)


def test_hd_437_who_ends_under_another_hash_of_its_users_counts_in_the_role_that_it_ran_as(history: History) -> None:
    """HD-437: its user wrote the hashes of two roles; one is changed while nobody leads, and the pod is at a worker."""
    hashes = {"a": "big", "b": "big", "c": "small"}
    for name, said in hashes.items():
        cpu = "250m" if name == "c" else "500m"
        seconds = 100.0 if name == "b" else 300.0
        groups.make(history, name, cpu=cpu, seconds=seconds, notes={f"{K}role-hash": said})
    history.until("all run", lambda: groups.run_there(history) == ABC, 60.0)
    assert {one["name"] for one in groups.workload(history)["spec"]["podSets"]} == {"big", "small"}
    history.kill_leader()
    change(history, "annotations", f"{K}role-hash", "other", "b")
    history.until("another leads", history.leads)
    history.until("it has succeeded", lambda: groups.phases(history)["b"] == "Succeeded", 200.0)
    history.passes(5.0)
    assert groups.workload(history)["status"].get("reclaimablePods") == [{"name": "big", "count": 1}]
    history.until("all have", lambda: groups.condition(history, "Finished")[1] == "Succeeded", 400.0)


@places
def test_hd_421_a_member_keeps_the_slot_that_it_was_let_go_for(history: History, place: str) -> None:
    """HD-421: one says that it is of the other role; nobody takes the slot that it seems to have left."""
    until_all_run(history, place)
    before = ran(history, place)
    roles = {one["name"]: one for one in groups.workload(history)["spec"]["podSets"]}
    (other,) = [name for name, one in roles.items() if one["count"] == 1]
    change(history, "labels", f"{K}podset", other, "b")
    change(history, "annotations", f"{K}role-hash", other, "b")
    groups_at_home.make(history, "d", PLACES[place])
    history.passes(30.0)
    assert ran(history, place) == before
    another_leads(history)
    groups_at_home.make(history, "e", PLACES[place])
    history.passes(30.0)
    assert (ran(history, place), running(history, place)) == (before, ABC)
    assert not {"d", "e"} & groups.placed(history).keys()


OTHER = "other"


def name_another(history: History, by: str, value: str | None) -> None:
    """Have `b` name another group, or none."""
    change(history, by, f"{K}pod-group-name", value, "b")
    if value is not None:
        change(history, "annotations", f"{K}pod-group-total-count", "2", "b")


def make_other(history: History, place: str, name: str = "x") -> None:
    """Make the pod that the other group lacks, should `b` be its second one."""
    marks: dict[str, Any] = {"labels": {f"{K}pod-group-name": OTHER}, "total": 2, "cpu": "100m"}
    groups_at_home.make(history, name, PLACES[place], **marks)


@places
@pytest.mark.parametrize("led", [True, False], ids=["while a leader sees it", "while nobody leads"])
@pytest.mark.parametrize(
    ("by", "value"), [("labels", OTHER), ("annotations", OTHER), ("labels", None)], ids=["label", "note", "none"]
)
def test_hd_422_a_member_that_is_given_to_another_group_runs_once(
    history: History, place: str, by: str, value: str | None, led: bool
) -> None:
    """HD-422: it stays what it was let go as; the group that it names waits for a pod of its own."""
    until_all_run(history, place)
    before = ran(history, place)
    if not led:
        history.kill_leader()
    name_another(history, by, value)
    if not led:
        history.until("another leads", history.leads)
    history.passes(30.0)
    make_other(history, place)
    history.passes(60.0)
    assert running(history, place) == ABC
    another_leads(history)
    assert {**ran(history, place), **before} == before
    make_other(history, place, "y")
    runs = [*ABC, "x", "y"]
    history.until("the other group runs", lambda: running(history, place) == runs, 100.0)
    assert {name: uid for name, uid in ran(history, place).items() if name in ABC} == before


@places
def test_hd_422_who_is_given_to_another_group_ends_with_its_own(history: History, place: str) -> None:
    until_all_run(history, place)
    name_another(history, "labels", OTHER)
    history.passes(10.0)
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing runs", lambda: not running(history, place), 200.0)
    history.passes(60.0)
    assert groups.names(history) == []
    assert history.leader.charges(PLACES[place]) == 0


@places
@pytest.mark.parametrize("led", [True, False], ids=["while a leader sees it", "while nobody leads"])
def test_hd_424_a_member_that_no_watch_shows_any_more_runs_on(history: History, place: str, led: bool) -> None:
    """HD-424: both labels go by which pods are watched, and all else that is ours."""
    until_all_run(history, place)
    before = ran(history, place)
    if not led:
        history.kill_leader()
    for key in ("queue-name", "managed"):
        change(history, "labels", f"{K}{key}", None, "b")
    if not led:
        history.until("another leads", history.leads)
    history.passes(60.0)
    assert ran(history, place) == before
    another_leads(history)
    assert ran(history, place) == before
