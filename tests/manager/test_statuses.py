"""What ClusterQueues, LocalQueues and Cohorts say about themselves: counts, usage, shares, in few writes."""

from __future__ import annotations

from typing import Any

from gatelift_admission.values.model import EngineSettings as AdmissionSettings
from gatelift_kube.values import resources
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from support.manager.builders import Doc, a_cluster_queue, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

FAIR = AdmissionSettings(fair_sharing=("LessThanOrEqualToFinalShare", "LessThanInitialShare"))


def a_shared_setting() -> list[Doc]:
    """Return two queues of four cpus each in a cohort below another one; only `shared` has a LocalQueue."""
    setting = a_setting(cpu=4, clusters=())
    for document in setting:
        if document["kind"] == "ClusterQueue":
            document["spec"]["cohortName"] = "team"
    lender = a_cluster_queue(cpu=4)
    lender["metadata"]["name"] = "lender"
    lender["spec"]["cohortName"] = "team"
    cohorts = [kueue_object("Cohort", "team", {"parentName": "all"}), kueue_object("Cohort", "all", {})]
    return [*setting, lender, *cohorts]


def a_fair_world() -> World:
    world = World(settings={"admission": FAIR})
    for document in a_shared_setting():
        world.api.apply(document)
    world.settle()
    world.connect("local")
    world.advance(3.0)
    return world


def status(world: World, kind: str, name: str) -> Any:
    return world.find(kind, name)["status"]


def test_a_queue_counts_who_waits_holds_and_runs_and_what_they_use() -> None:
    world = a_world(a_setting(cpu=3))
    for name, cpu in (("one", 2), ("two", 1), ("three", 1)):
        world.api.apply(a_pod(name).asking(cpu=cpu).document())
    world.advance(3.0)
    shown = status(world, "ClusterQueue", "shared")
    assert (shown["pendingWorkloads"], shown["reservingWorkloads"], shown["admittedWorkloads"]) == (1, 2, 2)
    used = [{"name": "default", "resources": [{"name": "cpu", "total": "3", "borrowed": "0"}]}]
    assert shown["flavorsReservation"] == shown["flavorsUsage"] == used
    assert "fairSharing" not in shown
    local = status(world, "LocalQueue", "main")
    assert (local["pendingWorkloads"], local["reservingWorkloads"], local["admittedWorkloads"]) == (1, 2, 2)
    assert local["flavorsUsage"] == [{"name": "default", "resources": [{"name": "cpu", "total": "3"}]}]


def test_what_is_reserved_and_not_admitted_is_told_apart() -> None:
    world = a_world(a_setting(cpu=3))
    for agent in world.agents.values():
        agent.silent = True
    world.api.apply(a_pod("one").asking(cpu=2).document())
    world.advance(3.0)
    shown = status(world, "ClusterQueue", "shared")
    assert (shown["reservingWorkloads"], shown["admittedWorkloads"]) == (1, 0)
    assert shown["flavorsReservation"][0]["resources"][0]["total"] == "2"
    assert shown["flavorsUsage"][0]["resources"][0]["total"] == "0"


def test_a_borrowing_queue_shows_its_share_and_so_does_its_cohort() -> None:
    world = a_fair_world()
    assert status(world, "ClusterQueue", "shared")["fairSharing"] == {"weightedShare": 0}
    assert status(world, "Cohort", "team")["fairSharing"] == {"weightedShare": 0}
    world.api.apply(a_pod("big").asking(cpu=6).document())
    world.advance(3.0)
    shown = status(world, "ClusterQueue", "shared")
    assert shown["flavorsUsage"][0]["resources"] == [{"name": "cpu", "total": "6", "borrowed": "2"}]
    assert shown["fairSharing"] == {"weightedShare": 250}, "2 borrowed of 8 that can be lent, per thousand"
    assert status(world, "Cohort", "team")["fairSharing"] == {"weightedShare": 0}, "all of it is its own"
    assert status(world, "Cohort", "all")["fairSharing"] == {"weightedShare": 0}


