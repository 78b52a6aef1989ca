"""What failed first in a pod, as its status says: for people who ask why the work failed. Pure.

Nothing is decided by it. A status that cannot be read, or a name that is none, tells nothing. Neighbours: the agent
keeps it until the end is told (`gatelift_agent.core.placement.failures`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from gatelift_kube.objects.core import Pod, raw_status
from gatelift_kube.values.plain_text import ending
from gatelift_wire.values import limits
from gatelift_wire.values.told import FailedContainer

_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")
"""Names of nodes and containers (DNS): other texts in a status are somebody's, and are not told."""

_MAY_HAVE_FAILED = (b'"exitCode"', b'"Failed"')
"""Of a status without one of these nothing is read: that is most of them."""


class _Terminated(msgspec.Struct, frozen=True, rename="camel"):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    finished_at: str | None = None


class _State(msgspec.Struct, frozen=True):
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    state: _State = _State()
    last_state: _State = _State()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    init_container_statuses: tuple[_Container, ...] = ()
    container_statuses: tuple[_Container, ...] = ()


_STATUS = msgspec.json.Decoder(_Status)


class _Order(NamedTuple):
    """Pods that failed come before such as go on after a container of theirs did, then time, then names."""

    goes_on: bool
    unnamed: bool
    at: str
    pod: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFailure:
    """What failed in one pod, and where it stands among those of others."""

    order: _Order
    container: FailedContainer


def of_pod(pod: Pod, raw: bytes) -> PodFailure | None:
    """Return what failed first in a pod; None where nothing has, and where that cannot be read."""
    if not any(each in raw for each in _MAY_HAVE_FAILED):
        return None
    try:
        status = _STATUS.decode(raw_status(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    failed = status.phase == "Failed"
    ends = [
        (end.finished_at or "", number, one.name, end)
        for number, one in enumerate((*status.init_container_statuses, *status.container_statuses))
        if (end := _failed_end(one)) is not None
    ]
    if not ends and not failed:
        return None
    at, _, name, end = min(ends, key=lambda each: each[:2]) if ends else ("", 0, "", _Terminated())
    container = FailedContainer(
        pod=pod.metadata.name,
        node=_name(pod.spec.node_name, limits.NAME_MAX),
        container=_name(name, limits.LABEL_MAX),
        exit_code=end.exit_code,
        reason=_word(end.reason if ends else status.reason),
        message=ending(end.message or status.message, limits.LAST_WORDS_MAX),
    )
    order = _Order(goes_on=not failed, unnamed=not ends, at=at, pod=container.pod)
    return PodFailure(order=order, container=container)


def first(one: PodFailure | None, other: PodFailure | None) -> PodFailure | None:
    """Return which of two failed first; of one pod that is seen again, the older reading unless it failed since."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda each: each.order)


def _failed_end(one: _Container) -> _Terminated | None:
    for state in (one.last_state, one.state):
        end = state.terminated
        if end is not None and end.exit_code and abs(end.exit_code) <= limits.COUNT_MAX:
            return end
    return None


def _name(text: str, longest: int) -> str:
    return text if len(text) <= longest and _NAME.fullmatch(text) else ""


def _word(text: str) -> str:
    return text if len(text) <= limits.LABEL_MAX and text.isascii() and text.isalnum() else ""
