"""What is left of Kueue's own scenarios of pods and of the issue on groups, on real API servers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from gatelift_kube.deciding.errors import KubeError
from gatelift_kube.values.resources import ADMISSION_CHECK, EVENT, JOB, POD, WORKLOAD
from gatelift_sandbox import applying
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.installation import MANAGER
from support.e2e.admission import BUDGET, manager_with, queue, runs, set_up
from support.e2e.groups import AWAY, MANAGED, PLACES, Group, K, placed_at
from support.e2e.world import GPU, MODULE_SECONDS, NAMESPACE, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]

SOON = Behaviour(run_seconds=0.5)
FOR_EVER = Behaviour()
BUDGETED, TWICE, ON_LINUX = "lst-budgeted", "lst-twice", "lst-linux"
SECOND = "lst-second"
PROVISIONING = "provreq.kueue.x-k8s.io/class"
LINUX = {"kubernetes.io/os": "linux"}


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def queues(world: World) -> AsyncIterator[None]:
    client = world.clients["mgmt"]
    flavor: Json = {"apiVersion": f"{K}v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "linux-flavor"}}
    second: Json = {"apiVersion": f"{K}v1beta2", "kind": "AdmissionCheck", "metadata": {"name": SECOND}}
    on_linux = queue(ON_LINUX, "1", checks=())
    on_linux[0]["spec"]["resourceGroups"][0]["flavors"][0]["name"] = "linux-flavor"
    await set_up(world, [])
    await applying.apply(client, [flavor | {"spec": {"nodeLabels": LINUX}}, *on_linux])
    await applying.apply(client, [second | {"spec": {"controllerName": "example.com/second"}}])
    works = {"type": "Active", "status": "True", "reason": "Active", "message": "On"}
    body = {"status": {"conditions": [works | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}}
    await world.patch(ADMISSION_CHECK, SECOND, body, subresource="status")
    await applying.apply(client, queue(BUDGETED, "1", checks=(BUDGET,)))
    await applying.apply(client, queue(TWICE, "1", checks=(BUDGET, SECOND, "workers")))
    await world.sends_elsewhere(TWICE)
    yield
    assert world.overlaps() == [], "no two epochs of a workload ran at the same time"


async def metric(world: World, name: str, **labels: str) -> float:
    """Return a figure of the manager's, 0 where it has none; of several lines their sum."""
    address = world.installation.daemons[MANAGER].status
    async with aiohttp.ClientSession() as session, session.get(f"http://{address}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    found = [each for each in lines if each.partition("{")[0] == name and all(one in each for one in wanted)]
    return sum(float(each.rpartition(" ")[2]) for each in found)


async def told(world: World, name: str, reason: str) -> str:
    """Wait until an object was told something by an event; return what."""

    async def look() -> str:
        for event in await world.every("mgmt", EVENT):
            about = event["regarding"] if "regarding" in event else event["involvedObject"]
            if about["name"] == name and event["reason"] == reason:
                return str(event.get("note") or event.get("message"))
        return ""

    found: str = await world.until(look, f"{name} is told {reason}")
    return found


async def check_says(world: World, workload: str, check: str, **said: object) -> None:
    """Say this of a check, as its controller does, once it is asked."""

    async def look() -> Json | None:
        found = await world.get("mgmt", WORKLOAD, workload)
        states = (found or {}).get("status", {}).get("admissionChecks", [])
        return found if any(each["name"] == check for each in states) else None

    found: Json = await world.until(look, f"{check} is asked of {workload}")
    checks = [each | said if each["name"] == check else each for each in found["status"]["admissionChecks"]]
    await world.patch(WORKLOAD, workload, {"status": {"admissionChecks": checks}}, subresource="status")


async def test_pi_001_29_a_pod_waits_gated_runs_where_its_flavor_says_and_ends(world: World) -> None:
    """PI-001, PI-029; PC-024: with events, figures, and nothing of ours left on it."""
    name = world.name("listed")
    pod = world.pod(name, queue=ON_LINUX, cpu="100m", does=SOON)
    pod["metadata"]["annotations"] = pod["metadata"].get("annotations", {}) | {PROVISIONING: "x", "provreq-x.io/y": "z"}
    at_gate = {"cluster_queue": ON_LINUX, "is_group": "false"}
    before = await metric(world, "kueue_pod_scheduling_gate_removal_seconds_count", **at_gate)
    made = await world.create(pod)
    assert [each["name"] for each in made["spec"]["schedulingGates"]] == [f"{K}admission"]
    assert (made["metadata"]["labels"][MANAGED], made["metadata"]["finalizers"]) == ("true", [MANAGED])
    done = await world.condition(name, "Finished")
    assert (done["spec"]["queueName"], done["metadata"]["annotations"].get(PROVISIONING)) == (ON_LINUX, "x")
    assert "provreq-x.io/y" not in done["metadata"]["annotations"]
    after = await world.phase(name, "Succeeded")
    assert after["spec"]["nodeSelector"] == LINUX
    assert await told(world, name, "Started")
    assert await told(world, name, "FinishedWorkload")
    assert await metric(world, "kueue_pod_scheduling_gate_removal_seconds_count", **at_gate) == before + 1

    async def let_go() -> bool:
        found = await world.get("mgmt", POD, name)
        return found is not None and not found["metadata"].get("finalizers")

    await world.until(let_go, "it has no finalizer")
    await world.remove(POD, name)


async def test_pi_002_a_pod_that_runs_and_is_deleted_is_gone(world: World) -> None:
    name = world.name("deleted")
    await world.create(world.pod(name, queue=ON_LINUX, cpu="100m", does=FOR_EVER))
    await world.phase(name, "Running")
    await world.remove(POD, name)


async def test_pi_009_pc_088_a_pod_says_what_its_check_says_and_is_let_go_with_what_that_adds(world: World) -> None:
    name = world.name("checked")
    pod = world.pod(name, queue=BUDGETED, cpu="100m", does=FOR_EVER)
    pod["metadata"]["labels"]["old"] = "kept"
    await world.create(pod)
    held = await world.condition(name, "QuotaReserved")
    workload = held["metadata"]["name"]
    await check_says(world, workload, BUDGET, message="asks the bank")
    assert await told(world, name, "UpdatedAdmissionCheck") == f"{BUDGET}: asks the bank"
    update = {"name": "main", "labels": {"new": "label"}, "annotations": {"new": "note"}, "nodeSelector": LINUX}
    await check_says(world, workload, BUDGET, state="Ready", message="", podSetUpdates=[update])
    runs_now = await world.phase(name, "Running")
    meta = runs_now["metadata"]
    assert (meta["labels"]["old"], meta["labels"]["new"], meta["annotations"]["new"]) == ("kept", "label", "note")
    assert runs_now["spec"]["nodeSelector"] == LINUX
    await world.remove(POD, name)


async def test_pi_030_pg_27_a_group_of_two_roles_is_not_charged_what_is_excluded_and_each_pod_is_counted(
    world: World,
) -> None:
    """PI-030, PG-27: come to our gate, let go, and rejected as one too many."""
    async with manager_with(world, {"resources": {"excludeResourcePrefixes": ["vendor.com/"]}}):
        group = Group(world, "excluded", ON_LINUX, total=2)
        await group.make("a", Behaviour(run_seconds=3.0), cpu="100m")
        more = {"cpu": "100m", GPU: "1"}
        pod = group.pod("b", Behaviour(run_seconds=3.0))
        pod["spec"]["containers"][0]["resources"] = {"requests": more, "limits": {GPU: "1"}}
        await world.create(pod)
        found = await group.says("Admitted", "True")
        assigned = found["status"]["admission"]["podSetAssignments"]
        assert [set(each["resourceUsage"]) for each in assigned] == [{"cpu"}, {"cpu"}]
        await group.make("c", cpu="100m")
        assert await group.warned("c", "ExcessPodDeleted")
        await group.says("Finished", "True", "Succeeded", "Pods succeeded: 2/2")
        await group.are_held("")

        async def counted() -> bool:
            names = ("gated", "ungated", "rejected")
            found = [await metric(world, f"kueue_pods_{each}_total", cluster_queue=ON_LINUX) for each in names]
            return found == [3, 2, 1]

        await world.until(counted, "each is counted once")
        await group.remove()


@PLACES
async def test_pg_22_a_group_runs_by_the_workload_that_its_user_made(world: World, queue: str) -> None:
    """PG-22: it becomes the group's by owners and mark while it is inactive, and ends as any."""
    shape = Group(world, "shape", "nobodys", total=2)
    await shape.make("ab")
    sets = (await shape.says("QuotaReserved", "False"))["spec"]["podSets"]
    await shape.remove()
    group = Group(world, "prebuilt", queue, total=2)
    theirs: Json = {
        "apiVersion": f"{K}v1beta2",
        "kind": "Workload",
        "metadata": {"name": group.name, "namespace": NAMESPACE},
        "spec": {"queueName": queue, "active": False, "podSets": sets},
    }
    made = await world.create(theirs)
    await group.make("ab", Behaviour(run_seconds=2.0), labels={f"{K}prebuilt-workload-name": group.name})

    async def adopted() -> bool:
        found = await group.workload()
        return found is not None and len(found["metadata"].get("ownerReferences", [])) == 2

    await world.until(adopted, "it names both as owners")
    await group.patch({"spec": {"active": True}})
    done = await group.says("Finished", "True", "Succeeded", "Pods succeeded: 2/2")
    assert done["metadata"]["uid"] == made["metadata"]["uid"]
    assert len(done["metadata"]["ownerReferences"]) == 2
    assert done["metadata"]["annotations"][f"{K}is-group-workload"] == "true"
    await group.remove()


async def test_pg_24_pods_of_a_queued_owner_and_of_namespaces_that_are_not_managed_are_left_alone(
    world: World,
) -> None:
    """PG-24, on real controllers: the Job's own pods bear no gate, and have no Workload of theirs."""
    name = world.name("owner")
    await world.create(world.job(name, pods=2, queue="at-home", does=FOR_EVER))

    async def made() -> list[Json]:
        pods = [each for each in await world.every("mgmt", POD) if each["metadata"]["name"].startswith(f"{name}-")]
        return pods if len(pods) == 2 else []

    for pod in await world.until(made, "its pods are there"):
        assert MANAGED not in pod["metadata"].get("finalizers", [])
        assert MANAGED not in pod["metadata"]["labels"]
    workloads = [each["metadata"]["name"] for each in await world.every("mgmt", WORKLOAD)]
    assert not [each for each in workloads if each.startswith(f"pod-{name}")]
    await world.remove(JOB, name)
    away = Group(world, "elsewhere", total=1).pod("a")
    away["metadata"]["namespace"] = "kube-system"
    body = json.dumps(away).encode()
    served = await world.clients["mgmt"].create(POD, "kube-system", body, dry_run=True)
    assert "schedulingGates" not in json.loads(served.raw)["spec"]


async def test_pc_017_26_nobody_takes_a_members_gate_off_or_changes_what_a_group_was_granted(world: World) -> None:
    """PC-017, PC-026: where Kueue stops what it finds so, it does not come to it."""
    group, other = Group(world, "granted", total=2), Group(world, "gated", total=2)
    await group.make("ab")
    found = await group.says("Admitted", "True")
    sets = [each | {"count": 3} for each in found["spec"]["podSets"]]
    with pytest.raises(KubeError, match="podSets"):
        await world.patch(WORKLOAD, group.name, {"spec": {"podSets": sets}})
    await other.make("ab", cpu="64")
    with pytest.raises(KubeError, match="schedulingGates"):
        await world.patch(POD, f"{other.name}-a", {"spec": {"schedulingGates": []}})
    await group.remove()
    await other.remove()


async def test_mc_1_a_group_is_made_at_a_worker_only_once_all_other_checks_are_ready(world: World) -> None:
    """MC-1: P3 of what MultiKueue does; P1 and P2 besides: its end is the worker's, and what ran is shown."""
    group = Group(world, "checked", TWICE)
    await group.make("abc", SOON, cpu="100m")
    await group.says("QuotaReserved", "True")
    for check in (BUDGET, SECOND):
        for worker in ("w1", "w2"):
            assert await group.pods(worker) == []
        await check_says(world, group.name, check, state="Ready", message="")
    done = await group.says("Finished", "True", "Succeeded", "Pods succeeded: 3/3")
    await group.are_shown("abc", "Succeeded")
    assert {run.cluster for run in group.all_runs()} == {done["status"]["clusterName"]}
    await group.remove()


async def test_mc_6_a_member_whose_node_is_drained_while_home_is_away_is_shown_as_gone_and_the_rest_runs_on(
    world: World,
) -> None:
    """MC-6: the drain is held up until that is told, or 60 s."""
    group = Group(world, "drained", AWAY, total=2)
    await group.make("ab", FOR_EVER)
    await group.run("ab")
    there = await placed_at(group)
    proxy = world.installation.proxies[there]
    proxy.cut()
    try:
        async with world.draining(there, f"{group.name}-a"):
            await group.run("b")
            await world.gone(there, POD, f"{group.name}-a")
    finally:
        proxy.mend()
    await group.are_shown("a", "Failed")
    pod = await world.get("mgmt", POD, f"{group.name}-a")
    assert pod is not None
    assert pod["status"]["reason"] == "WorkerPodDeleted"
    assert group.running() == "b"
    await group.make("c", FOR_EVER)
    await group.run("bc")
    await group.remove()


async def test_pg_34_hd_45_pods_that_a_controller_makes_are_a_group_as_any(world: World) -> None:
    """PG-34: of a ReplicaSet, which makes another one for each that is deleted; that one takes its slot."""
    group = Group(world, "made", total=2)
    pod = group.pod("x", FOR_EVER, notes={f"{K}pod-group-serving": "true"})
    pod["metadata"]["labels"]["of"] = group.name
    meta = {key: pod["metadata"][key] for key in ("labels", "annotations")}
    made: Json = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": group.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"of": group.name}},
            "template": {"metadata": meta, "spec": pod["spec"] | {"restartPolicy": "Always"}},
        },
    }
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
    await world.clients["mgmt"].raw("POST", path, body=json.dumps(made).encode())

    async def two_run() -> list[str]:
        up = [run.name for run in runs(world, group.name) if run.stopped is None]
        return up if len(up) == 2 else []

    first: list[str] = await world.until(two_run, "both run")
    before = await group.uid()
    await world.delete(POD, first[0])

    async def another() -> bool:
        return set(await two_run()) - set(first) != set()

    await world.until(another, "another one has its slot")
    assert await group.uid() == before
    await world.clients["mgmt"].raw("DELETE", f"{path}/{group.name}")
    await group.nobody_is_left()