def test_a_cohort_that_borrows_from_its_parent_shows_it() -> None:
    world = a_fair_world()
    flavors = [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": "8"}]}]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    parent = ObjectRef(resources.COHORT, ObjectKey("", "all"))
    world.api.edit(parent, lambda cohort: cohort["spec"].update(resourceGroups=groups))
    world.api.apply(a_pod("huge").asking(cpu=12).document())
    world.advance(3.0)
    assert status(world, "Cohort", "team")["fairSharing"] == {"weightedShare": 250}, "4 of 16"
    assert status(world, "ClusterQueue", "shared")["fairSharing"] == {"weightedShare": 500}, "8 of 16"


def test_many_events_are_few_writes() -> None:
    world = a_fair_world()
    before = len(world.writes("ClusterQueue")) + len(world.writes("Cohort"))
    for number in range(20):
        world.api.apply(a_pod(f"p{number}").asking(cpu="100m").document())
    world.advance(0.9)
    after = len(world.writes("ClusterQueue")) + len(world.writes("Cohort"))
    assert after - before <= 2
    world.advance(5.0)
    assert status(world, "ClusterQueue", "shared")["admittedWorkloads"] == 20
    assert len(world.writes("ClusterQueue")) + len(world.writes("Cohort")) - before <= 4


def test_without_fair_sharing_cohorts_are_not_written() -> None:
    world = a_world(a_shared_setting(), clusters=("local",))
    world.api.apply(a_pod("big").asking(cpu=6).document())
    world.advance(3.0)
    assert world.writes("Cohort") == []
    assert "status" not in world.find("Cohort", "team")


def test_a_cohort_that_is_gone_is_forgotten() -> None:
    world = a_fair_world()
    world.api.delete(ObjectRef(resources.COHORT, ObjectKey("", "all")))
    world.advance(2.0)
    world.api.apply(a_pod("big").asking(cpu=6).document())
    world.advance(3.0)
    assert status(world, "ClusterQueue", "shared")["fairSharing"] == {"weightedShare": 250}


def test_cohorts_in_a_circle_end_nothing() -> None:
    world = a_fair_world()
    top = ObjectRef(resources.COHORT, ObjectKey("", "all"))
    world.api.edit(top, lambda cohort: cohort["spec"].update(parentName="team"))
    world.api.apply(a_pod("one").document())
    world.advance(3.0)
    assert status(world, "ClusterQueue", "shared")["pendingWorkloads"] == 1


def test_what_waits_shows_what_it_asks_for_until_its_admission_says_more() -> None:
    world = a_world(a_setting(cpu="4", clusters=("a",)), clusters=("a",))
    world.api.apply(a_pod("giant").asking(cpu="4500m").document())
    world.advance(2.0)
    status = world.find("Workload")["status"]
    assert status["resourceRequests"] == [{"name": "main", "resources": {"cpu": "4500m"}}]
    more = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "5"}]}
    world.api.edit(
        ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared")),
        lambda queue: queue["spec"]["resourceGroups"][0].update(flavors=[more]),
    )
    world.advance(2.0)
    status = world.find("Workload")["status"]
    assert status["admission"]["podSetAssignments"][0]["resourceUsage"] == {"cpu": "4500m"}
    assert not status.get("resourceRequests")


def test_a_local_queue_shows_at_once_that_its_cluster_queue_is_stopped_gone_or_back() -> None:
    def active() -> tuple[str, str]:
        (condition,) = status(world, "LocalQueue", "main")["conditions"]
        return condition["status"], condition["reason"]

    def edited(stop_policy: str) -> tuple[str, str]:
        world.api.edit(queue, lambda document: document["spec"].update(stopPolicy=stop_policy))
        world.advance(3.0)
        return active()

    world = a_world(a_setting())
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    world.api.apply(a_pod("one").document())
    world.advance(60.0)
    assert active() == ("True", "Ready")
    assert edited("Hold") == ("False", "ClusterQueueIsInactive"), "though nothing else happens to the LocalQueue"
    assert edited("None") == ("True", "Ready")
    kept = world.find("ClusterQueue", "shared")
    world.api.delete(queue)
    world.advance(3.0)
    assert active() == ("False", "ClusterQueueIsInactive"), "it stays while its work runs"
    world.api.edit(queue, lambda document: document["metadata"].update(finalizers=[]))
    world.advance(3.0)
    assert active() == ("False", "ClusterQueueDoesNotExist"), "somebody took its finalizer off"
    world.api.apply(a_cluster_queue(check="dispatch") | {"spec": kept["spec"]})
    world.advance(3.0)
    assert active() == ("True", "Ready")


def test_a_local_queue_shows_the_flavors_that_its_cluster_queue_has_now() -> None:
    world = a_world(a_setting())
    world.advance(60.0)
    two = a_cluster_queue(check="dispatch", flavors={"default": 4, "spot": 4})["spec"]
    world.api.apply(kueue_object("ResourceFlavor", "spot", {}))
    world.advance(3.0)
    queue = ObjectRef(resources.CLUSTER_QUEUE, ObjectKey("", "shared"))
    world.api.edit(queue, lambda document: document.update(spec=two))
    world.advance(3.0)
    assert [flavor["name"] for flavor in status(world, "LocalQueue", "main")["flavorsUsage"]] == ["default", "spot"]


def active(world: World, kind: str, name: str) -> tuple[str, str]:
    """Return status and reason of the condition Active."""
    (found,) = (one for one in status(world, kind, name)["conditions"] if one["type"] == "Active")
    return found["status"], found["reason"]


def test_hd_110_a_queue_below_a_cycle_of_cohorts_shows_it_and_that_it_is_broken() -> None:
    world = World()
    for document in a_shared_setting():
        world.api.apply(document)
    world.settle()
    world.connect("local")
    world.advance(3.0)
    assert active(world, "ClusterQueue", "shared") == ("True", "Ready")
    top = ObjectRef(resources.COHORT, ObjectKey("", "all"))
    world.api.edit(top, lambda one: one["spec"].update(parentName="team"))
    world.advance(3.0)
    assert active(world, "ClusterQueue", "shared") == ("False", "CohortCycle")
    assert active(world, "LocalQueue", "main") == ("False", "ClusterQueueIsInactive")
    world.api.edit(top, lambda one: one["spec"].pop("parentName"))
    world.advance(3.0)
    assert active(world, "ClusterQueue", "shared") == ("True", "Ready")
    assert active(world, "LocalQueue", "main") == ("True", "Ready")
