"""podSetUpdates of checks: they reach the pods, of another cluster and of `local`; contradictions end the attempt."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gatelift.core.dispatching.additions import with_additions
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Commit, PodSetRequest
from support.manager.builders import Doc, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world, workload_ref

CHECKS = ("budget", "provision")
NOW = "2026-01-01T00:00:00Z"


def a_waiting_pod() -> World:
    """Return a world in which a pod waits for two checks of another controller."""
    active = {"conditions": [{"type": "Active", "status": "True", "reason": "Active", "message": "On"}]}
    setting = a_setting()
    for document in setting:
        if document["kind"] == "ClusterQueue":
            rules = document["spec"]["admissionChecksStrategy"]["admissionChecks"]
            rules += [{"name": name} for name in CHECKS]
    spec = {"controllerName": "example.com/foreign"}
    world = a_world([*setting, *({**kueue_object("AdmissionCheck", name, spec), "status": active} for name in CHECKS)])
    world.api.apply(a_pod().document())
    world.advance(2.0)
    return world


def say_ready(world: World, **updates: Any) -> None:
    """Let the other controller say Ready to both, with these updates (check -> update of pod set main)."""

    def write(workload: Doc) -> None:
        for check in workload["status"]["admissionChecks"]:
            if check["name"] in CHECKS:
                check["state"] = "Ready"
                if check["name"] in updates:
                    check["podSetUpdates"] = [{"name": "main", **updates[check["name"]]}]

    world.api.edit(workload_ref(world), write)
    world.advance(2.0)


def additions(world: World) -> Any:
    """Return what checks want on the pods, without what each pod is told of who let it go."""
    [(_, commit)] = world.messages(Commit)
    found = json.loads(commit.pod_sets[0].additions or b"{}")
    for part in ("labels", "annotations"):
        kept = {key: value for key, value in found.pop(part, {}).items() if not key.startswith("kueue.x-k8s.io/")}
        found |= {part: kept} if kept else {}
    return found


def test_what_checks_want_on_the_pods_travels_with_the_commit() -> None:
    world = a_waiting_pod()
    toleration = {"key": "spot", "operator": "Exists"}
    say_ready(
        world,
        budget={"labels": {"team": "x"}},
        provision={"annotations": {"cluster-autoscaler.kubernetes.io/consume": "p1"}, "tolerations": [toleration]},
    )
    assert additions(world) == {
        "labels": {"team": "x"},
        "annotations": {"cluster-autoscaler.kubernetes.io/consume": "p1"},
        "tolerations": [toleration],
    }


def test_hd_202_a_check_that_nobody_asked_for_wants_nothing_on_the_pods() -> None:
    """HD-202: whoever may write a status invents one, as late as between the placement's record and its commit."""
    said = {"state": "Ready", "message": "", "lastTransitionTime": NOW}
    updates = {"budget": {"nodeSelector": {"pool": "a"}}, "invented": {"labels": {"team": "x"}}}
    states = [{"name": name, **said, "podSetUpdates": [{"name": "main", **updates[name]}]} for name in updates]
    workload = msgspec.convert({"metadata": {"name": "one"}, "status": {"admissionChecks": states}}, Workload)
    [one] = with_additions((PodSetRequest(name="main", count=1),), workload, CHECKS)
    assert json.loads(one.additions) == updates["budget"]


def test_the_placement_record_stays_at_home() -> None:
    world = a_waiting_pod()
    say_ready(world)
    assert additions(world) == {}
    states = world.find("Workload")["status"]["admissionChecks"]
    assert any("gatelift.dev/term" in str(one.get("podSetUpdates")) for one in states)


def test_checks_that_want_different_things_end_the_work_for_good_and_say_so() -> None:
    world = a_waiting_pod()
    say_ready(world, budget={"nodeSelector": {"pool": "a"}}, provision={"nodeSelector": {"pool": "b"}})
    assert world.messages(Commit) == []
    finished = world.condition(world.find("Workload"), "Finished")
    assert (finished["status"], finished["reason"]) == ("True", "FailedToStart")
    assert "nodeSelector of pod set main: admission checks want 'a' and 'b' for pool" in finished["message"]
    assert world.find("Pod")["status"]["phase"] == "Failed"
    assert world.machine.core.ledger.engine.charged(world.find("Workload")["metadata"]["uid"]) == {}


def test_checks_that_want_the_same_are_at_one() -> None:
    world = a_waiting_pod()
    say_ready(world, budget={"nodeSelector": {"pool": "a"}}, provision={"nodeSelector": {"pool": "a"}})
    assert additions(world) == {"nodeSelector": {"pool": "a"}}
