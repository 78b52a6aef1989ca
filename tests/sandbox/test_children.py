"""Child processes: they end with their owner, are told apart from strangers, and are ended within a limit."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from gatelift_sandbox import children
from gatelift_sandbox.children import Child
from support.until import until

DEAF = "trap '' TERM; echo up; while :; do sleep 0.05; done"


async def started(tmp_path: Path, script: str) -> Child:
    child = children.start(["/bin/sh", "-c", script], log=tmp_path / "log", detached=False)
    await until(lambda: "up" in (tmp_path / "log").read_text(), "the child says that it is up")
    return child


async def test_a_child_is_ended_by_a_word(tmp_path: Path) -> None:
    child = await started(tmp_path, "echo up; exec sleep 60")
    assert children.alive(child)
    assert children.rss_bytes(child) > 0
    await children.stop(child)
    assert not children.alive(child)
    assert children.rss_bytes(child) == 0


async def test_a_child_that_does_not_listen_is_killed_after_the_grace(tmp_path: Path) -> None:
    child = await started(tmp_path, DEAF)
    await children.stop(child, grace_seconds=0.1)
    assert not children.alive(child)


async def test_a_paused_child_is_ended_too(tmp_path: Path) -> None:
    child = await started(tmp_path, "echo up; exec sleep 60")
    children.signal_child(child, signal.SIGSTOP)
    await children.stop(child)
    assert not children.alive(child)


BUSY = """
import threading
for _ in range(4):
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
print("up", flush=True)
threading.Event().wait()
"""


def states_of_threads(child: Child) -> list[str]:
    return [path.read_text().rpartition(")")[2].split()[0] for path in Path(f"/proc/{child.pid}/task").glob("*/stat")]


async def test_all_threads_of_a_paused_child_stand_still(tmp_path: Path) -> None:
    child = children.start([sys.executable, "-c", BUSY], log=tmp_path / "log", detached=False)
    await until(lambda: "up" in (tmp_path / "log").read_text(), "the child says that it is up")
    await children.pause(child)
    assert states_of_threads(child) == 5 * ["T"]
    await children.stop(child)
    await children.pause(child)  # nobody is there any more


async def test_a_stranger_with_the_same_pid_is_left_alone() -> None:
    me = children.this_process()
    stranger = Child(pid=me.pid, started_ticks=me.started_ticks - 1)
    assert children.alive(me)
    assert not children.alive(stranger)
    await children.stop(stranger)  # would end this very test
    children.signal_child(stranger, signal.SIGKILL)


OWNER = """
import sys
from pathlib import Path
from gatelift_sandbox import children
for name, detached in (("tied", False), ("free", True)):
    child = children.start(["/bin/sleep", "60"], log=Path(sys.argv[1], name), detached=detached)
    print(child.pid, child.started_ticks, flush=True)
sys.stdin.read()
"""


async def test_when_the_owner_is_killed_its_child_goes_and_a_detached_one_stays(tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER, str(tmp_path), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert owner.stdout is not None
    async with asyncio.timeout(60):
        lines = [(await owner.stdout.readline()).split() for _ in range(2)]
    tied, free = (Child(pid=int(pid), started_ticks=int(ticks)) for pid, ticks in lines)
    try:
        await until(lambda: Path(f"/proc/{tied.pid}/cmdline").read_bytes().startswith(b"/bin/sleep"))
        owner.kill()
        await owner.wait()
        await until(lambda: not children.alive(tied), "the tied child has ended")
        assert children.alive(free)
    finally:
        await children.kill(free)
    assert not children.alive(free)


async def test_a_child_whose_owner_died_before_it_began_does_not_begin(tmp_path: Path) -> None:
    launcher = Path(children.__file__).with_name("launch.py")
    command = [sys.executable, "-I", "-S", str(launcher), str(os.getppid()), "/bin/echo", "began"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert out == b""
    assert b"the owner of this process has ended" in err


def _waits_for_another(process: Child) -> bool:
    """Whether it has a descriptor of another process."""
    found = []
    for descriptor in Path(f"/proc/{process.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was of a file that is read no more
            found.append(str(descriptor.readlink()))
    return any("pidfd" in each for each in found)


async def test_the_reaper_runs_its_command_when_the_owner_has_ended(tmp_path: Path) -> None:
    owner = await asyncio.create_subprocess_exec("/bin/sleep", "60")
    reaper_script = str(Path(children.__file__).with_name("reap.py"))
    trace = tmp_path / "trace"
    command = [sys.executable, "-I", "-S", reaper_script, str(owner.pid), "/bin/sh", "-c", f"echo ended > {trace}"]
    reaper = children.start(command, log=tmp_path / "log", detached=True)
    try:
        await until(lambda: _waits_for_another(reaper), "it waits for its owner")
        assert not trace.exists()
        owner.kill()
        await owner.wait()
        await until(lambda: not children.alive(reaper), "the reaper is done")
        assert trace.read_text() == "ended\n"
    finally:
        await children.kill(reaper)


def test_the_end_of_a_log_is_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert children.log_tail(log) == "no log"
    log.write_text("")
    assert children.log_tail(log) == "the log is empty"
    log.write_text("\n".join(f"line {number}" for number in range(9)) + "\n\n")
    assert children.log_tail(log) == "line 4 | line 5 | line 6 | line 7 | line 8"
