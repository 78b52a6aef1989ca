"""A pod that still names its queue loses Kueue's mark, around the policy: the mark comes back, and nothing more."""

from __future__ import annotations

import pytest

from gatelift.core.state.out_of_sight import AGAIN_SECONDS, OutOfSight
from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.sim.cluster import Doc
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.restoring import cordon

MARK = (markers.MANAGED,)
BOTH = (*MARK, markers.QUEUE_NAME)
ALL = (*MARK, LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)


def take_off(history: History, labels: tuple[str, ...] = MARK, *, more: Doc | None = None) -> None:
    """Let somebody take the mark off the pod, and whatever else."""
    history.edit("home", POD, "one", {"metadata": {"labels": dict.fromkeys(labels), **(more or {})}})


def marked(history: History) -> bool:
    """Say whether the pod has its mark."""
    found = history.home.look(POD, "one")
    return found is not None and found["metadata"]["labels"].get(markers.MANAGED) == markers.MANAGED_VALUE


def version(history: History) -> str:
    """Return the version of the pod."""
    found = history.home.look(POD, "one")
    assert found is not None
    return str(found["metadata"]["resourceVersion"])


@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("labels", [MARK, ALL], ids=["mark", "all but the queue's name"])
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_145_a_pod_that_runs_runs_on_and_has_its_mark_again(queue: str, labels: tuple[str, ...], led: bool) -> None:
    history = History(shown=False)
    history.pod("one", queue=queue)
    history.until_runs("one")
    if not led:
        history.kill_leader()
    take_off(history, labels)
    for _ in range(90):
        history.passes(1.0)
        assert history.containers("one") == 1
    assert marked(history)
    assert history.leader.charges(queue) == 500
    before = version(history)
    history.passes(60.0)
    assert version(history) == before, "one write"


@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("more", [{}, {"finalizers": None}], ids=["mark", "mark and finalizer"])
def test_hd_145_a_pod_that_waits_without_its_mark_gets_its_turn(more: Doc, led: bool) -> None:
    history = History(shown=False)
    history.pod("first", queue="stays", cpu="2")
    history.until_runs("first")
    history.pod("one", queue="stays", cpu="2")
    history.until("it waits", lambda: history.workload("one") is not None)
    if not led:
        history.kill_leader()
    take_off(history, more=more)
    history.until("its mark is back", lambda: marked(history), 120.0)
    history.delete("home", POD, "first")
    history.until("it runs", lambda: history.containers("one") == 1, 120.0)


@pytest.mark.parametrize("led", [True, False])
@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_145_a_pod_that_lost_its_mark_before_it_had_a_workload_is_seen_all_the_same(queue: str, led: bool) -> None:
    history = History(shown=False)
    if not led:
        history.kill_leader()
    history.pod("one", queue=queue)
    take_off(history)
    history.until("it runs", lambda: history.containers("one") == 1, 120.0)
    assert marked(history)


def test_hd_145_a_pod_that_a_suspending_parent_holds_back_gets_no_mark() -> None:
    history = History(shown=False)
    history.pod("one", queue="stays")
    take_off(history, more={"annotations": {markers.POD_SUSPENDING_PARENT: "deployment"}})
    history.passes(60.0)
    assert not marked(history)
    assert not history.containers("one")


def next_leader_without_a_session(history: History) -> SimManager:
    """Kill the leader; return the next one as its agent of `local` has listed all and greets, unheard for a while."""
    history.kill_leader()
    time = history.world.time
    limit = time.now + 120.0
    while not any(each.local.machine.world.ready for each in history.world.managers):
        assert time.step(limit), "no agent of local has listed"
        if not history.world.managers:
            history.world.start_manager()
    found = next(each for each in history.world.managers if each.local.machine.world.ready)
    found.port.down = True  # its write of the session has no answer before its time limit is over
    history.passes(2.0)
    found.port.down = False
    assert not found.local.machine.connected
    return found


