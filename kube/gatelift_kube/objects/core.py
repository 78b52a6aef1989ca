"""Core kinds: Pod (and its template), Namespace, Node, Secret, LimitRange, PriorityClass, RuntimeClass, Lease."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kube.objects.meta import ObjectMeta, Struct

Quantity = str | int | float
"""As served: `100m`, `1Gi`, 2. `gatelift_admission.values.amounts` turns it into an integer amount."""

POD_COUNT = "pods"
"""Under this name a node says how many pods it takes, and a queue how many it admits."""


class ResourceRequirements(Struct, frozen=True, gc=False):
    """core/v1 ResourceRequirements."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class ContainerPort(Struct, frozen=True, gc=False):
    """core/v1 ContainerPort, the fields of the role hash."""

    container_port: int
    name: str | None = None
    protocol: str | None = None
    host_port: int | None = None
    host_ip: str | None = None


class Container(Struct, frozen=True, gc=False):
    """core/v1 Container, the fields that admission needs."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None


class Toleration(Struct, frozen=True, gc=False):
    """core/v1 Toleration."""

    key: str = ""
    """The taint's key; empty, with Exists: any."""
    operator: str = ""
    """Equal or Exists."""
    value: str = ""
    """The taint's value."""
    effect: str = ""
    """The taint's effect; empty: any."""
    toleration_seconds: int | None = None
    """How long NoExecute is tolerated; not set: for ever."""


class Taint(Struct, frozen=True, gc=False):
    """core/v1 Taint."""

    key: str
    """The taint's key."""
    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    value: str = ""
    """The taint's value."""


class SchedulingGate(Struct, frozen=True, gc=False):
    """core/v1 PodSchedulingGate."""

    name: str


class PodSpec(Struct, frozen=True, gc=False):
    """core/v1 PodSpec, the fields that deciding needs; `raw_spec` has all of them."""

    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: tuple[Toleration, ...] = ()
    scheduling_gates: tuple[SchedulingGate, ...] = ()
    overhead: dict[str, Quantity] = {}
    resources: ResourceRequirements | None = None
    resource_claims: tuple[dict[str, Any], ...] = ()
    priority: int | None = None
    priority_class_name: str = ""
    runtime_class_name: str | None = None
    service_account_name: str = ""
    termination_grace_period_seconds: int | None = None
    restart_policy: str = ""
    host_network: bool = False
    host_pid: bool = msgspec.field(default=False, name="hostPID")
    host_ipc: bool = msgspec.field(default=False, name="hostIPC")


class PodCondition(Struct, frozen=True, gc=False):
    """core/v1 PodCondition."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Struct, frozen=True, gc=False):
    """core/v1 PodStatus, the fields that deciding needs; `raw_status` has all of them."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] = ()
    reason: str = ""
    message: str = ""


class Pod(Struct, frozen=True, gc=False):
    """core/v1 Pod."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class PodTemplate(Struct, frozen=True, gc=False):
    """core/v1 PodTemplateSpec."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class NamespaceStatus(Struct, frozen=True, gc=False):
    """core/v1 NamespaceStatus."""

    phase: str = ""


class Namespace(Struct, frozen=True, gc=False):
    """core/v1 Namespace."""

    metadata: ObjectMeta = ObjectMeta()
    status: NamespaceStatus = NamespaceStatus()


class NodeSpec(Struct, frozen=True, gc=False):
    """core/v1 NodeSpec."""

    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class Node(Struct, frozen=True, gc=False):
    """core/v1 Node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: NodeSpec = NodeSpec()


class Secret(Struct, frozen=True, gc=False):
    """core/v1 Secret; `data` is base64 and is never logged."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, str] = {}


class ConfigMap(Struct, frozen=True, gc=False):
    """core/v1 ConfigMap."""

    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}


LIMITS_A_CONTAINER = "Container"
LIMITS_A_POD = "Pod"
"""What an item of a LimitRange is about."""


class LimitRangeItem(Struct, frozen=True, gc=False):
    """core/v1 LimitRangeItem."""

    type: str
    default: dict[str, Quantity] = {}
    default_request: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = {}


class LimitRangeSpec(Struct, frozen=True, gc=False):
    """core/v1 LimitRangeSpec."""

    limits: tuple[LimitRangeItem, ...] = ()


class LimitRange(Struct, frozen=True, gc=False):
    """core/v1 LimitRange."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(Struct, frozen=True, gc=False):
    """scheduling.k8s.io/v1 PriorityClass."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    description: str = ""


class Overhead(Struct, frozen=True, gc=False):
    """node.k8s.io/v1 Overhead."""

    pod_fixed: dict[str, Quantity] = {}


class RuntimeClass(Struct, frozen=True, gc=False):
    """node.k8s.io/v1 RuntimeClass."""

    metadata: ObjectMeta = ObjectMeta()
    handler: str = ""
    overhead: Overhead | None = None


class LeaseSpec(Struct, frozen=True, gc=False):
    """coordination.k8s.io/v1 LeaseSpec."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Struct, frozen=True, gc=False):
    """coordination.k8s.io/v1 Lease."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


class _RawParts(Struct, frozen=True, gc=False):
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")


_RAW_PARTS = msgspec.json.Decoder(_RawParts)


def raw_spec(raw: bytes) -> bytes:
    """Return the JSON of `.spec` of an object as served, untouched."""
    return bytes(_RAW_PARTS.decode(raw).spec)


def raw_status(raw: bytes) -> bytes:
    """Return the JSON of `.status` of an object as served, untouched."""
    return bytes(_RAW_PARTS.decode(raw).status)
