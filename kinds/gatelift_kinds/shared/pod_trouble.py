"""What keeps a pod from running, in one line: nobody makes it, a gate, no node, no image, a crash. Pure.

Read from a pod's status, at the agent (pods of Jobs) and at the manager (pods that are reported themselves). It moves
nothing: it is shown, as a condition of ours on the Workload and on the user's pod. Texts name no counts and no times,
so that they stay the same for as long as the trouble does. Neighbour: `pod` makes the patch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec

from gatelift_kinds.shared.patches import Json
from gatelift_kube.objects.conditions import TRUE
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.unreadable import UNREADABLE

CONDITION = "gatelift.dev/PodTrouble"
"""Type of the condition, on the Workload and on the user's pod; it goes when the trouble is over."""
UNSCHEDULABLE = "Unschedulable"
START_REFUSED = "StartRefused"
IMAGE = "ImageNotPulled"
CRASH = "ContainerCrashes"
NAMESPACE_GOES = "NamespaceBeingDeleted"
"""What a Job waits for whose namespace goes."""
MISSING = "PodsMissing"
"""Pods of a Job are not there, and its controller makes none."""
GATED = "SchedulingGated"
"""As Kubernetes calls it: a pod waits for a scheduling gate that somebody else takes off."""
_OF_JOBS = frozenset({NAMESPACE_GOES, MISSING})
"""Told of the Job, not of a pod of it."""
ORDER = {NAMESPACE_GOES: 0, MISSING: 1, GATED: 2, UNSCHEDULABLE: 3, START_REFUSED: 4, IMAGE: 5, CRASH: 6}
"""Reasons, in the order in which they stand in a pod's way: of several pods the first trouble is shown."""
OF_PODS = frozenset(ORDER) - {START_REFUSED}
"""What an agent may tell of the pods of a Job: a start that is refused has a message of its own."""
TEXT_CHARS_MAX = 400
"""Of one trouble: what a scheduler says of a large cluster takes half of that."""
_WORD_CHARS_MAX = 200
"""Of an image's or a container's name, and of a reason."""
_NO_IMAGE = frozenset(
    {
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Reasons by which a kubelet says that it has no image."""
_NO_START = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "PostStartHookError", "RunContainerError", "StartError"}
)
"""Reasons by which it says that a container cannot be started."""
_BACK_OFF = "CrashLoopBackOff"


class Trouble(NamedTuple):
    """One trouble of one pod: `reason` is one of `ORDER`."""

    reason: str
    pod: str
    text: str


_Count = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""Kubernetes counts in int32: no other number is one, and none is too long to be written."""


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    reason: str = ""


class _Terminated(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    exit_code: _Count = 0
    reason: str = ""


class _State(msgspec.Struct, frozen=True, gc=False):
    waiting: _Waiting | None = None
    terminated: _Terminated | None = None


class _Container(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    name: str = ""
    image: str = ""
    ready: bool = False
    restart_count: _Count = 0
    state: _State = _State()
    last_state: _State = _State()


class _Condition(msgspec.Struct, frozen=True, gc=False):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    conditions: tuple[_Condition, ...] | None = None
    init_container_statuses: tuple[_Container, ...] | None = None
    container_statuses: tuple[_Container, ...] | None = None

    @property
    def containers(self) -> tuple[_Container, ...]:
        return (*(self.init_container_statuses or ()), *(self.container_statuses or ()))


_STATUS = msgspec.json.Decoder(_Status)


def of_status(pod: str, status: bytes) -> Trouble | None:
    """Return what keeps a pod from running that is not over, None for nothing, or for what cannot be read.

    `status`: the JSON of its status, by whomever; every text of it is cut and made plain.
    """
    found = _read(status)
    if found is None or found.phase in {"Succeeded", "Failed"}:
        return None
    for one in found.conditions or ():
        if (one.type, one.status) == ("Ready", "True"):
            return None
        if (one.type, one.status, one.reason) == ("PodScheduled", "False", UNSCHEDULABLE):
            return _trouble(UNSCHEDULABLE, pod, one.message or "no node takes it")
    return first(_of_container(pod, one) for one in found.containers)


def of_failed(pod: str, status: bytes) -> Trouble | None:
    """Return how a pod came to its end that has failed, as trouble of the Job that makes another one."""
    found = _read(status)
    if found is None or found.phase != "Failed":
        return None
    for one in found.containers:
        ended = one.state.terminated
        if ended is not None and ended.exit_code:
            return _trouble(CRASH, pod, _ended(one, ended))
    why = f": {plain(found.reason, _WORD_CHARS_MAX)}" if found.reason else ""
    return _trouble(CRASH, pod, f"it has failed{why}")


def gated(pod: str, gates: Iterable[str]) -> Trouble | None:
    """Return that a pod waits for these scheduling gates, None where there are none."""
    names = [f'"{plain(name, _WORD_CHARS_MAX)}"' for name in gates]
    if not names:
        return None
    which = f"scheduling gate {names[0]}" if len(names) == 1 else f"scheduling gates {', '.join(names)}"
    return _trouble(GATED, pod, f"waits for {which} to be taken off")


def missing(job: str, lacks: int, due: int, why: str) -> Trouble:
    """Return that of the pods of a Job so many are not there; `why`: the API server's no to one more, "" for none."""
    are = "pod is" if due == 1 else "pods are" if lacks > 1 else "pods is"
    rest = f"the API server there says no to one more: {why}" if why else "and none is made: its events there say why"
    return _trouble(MISSING, job, f"{lacks} of {due} {are} not there{';' if why else ','} {rest}")


def first(found: Iterable[Trouble | None]) -> Trouble | None:
    """Return the trouble that is told of several: the order of `ORDER`, then of the pods' names."""
    return min((one for one in found if one is not None), key=weight, default=None)


def weight(trouble: Trouble) -> tuple[int, Trouble]:
    """Return by what one of several is told: the least of them."""
    return ORDER.get(trouble.reason, len(ORDER)), trouble


def told(cluster: str, trouble: Trouble) -> str:
    """Return what people are told of a trouble at a cluster."""
    who = f"Job {trouble.pod}" if trouble.reason in _OF_JOBS else f"Pod {trouble.pod}"
    return f'{who} on cluster "{cluster}": {trouble.text}'


def said_on(conditions: list[Json], said: Condition | None) -> list[Json]:
    """Return the conditions of a user's pod with what its Workload says of the trouble, last; None: with none."""
    kept = without(conditions)
    if said is None or said.status != TRUE:
        return kept
    mine = {
        "type": CONDITION,
        "status": TRUE,
        "reason": said.reason,
        "message": said.message,
        "lastTransitionTime": said.last_transition_time,
    }
    return [*kept, mine]


def without(conditions: list[Json]) -> list[Json]:
    """Return the conditions of a pod without ours: also what a worker's pod says under its name."""
    return [one for one in conditions if one.get("type") != CONDITION]


def only(conditions: list[Json]) -> list[Json]:
    """Return ours."""
    return [one for one in conditions if one.get("type") == CONDITION]


def _read(status: bytes) -> _Status | None:
    try:
        return _STATUS.decode(status) if status else None
    except UNREADABLE:
        return None


def _trouble(reason: str, pod: str, text: str) -> Trouble:
    return Trouble(reason, pod, plain(text, TEXT_CHARS_MAX))


def _of_container(pod: str, one: _Container) -> Trouble | None:
    waiting = one.state.waiting.reason if one.state.waiting is not None else ""
    if waiting in _NO_IMAGE:
        image = plain(one.image, _WORD_CHARS_MAX)
        return _trouble(IMAGE, pod, f'{_named(one)}: image "{image}" cannot be pulled or used')
    if waiting in _NO_START:
        return _trouble(CRASH, pod, f"{_named(one)} cannot be started ({waiting})")
    ended = one.last_state.terminated
    failed = ended is not None and ended.exit_code != 0
    if waiting == _BACK_OFF or (failed and one.restart_count > 0 and not one.ready):
        how = _ended(one, ended) if ended is not None else f"{_named(one)} ended"
        return _trouble(CRASH, pod, f"{how}, and is started again and again")
    return None


def _ended(one: _Container, ended: _Terminated) -> str:
    why = f" ({plain(ended.reason, _WORD_CHARS_MAX)})" if ended.reason else ""
    return f"{_named(one)} ended with exit code {ended.exit_code}{why}"


def _named(one: _Container) -> str:
    return f"container {plain(one.name, _WORD_CHARS_MAX)}"
