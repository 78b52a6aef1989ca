"""What is told for people alone: nothing is decided by it. Pure values, parts of reports (`messages`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTrouble:
    """What keeps a pod from running, for people alone: a reason that the manager knows, or nobody is told of it."""

    reason: str
    pod: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedContainer:
    """The container that failed first, for people. Without `container`: what was said of the pod.

    `node` "": none is known. `message`: the end of what the container, or the kubelet, said last.
    """

    pod: str
    node: str = ""
    container: str = ""
    exit_code: int = 0
    reason: str = ""
    message: str = ""
