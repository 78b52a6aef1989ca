"""CPU time and memory of processes, from /proc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gatelift_sandbox.children import Child
from gatelift_sandbox.state import SandboxState

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds by name of process."""

    seconds: Mapping[str, float]

    def since(self, before: Usage) -> Usage:
        """Return what was used after `before`, by processes that are in both."""
        return Usage(
            {name: used - before.seconds[name] for name, used in self.seconds.items() if name in before.seconds}
        )

    def of(self, *names: str) -> float:
        """Return the sum over processes of these names; of a part of a cluster (`w1/etcd`), the last word will do."""
        return sum(used for name, used in self.seconds.items() if name.rpartition("/")[2] in names)

    @property
    def total(self) -> float:
        """Return the sum of all."""
        return sum(self.seconds.values())


def takes_what_is_left() -> None:
    """Let this process have only what nobody else wants of the machine.

    For those who would be on another one: what others notice of them is what is done for them, not their own CPU.
    """
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


def others_cores() -> bool:
    """Keep this process, and those that it starts, off the first core; say whether there is more than one."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        os.sched_setaffinity(0, cores[1:])
    return len(cores) > 1


def own_core(pid: int) -> None:
    """Give the first core to a process and all its threads, as it would have a machine."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {0})


def cpu_seconds(pid: int) -> float:
    """Return user and system time of a process and all its threads so far; 0 where it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return parse_cpu_ticks(text) / _TICKS


def parse_cpu_ticks(stat: str) -> int:
    """Return user and system ticks of a line of /proc/PID/stat; the command in brackets may hold spaces."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return int(fields[11]) + int(fields[12])


def children_of_cluster(home: Path, name: str) -> Mapping[str, Child]:
    """Return the processes of a cluster of the sandbox, by their part."""
    entry = SandboxState(home).entry(name)
    return entry.children if entry is not None else {}


def rss_peak_bytes(pid: int) -> int:
    """Return the highest resident memory that a process has had so far; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
