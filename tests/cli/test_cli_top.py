"""`gatelift top`: figures of queues, once and live, for people and for programs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from typing import Any

import pytest
from rich.console import Console

from gatelift.cli.top import NOTHING, QueueLine, Usage, bar, frame, lines, live
from gatelift.core.records import occupied
from gatelift_kube.api.client import Client
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import CLUSTER_QUEUE, LOCAL_QUEUE
from support.manager.cli_stage import Stage
from support.servers.fake_apiserver import FakeApiServer
from support.until import until


def used(total: str, borrowed: str = "0") -> list[dict[str, Any]]:
    return [{"name": "fast", "resources": [{"name": "cpu", "total": total, "borrowed": borrowed}]}]


def put_queue(server: FakeApiServer, *, total: str = "6", borrowed: str = "0", **status: Any) -> None:
    quota = {"name": "fast", "resources": [{"name": "cpu", "nominalQuota": "8000m"}]}
    spec = {"cohortName": "team", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}]}
    shown = {
        "pendingWorkloads": 3,
        "reservingWorkloads": 2,
        "admittedWorkloads": 1,
        "flavorsReservation": used(total, borrowed),
        "flavorsUsage": used("4"),
        "conditions": [{"type": "Active", "status": "True", "reason": "Ready", "message": "Can admit"}],
    }
    server.put(CLUSTER_QUEUE, "all", spec=spec, status={**shown, **status})


def rendered(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_queue_shows_who_waits_and_how_full_it_is(stage: Stage) -> None:
    put_queue(stage.server)
    said = stage.run("top", "--once")
    assert said.code == 0
    header, row = said.out.splitlines()
    assert header.split() == [
        "QUEUE", "OF", "PENDING", "RESERVING", "ADMITTED", "SHARE", "FLAVOR", "RESOURCE", "RESERVED", "LOAD", "PROBLEM",
    ]  # fmt: skip
    assert row.split() == ["all", "team", "3", "2", "1", "fast", "cpu", "6/8", "75%"]


def test_a_program_gets_all_figures(stage: Stage) -> None:
    put_queue(stage.server, total="10", borrowed="2", fairSharing={"weightedShare": 125})
    [told] = json.loads(stage.run("top", "-o", "json").out)
    assert (told["queue"], told["of"], told["pending"], told["weighted_share"]) == ("all", "team", 3, 125)
    assert told["usage"] == [
        {
            "flavor": "fast",
            "resource": "cpu",
            "reserved": "10",
            "used": "4",
            "nominal": "8",
            "borrowed": "2",
            "load": 1.25,
            "ghost": "",
        }
    ]


def test_what_may_still_be_occupied_after_its_quota_was_freed_is_shown(stage: Stage) -> None:
    said = occupied.message({("fast", "cpu"): 2500})
    ghost = {"type": occupied.CONDITION, "status": "True", "reason": occupied.REASON, "message": said}
    put_queue(stage.server, conditions=[ghost])
    [told] = json.loads(stage.run("top", "-o", "json").out)
    assert told["usage"][0]["ghost"] == "2500m"
    assert "6/8 (2500m ghost)" in stage.run("top", "--once").out


def test_local_queues_are_shown_if_asked_for(stage: Stage) -> None:
    put_queue(stage.server)
    status = {"pendingWorkloads": 2, "flavorsReservation": used("1")}
    stage.server.put(LOCAL_QUEUE, "main", "team", spec={"clusterQueue": "all"}, status=status)
    assert "team/main" not in stage.run("top", "--once").out
    assert [one["queue"] for one in json.loads(stage.run("top", "--local", "-o", "json").out)] == ["all", "team/main"]


def test_a_queue_that_does_not_admit_says_why(stage: Stage) -> None:
    message = "Can't admit new workloads: is stopped."
    stopped = {"type": "Active", "status": "False", "reason": "Stopped", "message": message}
    put_queue(stage.server, conditions=[stopped])
    assert stage.run("top", "--once").out.rstrip().endswith(message)


def test_without_queues_it_says_what_to_do(stage: Stage) -> None:
    assert stage.run("top", "--once").out.strip() == NOTHING


def test_a_pipe_gets_it_once(stage: Stage) -> None:
    put_queue(stage.server)
    assert stage.run("top").out == stage.run("top", "--once").out


def test_looking_too_often_is_refused(stage: Stage) -> None:
    assert stage.run("top", "--every", "0.01").code == 2


@pytest.mark.parametrize(
    ("load", "text"),
    [(0.0, "  0% ░░░░░░░░░░░░"), (0.5, " 50% ██████░░░░░░"), (1.25, "125% ████████████"), (None, "")],
)
def test_a_bar_is_as_long_as_the_load(load: float | None, text: str) -> None:
    assert bar(load).plain == text


async def test_the_picture_names_quota_and_what_is_borrowed() -> None:
    server = FakeApiServer()
    await server.start()
    try:
        put_queue(server, total="10", borrowed="2")
        async with Client.connect(server.config, user_agent="test") as client:
            console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system=None)
            console.print(frame(await lines(client, local=False)))
        assert "10/8 (+2 borrowed)" in rendered(console)
        assert "125% ████████████" in rendered(console)
    finally:
        await server.stop()


def test_a_picture_has_no_column_that_nobody_fills_and_fits_a_narrow_terminal() -> None:
    usage = Usage(
        flavor="default-flavor", resource="cpu", reserved="4", used="4", nominal="6", borrowed="0", load=4 / 6
    )
    counts: dict[str, Any] = {"pending": 2, "reserving": 2, "admitted": 2, "problem": "", "usage": (usage,)}
    plain = QueueLine(kind="ClusterQueue", queue="everywhere", of="", weighted_share=None, **counts)
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    console.print(frame([plain]))
    head, row = (line.rstrip() for line in rendered(console).splitlines())
    assert head == "QUEUE      PENDING  RESERVING  ADMITTED  FLAVOR    RESOURCE  RESERVED  LOAD"
    assert row == "everywhe…        2          2         2  default…  cpu            4/6   67% ████"
    fair = QueueLine(kind="ClusterQueue", queue="everywhere", of="all", weighted_share=0, **counts)
    console.print(frame([fair]))
    assert {"OF", "SHARE"} <= set(rendered(console).splitlines()[-2].split())


async def test_live_it_follows_what_changes() -> None:
    server = FakeApiServer()
    await server.start()
    console = Console(file=io.StringIO(), width=160, force_terminal=True, color_system=None)
    try:
        put_queue(server)
        async with Client.connect(server.config, user_agent="test") as client:
            task = spawn("top", live(client, console, 0.01, local=False))
            await until(lambda: "6/8" in rendered(console))
            put_queue(server, total="7")
            await until(lambda: "7/8" in rendered(console))
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    finally:
        await server.stop()
