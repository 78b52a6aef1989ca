"""HD-259: a worker's namespace is deleted while work is placed there, and the agent's RoleBinding has gone first.

On real API servers: their namespace controller waits for what our finalizer keeps, and they let nobody make another
RoleBinding there.
"""

from __future__ import annotations

import json
import shlex

import pytest

from gatelift.cli.manifests import ACCEPTING, agent_binding
from gatelift_kinds.shared.pod_trouble import CONDITION, NAMESPACE_GOES
from gatelift_kube.values.resources import JOB, NAMESPACE, POD, WORKLOAD
from gatelift_sandbox.behaviour import Behaviour
from gatelift_wire.values.keys import FINALIZER_REPORT
from support.e2e.sandbox_kubectl import Kubectl, KubectlError
from support.e2e.world import MODULE_SECONDS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]
LONG = Behaviour(run_seconds=3600)
SECONDS = 240.0
"""A minute by which late creates have landed, and where pods are doubted their node's next heartbeats."""


def condition(workload: Json, type_: str) -> Json:
    """Return a condition, {} for none."""
    found = workload.get("status", {}).get("conditions") or []
    return next((each for each in found if each["type"] == type_), {})


async def workload_of(world: World, where: str, kind: str) -> Json:
    """Return the Workload of an object in this namespace."""
    for each in await world.every("mgmt", WORKLOAD, where):
        if any(owner["kind"] == kind for owner in each["metadata"].get("ownerReferences", [])):
            return each
    return {}


async def furnish(world: World, where: str) -> None:
    """Make a namespace with a queue at home, in which one worker takes work."""
    plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": where}}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": "multi", "namespace": where},
        "spec": {"clusterQueue": "multi"},
    }
    await Kubectl(world.clusters["mgmt"]).apply(plain, queue)
    labelled = {**plain, "metadata": {"name": where, "labels": ACCEPTING}}
    await Kubectl(world.clusters["w1"]).apply(labelled, agent_binding(where))


async def place(world: World, where: str) -> None:
    """Let a Job and a pod run there."""
    made = [world.job("j", pods=2, cpu="50m", does=LONG), world.pod("p", cpu="50m", does=LONG)]
    made[0]["spec"]["backoffLimit"] = 6  # else its controller says its end as its pods go, and nothing waits
    home = Kubectl(world.clusters["mgmt"])
    for each in made:
        each["metadata"]["namespace"] = where
        await home("create", "-f", "-", manifest=each)

    async def run() -> bool:
        return [each["status"].get("phase") for each in await world.every("w1", POD, where)] == ["Running"] * 3

    await world.until(run, f"three pods run in {where} on w1")


async def test_hd_259_quota_is_free_and_the_way_out_is_said_when_a_namespace_goes_after_its_rolebinding(
    world: World,
) -> None:
    where = world.name("goes")
    await furnish(world, where)
    await place(world, where)
    home, worker = Kubectl(world.clusters["mgmt"]), Kubectl(world.clusters["w1"])
    await worker("-n", where, "delete", "rolebinding", "gatelift-agent")
    await worker("delete", "namespace", where, "--wait=false")

    async def said() -> str:
        found = condition(await workload_of(world, where, "Job"), CONDITION)
        return str(found["message"]) if found.get("reason") == NAMESPACE_GOES and "kubectl" in found["message"] else ""

    message = await world.until(said, "the Workload says what its stop waits for")
    assert f"namespace {where} is being deleted there: it stays charged until" in message

    async def free() -> bool:
        every = [await workload_of(world, where, kind) for kind in ("Job", "Pod")]
        return all(condition(each, "QuotaReserved").get("status") == "False" for each in every)

    await world.until(free, "the quota of both is free", SECONDS)
    left = [*await world.every("w1", JOB, where), *await world.every("w1", POD, where)]
    held = [each for each in left if FINALIZER_REPORT in each["metadata"].get("finalizers", [])]
    assert [each["metadata"]["name"] for each in held] == ["j", "p"], "nobody has let the agent take it off"
    with pytest.raises(KubectlError, match="because it is being terminated"):
        await worker("-n", where, "create", "-f", "-", manifest=agent_binding(where))
    await way_out(world, where, message)
    await home("-n", where, "delete", "job/j", "pod/p")
    await home("delete", "namespace", where)


async def way_out(world: World, where: str, message: str) -> None:
    """Do what was said, for the pod as well: the namespace goes."""
    worker = Kubectl(world.clusters["w1"])
    program, *arguments = shlex.split(message[message.index("kubectl") :])
    assert program == "kubectl"
    assert FINALIZER_REPORT in json.dumps(arguments)
    await worker(*arguments)
    pod = await world.get("w1", POD, "p", where)
    assert pod is not None
    index = pod["metadata"]["finalizers"].index(FINALIZER_REPORT)
    removal = json.dumps([{"op": "remove", "path": f"/metadata/finalizers/{index}"}])
    await worker("-n", where, "patch", "pod", "p", "--type=json", "-p", removal)

    async def gone() -> bool:
        return await world.get("w1", NAMESPACE, where, "") is None

    await world.until(gone, f"namespace {where} is gone from w1")
