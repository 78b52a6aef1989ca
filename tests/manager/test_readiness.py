"""Pods that do not get ready, across restarts, on `local`, for Jobs, and when all have to be ready first."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gatelift.core.api.inflight import ClusterWord, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.state.hearing import TOLD_SECONDS
from gatelift.core.state.readiness_values import ReadinessSettings
from gatelift_admission.values.model import EngineSettings as AdmissionSettings
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.builders import a_job, a_pod, a_setting, a_workload
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

SHORT = ReadinessSettings(timeout=60.0, recovery_timeout=20.0, backoff_base=10.0)
NOT_READY: dict[str, Any] = {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]}
ONE_BY_ONE = ReadinessSettings(timeout=60.0, block_admission=True)


def workload_of(world: World, name: str) -> Any:
    return next(one for one in world.all("Workload") if f"-{name}-" in one["metadata"]["name"])


def test_the_time_out_goes_on_where_a_predecessor_left_it_once_the_cluster_had_time_to_tell() -> None:
    """HD-263: what got ready meanwhile is told by then."""
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.advance(40.0)
    world.restart()
    world.advance(TOLD_SECONDS - 5.0)
    assert world.condition(world.find("Workload"), "Evicted") == {}
    world.advance(6.0)
    evicted = world.condition(world.find("Workload"), "Evicted")
    assert evicted["reason"] == "PodsReadyTimeout"
    [counted] = world.find("Workload")["status"]["schedulingStats"]["evictions"]
    assert counted == {"reason": "PodsReadyTimeout", "underlyingCause": "WaitForStart", "count": 1}


def test_pauses_double_from_one_time_out_to_the_next() -> None:
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.advance(62.0)
    assert world.find("Workload")["status"]["requeueState"]["count"] == 1
    world.advance(10.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    world.advance(62.0)
    assert world.find("Workload")["status"]["requeueState"]["count"] == 2
    world.advance(15.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "False"
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"


def test_a_job_is_ready_when_all_that_may_run_at_once_are() -> None:
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_job(parallelism=2, completions=4))
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], {"active": 2, "ready": 1})
    world.advance(3.0)
    assert world.condition(world.find("Workload"), "PodsReady")["status"] == "False"
    agent.show(agent.commits[0], {"active": 2, "ready": 1, "succeeded": 1})
    world.advance(3.0)
    ready = world.condition(world.find("Workload"), "PodsReady")
    assert (ready["status"], ready["reason"]) == ("True", "Started")
    assert ready["message"] == "All pods reached readiness and the workload is running"


def test_a_recovery_without_a_limit_is_waited_for() -> None:
    world = a_world(a_setting(), readiness=ReadinessSettings(timeout=60.0, recovery_timeout=0.0))
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(2.0)
    agent.show(agent.commits[0], {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]})
    world.advance(3600.0)
    ready = world.condition(world.find("Workload"), "PodsReady")
    assert (ready["status"], ready["reason"]) == ("False", "WaitForRecovery")
    assert ready["message"] == "At least one pod has failed, waiting for recovery"
    assert world.condition(world.find("Workload"), "Evicted") == {}


def test_who_recovered_and_waits_in_line_to_be_shown_is_not_late() -> None:
    """IS-10: what a cluster says again is written one at a time while others write; hers may be a long line."""
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.advance(2.0)
    agent.show(agent.commits[0], {**RUNNING, "conditions": [{"type": "Ready", "status": "False"}]})
    world.advance(3.0)
    assert world.condition(world.find("Workload"), "PodsReady")["reason"] == "WaitForRecovery"
    others = {1_000_001: None, 1_000_002: ClusterWord("a", again=True)}
    for number, word in others.items():
        ref = ObjectRef(resources.POD, ObjectKey("team", f"other-{number}"))
        world.machine.core.inflight.begin(number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=word))
    agent.show(agent.commits[0], RUNNING)
    world.advance(SHORT.recovery_timeout + 20.0)
    assert world.condition(world.find("Workload"), "Evicted") == {}
    assert world.condition(world.find("Pod"), "Ready")["status"] == "False", "the line stands still"
    world.machine.core.inflight.end(1_000_002)
    world.advance(2.0)
    assert world.condition(world.find("Workload"), "PodsReady")["reason"] == "Recovered"


def flips(world: World, *statuses: dict[str, Any]) -> None:
    """Let its cluster say so in turn, each for a tenth of a second."""
    agent = world.agents["a"]
    for status in statuses:
        if agent.commits[0] in agent.placements:
            agent.show(agent.commits[0], status)
        world.advance(0.1)


def behind_a_line_that_stands_still() -> World:
    """Return a world whose pod is shown as not ready, and a line in which what its cluster says of it waits."""
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.settle()
    flips(world, RUNNING)
    world.advance(2.0)
    flips(world, NOT_READY)
    world.advance(3.0)
    assert world.condition(world.find("Workload"), "PodsReady")["reason"] == "WaitForRecovery"
    for number, word in {1_000_001: None, 1_000_002: ClusterWord("a", again=True)}.items():
        ref = ObjectRef(resources.POD, ObjectKey("team", f"other-{number}"))
        world.machine.core.inflight.begin(number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=word))
    return world


def is_evicted(world: World) -> bool:
    return world.condition(world.find("Workload"), "Evicted").get("reason") == "PodsReadyTimeout"


def test_a_line_that_stands_still_is_waited_for_a_minute() -> None:
    world = behind_a_line_that_stands_still()
    flips(world, RUNNING)
    world.advance(SHORT.recovery_timeout + TOLD_SECONDS - 8.0)
    assert not is_evicted(world)
    world.advance(9.0)
    assert is_evicted(world)


def test_hd_463_a_line_is_not_waited_for_by_whom_nobody_calls_ready() -> None:
    """Any new word kept quota for a minute more, whatever it said."""
    world = behind_a_line_that_stands_still()
    flips(world, {**NOT_READY, "reason": "Odd"})
    world.advance(SHORT.recovery_timeout)
    assert is_evicted(world)


def test_hd_463_who_recovered_behind_a_line_and_is_not_ready_for_a_moment_has_the_time_of_a_recovery() -> None:
    """Ready in time and for nearly all of it, it was evicted within the dip: only the last word was looked at."""
    world = behind_a_line_that_stands_still()
    flips(world, RUNNING)
    world.advance(SHORT.recovery_timeout)
    flips(world, NOT_READY)
    world.advance(SHORT.recovery_timeout - 2.0)
    assert not is_evicted(world)
    assert world.condition(world.find("Pod"), "Ready")["status"] == "False", "the line stands still"
    world.advance(3.0)
    assert is_evicted(world)


def test_hd_463_who_goes_back_and_forth_behind_a_line_is_waited_for_a_minute() -> None:
    world = behind_a_line_that_stands_still()
    for _ in range(round(SHORT.recovery_timeout + TOLD_SECONDS) - 8):
        flips(world, *(RUNNING, NOT_READY) * 5)
    assert not is_evicted(world)
    for _ in range(9):
        flips(world, *(RUNNING, NOT_READY) * 5)
    assert is_evicted(world)


def test_hd_463_a_readiness_that_was_shown_counts_once() -> None:
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.settle()
    flips(world, RUNNING)
    world.advance(40.0)
    flips(world, NOT_READY)
    world.advance(SHORT.recovery_timeout + 1.5)
    assert is_evicted(world)


@pytest.mark.parametrize("resumed", [True, False])
@pytest.mark.parametrize(("lasts", "away"), [(20.0, 0.5), (55.0, 0.5), (20.0, 9.0), (20.0, 11.0), (2.0, 2.0)])
def test_hd_464_sessions_that_begin_again_and_again_do_not_keep_a_time_out_from_coming(
    lasts: float, away: float, *, resumed: bool
) -> None:
    """Each began the minute anew in which a cluster may tell: what never got ready held its quota for ever."""
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.settle()
    began = world.now
    while world.now < began + 900.0 and not is_evicted(world):
        world.cut("a")
        world.advance(away)
        world.connect("a", resumed=resumed)
        world.advance(lasts)
    assert world.now - began < SHORT.timeout + 4 * (lasts + away) + TOLD_SECONDS


def test_hd_464_who_was_cut_off_for_a_moment_may_say_what_happened_in_it() -> None:
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.advance(SHORT.timeout - 4.0)
    world.cut("a")
    world.advance(5.0)
    world.connect("a", resumed=True)
    world.advance(1.0)
    flips(world, RUNNING)
    world.advance(30.0)
    assert world.condition(world.find("Workload"), "PodsReady")["reason"] == "Started"


def test_hd_464_who_was_away_has_a_minute_each_time_that_it_was() -> None:
    world = a_world(a_setting(), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.advance(SHORT.timeout - 4.0)
    for _ in range(2):
        world.cut("a")
        world.advance(40.0)
        world.connect("a", resumed=True)
        world.advance(TOLD_SECONDS - 5.0)
        assert not is_evicted(world)
    flips(world, RUNNING)
    world.advance(30.0)
    assert world.condition(world.find("Workload"), "PodsReady")["reason"] == "Started"


def readies(world: World, status: dict[str, Any]) -> None:
    """Let the kubelet at home say so of the pod."""
    pod = world.find("Pod")
    ref = ObjectRef(resources.POD, ObjectKey(pod["metadata"]["namespace"], pod["metadata"]["name"]))
    world.api.edit(ref, lambda one: one.update(status=status))
    world.settle()


def readiness_of(world: World) -> str:
    return str(world.condition(world.find("Workload"), "PodsReady")["reason"])


def at_home_behind_a_line() -> World:
    """Return a world whose pod runs at home, and a line in which what is said there again stands still."""
    world = a_world(a_setting(clusters=()), clusters=(LOCAL_CLUSTER,), readiness=SHORT)
    world.api.apply(a_pod().document())
    world.advance(2.0)
    readies(world, RUNNING)
    assert readiness_of(world) == "Started"
    for number, word in {1_000_001: None, 1_000_002: ClusterWord(LOCAL_CLUSTER, again=True)}.items():
        ref = ObjectRef(resources.POD, ObjectKey("team", f"other-{number}"))
        world.machine.core.inflight.begin(number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=word))
    return world


def test_hd_452_readiness_that_flaps_is_written_in_the_share_of_its_cluster() -> None:
    """Each flap of each pod was a write at once, in no share and at no pace."""
    world = at_home_behind_a_line()
    before = len(world.api.writes)
    for _ in range(10):
        readies(world, NOT_READY)
        readies(world, RUNNING)
    readies(world, NOT_READY)
    assert len(world.api.writes) == before
    world.machine.core.inflight.end(1_000_002)
    world.advance(1.0)
    assert readiness_of(world) == "WaitForRecovery"
    world.advance(SHORT.recovery_timeout + 1.0)
    assert any(event.reason == "EvictedDueToPodsReadyTimeout" for event in world.emitted)


def test_hd_452_who_is_ready_again_behind_a_line_is_not_late() -> None:
    world = at_home_behind_a_line()
    core = world.machine.core
    core.inflight.end(1_000_002)
    readies(world, NOT_READY)
    world.advance(2.0)
    assert readiness_of(world) == "WaitForRecovery"
    ref = ObjectRef(resources.POD, ObjectKey("team", "other-2"))
    word = ClusterWord(LOCAL_CLUSTER, again=True)
    core.inflight.begin(1_000_002, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=word))
    readies(world, RUNNING)
    world.advance(SHORT.recovery_timeout + TOLD_SECONDS)
    assert readiness_of(world) == "WaitForRecovery", "the line stands still"
    assert not is_evicted(world)
    core.inflight.end(1_000_002)
    world.advance(1.0)
    assert readiness_of(world) == "Recovered"


def test_hd_452_what_a_job_gives_back_takes_no_readiness_out_of_the_line() -> None:
    """Both are written of one Workload: who had nothing to give back left the line for both."""
    world = at_home_behind_a_line()
    readies(world, NOT_READY)
    world.machine.core.agenda.mark(next(iter(world.machine.core.attempts.values())).look)
    world.advance(1.0)
    world.machine.core.inflight.end(1_000_002)
    world.advance(1.0)
    assert readiness_of(world) == "WaitForRecovery"


def test_nothing_is_said_or_evicted_where_nobody_waits_for_pods() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.advance(7200.0)
    assert world.condition(world.find("Workload"), "PodsReady") == {}
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"


def test_a_workload_without_owner_is_ready_when_its_status_says_so() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",), readiness=SHORT)
    world.api.apply(a_workload("bare").document())
    world.advance(61.0)
    assert world.condition(world.find("Workload"), "Evicted")["reason"] == "PodsReadyTimeout"


@pytest.mark.parametrize(("by_creation", "first"), [(False, "second"), (True, "one")])
def test_who_was_not_ready_in_time_queues_by_the_eviction_or_keeps_its_place(by_creation: bool, first: str) -> None:
    admission = AdmissionSettings(by_creation=by_creation)
    world = World(settings={"readiness": SHORT, "admission": admission})
    for document in a_setting(cpu=1):
        world.api.apply(document)
    world.settle()
    world.connect("a")
    world.advance(3.0)
    for name, created in (("one", "2026-11-18T11:00:00Z"), ("second", "2026-11-18T11:00:05Z")):
        world.api.apply(a_pod(name).document())
        world.settle()
        meta = workload_of(world, name)["metadata"]
        ref = ObjectRef(resources.WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))
        world.api.edit(ref, partial(came, created))
    world.advance(30.0)
    nothing = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "0"}]}
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    world.api.edit(queue, lambda doc: doc["spec"]["resourceGroups"][0].update(flavors=[nothing]))
    world.advance(60.0)
    assert world.condition(workload_of(world, "one"), "Evicted")["reason"] == "PodsReadyTimeout"
    one = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "1"}]}
    world.api.edit(queue, lambda doc: doc["spec"]["resourceGroups"][0].update(flavors=[one]))
    world.advance(2.0)
    admitted = [name for name in ("one", "second") if holds(world, name)]
    assert admitted == [first]


def came(at: str, workload: Any) -> None:
    workload["metadata"]["creationTimestamp"] = at


def holds(world: World, name: str) -> bool:
    return bool(world.condition(workload_of(world, name), "QuotaReserved").get("status") == "True")


def test_nobody_is_admitted_before_the_others_are_ready() -> None:
    world = a_world(a_setting(cpu=4), readiness=ONE_BY_ONE)
    world.api.apply(a_pod("one").document())
    world.api.apply(a_pod("two").document())
    world.advance(3.0)
    agent = world.agents["a"]
    assert len(agent.commits) == 1
    waits = world.condition(workload_of(world, "two"), "QuotaReserved")
    assert (waits["status"], waits["reason"]) == ("False", "WaitingForPodsReady")
    assert waits["message"] == "waiting for all admitted workloads to be in PodsReady condition"
    agent.show(agent.commits[0], RUNNING)
    world.advance(1.0)
    assert world.condition(workload_of(world, "two"), "Admitted")["status"] == "True"


def test_who_is_held_back_goes_on_when_the_other_ends_or_is_deleted() -> None:
    world = a_world(a_setting(cpu=4), readiness=ONE_BY_ONE)
    for name in ("one", "two", "three"):
        world.api.apply(a_pod(name).document())
    world.advance(3.0)
    agent = world.agents["a"]
    agent.finish(agent.commits[0], SUCCEEDED)
    world.advance(3.0)
    placed = [agent.commits for agent in world.agents.values()]
    assert sum(len(commits) for commits in placed) == 2
    world.api.delete(next(ref for ref in world.api.objects if ref.key.name == "two"))
    world.advance(3.0)
    assert sum(len(commits) for commits in placed) == 3


def test_a_new_leader_holds_back_as_well() -> None:
    world = a_world(a_setting(cpu=4), readiness=ONE_BY_ONE)
    world.api.apply(a_pod("one").document())
    world.settle()
    world.restart()
    world.api.apply(a_pod("two").document())
    world.advance(3.0)
    assert world.condition(workload_of(world, "two"), "QuotaReserved")["reason"] == "WaitingForPodsReady"
