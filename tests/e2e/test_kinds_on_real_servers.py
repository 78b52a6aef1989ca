"""The kinds' writes as a real API server and a real Job controller take them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared.values import DeleteStep, PatchStep, Placing, PodSetStart
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import from_kubeconfig
from gatelift_kube.deciding.errors import ConflictError
from gatelift_kube.deciding.writes import PatchKind
from gatelift_kube.objects.batch import Job
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import JOB, POD, ObjectKey, ObjectRef
from gatelift_sandbox.processes import LocalProvider
from gatelift_sandbox.provider import Cluster, NodeShape, ProviderSettings
from gatelift_wire.values.keys import PlacementKey
from support.manager.kind_objects import WALL, condition

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

Json = dict[str, Any]
KEY = PlacementKey("wl-uid", 3)
PLACING = Placing(
    key=KEY, origin="home", namespace="default", starts=(PodSetStart(pod_set="main", node_selector={"pool": "a"}),)
)
STEP_SECONDS = 0.05
LIMIT_SECONDS = 120.0
STEPS_MAX = 20
RESUMED = condition("Suspended", "False", reason="JobResumed")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home: Path = tmp_path_factory.mktemp("home")
    provider = LocalProvider(ProviderSettings(home=home, kubeconfigs=home / "kubeconfigs", nodes=NodeShape()))
    yield asyncio.run(provider.up(["kinds"]))[0]
    asyncio.run(provider.down())


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    async with Client.connect(await from_kubeconfig(str(cluster.kubeconfig))) as made:
        yield made


def a_job(name: str, **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"kueue.x-k8s.io/queue-name": "q"}},
        "spec": {"suspend": True, "parallelism": 2, "completions": 3, "template": template, **spec},
    }


class Worked:
    """One object on the server, with the writes of its kind."""

    def __init__(self, client: Client, ref: ObjectRef, struct: Any) -> None:
        self._client = client
        self._ref = ref
        self._struct = struct

    @classmethod
    async def make(cls, client: Client, document: Json | bytes) -> Worked:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        made = json.loads(body)
        resource, struct = (JOB, Job) if made["kind"] == "Job" else (POD, Pod)
        await client.create(resource, "default", body)
        return cls(client, ObjectRef(resource, ObjectKey("default", made["metadata"]["name"])), struct)

    async def read(self) -> tuple[Any, bytes]:
        served = await self._client.get(self._ref)
        return msgspec.json.decode(served.raw, type=self._struct), served.raw

    async def document(self) -> Json:
        made: Json = json.loads((await self.read())[1])
        return made

    async def take(self, step: PatchStep) -> None:
        await self._client.patch(self._ref, step.body, step.kind, subresource=step.subresource)

    async def lift(self, body: bytes) -> None:
        await self.take(PatchStep(body=body, kind=PatchKind.JSON))

    async def let_go(self, patch_of: Callable[[Any, bytes], bytes | None]) -> None:
        """Lift what is there now; where its controller or the scheduler wrote in between, what is there then."""
        for _ in range(STEPS_MAX):
            body = patch_of(*await self.read())
            assert body is not None
            try:
                await self.lift(body)
            except ConflictError:
                continue
            return
        raise AssertionError("somebody writes all the time")

    async def mirror(self, kind: Any, **status: Any) -> bool:
        """Write the status that was reported if it says anything new; return whether it did."""
        for _ in range(STEPS_MAX):
            obj, raw = await self.read()
            body = kind.mirror_patch(obj, raw, json.dumps(status).encode())
            if body is None:
                return False
            try:
                await self.take(PatchStep(body=body, subresource="status"))
            except ConflictError:  # the scheduler's word on a gated pod came in between
                continue
            return True
        raise AssertionError("somebody writes all the time")

    async def carry_out(self, steps_of: Callable[[Any, bytes], tuple[PatchStep, ...]]) -> None:
        """Take the steps one by one until none is wanted; after a conflict those that what is there then wants."""
        for _ in range(STEPS_MAX):
            steps = steps_of(*await self.read())
            if not steps:
                return
            with suppress(ConflictError):  # its controller or the scheduler wrote in between
                await self.take(steps[0])
        raise AssertionError("the steps do not end")

    async def pods(self) -> tuple[Pod, ...]:
        page = await self._client.list_page(POD)
        name = self._ref.key.name
        found = [one.object for one in page.items if isinstance(one.object, Pod)]
        return tuple(one for one in found if one.metadata.labels.get("batch.kubernetes.io/job-name") == name)

    async def is_suspended(self) -> bool:
        job, _ = await self.read()
        return any(one.type == "Suspended" and one.status == "True" for one in job.status.conditions)

    async def stop(self, step_of: Callable[[Any, bytes], Any]) -> int:
        """Carry out the steps until none is left; a conflict is read again. Return how many writes were needed."""
        writes = 0
        for _ in range(STEPS_MAX):
            obj, raw = await self.read()
            step = step_of(obj, raw)
            if step is None:
                return writes
            try:
                await self.take(step)
                writes += 1
            except ConflictError:
                continue
        raise AssertionError("the stop does not end")


async def eventually(found: Callable[[], Awaitable[Any]], what: str) -> Any:
    try:
        async with asyncio.timeout(LIMIT_SECONDS):
            while not (value := await found()):  # noqa: ASYNC110 - the API server has no event for us to wait on
                await asyncio.sleep(STEP_SECONDS)
    except TimeoutError:
        raise AssertionError(f"not within {LIMIT_SECONDS:g} s: {what}") from None
    return value


async def worker_copy(client: Client, name: str) -> Worked:
    user = await Worked.make(client, a_job(f"{name}-home"))
    obj, raw = await user.read()
    (part,) = JOB_KIND.parts(obj, raw)
    return await Worked.make(client, JOB_KIND.document(replace(part, name=name), PLACING))


async def test_a_job_that_runs_is_stopped_and_its_controller_has_the_last_word(client: Client) -> None:
    job = await worker_copy(client, "runs")
    await eventually(job.is_suspended, "suspended")
    await job.let_go(lambda obj, _raw: JOB_KIND.lift_patch(obj))
    await eventually(job.pods, "pods")
    assert await job.stop(lambda obj, _raw: JOB_KIND.stop_step(obj, KEY)) == 2

    async def stopped() -> bool:
        return JOB_KIND.stopped((await job.read())[0], await job.pods(), KEY)

    await eventually(stopped, "stopped")


async def test_a_job_stopped_right_after_its_lift_leaves_no_pod_behind(client: Client) -> None:
    job = await worker_copy(client, "hasty")
    await eventually(job.is_suspended, "suspended")
    await job.let_go(lambda obj, _raw: JOB_KIND.lift_patch(obj))
    await job.stop(lambda obj, _raw: JOB_KIND.stop_step(obj, KEY))

    async def stopped() -> bool:
        return JOB_KIND.stopped((await job.read())[0], await job.pods(), KEY)

    await eventually(stopped, "stopped")
    assert not [pod for pod in await job.pods() if pod.metadata.deletion_timestamp is None]


async def test_a_late_lift_of_a_stopped_job_fails(client: Client) -> None:
    job = await worker_copy(client, "late")
    late = JOB_KIND.lift_patch((await job.read())[0])
    await job.stop(lambda obj, _raw: JOB_KIND.stop_step(obj, KEY))
    with pytest.raises(ConflictError):
        await job.lift(late)
    assert (await job.read())[0].spec.suspend is True


async def test_a_job_at_home_gets_its_template_back_and_can_run_again(client: Client) -> None:
    job = await Worked.make(client, a_job("home"))
    before = (await job.document())["spec"]["template"]
    for epoch in (3, 4):
        key = PlacementKey("wl-uid", epoch)
        await eventually(job.is_suspended, "suspended")

        def lift(obj: Any, raw: bytes, key: PlacementKey = key) -> bytes:
            assert JOB_KIND.liftable(obj, key)
            return JOB_KIND.local_lift_patch(obj, raw, replace(PLACING, key=key))

        await job.let_go(lift)
        (pod, *_) = await eventually(job.pods, "pods")
        assert pod.spec.node_selector == {"pool": "a"}

        async def stopped(key: PlacementKey = key) -> bool:
            await job.stop(lambda job_now, raw_now: JOB_KIND.local_stop_step(job_now, raw_now, key))
            restored = (await job.document())["spec"]["template"] == before
            return restored and JOB_KIND.stopped((await job.read())[0], await job.pods(), key)

        await eventually(stopped, "stopped and restored")


@pytest.mark.parametrize("mode", ["NonIndexed", "Indexed"])
async def test_the_status_of_a_job_that_runs_elsewhere_is_taken_run_after_run(client: Client, mode: str) -> None:
    spec: Json = {"managedBy": "kueue.x-k8s.io/multikueue", "completionMode": mode}
    job = await Worked.make(client, a_job(f"far-{mode.lower()}", **spec))
    indexes = {"completedIndexes": "0"} if mode == "Indexed" else {}

    async def place() -> None:
        step = JOB_KIND.placed_step((await job.read())[0], PlacementKey("uid-w", 1))
        assert step is not None
        await job.take(step)

    await place()
    assert await job.mirror(JOB_KIND, conditions=[condition("Suspended")])
    running: Json = {"conditions": [RESUMED], "startTime": WALL, "active": 2, "ready": 2, "terminating": 0}
    assert await job.mirror(JOB_KIND, **running, succeeded=1, failed=2, **indexes)
    assert not await job.mirror(JOB_KIND, **running, succeeded=1, failed=2, **indexes)

    await job.carry_out(lambda obj, raw: JOB_KIND.unplaced_steps(obj, raw, WALL))
    obj, _ = await job.read()
    assert obj.status.start_time is None

    await place()
    again = {**running, "startTime": "2026-01-02T04:00:00Z"}
    assert await job.mirror(JOB_KIND, **again)
    ends = [condition("SuccessCriteriaMet", reason="CompletionsReached"), condition("Complete")]
    done: Json = {"conditions": [RESUMED, *ends], "startTime": again["startTime"], "terminating": 0, "ready": 0}
    indexes = {"completedIndexes": "0-2"} if mode == "Indexed" else {}
    assert await job.mirror(JOB_KIND, **done, completionTime="2026-01-02T05:00:00Z", succeeded=3, **indexes)
    obj, _ = await job.read()
    outcome = JOB_KIND.outcome(obj)
    assert outcome is not None
    assert outcome.succeeded
    assert (obj.status.succeeded, obj.status.failed) == (3, 2)


def a_pod(name: str, *gates: str) -> Json:
    labels = {"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "q"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "finalizers": ["kueue.x-k8s.io/managed"]},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGates": [{"name": gate} for gate in gates],
        },
    }


async def test_the_status_of_a_pod_that_runs_elsewhere_is_taken_run_after_run(client: Client) -> None:
    pod = await Worked.make(client, a_pod("far", "kueue.x-k8s.io/admission"))
    container: Json = {"name": "c", "image": "i", "imageID": "", "restartCount": 0, "ready": True}
    running: Json = {
        "phase": "Running",
        "podIPs": [{"ip": "10.0.0.9"}],
        "podIP": "10.0.0.9",
        "conditions": [condition("PodScheduled"), condition("Ready")],
        "containerStatuses": [{**container, "state": {"running": {"startedAt": WALL}}}],
    }
    over = {"terminated": {"exitCode": 1, "reason": "Error", "startedAt": WALL, "finishedAt": WALL}}
    failed: Json = {**running, "containerStatuses": [{**container, "ready": False, "state": over}]}

    async def shown() -> bool:
        await pod.mirror(POD_KIND, **running)
        return not await pod.mirror(POD_KIND, **running)  # unless the scheduler's word on a gated pod came in between

    await eventually(shown, "what was written once says nothing new")
    assert await pod.mirror(POD_KIND, **failed)
    await pod.carry_out(lambda obj, raw: POD_KIND.unplaced_steps(obj, raw, WALL))
    assert await pod.mirror(
        POD_KIND, **running
    )  # a container that ended cannot start again, but another may take its place
    assert await pod.mirror(POD_KIND, **{**failed, "phase": "Failed"})
    obj, _ = await pod.read()
    assert POD_KIND.outcome(obj) is not None
    assert POD_KIND.release_step(obj) is not None
    await pod.carry_out(lambda obj, _raw: tuple(step for step in [POD_KIND.release_step(obj)] if step is not None))


async def test_a_pod_at_home_is_marked_while_it_waits_and_lifted_in_the_next_epoch(client: Client) -> None:
    pod = await Worked.make(client, a_pod("near", "kueue.x-k8s.io/admission"))
    obj, raw = await pod.read()
    late = POD_KIND.local_lift_patch(obj, raw, PLACING)
    await pod.stop(lambda obj, raw: POD_KIND.local_stop_step(obj, raw, KEY))
    obj, raw = await pod.read()
    assert POD_KIND.stopped(obj, (), KEY)
    with pytest.raises(ConflictError):
        await pod.lift(late)
    again = PlacementKey("wl-uid", 4)
    await pod.let_go(lambda now, bytes_now: POD_KIND.local_lift_patch(now, bytes_now, replace(PLACING, key=again)))
    obj, raw = await pod.read()
    assert POD_KIND.lifted(obj)
    assert obj.spec.node_selector == {"pool": "a"}
    assert POD_KIND.local_stop_step(obj, raw, again) == DeleteStep()


async def test_a_workers_pod_waits_for_the_users_own_gates(client: Client) -> None:
    user = await Worked.make(client, a_pod("mine", "example.com/mine", "kueue.x-k8s.io/admission"))
    obj, raw = await user.read()
    (part,) = POD_KIND.parts(obj, raw)
    pod = await Worked.make(client, POD_KIND.document(replace(part, name="mine-there"), PLACING))
    obj, _ = await pod.read()
    assert not POD_KIND.liftable(obj, KEY)
    await pod.let_go(lambda now, _raw: POD_KIND.user_gates_patch(now, ()))
    obj, _ = await pod.read()
    assert POD_KIND.liftable(obj, KEY)
    await pod.let_go(lambda now, _raw: POD_KIND.lift_patch(now))
    assert POD_KIND.lifted((await pod.read())[0])
