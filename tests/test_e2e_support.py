"""What the end-to-end scenarios lean on: the history of Workloads, who starts a manager again, who tidies up."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import children
from gatelift_sandbox.installation import Installation, InstalledProcess
from support.e2e.history import VERSIONS_MAX, WORKLOADS_MAX, History
from support.e2e.keeper import Keeper, gave_up
from support.e2e.tidy import tidy
from support.e2e.world import is_of

Json = dict[str, Any]
NOBODY: Any = None


def a_version(number: int, says: str, name: str = "p", uid: str = "w") -> Json:
    owner = {"kind": "Pod", "name": name}
    return {"metadata": {"uid": uid, "resourceVersion": str(number), "ownerReferences": [owner]}, "says": says}


def says(word: str) -> Any:
    return lambda document: document["says"] == word


def a_history(*versions: Json) -> History:
    history = History(NOBODY, "team")
    for version in versions:
        history.take("MODIFIED", version)
    return history


def test_what_was_said_for_a_moment_is_found_and_so_is_what_came_after_it() -> None:
    history = a_history(a_version(9, "waits"), a_version(10, "runs"), a_version(11, "waits"))
    assert history.first("Pod", "p", says("runs"), None) == a_version(10, "runs")
    assert history.first("Pod", "p", says("waits"), None) == a_version(9, "waits")
    assert history.first("Pod", "p", says("waits"), a_version(10, "runs")) == a_version(11, "waits")
    assert history.first("Pod", "p", says("runs"), a_version(10, "runs")) is None
    assert history.first("Job", "p", says("runs"), None) is None
    assert history.first("Pod", "other", says("runs"), None) is None


def test_a_version_that_a_list_and_a_watch_tell_of_counts_once_and_a_removal_is_no_version() -> None:
    history = a_history(a_version(9, "waits"), a_version(9, "waits"))
    assert history.take("DELETED", a_version(12, "gone")) == "12"
    assert history.take("BOOKMARK", {"metadata": {"resourceVersion": "13"}}) == "13"
    assert history.first("Pod", "p", lambda _: True, a_version(9, "waits")) is None


def test_a_history_is_bounded() -> None:
    history = a_history(*(a_version(number, str(number)) for number in range(VERSIONS_MAX + 1)))
    assert history.first("Pod", "p", lambda _: True, None) == a_version(1, "1")
    for number in range(WORKLOADS_MAX):
        history.take("ADDED", a_version(number, "new", name=f"p-{number}", uid=f"w-{number}"))
    assert history.first("Pod", "p", lambda _: True, None) is None


@pytest.mark.parametrize(
    ("log", "gives_up"),
    [
        ('{"event": "stopping"}\ngatelift: no longer leading: the Lease is held by another\n', True),
        ("gatelift: stepped down: term 4 is written\n", True),
        ("gatelift: no longer leading: x\n" + '{"event": "starting"}\n', False),
        ('{"event": "no longer leading", "reason": "stopped"}\n', False),
        ("gatelift: core: ValueError: a defect\n", False),
        ("", False),
    ],
)
def test_only_a_manager_that_gave_up_its_lead_is_started_again(tmp_path: Path, log: str, gives_up: bool) -> None:
    daemon = a_daemon(tmp_path, log)
    assert gave_up(daemon) is gives_up
    keeper = Keeper(NOBODY)
    assert keeper.wants(daemon) is gives_up
    keeper.left.add(daemon.name)
    assert not keeper.wants(daemon), "the test has it in hand"


def test_a_manager_that_lives_is_left_alone(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path, "gatelift: no longer leading: x\n")
    daemon.child = children.this_process()
    assert not Keeper(NOBODY).wants(daemon)


async def test_a_manager_that_is_ended_is_gone_even_if_it_was_paused(tmp_path: Path) -> None:
    daemon = a_daemon(tmp_path, "")
    forever = [sys.executable, "-c", "import signal; signal.pause()"]
    daemon.child = children.start(forever, log=daemon.log, detached=False)
    installation = Installation(folder=tmp_path, management=NOBODY, workers=[], daemons={daemon.name: daemon})
    os.kill(daemon.child.pid, signal.SIGSTOP)
    await installation.end(daemon.name)
    assert not daemon.alive
    assert not installation.daemons, "nobody starts it again"


def a_daemon(folder: Path, log: str) -> InstalledProcess:
    """Return a manager that has ended with these last words."""
    path = folder / "manager.log"
    path.write_text(log)
    ended = children.Child(pid=children.this_process().pid, started_ticks=-2)
    return InstalledProcess(name="manager", command=[], log=path, status="", child=ended)


class Untidy:
    """A world, and its installation, after a scenario that failed."""

    def __init__(self, made: list[tuple[str, ObjectRef]], daemons: dict[str, Any]) -> None:
        self.made, self.daemons, self.did = made, daemons, list[str]()
        self.installation, self.proxies = self, {"w1": self}

    def mend(self) -> None:
        self.did.append("mend")

    async def restart(self, daemon: Any, *, if_: Callable[[], bool]) -> None:
        self.did += [f"restart {daemon.name}"] if if_() else []

    async def wait_connected(self, *names: str) -> None:
        self.did.append(f"wait for {' and '.join(names)}")

    async def delete(self, resource: Resource, name: str, cluster: str) -> None:
        if name == "stuck":
            raise ApiError(403, "Forbidden", "not by you")
        self.did.append(f"delete {resource.kind} {name} in {cluster}")

    async def gone(self, cluster: str, resource: Resource, name: str, seconds: float) -> None:
        if name == "stuck":
            raise AssertionError(f"not within {seconds:g} s: {resource.kind} {name} is gone from {cluster}\nand so on")
        self.did.append(f"{name} is gone")

    async def nothing_left(self, *names: str, seconds: float) -> None:
        self.did.append(f"{' and '.join(names)} run nowhere, {seconds:g} s")


async def test_after_a_failure_what_was_made_goes_and_what_was_ended_or_cut_is_back(tmp_path: Path) -> None:
    ended, alive = a_daemon(tmp_path, ""), a_daemon(tmp_path, "")
    alive.child = children.this_process()
    refs = [ObjectRef(POD, ObjectKey("team-a", name)) for name in ("first", "stuck", "last")]
    untidy: Any = Untidy([("mgmt", ref) for ref in refs], {"agent-w1": alive, "manager": ended})
    trouble = await tidy(untidy)
    deleted = ["delete Pod last in mgmt", "delete Pod first in mgmt"]
    back = ["mend", "restart manager", "wait for w1 and w2"]
    gone = ["last is gone", "first is gone", "first and stuck and last run nowhere, 60 s"]
    assert untidy.did == [*back, *deleted, *gone]
    assert len(trouble) == 2
    assert trouble[0].endswith("stuck in mgmt: 403 Forbidden: not by you")
    assert trouble[1].endswith("stuck in mgmt: not within 60 s: Pod stuck is gone from mgmt")


def test_a_job_s_pods_are_of_it_and_a_longer_number_is_another_name() -> None:
    assert is_of("five-1", "five-1")
    assert is_of("five-1-x2b4d", "five-1")
    assert not is_of("five-12", "five-1")
