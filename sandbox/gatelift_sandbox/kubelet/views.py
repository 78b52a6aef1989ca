"""What the stand-in kubelet reads of pods and nodes: the few fields it needs, decoded from the JSON as served. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kube.objects.meta import ObjectMeta, Struct
from gatelift_kube.values.resources import ObjectKey


class ContainerView(Struct, frozen=True, gc=False):
    """A container of the spec."""

    name: str = ""
    image: str = ""
    restart_policy: str | None = None


class SpecView(Struct, frozen=True, gc=False):
    """A pod's spec."""

    node_name: str = ""
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    containers: tuple[ContainerView, ...] = ()
    init_containers: tuple[ContainerView, ...] = ()


class ContainerStatusView(Struct, frozen=True, gc=False):
    """What an earlier life of this kubelet reported of a container."""

    restart_count: int = 0
    state: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)


class StatusView(Struct, frozen=True, gc=False):
    """A pod's status; conditions stay raw, since those of others have to be written back unchanged."""

    phase: str = ""
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[dict[str, Any], ...] = ()
    container_statuses: tuple[ContainerStatusView, ...] = ()


class PodView(Struct, frozen=True, gc=False):
    """A pod as the kubelet sees it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: SpecView = SpecView()
    status: StatusView = StatusView()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.metadata.namespace, self.metadata.name)


_POD = msgspec.json.Decoder(PodView)


def pod_view(raw: bytes) -> PodView:
    """Decode a pod as served."""
    return _POD.decode(raw)
