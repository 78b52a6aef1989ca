"""KEP-976's stories: story 2, a driver and two workers, as the document has it; what a driver of story 3 declares."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import yaml

from gatelift_kube.values.resources import LOCAL_QUEUE, POD
from gatelift_sandbox import applying
from support.e2e.admission import queue as a_queue
from support.e2e.groups import FOR_EVER, Group, K
from support.e2e.world import GPU, Json, World

STORY = """
apiVersion: v1
kind: Pod
metadata:
  name: job-driver
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: driver
    resources:
      requests:
        cpu: 1m
---
apiVersion: v1
kind: Pod
metadata:
  name: job-worker-0
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: worker
    args: ["--index", "0"]
    resources:
      requests:
        cpu: 1m
        vendor.com/gpu: 1
---
apiVersion: v1
kind: Pod
metadata:
  name: job-worker-1
  labels:
    kueue.x-k8s.io/queue-name: user-queue
    kueue.x-k8s.io/pod-group-name: pod-group
  annotations:
    kueue.x-k8s.io/pod-group-total-count: "3"
spec:
  containers:
  - name: job
    image: worker
    args: ["--index", "1"]
    resources:
      requests:
        cpu: 1m
        vendor.com/gpu: 1
"""
"""KEP-976's story 2, but for `limits`, which a real API server wants of an extended resource as well."""
SETS = """
- name: driver
  count: 1
- name: workers
  count: {count}
  template:
    spec:
      containers:
        - name: worker
          resources:
            requests:
              cpu: {cpu}
"""
NAMES = ("job-driver", "job-worker-0", "job-worker-1")


def declared(workers: int, cpu: str) -> str:
    """Return what a driver says that it will make so many workers."""
    return SETS.format(count=workers, cpu=cpu)


async def queues(world: World, prefix: str) -> tuple[str, str]:
    """Make queues with quota of the story's resource, at home and for workers; return the names of both."""
    pairs = (a_queue(f"{prefix}-home", "1", checks=()), a_queue(f"{prefix}-away", "1"))
    await applying.apply(world.clients["mgmt"], [_with_gpu(pair) for pair in pairs])
    return f"{prefix}-home", f"{prefix}-away"


@contextlib.asynccontextmanager
async def user_queue(world: World, name: str) -> AsyncIterator[None]:
    """Make the LocalQueue of the document, of a ClusterQueue, meanwhile."""
    local: Json = {"apiVersion": f"{K}v1beta2", "kind": "LocalQueue", "metadata": {"name": "user-queue"}}
    await world.create(local | {"spec": {"clusterQueue": name}})
    if not name.endswith("-home"):
        await world.sends_elsewhere("user-queue")
    yield
    await world.delete(LOCAL_QUEUE, "user-queue")
    await world.gone("mgmt", LOCAL_QUEUE, "user-queue")


async def told(world: World, queue: str) -> None:
    """Make what the document makes, and look whether it runs as one under one quota, in one place."""
    group = Group(world, "story", queue)
    group.name = "pod-group"
    for document in yaml.safe_load_all(STORY):
        resources = document["spec"]["containers"][0]["resources"]
        if GPU in resources["requests"]:
            resources["limits"] = {GPU: resources["requests"][GPU]}
        await world.create(world.shaped(document, FOR_EVER))
    admitted = await group.says("Admitted", "True")
    there = "mgmt" if queue.endswith("-home") else admitted["status"]["clusterName"]
    for name in NAMES:
        await world.phase(name, "Running", cluster=there)
        await world.phase(name, "Running")
    assigned = admitted["status"]["admission"]["podSetAssignments"]
    assert sorted(each["resourceUsage"].get(GPU, "0") for each in assigned) == ["0", "2"]
    assert [each["name"] for each in admitted["metadata"]["ownerReferences"]] == list(NAMES)
    for name in NAMES:
        await world.delete(POD, name)
    await group.nobody_is_left()


def _with_gpu(pair: list[Json]) -> Json:
    """Return the ClusterQueue of a pair, with quota of the story's resource."""
    [group] = pair[0]["spec"]["resourceGroups"]
    group["coveredResources"].append(GPU)
    group["flavors"][0]["resources"].append({"name": GPU, "nominalQuota": "2"})
    return pair[0]
