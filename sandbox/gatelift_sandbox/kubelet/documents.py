"""The JSON that a stand-in kubelet writes: a node, its lease, and the status of a pod. Pure.

Merge patches replace lists, so a pod's conditions are written whole, those of others included, under the
resourceVersion at which they were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift_kube.values.timestamps import to_micro_text, to_text
from gatelift_sandbox.kubelet.pods import Ended, Run, exit_reason
from gatelift_sandbox.kubelet.views import ContainerView, PodView

LEASE_NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
"""A kubelet's default; after it the node lifecycle controller calls the node Unknown."""
HOST_IP = "127.0.0.1"
OWN_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """One stand-in node; `capacity` holds cpu, memory, pods and extended resources as quantities."""

    name: str
    capacity: Mapping[str, str]


def node(settings: NodeSettings, wall: float) -> bytes:
    """Return a whole Node, Ready from the start as a kubelet's registration is."""
    metadata = {
        "name": settings.name,
        "labels": {
            "kubernetes.io/hostname": settings.name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "sandbox.gatelift.dev/stand-in": "true",
        },
    }
    document = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}, "status": _node(settings, wall)}
    return msgspec.json.encode(document)


def node_status(settings: NodeSettings, wall: float) -> bytes:
    """Return a merge patch for a node's status."""
    return msgspec.json.encode({"status": _node(settings, wall)})


def lease(name: str, wall: float) -> bytes:
    """Return a whole Lease of a node."""
    document = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": to_micro_text(wall)},
    }
    return msgspec.json.encode(document)


def lease_renewal(wall: float) -> bytes:
    """Return a merge patch that renews a node's lease."""
    return msgspec.json.encode({"spec": {"renewTime": to_micro_text(wall)}})


def pod_status(view: PodView, run: Run, wall_offset: float) -> bytes:
    """Return a merge patch for a pod's status, valid only for the version of the pod that was seen."""
    metadata = {"uid": view.metadata.uid, "resourceVersion": view.metadata.resource_version}
    ready = run.ended is None and run.running_since is not None
    phase = "Running" if run.ended is None else run.ended.phase
    changed = run.ended.at if run.ended is not None else (run.running_since or run.started)
    status: dict[str, Any] = {
        "phase": phase,
        "startTime": to_text(run.started + wall_offset),
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": run.ip,
        "podIPs": [{"ip": run.ip}],
        "conditions": _conditions(view, run, wall_offset, ready=ready, at=to_text(changed + wall_offset)),
        "containerStatuses": [_container(c, view, run, wall_offset) for c in view.spec.containers],
    }
    if view.spec.init_containers:
        status["initContainerStatuses"] = [_init(c, view, run, wall_offset) for c in view.spec.init_containers]
    if run.ended is not None and run.ended.message:
        status |= {"reason": run.ended.reason, "message": run.ended.message}
    return msgspec.json.encode({"metadata": metadata, "status": status})


def _node(settings: NodeSettings, wall: float) -> dict[str, Any]:
    now = to_text(wall)
    bad = ("MemoryPressure", "DiskPressure", "PIDPressure")
    conditions = [_node_condition(kind, "False", f"KubeletHasNo{kind}", now) for kind in bad]
    conditions.append(_node_condition("Ready", "True", "KubeletReady", now))
    return {
        "capacity": dict(settings.capacity),
        "allocatable": dict(settings.capacity),
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": HOST_IP}, {"type": "Hostname", "address": settings.name}],
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "stand-in://0",
            "kernelVersion": "",
            "kubeProxyVersion": "",
            "kubeletVersion": "v0-gatelift-stand-in",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "Gatelift sandbox",
            "systemUUID": "",
        },
    }


def _node_condition(kind: str, status: str, reason: str, now: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": "the stand-in kubelet says so",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }


def _conditions(view: PodView, run: Run, wall_offset: float, *, ready: bool, at: str) -> list[dict[str, Any]]:
    started = to_text(run.started + wall_offset)
    wanted: dict[str, dict[str, Any]] = {
        "PodReadyToStartContainers": {"status": "True" if run.ended is None else "False", "lastTransitionTime": at},
        "Initialized": {"status": "True", "lastTransitionTime": started},
        "Ready": {"status": "True" if ready else "False", "lastTransitionTime": at},
        "ContainersReady": {"status": "True" if ready else "False", "lastTransitionTime": at},
    }
    if not ready:
        reason = "ContainersNotReady"
        if run.ended is not None:
            reason = "PodFailed" if run.ended.exit_code else "PodCompleted"
        for kind in ("Ready", "ContainersReady"):
            wanted[kind]["reason"] = reason
    before = {condition.get("type"): condition for condition in view.status.conditions}
    found = []
    for kind, condition in wanted.items():
        known = before.get(kind, {})
        if known.get("status") == condition["status"] and "lastTransitionTime" in known:
            condition["lastTransitionTime"] = known["lastTransitionTime"]
        found.append({"type": kind, **condition})
    return found + [condition for condition in view.status.conditions if condition.get("type") not in OWN_CONDITIONS]


def _container(container: ContainerView, view: PodView, run: Run, wall_offset: float) -> dict[str, Any]:
    identity = f"stand-in://{view.metadata.uid}/{container.name}"
    running = run.ended is None and run.running_since is not None
    if run.ended is not None:
        state: dict[str, Any] = {"terminated": _terminated(run.ended, run, identity, wall_offset)}
    elif run.running_since is not None:
        state = {"running": {"startedAt": to_text(run.running_since + wall_offset)}}
    else:
        state = {"waiting": {"reason": "CrashLoopBackOff", "message": "the stand-in kubelet waits before a restart"}}
    status: dict[str, Any] = {
        **_identity(container, identity),
        "ready": running,
        "started": running,
        "restartCount": run.restarts,
        "state": state,
        "lastState": {},
    }
    if run.last_exit is not None:
        oom = run.behaviour.exceed_memory
        last = {"exitCode": run.last_exit, "reason": exit_reason(run.last_exit, oom=oom), "containerID": identity}
        status["lastState"] = {"terminated": last}
    return status


def _init(container: ContainerView, view: PodView, run: Run, wall_offset: float) -> dict[str, Any]:
    """Init containers end well as the pod starts; those with restartPolicy Always are sidecars and live as it does."""
    if container.restart_policy == "Always":
        return _container(container, view, run, wall_offset)
    identity = f"stand-in://{view.metadata.uid}/{container.name}"
    at = Ended(exit_code=0, reason="Completed", at=run.started)
    state = {"terminated": _terminated(at, run, identity, wall_offset)}
    return {**_identity(container, identity), "ready": True, "started": False, "restartCount": 0, "state": state}


def _terminated(ended: Ended, run: Run, identity: str, wall_offset: float) -> dict[str, Any]:
    return {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": to_text(run.started + wall_offset),
        "finishedAt": to_text(ended.at + wall_offset),
        "containerID": identity,
    }


def _identity(container: ContainerView, identity: str) -> dict[str, str]:
    image = container.image
    return {"name": container.name, "image": image, "imageID": f"stand-in://{image}", "containerID": identity}
