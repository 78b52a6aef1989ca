"""One behaviour, two languages: what the stand-in reads back, and what a real shell does."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from gatelift_sandbox.behaviour import (
    Behaviour,
    BehaviourError,
    as_annotations,
    from_annotations,
    script,
    shape,
)
from support.until import until

SHELL_SECONDS = 60.0


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(),
        Behaviour(run_seconds=2.5),
        Behaviour(run_seconds=0, exit_code=3),
        Behaviour(stop_seconds=5, stop_exit_code=0),
        Behaviour(run_seconds=1, exceed_memory=True, exit_code=0),
    ],
)
def test_what_is_annotated_is_read_back(behaviour: Behaviour) -> None:
    assert from_annotations(as_annotations(behaviour)) in (behaviour, _as_told(behaviour))


def _as_told(behaviour: Behaviour) -> Behaviour:
    """Exceeding memory fixes the exit code."""
    return Behaviour(run_seconds=behaviour.run_seconds, exit_code=137, exceed_memory=True)


def test_the_default_needs_no_annotation() -> None:
    assert as_annotations(Behaviour()) == {}
    assert from_annotations({"unrelated": "x"}) == Behaviour()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("run-seconds", "soon", "'soon' must be a number of seconds"),
        ("run-seconds", "-1", "'-1' must be a number of seconds"),
        ("stop-seconds", "nan", "'nan' must be a number of seconds"),
        ("exit-code", "256", "'256' must be an exit code"),
        ("exit-code", "ok", "'ok' must be an exit code"),
        ("fail-reason", "Evicted", "'Evicted' must be OOMKilled"),
    ],
)
def test_a_bad_annotation_is_named_with_its_rule(name: str, text: str, says: str) -> None:
    with pytest.raises(BehaviourError, match=f"annotation sandbox.gatelift.dev/{name}: {says}"):
        from_annotations({f"sandbox.gatelift.dev/{name}": text})


def test_a_shell_ends_with_the_exit_code_it_was_told() -> None:
    command = ["/bin/sh", "-c", script(Behaviour(run_seconds=0, exit_code=7))]
    ended = subprocess.run(command, check=False, timeout=SHELL_SECONDS)  # noqa: S603 (the command under test)
    assert ended.returncode == 7


async def test_a_shell_takes_its_time_to_stop_and_says_so_by_its_exit_code() -> None:
    command = ["/bin/sh", "-c", script(Behaviour(stop_seconds=1, stop_exit_code=9))]
    shell = await asyncio.create_subprocess_exec(*command, start_new_session=True)
    try:
        await until(lambda: _handles_term(shell.pid), "the trap is set")
        started = time.monotonic()
        shell.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SHELL_SECONDS):
            assert await shell.wait() == 9
        assert time.monotonic() - started >= 1
    finally:
        os.killpg(shell.pid, signal.SIGKILL)  # its `sleep`, which would end with the container


def _handles_term(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return bool(int(caught.split()[1], 16) & (1 << (signal.SIGTERM - 1)))


def test_a_stand_in_pod_gets_annotations_and_keeps_what_it_had() -> None:
    pod: dict[str, Any] = {
        "metadata": {"annotations": {"mine": "1"}},
        "spec": {"containers": [{"name": "c", "image": "mine"}]},
    }
    shaped = shape(pod, Behaviour(run_seconds=1), real_kubelet=False, image="other")
    assert shaped["metadata"]["annotations"] == {"mine": "1", "sandbox.gatelift.dev/run-seconds": "1"}
    assert shaped["spec"]["containers"] == [{"name": "c", "image": "mine"}]
    assert pod["metadata"]["annotations"] == {"mine": "1"}


def test_a_real_pod_gets_a_command_its_image_and_a_memory_limit_to_exceed() -> None:
    pod = {"spec": {"containers": [{"name": "c", "command": ["x"], "resources": {"requests": {"cpu": "1"}}}]}}
    shaped = shape(pod, Behaviour(exceed_memory=True), real_kubelet=True, image="shell:1")
    (container,) = shaped["spec"]["containers"]
    assert container["image"] == "shell:1"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {"requests": {"cpu": "1"}, "limits": {"memory": "32Mi"}}
    assert container["args"] == [script(Behaviour(exceed_memory=True))]
    assert container["command"] == ["/bin/sh", "-c"]


def test_a_pod_without_containers_gets_one() -> None:
    assert shape({}, Behaviour(), real_kubelet=False, image="i")["spec"]["containers"] == [
        {"name": "main", "image": "i"}
    ]
