"""What the costliest legal statuses of a worker's object cost the manager, one frame at a time.

`python -m bench.costly_statuses [--rounds N]`. Each shape has as many values, brackets, digits or bytes as a status may
have (`values.limits`), and is told of a pod that runs. Measured are CPU times, so that neighbours do not count:
`handle_ms` is the longest single call of the real core, which nobody else's work comes between; `call_ms` the longest
single call into C of the decoding, which is made beside the event loop and keeps the interpreter for that long;
`decode_ms` all of it. `honest` is a pod of one container, `containers` one of 250 as a real API server tells of it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import string
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gatelift.core import machine as manager
from gatelift_wire.encoding import codec
from gatelift_wire.values import limits
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Finished, Frame, ObjectReport, Report

TESTS = str(Path(__file__).parents[1] / "tests")
ROUNDS = 3
LIMIT_MS = 20.0
"""Of one call of the core, or of one that keeps the interpreter (IS-10)."""
VALUES = limits.STATUS_VALUES_MAX - 2
BYTES = limits.STATUS_BYTES_MAX - 64
DEEP = limits.NESTING_MAX - 6


def _many(item: bytes, count: int = VALUES, field: bytes = b"a") -> bytes:
    return b'{"phase":"Running","' + field + b'":[' + b",".join([item] * count) + b"]}"


def _text(item: bytes) -> bytes:
    return b'{"phase":"Running","message":"' + item * (BYTES // len(item)) + b'"}'


def _names(padding: bytes) -> bytes:
    letters = itertools.islice(itertools.product(string.ascii_letters, repeat=3), VALUES)
    return b"{" + b",".join(b'"%s%s":1' % ("".join(each).encode(), padding) for each in letters) + b"}"


def _ended(text: bytes) -> bytes:
    return b'{"name":"c","state":{"terminated":{"message":"' + text + b'"}}}'


def _letters() -> str:
    """Return a text of thousands of letters, none twice, and one character that nobody sees."""
    return "".join(map(chr, range(0x4E00, 0x6E00))) + r"\u001b"


def _containers(count: int) -> bytes:
    """Return the status of a pod of so many containers as an API server tells of it."""
    moment = "2026-11-28T05:00:00Z"
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    said: dict[str, Any] = {"lastProbeTime": None, "lastTransitionTime": moment}
    container = {
        "state": {"running": {"startedAt": moment}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": moment, "message": "m" * 2048}},
        "image": "registry.example/team/service:1.2.3",
        "imageID": "registry.example/team/service@sha256:" + "a" * 64,
        "containerID": "containerd://" + "b" * 64,
        "ready": True,
        "restartCount": 1,
        "started": True,
    }
    status = {
        "phase": "Running",
        "podIP": "10.0.0.2",
        "startTime": moment,
        "conditions": [{"type": kind, "status": "True", **said} for kind in kinds],
        "containerStatuses": [{"name": f"c{number}", **container} for number in range(count)],
    }
    return json.dumps(status, separators=(",", ":")).encode()


SHAPES: dict[str, Callable[[], bytes]] = {
    "honest": lambda: _containers(1),
    "containers": lambda: _containers(250),
    "whole numbers": lambda: _many(b"1"),
    "of many digits": lambda: _many(b"9" * limits.STATUS_DIGITS_MAX),
    "fractions": lambda: _many(b"-1234567890.123456789e-300"),
    "texts": lambda: _many(b'"' + b"x" * 44 + b'"'),
    "names": lambda: _names(b""),
    "long names": lambda: _names(b"x" * 35),
    "one text": lambda: _text(b"x"),
    "one text, escaped": lambda: _text(rb"\u00e9"),
    "one text, not of ASCII": lambda: _text("é".encode()),
    "objects": lambda: _many(b'{"a":{}}'),
    "lists in lists": lambda: _many(b"[[]]"),
    "deep lists": lambda: _many(b"[" * DEEP + b"]" * DEEP, limits.JSON_PARTS_MAX // DEEP - 2),
    "deep objects": lambda: _many(b'{"a":' * DEEP + b"1" + b"}" * DEEP, limits.JSON_PARTS_MAX // DEEP - 2),
    "conditions": lambda: _many(b'{"type":"a","status":""}', VALUES // 2, b"conditions"),
    "conditions of nothing": lambda: _many(b"{}", field=b"conditions"),
    "many containers": lambda: _many(b'{"name":"c"}', field=b"containerStatuses"),
    "long texts deep within": lambda: _many(_ended(rb"\u00e9" * 20_000), 12, b"containerStatuses"),
    "of all writings": lambda: _many(_ended(_letters().encode()), 60, b"containerStatuses"),
    "a longer one": lambda: _many(_ended(rb"\u00e9" * (BYTES // 8)), 1, b"containerStatuses"),
}


def _longest_call(run: Callable[[], object]) -> float:
    """Return the CPU time of the longest single call into C; the interpreter is let go of only between such."""
    longest, began = 0.0, 0.0

    def heard(_frame: Any, event: str, _what: Any) -> None:
        nonlocal longest, began
        if event == "c_call":
            began = time.thread_time()
        elif event == "c_return":
            longest = max(longest, time.thread_time() - began)

    sys.setprofile(heard)
    try:
        run()
    finally:
        sys.setprofile(None)
    return longest


def _cpu(run: Callable[[], object]) -> float:
    began = time.thread_time()
    run()
    return time.thread_time() - began


def _longest_handle(say: Callable[[PlacementKey, str], Report]) -> float:
    """Return the CPU time of the longest call of a real core that is told so of its only pod, and acts on it."""
    from support.manager.world import a_running_pod  # noqa: PLC0415  # the world is part of the tests

    world, agent = a_running_pod()
    took = 0.0
    handle = manager.Machine.handle

    def timed(machine: manager.Machine, *given: Any) -> Any:
        nonlocal took
        began = time.thread_time()
        try:
            return handle(machine, *given)
        finally:
            took = max(took, time.thread_time() - began)

    manager.Machine.handle = timed  # type: ignore[method-assign,assignment]  # nothing else runs in this process
    try:
        agent.say(say(agent.commits[-1], world.find("Pod")["metadata"]["name"]))
        world.advance(2.0)
    finally:
        manager.Machine.handle = handle  # type: ignore[method-assign]
    return took


def measure(status: bytes, rounds: int) -> dict[str, float]:
    """Return what a status costs, told while the pod runs and with its end; the best of several rounds."""

    def report(key: PlacementKey, name: str) -> ObjectReport:
        return ObjectReport(key=key, kind="Pod", name=name, uid="u", status=status)

    def finished(key: PlacementKey, name: str) -> Finished:
        return Finished(key=key, succeeded=True, objects=(report(key, name),))

    told = finished(PlacementKey("11111111-2222-3333-4444-555555555555", 1), "p")
    data = codec.encode_from_agent(Frame(session=1, sequence=1, messages=(told,)))
    handles = [max(_longest_handle(report), _longest_handle(finished)) for _ in range(rounds)]
    found = {
        "handle_ms": min(handles),
        "call_ms": min(_longest_call(lambda: codec.decode_from_agent(data)) for _ in range(rounds)),
        "decode_ms": min(_cpu(lambda: codec.decode_from_agent(data)) for _ in range(rounds)),
    }
    return {name: round(1000.0 * seconds, 2) for name, seconds in found.items()}


def main() -> int:
    """Measure, print, and print the JSON line last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    sys.path.insert(0, TESTS)
    said = {"python": platform.python_version(), "rounds": given.rounds, "limit_ms": LIMIT_MS}
    print("Conditions: " + ", ".join(f"{name} {value}" for name, value in said.items()))
    figures: dict[str, dict[str, float]] = {}
    for name, made in SHAPES.items():
        status = made()
        figures[name] = {"bytes": len(status), **measure(status, given.rounds)}
        print(f"{name:24} " + ", ".join(f"{what} {value:9}" for what, value in figures[name].items()))
    longest = max(max(each["handle_ms"], each["call_ms"]) for each in figures.values())
    print(f"longest: {longest} ms, to be below {LIMIT_MS}")
    print(json.dumps({"bench": "costly_statuses", "conditions": said, "figures": figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
