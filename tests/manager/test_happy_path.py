"""The way of one pod through the manager's machine, on a worker, on `local`, and of a Workload without owner."""

from __future__ import annotations

from gatelift_wire.values.messages import Commit, Forget, Offer
from support.manager.builders import a_pod, a_setting, a_workload
from support.manager.world import RUNNING, SUCCEEDED, a_world


def test_a_pod_travels_runs_and_is_cleaned_up() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()

    workload = world.find("Workload")
    assert workload["status"]["clusterName"] == "a"
    assert world.condition(workload, "QuotaReserved")["message"] == "Quota reserved in ClusterQueue shared"
    assert world.condition(workload, "Admitted")["status"] == "True"
    assert workload["status"]["admissionChecks"][0]["state"] == "Ready"
    assert workload["status"]["admissionChecks"][0]["message"] == 'The workload was admitted on "a"'
    assert {cluster for cluster, _ in world.messages(Offer)} == {"a", "b"}
    assert [cluster for cluster, _ in world.messages(Commit)] == ["a"]

    (key,) = world.agents["a"].commits
    assert not world.agents["b"].placements, "the loser keeps no hold"
    world.agents["a"].show(key, RUNNING)
    world.settle()
    assert world.find("Pod")["status"]["phase"] == "Running"

    world.agents["a"].finish(key, SUCCEEDED)
    world.settle()
    assert world.find("Pod")["status"]["phase"] == "Succeeded"
    assert world.find("Pod")["metadata"]["finalizers"] == []
    assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded"
    assert [cluster for cluster, _ in world.messages(Forget)] == ["a"]
    assert world.machine.core.ledger.engine.charged(key.uid) == {}
    assert not world.agents["a"].placements


def test_a_pods_life_costs_three_writes_to_its_workload_and_three_to_itself() -> None:
    world = a_world(a_setting())
    world.api.writes.clear()
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["a"].commits
    world.agents["a"].show(key, RUNNING)
    world.settle()
    world.agents["a"].finish(key, SUCCEEDED)
    world.settle()
    assert world.writes("Workload") == ["create", "replace status", "replace status"]
    assert world.writes("Pod") == ["patch status", "patch status", "patch"]


def test_a_queue_without_a_multikueue_check_places_on_local() -> None:
    world = a_world(a_setting(clusters=()), clusters=("local",))
    world.api.apply(a_pod().document())
    world.settle()
    workload = world.find("Workload")
    assert "clusterName" not in workload["status"]
    assert world.condition(workload, "Admitted")["status"] == "True"
    (key,) = world.agents["local"].commits
    assert world.running == {(key.uid, 1, "local"): world.now}


def test_a_workload_without_owner_is_admitted_and_goes_nowhere() -> None:
    world = a_world(a_setting(clusters=()), clusters=())
    world.api.apply(a_workload().asking(cpu=4).document())
    world.settle()
    workload = world.find("Workload")
    assert world.condition(workload, "Admitted")["status"] == "True"
    assert not world.links.log
