"""IS-52: what programs read is typed, options stand anywhere, and a narrow terminal shows what people look for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift.cli.render import lines
from gatelift.cli.verbs import _in_front
from gatelift.core.records import occupied
from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKER_CLUSTER, WORKLOAD
from support.manager.cli_stage import Stage, condition, say

TIME = "2026-01-01T00:00:00Z"
TEXT, NUMBER, MOMENT = str, int, (str, type(None))
WORKLOADS = {
    "namespace": TEXT,
    "name": TEXT,
    "state": TEXT,
    "cluster": TEXT,
    "queue": TEXT,
    "pods": dict,
    "created_at": MOMENT,
    "reason": TEXT,
    "for": TEXT,
    "epoch": NUMBER,
    "message": TEXT,
}
CLUSTERS = {
    "name": TEXT,
    "state": TEXT,
    "session": (int, type(None)),
    "placements": NUMBER,
    "agent": TEXT,
    "notes": list,
    "certificate_issued_at": MOMENT,
    "created_at": MOMENT,
}
QUEUES = {
    "kind": TEXT,
    "name": TEXT,
    "clusterqueue": TEXT,
    "pending": NUMBER,
    "admitted": NUMBER,
    "reserved": list,
    "ghost": list,
    "problem": TEXT,
}


def shown(stage: Stage, *verb: str) -> list[dict[str, Any]]:
    in_json = json.loads(stage.run(*verb, "-o", "json").out)
    assert yaml.safe_load(stage.run(*verb, "-o", "yaml").out) == in_json
    assert isinstance(in_json, list)
    return in_json


def holds(row: dict[str, Any], types: dict[str, Any]) -> None:
    assert list(row) == list(types)
    assert [key for key, kind in types.items() if not isinstance(row[key], kind)] == []


def test_is_52_workloads_are_typed(stage: Stage) -> None:
    stage.workload("waits")
    (row,) = shown(stage, "get", "workloads")
    holds(row, WORKLOADS)
    assert row["created_at"] == TIME


def test_is_52_clusters_are_typed(stage: Stage) -> None:
    connected = condition("Connected", "True", "Connected")
    metadata = {"creationTimestamp": TIME}
    status = {"session": 3, "placements": 2, "certificateIssuedAt": TIME, "conditions": [connected]}
    stage.server.put(WORKER_CLUSTER, "a", metadata=metadata, spec={"cordoned": True, "drain": True}, status=status)
    stage.server.put(WORKER_CLUSTER, "b", metadata=metadata, spec={}, status={})
    known, new = shown(stage, "cluster", "list")
    for row in (known, new):
        holds(row, CLUSTERS)
    assert (known["session"], known["notes"], known["certificate_issued_at"]) == (3, ["cordoned", "draining"], TIME)
    assert (new["session"], new["notes"], new["certificate_issued_at"]) == (None, [], None)


def test_is_52_queues_are_typed(stage: Stage) -> None:
    used = [{"name": "fast", "resources": [{"name": "cpu", "total": "3"}]}]
    stage.server.put(CLUSTER_QUEUE, "all", spec={}, status={"flavorsReservation": used, "pendingWorkloads": 1})
    (row,) = shown(stage, "get", "queues")
    holds(row, QUEUES)
    assert row["reserved"] == [{"flavor": "fast", "resource": "cpu", "total": "3"}]


def test_what_a_queue_may_still_occupy_is_typed(stage: Stage) -> None:
    """By the queue's own condition: Workloads, which may be many thousands, are not read for it."""
    said = occupied.message({("fast", "cpu"): 1500, ("fast", "memory"): 2 * 1024**3})
    conditions = [condition(occupied.CONDITION, "True", occupied.REASON, said, at=TIME)]
    stage.server.put(CLUSTER_QUEUE, "all", spec={}, status={"conditions": conditions})
    del stage.server.seen[:]
    (row,) = shown(stage, "get", "queues")
    assert row["ghost"] == [
        {"flavor": "fast", "resource": "cpu", "total": "1500m"},
        {"flavor": "fast", "resource": "memory", "total": "2Gi"},
    ]
    assert [each.path for each in stage.server.seen if "/workloads" in each.path] == []
    assert "cpu: 1500m, memory: 2Gi" in stage.run("get", "queues").out


def test_is_52_what_happened_is_typed(stage: Stage) -> None:
    said = condition("QuotaReserved", "False", "Pending", "no room", at=TIME)
    stage.workload("waits", status={"conditions": [said]})
    (event,) = json.loads(stage.run("explain", "waits", "-n", "team", "-o", "json").out)["history"]
    assert event == {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": "no room",
        "at": TIME,
    }


def looked_in(stage: Stage, *arguments: str) -> str:
    """Return the path in which `explain` looked for a workload."""
    del stage.server.seen[:]
    stage.run("explain", "runs", *arguments)
    return stage.server.seen[0].path


def test_is_52_explain_looks_in_the_namespace_of_the_context(stage: Stage) -> None:
    assert looked_in(stage) == WORKLOAD.path("default")
    document = yaml.safe_load(stage.kubeconfig.read_text())
    document["contexts"][0]["context"]["namespace"] = "team"
    stage.kubeconfig.write_text(yaml.safe_dump(document))
    assert looked_in(stage) == WORKLOAD.path("team")
    assert looked_in(stage, "-n", "other") == WORKLOAD.path("other")


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "workloads", "--kubeconfig", "FILE"),
        ("get", "--kubeconfig=FILE", "workloads"),
        ("get", "workloads", "-o", "json", "--context", "here", "--kubeconfig", "FILE"),
    ],
)
def test_is_52_options_of_all_verbs_stand_anywhere(stage: Stage, arguments: tuple[str, ...]) -> None:
    said = say(*(one.replace("FILE", os.fspath(stage.kubeconfig)) for one in arguments))
    assert said.code == 0, said.err


def test_is_52_what_comes_after_two_dashes_and_an_option_without_its_value_are_left_alone() -> None:
    assert _in_front(["get", "--context", "c", "--", "--context"]) == ["--context", "c", "get", "--", "--context"]
    assert _in_front(["get", "--context"]) == ["--context", "get"]


def test_is_52_a_context_that_does_not_exist_is_said_in_one_line(stage: Stage) -> None:
    assert stage.run("get", "workloads", "--context", "nowhere").code == 2


HEADER = ("Namespace", "Name", "State", "Cluster", "Queue", "Age", "Reason", "For", "Epoch", "Message")
ROW = (
    "team-of-natural-language",
    "job-fine-tuning-of-the-large-model-with-all-data-62d77",
    "QuotaReserved",
    "worker-frankfurt-1",
    "research",
    "18s",
    "",
    "job/fine-tuning",
    1,
    "waits for admission checks",
)


def test_is_52_eighty_columns_show_state_and_cluster() -> None:
    made = lines(HEADER, [ROW], 80)
    assert all(len(line) <= 80 for line in made)
    assert "QuotaReserved" in made[1]
    assert "worker-frankfurt-1" in made[1]
    assert made[1].startswith("team-of"), "what is shortened keeps its beginning"
    assert "62d77" in made[1], "and its end, by which it differs"


def test_is_52_in_a_pipe_nothing_is_shortened() -> None:
    (_, row) = lines(HEADER, [ROW])
    assert all(str(cell) in row for cell in ROW)


def test_is_52_what_cannot_fit_is_cut_as_ever() -> None:
    assert all(len(line) <= 30 for line in lines(HEADER, [ROW], 30))


def test_is_52_the_page_says_where_options_stand() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    assert "before or after the verb" in page