@pytest.mark.parametrize("seed", range(3, 9))
def test_hd_178_what_runs_and_lost_its_mark_before_the_next_leader_listened_stays_charged(seed: int) -> None:
    """Its agent has two watches of pods: a pod that goes from one to the other and back is gone by the word of both."""
    history = History(seed, shown=False)
    history.pod("one", queue="stays")
    history.until_runs("one")
    found = next_leader_without_a_session(history)
    take_off(history)
    history.until("its mark is back", lambda: marked(history))
    history.until("the session is open", lambda: found.local.machine.connected, 30.0)
    for _ in range(60):
        history.passes(1.0)
        assert history.containers("one") == 1
        assert history.leader.charges("stays") == 500


def goes_with_its_workload_while_nobody_leads(history: History) -> None:
    """Let a pod lose both labels, and it and its Workload be deleted, while nobody leads: nothing of it is left."""
    workload = history.workload("one")
    assert workload is not None
    history.kill_leader()
    take_off(history, BOTH)
    history.delete("home", POD, "one")
    history.delete("home", WORKLOAD, workload["metadata"]["name"])
    history.until("another leads", history.leads)
    history.until("the Workload is gone", lambda: history.workload("one") is None, 100.0)
    history.passes(60.0)
    assert not history.objects("home", POD)


def test_hd_216_a_pod_that_lost_its_marks_is_let_go_with_its_workload_by_a_leader_that_never_saw_it() -> None:
    """HD-216: nobody leads as both labels are taken off, and the Pod and its Workload deleted.

    The symptom: the Workload went, and the pod kept our finalizer for ever, which no watch shows.
    """
    history = History(shown=False)
    for cluster in history.workers:
        cordon(history, cluster)
    history.pod("one")
    history.until("its Workload is there", lambda: history.workload("one") is not None)
    goes_with_its_workload_while_nobody_leads(history)


def test_hd_216_a_pod_that_ran_at_home_and_lost_its_marks_is_let_go_with_its_workload() -> None:
    """HD-216: a node has it, so that its Workload alone leads to it (`manager/gatelift/core/state/out_of_sight.py`)."""
    history = History(shown=False)
    history.pod("one", "stays")
    history.until_runs("one")
    goes_with_its_workload_while_nobody_leads(history)


def waiting(*, made: bool = True) -> History:
    """Return a world in which a pod waits in `stays`, for room that another one has."""
    history = History(shown=False)
    history.pod("full", "stays", cpu="2")
    history.until_runs("full")
    if made:
        history.pod("one", "stays", cpu="2")
        history.until("it waits", lambda: history.workload("one") is not None)
        history.passes(5.0)
    return history


def finalizers(history: History) -> list[str] | None:
    """Return what keeps the pod, None when it is gone."""
    found = history.home.look(POD, "one")
    return found["metadata"].get("finalizers", []) if found is not None else None


def its_workload_goes(history: History) -> None:
    found = history.workload("one")
    assert found is not None
    history.delete("home", WORKLOAD, found["metadata"]["name"])


@pytest.mark.parametrize("gap", [0.0, 0.005, 0.01, 0.02, 0.05])
@pytest.mark.parametrize("first", ["its labels", "its Workload"])
def test_hd_220_a_pod_that_loses_its_marks_as_its_workload_goes_is_its_users(first: str, gap: float) -> None:
    """HD-220: one `kubectl` with two objects. The symptom: nothing asked for the pod, which kept our finalizer."""
    history = waiting()
    if first == "its labels":
        take_off(history, BOTH)
        history.passes(gap)
    its_workload_goes(history)
    history.passes(gap)
    if first == "its Workload":
        take_off(history, BOTH)
    history.until("it has no finalizer of ours", lambda: not finalizers(history), 10.0)
    history.passes(60.0)
    assert history.workload("one") is None
    assert not history.containers("one")
    if finalizers(history) is None:
        return  # its Workload was deleted before its marks were off, and a pod ends with that (decision 86)
    history.delete("home", POD, "one")
    history.passes(1.0)
    assert finalizers(history) is None


@pytest.mark.parametrize("deleted", [True, False])
def test_hd_220_a_pod_that_lost_its_marks_before_anybody_led_is_found_by_who_leads(*, deleted: bool) -> None:
    """HD-220: no Workload was ever made. The symptom: its deletion never ended."""
    history = waiting(made=False)
    history.kill_leader()
    history.pod("one", "stays", cpu="2")
    take_off(history, BOTH)
    if deleted:
        history.delete("home", POD, "one")
    history.until("another leads", history.leads)
    history.until("nothing of ours keeps it", lambda: not finalizers(history), 30.0)
    assert (finalizers(history) is None) is deleted
    assert history.workload("one") is None


