"""What a worker refuses, and what the user is told of it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import JOB, POD
from gatelift_sandbox.behaviour import Behaviour
from support.e2e.world import MODULE_SECONDS, NAMESPACE, WORKERS, Json, World

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(MODULE_SECONDS)]


def mentions(word: str) -> Callable[[Json], bool]:
    """Return the question whether a condition's message holds a word."""
    return lambda workload: any(
        word in each.get("message", "") for each in workload.get("status", {}).get("conditions", [])
    )


async def test_a_foreign_object_of_the_same_name_is_left_alone_and_named_to_the_user(world: World) -> None:
    name = world.name("foreign")
    foreign = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"containers": [{"name": "main", "image": "registry.local/other:1"}]},
    }
    made = {worker: await world.create(foreign, cluster=worker) for worker in WORKERS}
    await world.create(world.pod(name))

    await world.showed(name, mentions("NameConflict"), "the Workload says NameConflict")
    for worker in WORKERS:
        found = await world.get(worker, POD, name)
        assert found is not None
        assert found["metadata"]["uid"] == made[worker]["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]
        assert not found["metadata"].get("labels")
    await world.delete(POD, name)
    await world.gone("mgmt", POD, name)
    for worker in WORKERS:
        await world.delete(POD, name, cluster=worker)


async def test_a_pod_that_the_workers_policy_denies_says_which_field_and_rule(world: World) -> None:
    name = world.name("host-network")
    pod = world.pod(name)
    pod["spec"]["hostNetwork"] = True
    await world.create(pod)

    await world.showed(name, mentions("hostNetwork"), "the Workload says that hostNetwork is not allowed")
    await world.remove(POD, name)


async def test_a_pod_group_is_refused_in_one_sentence_in_this_version(world: World) -> None:
    pod = world.pod(world.name("group"))
    pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "g"
    with pytest.raises(ApiError) as refused:
        await world.create(pod)
    assert "pod-group" in str(refused.value)
    assert refused.value.status in {403, 422}


async def test_a_marker_that_only_the_webhook_may_set_is_refused_with_its_rule(world: World) -> None:
    pod = world.pod(world.name("marker"))
    pod["metadata"]["labels"] = {"kueue.x-k8s.io/managed": "yes"}
    with pytest.raises(ApiError) as refused:
        await world.create(pod)
    assert "kueue.x-k8s.io/managed" in str(refused.value)


async def test_pods_without_a_queue_are_created_while_the_webhooks_are_down(world: World) -> None:
    webhooks = world.installation.daemons["webhooks"]
    world.installation.kill(webhooks)
    name = world.name("unqueued")
    try:
        pod = world.pod(name, does=Behaviour(run_seconds=0.5))
        del pod["metadata"]["labels"]
        made = await world.create(pod)
        assert not made["spec"].get("schedulingGates")
        with pytest.raises(ApiError, match="webhook"):
            await world.create_once(world.pod(world.name("queued")))
    finally:
        await world.installation.restart(webhooks)
    later = world.name("queued-later")
    await world.create(world.pod(later, does=Behaviour(run_seconds=0.5)))
    await world.condition(later, "Admitted")
    assert await world.workload_of(name) is None, "the manager has seen a pod that was created after it"
    await world.remove(POD, later)
    await world.delete(POD, name)


@pytest.mark.parametrize("queue", ["multi", "at-home"])
async def test_hd_221_a_job_that_selects_its_pods_itself_is_not_queued(world: World, queue: str) -> None:
    name = world.name("own-selector")
    job = world.job(name, pods=1, queue=queue, cpu="10m", does=Behaviour(run_seconds=3600))
    job["spec"] |= {"manualSelector": True, "selector": {"matchLabels": {"foo": name}}, "suspend": True}
    job["spec"]["template"].setdefault("metadata", {}).setdefault("labels", {})["foo"] = name
    with pytest.raises(ApiError, match=r"spec\.manualSelector: .*make the Job anew without spec\.selector"):
        await world.create(job)
    queued = job["metadata"].pop("labels")
    await world.create(job)
    with pytest.raises(ApiError, match=r"spec\.manualSelector: "):
        await world.patch(JOB, name, {"metadata": {"labels": queued}})
    # Who refuses first is another one where the selector is validated before the webhooks are asked.
    with pytest.raises(ApiError, match=r"not auto-generated|spec\.selector: .*make the Job anew"):
        await world.patch(JOB, name, {"spec": {"manualSelector": False}, "metadata": {"labels": queued}})
    await world.remove(JOB, name)


LABELS_TOO_MANY = {f"example.com/{number:04d}-{'l' * 58}": "v" * 63 for number in range(8000)}
"""1.2 MB of labels: each of them is valid, and Kubernetes has no bound on all of them."""


async def test_hd_252_a_running_pod_keeps_room_for_what_stops_it(world: World) -> None:
    """Etcd takes 1.5 MiB: what is filled up to that could be neither stopped nor deleted."""
    name, queue = world.name("filled"), "at-home"
    full = {"metadata": {"labels": LABELS_TOO_MANY}}
    made = world.pod(name, queue=queue, cpu="10m", does=Behaviour(run_seconds=3600))
    too_large = json.loads(json.dumps(made))
    too_large["metadata"]["labels"] |= LABELS_TOO_MANY
    with pytest.raises(ApiError, match="larger than the 524288 that an object of a queue may have"):
        await world.create(too_large)
    await world.create(made)
    await world.phase(name, "Running")
    with pytest.raises(ApiError, match="it could not be stopped any more"):
        await world.patch(POD, name, full)
    await world.patch(POD, name, {"metadata": {"labels": {"example.com/one": "more"}}})
    await world.remove(POD, name)


async def test_hd_252_a_pod_of_a_job_that_runs_at_home_keeps_room_for_what_stops_it(world: World) -> None:
    name = world.name("filled-job")
    await world.create(world.job(name, pods=1, queue="at-home", cpu="10m", does=Behaviour(run_seconds=3600)))

    async def pods() -> list[str]:
        every = [each["metadata"] for each in await world.every("mgmt", POD)]
        return [meta["name"] for meta in every if meta.get("labels", {}).get("batch.kubernetes.io/job-name") == name]

    await world.until(pods, "its pod is there")
    (pod,) = await pods()
    with pytest.raises(ApiError, match="it could not be stopped any more"):
        await world.patch(POD, pod, {"metadata": {"labels": LABELS_TOO_MANY}})
    with pytest.raises(ApiError, match="it could not be stopped any more"):
        await world.patch(JOB, name, {"metadata": {"labels": LABELS_TOO_MANY}})
    await world.remove(JOB, name)
