"""Child processes that never outlive whom they belong to: started, watched and ended by pid and start time.

A child is started by `posix_spawn` through a launcher of three lines (`launch`), which asks the kernel to kill it when
its parent dies (PR_SET_PDEATHSIG, Linux) and then becomes the program. So a `kill -9` of the caller leaves nothing
behind, and no Python code runs between fork and exec. A detached child skips that and is found again through the state
directory; the start time guards against killing a stranger that got its pid.

The kernel sends the death signal when the *thread* that started the child ends: start children from a thread that
lasts, which the thread of an event loop is.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from tenacity import stop_after_delay

from gatelift_kube.process.waiting import until

STOP_GRACE_SECONDS = 10.0
"""etcd and the API server end within 2 s of SIGTERM when they are healthy; then SIGKILL."""
KILL_SECONDS_MAX = 10.0
"""After SIGKILL the kernel needs at most this, or the process hangs in the kernel and nobody can end it."""
PAUSE_SECONDS_MAX = 10.0
"""A system call takes milliseconds, and a thread has to get a processor to end it."""
POLL_SECONDS = 0.02
LOG_TAIL_LINES = 5
LOG_TAIL_BYTES_MAX = 64 * 1024

_LAUNCHER = Path(__file__).with_name("launch.py")


class Child(msgspec.Struct, frozen=True, kw_only=True):
    """A process by pid and start time in clock ticks since boot (`/proc/PID/stat`), which together are unique."""

    pid: int
    started_ticks: int


def start(
    command: Sequence[str | Path], *, log: Path, detached: bool, environment: Mapping[str, str] | None = None
) -> Child:
    """Start a program in a session of its own, its output appended to `log`. Without `detached` it dies with us."""
    arguments = [str(part) for part in command] if detached else tied(command)
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    pid = os.posix_spawnp(
        arguments[0],
        arguments,
        dict(environment if environment is not None else os.environ),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGPIPE],
    )
    return Child(pid=pid, started_ticks=_stat(pid)[1])


def tied(command: Sequence[str | Path]) -> list[str]:
    """Return the command that runs `command` as a process which the kernel kills when we die."""
    return [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *map(str, command)]


def this_process() -> Child:
    """Return the calling process as a Child, to be written down as an owner."""
    return Child(pid=os.getpid(), started_ticks=_stat(os.getpid())[1])


def alive(child: Child) -> bool:
    """Return whether the process runs. A zombie does not; ours are reaped here."""
    state, started = _stat(child.pid)
    if started != child.started_ticks:
        return False
    if state == "Z":
        return not _reaped(child.pid)
    return bool(state)


def signal_child(child: Child, number: signal.Signals) -> None:
    """Send a signal, to this very process or to nobody."""
    if not alive(child):
        return
    try:
        os.kill(child.pid, number)
    except ProcessLookupError:
        return


async def pause(child: Child) -> None:
    """Let a process stand still (SIGSTOP). Returns when all its threads do: a busy one ends a system call first."""
    signal_child(child, signal.SIGSTOP)

    async def stands() -> bool:
        return _stands(child)

    await until(stands, POLL_SECONDS, stop_after_delay(PAUSE_SECONDS_MAX))


async def stop(child: Child, grace_seconds: float = STOP_GRACE_SECONDS) -> None:
    """End a process: SIGTERM (after SIGCONT, were it paused), a bounded wait, SIGKILL."""
    signal_child(child, signal.SIGTERM)
    signal_child(child, signal.SIGCONT)
    if not await gone(child, grace_seconds):
        await kill(child)


async def kill(child: Child) -> None:
    """End a process by SIGKILL, which a paused one receives too."""
    signal_child(child, signal.SIGKILL)
    await gone(child, KILL_SECONDS_MAX)


async def gone(child: Child, seconds: float) -> bool:
    """Wait until the process has ended, for `seconds` at most; return whether it has."""

    async def ended() -> bool:
        return not alive(child)

    return await until(ended, POLL_SECONDS, stop_after_delay(seconds))


def rss_bytes(child: Child) -> int:
    """Return the resident memory of a process, 0 if it has ended."""
    try:
        pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def log_tail(log: Path) -> str:
    """Return the last lines of a log in one line, for an error message."""
    try:
        text = log.read_bytes()[-LOG_TAIL_BYTES_MAX:].decode(errors="replace")
    except FileNotFoundError:
        return "no log"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-LOG_TAIL_LINES:]) or "the log is empty"


def _stat(pid: int | str) -> tuple[str, int]:
    """Return (state letter, start time in ticks) of a process, or `PID/task/THREAD`; ("", -1) if there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", -1
    fields = text[text.rindex(")") + 2 :].split()  # the command in brackets may hold spaces
    return fields[0], int(fields[19])


def _stands(child: Child) -> bool:
    """Return whether each thread of a process is stopped, or has ended."""
    if not alive(child):
        return True
    try:
        threads = [task.name for task in Path(f"/proc/{child.pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return all(_stat(f"{child.pid}/task/{thread}")[0] in {"", "T", "t", "Z", "X"} for thread in threads)


def _reaped(pid: int) -> bool:
    """Take a zombie's exit status. While another thread of it still ends, the kernel does not give it away yet."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True  # somebody else's child: its own parent reaps it
