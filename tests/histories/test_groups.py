"""Scripted histories: pods of a group come, are too many, and go, beside a garbage collector and changing leaders."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.builders import a_workload
from support.manager.group_world import GROUP, K, a_member
from support.sim.agent import SimAgent
from support.sim.cluster import TEAM, Doc
from support.sim.history import History
from support.sim.history import _told as told
from support.sim.manager import SimManager


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def make(
    history: History, name: str, queue: str = "travels", *, seconds: float = 0.0, exit_code: int = 0, **more: Any
) -> Doc:
    """Make a pod of the group, which runs for so long once it is let go."""
    document = a_member(name, **more)
    meta = document["metadata"]
    meta |= {"namespace": TEAM, "labels": meta["labels"] | {f"{K}queue-name": queue}}
    meta["annotations"] |= told(seconds, 0.0, exit_code)
    del document["status"], meta["creationTimestamp"]
    history.home.create(POD, document)
    history.passes(1.5)
    found = history.home.look(POD, name, TEAM)
    assert found is not None
    return found


def theirs(history: History) -> Doc | None:
    return history.home.look(WORKLOAD, GROUP, TEAM)


def owners(history: History) -> list[str]:
    found = theirs(history)
    return [one["name"] for one in found["metadata"]["ownerReferences"]] if found is not None else []


def names(history: History) -> list[str]:
    return sorted(one["metadata"]["name"] for one in history.home.all(POD))


def test_pg_4_5_a_group_is_complete_under_a_new_leader_too_and_who_is_too_many_goes(history: History) -> None:
    make(history, "a")
    make(history, "b")
    assert theirs(history) is None
    history.kill_leader()
    make(history, "c")
    history.until("there is a Workload", lambda: owners(history) == ["a", "b", "c"], 60.0)
    history.kill_leader()
    make(history, "d")
    history.until("the fourth has gone", lambda: names(history) == ["a", "b", "c"], 60.0)
    history.passes(30)
    assert (owners(history), names(history)) == (["a", "b", "c"], ["a", "b", "c"])


def test_pg_30_the_workload_of_a_waiting_group_goes_with_the_last_of_its_pods(history: History) -> None:
    for name in "abc":
        make(history, name)
    uid = (theirs(history) or {})["metadata"]["uid"]
    history.delete("home", POD, "a")
    history.passes(20)
    assert (theirs(history) or {})["metadata"]["uid"] == uid
    make(history, "d")
    history.until("the fourth is an owner", lambda: "d" in owners(history), 60.0)
    for name in "bcd":
        history.delete("home", POD, name)
    history.until("nothing is left", lambda: not names(history) and theirs(history) is None, 60.0)


def test_hd_350_a_strangers_workload_in_a_groups_place_stays_as_it_is_until_it_goes(history: History) -> None:
    first = make(history, "a", total=2)
    document = a_workload(GROUP).document()
    pod = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": first["metadata"]["uid"]}
    document["metadata"] |= {"namespace": TEAM, "ownerReferences": [pod]}
    document["spec"]["queueName"] = "travels"
    history.home.create(WORKLOAD, document)
    make(history, "b", total=2)
    before = theirs(history)
    history.passes(60)
    history.kill_leader()
    history.passes(60)
    assert theirs(history) == before
    history.delete("home", WORKLOAD, GROUP)
    history.until("the group has its own", lambda: owners(history) == ["a", "b"], 60.0)


def running(history: History) -> list[str]:
    return sorted(
        one["metadata"]["name"] for one in history.home.all(POD) if one.get("status", {}).get("phase") == "Running"
    )


def finished(history: History) -> str:
    found = theirs(history) or {}
    said = [one for one in found.get("status", {}).get("conditions", []) if one["type"] == "Finished"]
    return said[0]["message"] if said else ""


def test_pg_1_a_group_runs_at_home_as_one_and_ends_once_all_have_succeeded(history: History) -> None:
    """PC-037."""
    for name, seconds in zip("abc", (20.0, 40.0, 60.0), strict=True):
        make(history, name, "stays", seconds=seconds, cpu="500m")
    history.until("all three run", lambda: running(history) == ["a", "b", "c"], 30.0)
    history.until("only the last runs", lambda: running(history) == ["c"], 60.0)
    assert finished(history) == ""
    history.until("it has finished", lambda: finished(history) == "Pods succeeded: 3/3", 60.0)
    history.until(
        "all are let go", lambda: not any(one["metadata"].get("finalizers") for one in history.home.all(POD)), 60.0
    )
    history.passes(60)
    assert names(history) == ["a", "b", "c"]


@pytest.mark.parametrize("step", range(0, 30, 3))
def test_pg_31_a_group_at_home_comes_to_its_end_whenever_its_manager_is_killed(history: History, step: int) -> None:
    for name in "abc":
        make(history, name, "stays", seconds=20.0, cpu="500m")
    history.passes(step)
    history.kill_leader()
    history.until("it has finished", lambda: finished(history) == "Pods succeeded: 3/3", 300.0)
    history.until(
        "all are let go", lambda: not any(one["metadata"].get("finalizers") for one in history.home.all(POD)), 60.0
    )


def test_pg_30_a_group_that_runs_and_is_deleted_whole_stops_and_leaves_nothing(history: History) -> None:
    for name in "abc":
        make(history, name, "stays", cpu="500m")
    history.until("all three run", lambda: running(history) == ["a", "b", "c"], 30.0)
    for name in "abc":
        history.delete("home", POD, name)
    history.until("nothing is left", lambda: not names(history) and theirs(history) is None, 120.0)


def test_pg_15_the_workload_of_a_group_that_runs_is_deleted_and_its_pods_are_ended(history: History) -> None:
    for name in "abc":
        make(history, name, "stays", cpu="500m")
    history.until("all three run", lambda: running(history) == ["a", "b", "c"], 30.0)
    history.delete("home", WORKLOAD, GROUP)
    history.until("nothing is left", lambda: not names(history), 120.0)
    history.until("nor is the Workload", lambda: theirs(history) is None, 60.0)


def test_a_group_that_is_deactivated_is_ended_whole(history: History) -> None:
    for name in "abc":
        make(history, name, "stays", cpu="500m")
    history.until("all three run", lambda: running(history) == ["a", "b", "c"], 30.0)
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": False}})
    history.until("nobody runs", lambda: running(history) == [], 120.0)


def test_pg_7_a_group_whose_pods_have_all_failed_is_not_over_while_somebody_may_replace_them(history: History) -> None:
    for name in "abc":
        make(history, name, "stays", seconds=10.0, exit_code=1, cpu="500m")
    history.passes(120)
    assert [one["status"]["phase"] for one in history.home.all(POD)] == ["Failed"] * 3
    assert finished(history) == ""
