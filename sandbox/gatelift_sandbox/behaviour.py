"""How a test pod shall behave: annotations for the stand-in kubelet, or a shell command for a real one. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "sandbox.gatelift.dev/"
RUN_SECONDS = PREFIX + "run-seconds"
EXIT_CODE = PREFIX + "exit-code"
STOP_SECONDS = PREFIX + "stop-seconds"
STOP_EXIT_CODE = PREFIX + "stop-exit-code"
FAIL_REASON = PREFIX + "fail-reason"
LOST = PREFIX + "lost"
"""On a Node of a stand-in kubelet: `true` cuts it off from its API server until the annotation changes or goes."""

SIGTERM_EXIT = 143
SIGKILL_EXIT = 137
OOM_KILLED = "OOMKilled"
SECONDS_MAX = 1_000_000.0
"""Eleven days: longer is `for ever`, which is said by leaving the annotation out."""
OOM_LIMIT = "32Mi"
"""Memory limit of a container that is to exceed it, where the test sets none: a shell needs under 2 MiB of it."""


class BehaviourError(ValueError):
    """An annotation is not a number or out of its range; the text names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the containers of a pod do. `run_seconds` None: they run until they are stopped.

    On SIGTERM they take `stop_seconds` to end with `stop_exit_code`; the pod's grace period may cut that short (137).
    `exceed_memory`: at the end of `run_seconds` (None: at once) they are killed for memory, whatever `exit_code` says.
    """

    run_seconds: float | None = None
    exit_code: int = 0
    stop_seconds: float = 0.0
    stop_exit_code: int = SIGTERM_EXIT
    exceed_memory: bool = False


def as_annotations(behaviour: Behaviour) -> dict[str, str]:
    """Return the annotations that tell the stand-in kubelet; defaults are left out."""
    found: dict[str, str] = {}
    run_seconds = 0.0 if behaviour.exceed_memory and behaviour.run_seconds is None else behaviour.run_seconds
    if run_seconds is not None:
        found[RUN_SECONDS] = f"{run_seconds:g}"
    if behaviour.exceed_memory:
        found |= {FAIL_REASON: OOM_KILLED, EXIT_CODE: str(SIGKILL_EXIT)}
    elif behaviour.exit_code:
        found[EXIT_CODE] = str(behaviour.exit_code)
    if behaviour.stop_seconds:
        found[STOP_SECONDS] = f"{behaviour.stop_seconds:g}"
    if behaviour.stop_exit_code != SIGTERM_EXIT:
        found[STOP_EXIT_CODE] = str(behaviour.stop_exit_code)
    return found


def from_annotations(given: Mapping[str, str]) -> Behaviour:
    """Read the annotations of a pod; raises BehaviourError. The one `fail-reason` is OOMKilled."""
    run = given.get(RUN_SECONDS)
    reason = given.get(FAIL_REASON)
    if reason not in (None, OOM_KILLED):
        raise BehaviourError(f"annotation {FAIL_REASON}: {reason!r} must be {OOM_KILLED}; else set {EXIT_CODE}")
    return Behaviour(
        run_seconds=None if run is None else _seconds(RUN_SECONDS, run),
        exit_code=_exit_code(EXIT_CODE, given.get(EXIT_CODE, "0")),
        stop_seconds=_seconds(STOP_SECONDS, given.get(STOP_SECONDS, "0")),
        stop_exit_code=_exit_code(STOP_EXIT_CODE, given.get(STOP_EXIT_CODE, str(SIGTERM_EXIT))),
        exceed_memory=reason == OOM_KILLED,
    )


def script(behaviour: Behaviour) -> str:
    """Return the same behaviour as a command of a POSIX shell that is process 1 of its container."""
    stop = f"exit {behaviour.stop_exit_code}"
    if behaviour.stop_seconds:
        stop = f"sleep {math.ceil(behaviour.stop_seconds)}; {stop}"
    if behaviour.exceed_memory:
        seconds, end = behaviour.run_seconds or 0.0, "x=xxxxxxxx; while :; do x=$x$x; done"
    else:
        seconds = SECONDS_MAX if behaviour.run_seconds is None else behaviour.run_seconds
        end = f"exit {behaviour.exit_code}"
    # a shell runs its trap only between commands, so the sleep is in the background and `wait` is what SIGTERM ends
    return f"trap '{stop}' TERM; sleep {math.ceil(seconds)} & wait $!; {end}"


def shape(template: Mapping[str, Any], behaviour: Behaviour, *, real_kubelet: bool, image: str) -> dict[str, Any]:
    """Return a pod (or pod template) that behaves so. The input is left as it is.

    Real kubelet: each container gets `image` (any with /bin/sh and sleep) and the command. Stand-in: annotations, and
    `image` where a container has none, since the API server demands one.
    """
    metadata = dict(template.get("metadata", {}))
    spec = dict(template.get("spec", {}))
    given = spec.get("containers") or [{"name": "main"}]
    if real_kubelet:
        spec["containers"] = [_real(container, behaviour, image) for container in given]
    else:
        spec["containers"] = [{"image": image, **container} for container in given]
        metadata["annotations"] = {**metadata.get("annotations", {}), **as_annotations(behaviour)}
    return {**template, "metadata": metadata, "spec": spec}


def _real(container: Mapping[str, Any], behaviour: Behaviour, image: str) -> dict[str, Any]:
    command = {"command": ["/bin/sh", "-c"], "args": [script(behaviour)]}
    shaped = {**container, "image": image, "imagePullPolicy": "IfNotPresent", **command}
    if behaviour.exceed_memory:
        resources = dict(shaped.get("resources", {}))
        resources["limits"] = {"memory": OOM_LIMIT, **resources.get("limits", {})}
        shaped["resources"] = resources
    return shaped


def _seconds(name: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= SECONDS_MAX:
        raise BehaviourError(f"annotation {name}: {text!r} must be a number of seconds from 0 to {SECONDS_MAX:.0f}")
    return seconds


def _exit_code(name: str, text: str) -> int:
    try:
        code = int(text)
    except ValueError:
        code = -1
    if not 0 <= code <= 255:
        raise BehaviourError(f"annotation {name}: {text!r} must be an exit code from 0 to 255")
    return code
