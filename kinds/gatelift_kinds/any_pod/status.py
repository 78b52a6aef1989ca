"""What a pod's status shows of its containers. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kinds.shared import pods
from gatelift_kinds.shared.values import Seen
from gatelift_kube.objects.core import Pod, raw_status


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""


class _ContainerState(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None
    running: dict[str, Any] | None = None


class _ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: _ContainerState = _ContainerState()


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    container_statuses: tuple[_ContainerStatus, ...] = ()
    init_container_statuses: tuple[_ContainerStatus, ...] = ()


_POD_STATUS = msgspec.json.Decoder(_PodStatus)


def seen(obj: Pod, raw: bytes) -> Seen:
    """Return what people see of a pod's status: they wait for its end, and for Ready."""
    status = _POD_STATUS.decode(raw_status(raw))
    containers = (*status.init_container_statuses, *status.container_statuses)
    scheduled = [(one.status, one.reason) for one in obj.status.conditions if one.type == "PodScheduled"]
    return Seen(
        (obj.status.phase if pods.over(obj) else "", pods.ready(obj)),
        (
            obj.status.phase,
            tuple(scheduled),
            obj.status.reason,
            tuple((c.name, c.ready, c.restart_count, c.state.waiting) for c in containers),
        ),
    )


def containers_run(raw: bytes) -> bool:
    """Say whether a pod's status shows a container that runs, whatever its phase says, or cannot be read."""
    try:
        status = _POD_STATUS.decode(raw_status(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return True
    return any(one.state.running is not None for one in (*status.init_container_statuses, *status.container_statuses))
