"""Scripted histories: how a pod of a group ended at a worker cannot be shown at home, and it does not run once more."""

from __future__ import annotations

import pytest

from gatelift_kinds.pod_group import unshown_ends
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.group_world import GROUP
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import ApiPort

ABC = ["a", "b", "c"]


@pytest.fixture
def history(monkeypatch: pytest.MonkeyPatch) -> History:
    """Return a history whose managers and agents serve groups."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    return History(shown=False)


def take_no_status(
    monkeypatch: pytest.MonkeyPatch, name: str, *, kept: bool = True, many: bool = False
) -> list[ApiWrite]:
    """Have the API server at home refuse each status of a pod for good; return what it has refused.

    `kept` False: and the Workload that is to keep how it ended. `many`: only such that say more than the end.
    """
    send, tries = ApiPort._send, list[ApiWrite]()

    def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
        said = command.body if isinstance(command, Patch) and port.cluster.name == "home" else b""
        of_pod = command.ref.resource == POD and command.ref.key.name == name and b'"status"' in said
        of_end = not kept and unshown_ends.ANNOTATION.encode() in said
        if of_end or (of_pod and (not many or b'"imageID"' in said)):
            tries.append(command)
            port._timeline.after(0.02, lambda: port._refuse(command))
        else:
            send(port, command, deadline)

    monkeypatch.setattr(ApiPort, "_send", sent)
    monkeypatch.setattr("support.sim.port.REFUSALS", (422,))
    return tries


def noted(history: History) -> Doc:
    return dict(groups.workload(history)["metadata"]["annotations"])


def placed(history: History, *, exit_code: int = 0) -> str:
    """Have a group of three run at a worker, of which `a` ends after a while; return where."""
    for name in ABC:
        groups.make(history, name, seconds=10.0 if name == "a" else 0.0, takes=2.0, exit_code=exit_code)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    return groups.cluster_of(history)


def active(history: History, *, value: bool) -> None:
    history.edit("home", WORKLOAD, GROUP, {"spec": {"active": value}})


def given_back(history: History, seconds: float = 120.0) -> None:
    history.until("it is given back", lambda: groups.condition(history, "QuotaReserved")[0] == "False", seconds)


def others_run_alone(history: History, seconds: float = 60.0) -> None:
    """Check that b and c run again, and a does not."""
    history.until("the others run", lambda: groups.run_there(history) == ["b", "c"], 300.0)
    for _ in range(int(seconds / 2)):
        history.passes(2.0)
        assert "a" not in groups.placed(history)


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_412_who_succeeded_does_not_run_again_though_home_never_takes_that(
    history: History, monkeypatch: pytest.MonkeyPatch, *, another_leads: bool, cut: bool
) -> None:
    cluster = placed(history)
    take_no_status(monkeypatch, "a")
    if cut:
        history.cut(cluster)
    history.passes(15.0)
    active(history, value=False)
    history.mend(cluster)
    given_back(history)
    if another_leads:
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
    active(history, value=True)
    others_run_alone(history)
    assert history.leader.charges("travels") == 1000


def test_hd_412_nor_in_a_third_epoch_by_another_leader(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(history)
    take_no_status(monkeypatch, "a")
    history.passes(15.0)
    for _ in range(2):
        active(history, value=False)
        given_back(history)
        history.passes(5.0)
        active(history, value=True)
        history.until("the others run", lambda: groups.run_there(history) == ["b", "c"], 300.0)
    history.kill_leader()
    history.until("another one leads", history.leads, 100.0)
    others_run_alone(history)


def test_hd_412_it_counts_for_the_end_of_its_group(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ABC:
        groups.make(history, name, seconds=10.0 if name == "a" else 60.0, takes=2.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    take_no_status(monkeypatch, "a")
    history.passes(15.0)
    active(history, value=False)
    given_back(history)
    active(history, value=True)
    history.until("it is over", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3", 300.0)
    history.until("the pods are let go", lambda: not groups.finalizers(history), 60.0)


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_413_who_failed_unheard_before_an_eviction_is_replaced_and_does_not_run_again(
    history: History, *, another_leads: bool
) -> None:
    cluster = placed(history, exit_code=1)
    history.cut(cluster)
    history.passes(15.0)
    assert groups.run_there(history) == ["b", "c"]
    active(history, value=False)
    history.until_lost(cluster)
    history.mend(cluster)
    given_back(history)
    if another_leads:
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
    active(history, value=True)
    history.passes(60.0)
    assert groups.phases(history)["a"] == "Failed"
    assert {groups.phases(history)[name] for name in "bc"} == {"Pending"}, "who was stopped is shown as failed"
    assert groups.condition(history, "WaitingForReplacementPods")[0] == "True"
    assert groups.run_there(history) == []
    groups.make(history, "d")
    history.until("they run", lambda: groups.run_there(history) == ["b", "c", "d"], 300.0)


def test_hd_413_nor_where_home_never_takes_that(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(history, exit_code=1)
    take_no_status(monkeypatch, "a")
    history.passes(15.0)
    active(history, value=False)
    given_back(history)
    active(history, value=True)
    history.passes(60.0)
    assert groups.run_there(history) == []
    groups.make(history, "d")
    history.until("they run", lambda: groups.run_there(history) == ["b", "c", "d"], 300.0)


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_414_who_went_while_no_agent_ran_and_nobody_heard_how_does_not_run_again(
    history: History, *, another_leads: bool
) -> None:
    """Somebody takes its finalizer off: perhaps it had succeeded. It is shown as failed, and is replaced."""
    cluster = placed(history)
    history.cut(cluster)
    history.passes(15.0)
    history.kill_agent(cluster, again=False)
    history.edit(cluster, POD, "a", {"metadata": {"finalizers": None}})
    history.delete(cluster, POD, "a")
    history.until("it is gone", lambda: "a" not in groups.placed(history), 60.0)
    active(history, value=False)
    history.world.start_agent(cluster)
    history.mend(cluster)
    given_back(history, 300.0)  # until each node was heard of it may run (P10)
    if another_leads:
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
    active(history, value=True)
    history.passes(60.0)
    assert "a" not in groups.placed(history)
    assert groups.phases(history)["a"] == "Failed"


@pytest.mark.parametrize("evicted", [False, True])
@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_419_nor_where_all_of_them_went_so(history: History, *, another_leads: bool, evicted: bool) -> None:
    """Its agent names nobody then, whether it lists what it has or is told to stop what it knows nothing of."""
    cluster = placed(history)
    history.until("each shows that it runs", lambda: set(groups.phases(history).values()) == {"Running"}, 60.0)
    history.cut(cluster)
    history.passes(15.0)
    history.kill_agent(cluster, again=False)
    for name in ABC:
        history.edit(cluster, POD, name, {"metadata": {"finalizers": None}})
        history.delete(cluster, POD, name)
    history.until("they are gone", lambda: not groups.placed(history), 60.0)
    if evicted:
        active(history, value=False)
    if another_leads:
        history.kill_leader()
        history.until("another one leads", history.leads, 100.0)
    history.world.start_agent(cluster)
    history.mend(cluster)
    history.until("each shows it", lambda: set(groups.phases(history).values()) == {"Failed"}, 300.0)
    active(history, value=True)
    history.passes(60.0)
    assert not groups.placed(history)
    assert groups.condition(history, "WaitingForReplacementPods")[0] == "True"
    for name in ("d", "e", "f"):
        groups.make(history, name)
    history.until("their replacements run", lambda: groups.run_there(history) == ["d", "e", "f"], 300.0)


@pytest.mark.parametrize("another_leads", [False, True])
def test_hd_524_it_counts_while_its_group_runs_on_and_is_tried_no_more(
    history: History, monkeypatch: pytest.MonkeyPatch, *, another_leads: bool
) -> None:
    """So the group ends once the others have: it is said at the pod, and its Workload keeps how it ended."""
    for name in ABC:
        groups.make(history, name, seconds=10.0 if name == "a" else 200.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    tries = take_no_status(monkeypatch, "a")
    history.until("its Workload keeps it", lambda: unshown_ends.ANNOTATION in noted(history), 60.0)
    assert history.leader.told["EndNotShown"] == 1
    before = len(tries)
    history.passes(10.0)
    history.edit("home", POD, "a", {"metadata": {"annotations": {"example.com/touched": "1"}}})
    history.passes(50.0)
    assert len(tries) == before
    if another_leads:
        history.kill_leader()
    history.until("it is over", lambda: groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3", 300.0)
    history.until("the pods are let go", lambda: not groups.finalizers(history), 60.0)


def test_hd_524_who_has_failed_so_can_be_replaced(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    placed(history, exit_code=1)
    take_no_status(monkeypatch, "a")
    history.until("its Workload keeps it", lambda: unshown_ends.ANNOTATION in noted(history), 60.0)
    groups.make(history, "d")
    history.until("they run", lambda: groups.run_there(history) == ["b", "c", "d"], 60.0)


def test_hd_542_where_nothing_takes_an_end_at_first_it_is_tried_again_and_the_group_is_finished(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted as what runs, which all others waited for: the group stood still with its quota, for ever."""
    for name in ABC:
        groups.make(history, name, seconds=10.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    with monkeypatch.context() as broken:
        tries = take_no_status(broken, "a", kept=False)
        history.passes(120.0)
        assert 2 <= len(tries) < 10
        assert groups.condition(history, "Finished")[0] != "True"
    history.until("it is finished", lambda: groups.condition(history, "Finished")[0] == "True", 1000.0)
    assert groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3"
    assert history.leader.charges("travels") == 0


def test_hd_543_an_end_that_home_takes_in_few_words_alone_counts(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Home showed it, and it counted as what runs all the same: the group stood still with its quota."""
    for name in ABC:
        groups.make(history, name, seconds=10.0)
    history.until("all three run", lambda: groups.run_there(history) == ABC, 60.0)
    tries = take_no_status(monkeypatch, "a", many=True)
    history.until("home shows it", lambda: groups.phases(history)["a"] == "Succeeded", 60.0)
    assert tries
    history.until("it is finished", lambda: groups.condition(history, "Finished")[0] == "True", 60.0)
    assert groups.condition(history, "Finished")[2] == "Pods succeeded: 3/3"