def out_of_sight_of(history: History) -> list[OutOfSight]:
    """Return what the managers know that wait for the list of what nothing shows."""
    known = (each.machine.core.out_of_sight for each in history.world.managers)
    return [each for each in known if each.read_id]


def test_hd_220_the_list_is_asked_for_again_when_it_fails_and_once_in_a_term() -> None:
    history = waiting(made=False)
    history.kill_leader()
    history.pod("one", "stays", cpu="2")
    take_off(history, BOTH)
    time = history.world.time
    limit = time.now + 120.0
    while not (found := out_of_sight_of(history)):
        assert time.step(limit), "the list was not asked for"
        if not history.world.managers:
            history.world.start_manager()
    leader = history.leader
    leader.port.down = True
    history.passes(1.0)
    leader.port.down = False
    assert finalizers(history) != []
    history.until("nothing of ours keeps it", lambda: finalizers(history) == [], 30.0)
    assert found[0].failures == 2  # at once, and half a second later
    before = version(history)
    history.passes(300.0)
    assert version(history) == before, "one write"


def test_hd_220_what_runs_and_has_its_workload_is_stopped_before_it_is_let_go() -> None:
    history = History(shown=False)
    history.pod("one", stops_in=20.0)
    cluster = history.until_runs("one")
    history.cut(cluster)
    take_off(history, BOTH)
    history.passes(60.0)
    assert history.containers("one") == 1
    assert finalizers(history) == [markers.MANAGED]
    history.mend(cluster)
    history.until("it has stopped", lambda: not history.containers("one"))
    history.until("nothing of ours keeps it", lambda: not finalizers(history))


def test_hd_220_what_is_remembered_to_run_holds_its_pod_until_its_cluster_says_that_it_stopped() -> None:
    """HD-220: its Workload vanished; what may run is known by the record of its cluster alone."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    history.cut(cluster)
    found = history.workload("one")
    assert found is not None
    name = found["metadata"]["name"]
    take_off(history, BOTH)
    history.edit("home", WORKLOAD, name, {"metadata": {"finalizers": None}})
    history.delete("home", WORKLOAD, name)
    history.passes(3 * AGAIN_SECONDS)
    assert history.containers("one") == 1
    assert finalizers(history) == [markers.MANAGED]
    history.mend(cluster)
    history.until("it has stopped", lambda: not history.containers("one"))
    history.until("nothing of ours keeps it", lambda: finalizers(history) == [], 2 * AGAIN_SECONDS)


@pytest.mark.parametrize("goes", [False, True], ids=["", "its Job is deleted"])
def test_hd_254_a_pod_of_a_job_that_loses_its_labels_before_the_next_leader_listened_stays_charged(
    *, goes: bool
) -> None:
    """HD-254: taken off its Job, too, it has nobody else who says that it runs (drawn seed 8974018).

    The symptom: its quota was released, since the user had deleted the Job.
    """
    history = History(shown=False)
    history.job("one", "stays", pods=1)
    history.until_runs("one", "Job")
    history.until("it runs", lambda: history.containers("one", "Job") == 1)
    [pod] = history.objects("home")
    name = pod["metadata"]["name"]
    if goes:
        history.edit("home", POD, name, {"metadata": {"ownerReferences": None}})
        history.delete("home", JOB, "one")
    found = next_leader_without_a_session(history)
    history.edit("home", POD, name, {"metadata": {"labels": dict.fromkeys((LABEL_ORIGIN, LABEL_WORKLOAD_UID))}})
    history.until("the session is open", lambda: found.local.machine.connected, 30.0)
    for _ in range(300):
        history.passes(1.0)
        if not history.containers("one", "Job"):
            break
        assert history.leader.charges("stays") == 500
    assert bool(history.containers("one", "Job")) != goes
    history.until("what has stopped is free", lambda: history.leader.charges("stays") == (0 if goes else 500), 300.0)
