"""`gatelift explain` of placed work whose cluster is not heard of: since when, what happens, the way out."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import msgspec

from gatelift.core.conclusions import recovery_texts
from gatelift.core.state.recovery_values import ANNOTATION_RECOVERY, Finding, Told
from gatelift.core.state.recovery_values import RecoveryStage as Found
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_kube.values.timestamps import to_text
from support.manager.cli_stage import Stage, admitted, condition

TEAM = ("-n", "team")
DAY = 86_400.0
WAITS = "policy wait: nothing is moved, so nothing runs twice; "
RUNS_ON = WAITS + "what runs there runs on, stays charged, and goes on when the cluster is back"
WAY_OUT = "if it never comes back: make sure that nothing of it runs, then 'gatelift cluster fenced worker-2'"


def cluster(stage: Stage, status: str, reason: str, *, name: str = "worker-2", **more: Any) -> None:
    """Put a WorkerCluster that was last heard of 11 days ago and whose condition is 10 days old (and half a day)."""
    now = dt.datetime.now(dt.UTC).timestamp()
    connected = condition("Connected", status, reason, at=to_text(now - 10.5 * DAY))
    shown = {"session": 4, "lastSeen": to_text(now - 11.5 * DAY), "conditions": [connected], **more}
    stage.server.put(WORKER_CLUSTER, name, status=shown)


def told(stage: Stage, name: str = "runs") -> list[str]:
    """Return what is told of the cluster of a workload."""
    found: list[str] = json.loads(stage.run("explain", name, "-o", "json", *TEAM).out)["unreachable"]
    return found


def test_of_a_lost_cluster_it_says_since_when_what_happens_and_the_way_out(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    cluster(stage, "False", "Lost")
    assert told(stage) == [
        "lost for 10d: its lease ran out; last recorded sign of it 11d ago",
        RUNS_ON,
        WAY_OUT,
    ]


def test_the_lines_stand_below_the_clusters_name(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    cluster(stage, "False", "Lost")
    lines = stage.run("explain", "runs", *TEAM).out.splitlines()
    at = lines.index("  cluster   worker-2")
    assert [line[:12].strip() for line in lines[at : at + 5]] == ["cluster", "", "", "", "epoch"]
    assert lines[at + 1].startswith("            lost for 10d: ")


def test_of_a_cluster_without_a_session_it_does_not_speak_of_fencing(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    cluster(stage, "Unknown", "NoSession")
    first, second = told(stage)
    assert first.startswith("not connected for 10d: it has no session, and counts as lost when its lease has run out")
    assert first.endswith("; last recorded sign of it 11d ago")
    assert second == RUNS_ON


def test_work_that_is_ending_stays_charged_until_the_cluster_says_that_it_has_stopped(stage: Stage) -> None:
    status = admitted("worker-2")
    status["conditions"].append(condition("Evicted", "True", "Preempted"))
    stage.workload("runs", status=status)
    stage.workload("leaves", status=admitted("worker-2"), deletionTimestamp="2026-01-01T00:00:09Z")
    cluster(stage, "Unknown", "NoSession")
    ends = WAITS + "it stays charged until the cluster is back and says that it has stopped"
    assert [told(stage, name)[1] for name in ("runs", "leaves")] == [ends, ends]


def test_a_cluster_that_was_declared_fenced_is_told_with_who_said_so(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    cluster(stage, "False", "Lost", fencedThroughSession=4, fencedBy="ada")
    assert told(stage) == ["lost for 10d, declared fenced by ada: its work is dispatched anew"]


def test_a_fence_of_an_earlier_session_is_not_meant(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    cluster(stage, "False", "Lost", fencedThroughSession=3, fencedBy="ada")
    assert told(stage)[1:] == [RUNS_ON, WAY_OUT]


def test_a_cluster_that_was_deleted_is_told_with_how_to_take_it_in_again(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    assert told(stage) == [
        "there is no WorkerCluster worker-2 any more: 'gatelift cluster add worker-2' takes it in again",
        RUNS_ON,
    ]


def test_a_cluster_that_was_made_anew_is_not_connected_yet(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    stage.server.put(WORKER_CLUSTER, "worker-2", spec={})
    assert told(stage) == ["not connected: no agent of it has connected yet", RUNS_ON]


def test_nothing_is_told_of_a_connected_cluster_and_of_work_that_is_over_or_waits(stage: Stage) -> None:
    cluster(stage, "True", "Connected", name="worker-1")
    cluster(stage, "False", "Lost")
    over = admitted("worker-2")
    over["conditions"].append(condition("Finished", "True", "Succeeded"))
    stage.workload("runs", status=admitted("worker-1"))
    stage.workload("over", status=over)
    stage.workload("waits", status={"conditions": [condition("QuotaReserved", "False", "Pending", "no quota")]})
    assert [told(stage, name) for name in ("runs", "over", "waits")] == [[], [], []]


def test_who_may_not_read_the_cluster_is_told_that_it_is_not_seen(stage: Stage) -> None:
    stage.workload("runs", status=admitted("worker-2"))
    stage.server.fault("GET", "/workerclusters", status=403)
    assert told(stage) == ["whether it is connected is not seen: you may not read WorkerCluster worker-2"]


def test_of_the_management_cluster_it_points_to_the_manager(stage: Stage) -> None:
    stage.workload("runs", status=admitted("local"))
    cluster(stage, "False", "Lost", name="local")
    assert told(stage)[1:] == [RUNS_ON, "its agent runs in the manager, whose log says why"]


def test_hd_78_while_dispatch_is_halted_a_workload_that_waits_says_so_and_names_the_way_out(stage: Stage) -> None:
    stage.workload("waits")
    finding = Finding(why=recovery_texts.restored("b"), since="2026-01-01T00:00:00Z", counter=1, term=1)
    written = msgspec.json.encode(Told(stage=Found.HALTED, finding=finding)).decode()
    stage.server.put(WORKER_CLUSTER, "local", metadata={"annotations": {ANNOTATION_RECOVERY: written}}, status={})
    assert f"  halted    {recovery_texts.restored('b')}" in stage.run("explain", "waits", *TEAM).out.splitlines()
    assert "gatelift recover" in recovery_texts.restored("b")
    stage.server.put(WORKER_CLUSTER, "local", metadata={}, status={})
    assert "halted" not in stage.run("explain", "waits", *TEAM).out


def test_hd_352_while_a_lead_waits_for_clusters_a_workload_that_waits_says_for_whom_and_no_turn_is_told(
    stage: Stage,
) -> None:
    """HD-352: it said that it fits now, and that its turn comes next."""
    stage.workload("waits")
    waits = recovery_texts.settling(["b"], "2026-01-01T00:00:00Z")
    written = msgspec.json.encode(Told(waits=waits)).decode()
    stage.server.put(WORKER_CLUSTER, "local", metadata={"annotations": {ANNOTATION_RECOVERY: written}}, status={})
    said = stage.run("explain", "waits", *TEAM).out
    assert f"  halted    {waits}" in said.splitlines()
    assert "its turn comes next" not in said
    assert waits in stage.run("recover").out
