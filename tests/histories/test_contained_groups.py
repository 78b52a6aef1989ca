"""Scripted histories (IS-4): what raises about a pod of a group spoils that group's work at most, for as long."""

from __future__ import annotations

import contextlib

import pytest

from gatelift.core.api.agenda import Key, Look
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import Knowledge
from gatelift.core.records.told import ToldMembers
from gatelift.core.records.work import Work
from gatelift.core.rules import containment
from gatelift.core.works import following
from gatelift_agent.core.beginning import rebuilding
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey
from support.manager.group_world import GROUP
from support.manager.world import World
from support.on_purpose import Broken, OnPurposeError
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.others import others_go_on

ABC = ["a", "b", "c"]
AGAIN_SECONDS = 400.0
"""Within this what rests is looked at again."""


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups, in which exceptions are contained as in a daemon."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    monkeypatch.setattr(Contained, "surfaces", False)
    return History(shown=False)


def placed(history: History, queue: str = "travels") -> None:
    """Have a group of three run: at a worker, or in `stays` at home."""
    for name in ABC:
        groups.make(history, name, queue=queue)
    history.until("all three run", lambda: run(history), 60.0)


def run(history: History) -> bool:
    """Say whether all three are shown as running."""
    shown = groups.phases(history)
    return all(shown.get(name) == "Running" for name in ABC)


def deleted(history: History) -> None:
    """Delete all of it, and see that it comes to its end."""
    for name in ABC:
        history.delete("home", POD, name)
    history.until("all is gone", lambda: not {*ABC} & {*groups.names(history), *groups.placed(history)}, AGAIN_SECONDS)
    history.until("and its Workload", lambda: not history.home.look(WORKLOAD, GROUP), AGAIN_SECONDS)
    assert history.leader.charges("travels") == history.leader.charges("stays") == 0


@pytest.mark.parametrize("half", [(ToldMembers, "begins"), (Attempt, "tell_gates")], ids=["of it", "of the rest"])
def test_hd_512_a_commit_of_a_group_that_was_taken_for_sent_by_half_is_sent_again(
    history: History, monkeypatch: pytest.MonkeyPatch, half: tuple[type, str]
) -> None:
    """Nobody was told of as being there, so nobody was ever told to leave: it ran on though its user had deleted it."""
    placed(history)
    cluster = groups.cluster_of(history)
    history.cut(cluster)
    history.until_lost(cluster)
    broken = Broken(monkeypatch, half, lambda *_: True, times=1)
    history.mend(cluster)
    history.until_connected(cluster)
    history.until("it is half taken", lambda: broken.mended, 60.0)
    history.passes(30.0)
    deleted(history)


def test_hd_513_what_raises_again_where_an_object_is_set_aside_ends_no_process(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which Workloads an object has was asked outside of any boundary, as it was set aside and looked whether it is."""
    placed(history, "stays")
    leader, asked = history.leader, (Work, "in_order")
    put = Broken(monkeypatch, (Knowledge, "put_owner"), lambda _, owner, **__: owner.object.metadata.name == "a")
    again = Broken(monkeypatch, asked, lambda work: work.gathered is not None and not put.mended)
    for name in ("a", "b"):  # one is set aside, and of the other one it is looked whether it is held
        history.edit("home", POD, name, {"metadata": {"labels": {"touched": "x"}}})
    others_go_on(history, "good")
    assert put.raised
    assert again.raised
    assert history.leader is leader, "it leads on"
    put.mend()
    deleted(history)


@pytest.mark.parametrize("queue", ["travels", "stays"])
def test_hd_514_a_leader_that_cannot_read_the_pods_of_a_group_ends_nothing_of_it(
    history: History, monkeypatch: pytest.MonkeyPatch, queue: str
) -> None:
    """None of them is known then: it read as one whose pods are all gone, and what ran was stopped."""
    placed(history, queue)
    broken = Broken(monkeypatch, (Knowledge, "put_owner"), lambda _, owner, **__: owner.object.metadata.name in ABC)
    history.kill_leader()
    history.until("another one leads", history.leads, 120.0)
    others_go_on(history, "good")
    history.passes(60.0)
    assert broken.raised
    assert run(history), "it runs on"
    assert history.leader.charges(queue) == 1500, "and is charged"
    broken.mend()
    history.passes(AGAIN_SECONDS)
    assert run(history)
    deleted(history)


def test_hd_514_what_is_set_aside_of_a_group_obeys_the_deletion_of_all_its_pods(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed(history)
    broken = Broken(monkeypatch, (Knowledge, "put_owner"), lambda _, owner, **__: owner.object.metadata.name in ABC)
    for name in ABC:
        history.delete("home", POD, name)
    history.until("all have stopped", lambda: not groups.run_there(history), 60.0)
    assert broken.raised
    assert history.leader.charges("travels") == 1500, "and is charged"
    broken.mend()
    deleted(history)


@pytest.mark.parametrize("named", [True, False])
def test_hd_537_a_pod_that_goes_while_a_new_leader_can_make_nothing_of_its_group_is_let_go(
    history: History, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    """Nothing of it runs: it was looked at before anything said so, and not again.

    `named`: by the Workload, so that it might be there as its worker is talked to again, and all had left it before.
    """
    for name in ABC:
        groups.make(history, name, takes=5.0)
    history.until("all three run", lambda: run(history), 60.0)
    history.delete("home", POD, "b")
    if not named:
        history.kill_leader()
    groups.make(history, "d")
    if named:
        history.kill_leader()
    broken = Broken(monkeypatch, (following, "_catch_up"), lambda case: case.known.metadata.name == GROUP)
    history.until("another one leads", history.leads, 120.0)
    for name in ("a", "c", "d"):
        history.delete("home", POD, name)
    history.passes(60.0)
    assert broken.raised
    broken.mend()
    history.until("all is gone", lambda: not groups.names(history), AGAIN_SECONDS)
    assert history.leader.charges("travels") == 0


def test_hd_539_who_is_told_to_leave_before_an_agent_could_read_all_of_its_group_leaves(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was taken for one that is not named any more, which ends nothing that runs: it ran on, and was charged."""
    placed(history)
    cluster = groups.cluster_of(history)
    history.delete("home", POD, "b")
    broken = Broken(monkeypatch, (rebuilding, "_most_likely"), lambda held: held.object.metadata.name == "a", times=1)
    history.kill_agent(cluster)
    history.until("it could not be read", lambda: broken.mended, 60.0)
    history.until("it has left", lambda: "b" not in {*groups.names(history), *groups.placed(history)}, 120.0)
    assert groups.run_there(history) == ["a", "c"]


def test_hd_513_where_nobody_can_say_whether_something_is_held_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)
    broken, held = Broken(monkeypatch, (containment, "_workloads_of"), lambda *_: True), False
    with contextlib.suppress(OnPurposeError):
        held = containment.is_held(World().machine.core, Key(Look.OWNER, ObjectKey("team", "a"), POD))
    assert broken.raised
    assert held
