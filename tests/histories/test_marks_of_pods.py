"""Scripted histories: labels, and at a worker the annotation, of what was placed are edited when nobody can answer.

While it is being stopped, while nobody leads, or while no agent runs: whose run it is its mark says, a toleration that
nobody can take off.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.sim.history import ON_TERMINAL, History

ANOTHER = "11111111-1111-4111-8111-111111111111"
KINDS = {"Pod": POD, "Job": JOB}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
EDITS: dict[str, dict[str, str | None]] = {
    "another epoch": {LABEL_EPOCH: "7"},
    "another workload": {LABEL_WORKLOAD_UID: ANOTHER},
    "both": {LABEL_EPOCH: "7", LABEL_WORKLOAD_UID: ANOTHER},
    "another origin": {LABEL_ORIGIN: "elsewhere"},
    "none": {LABEL_EPOCH: None, LABEL_WORKLOAD_UID: None, LABEL_ORIGIN: None},
}
EVERY_EDIT = pytest.mark.parametrize("edit", EDITS)


def runs(kind: str, queue: str) -> tuple[History, str]:
    """Return a history in which one object runs and fills its queue, and where; it takes half a minute to stop."""
    history = History(shown=False, file=ON_TERMINAL)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, cpu="2", stops_in=30)
    cluster = history.until_runs("one", kind)
    history.passes(5.0)
    return history, cluster


def deactivate(history: History, kind: str) -> None:
    """Let its user deactivate it."""
    workload = history.workload("one", kind)
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})


def edit_labels(history: History, cluster: str, kind: str, edit: str) -> None:
    """Let somebody edit its labels, around the policies."""
    history.edit(cluster, KINDS[kind], "one", {"metadata": {"labels": EDITS[edit]}})


@EVERY_EDIT
@EVERY_KIND
@pytest.mark.parametrize("seconds", [0.1, 0.3, 3.0])
def test_hd_219_what_is_being_stopped_at_home_is_charged_until_it_has_stopped_whatever_its_labels_say(
    seconds: float, kind: str, edit: str
) -> None:
    history, _ = runs(kind, "stays")
    history.pod("next", "stays", cpu="2")
    deactivate(history, kind)
    history.passes(seconds)
    edit_labels(history, "home", kind, edit)
    history.until("the next one runs", lambda: history.containers("next") == 1, 120.0)
    assert not history.containers("one", kind)


@EVERY_EDIT
@EVERY_KIND
def test_hd_219_what_was_relabelled_while_nobody_led_is_taken_for_what_it_is(kind: str, edit: str) -> None:
    history, _ = runs(kind, "stays")
    history.pod("next", "stays", cpu="2")
    history.kill_leader()
    edit_labels(history, "home", kind, edit)
    history.passes(120.0)
    assert (history.containers("one", kind), history.containers("next")) == (1, 0)
    (found,) = [each for each in history.objects("home", KINDS[kind]) if each["metadata"]["name"] == "one"]
    workload = history.workload("one", kind)
    assert workload is not None
    assert found["metadata"]["labels"][LABEL_WORKLOAD_UID] == workload["metadata"]["uid"], "its labels are put back"
    assert found["metadata"]["labels"][LABEL_EPOCH] == "1"
    history.pod("later", "stays", cpu="1")
    deactivate(history, kind)
    history.until("others run in its place", lambda: history.containers("next") == 1, 120.0)


@EVERY_EDIT
@EVERY_KIND
@pytest.mark.parametrize("end", ["deactivated", "drained", "deleted"])
def test_hd_219_what_is_ended_between_two_leaders_is_stopped_under_the_labels_that_it_has(
    end: str, kind: str, edit: str
) -> None:
    history, _ = runs(kind, "stays")
    history.kill_leader()
    edit_labels(history, "home", kind, edit)
    if end == "deactivated":
        deactivate(history, kind)
    elif end == "drained":
        history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "HoldAndDrain"}})
    else:
        history.delete("home", KINDS[kind], "one")
    history.until("it has stopped", lambda: not history.containers("one", kind), 240.0)
    history.until("nothing is charged", lambda: not history.leader.charges("stays"), 400.0)
    history.passes(30.0)
    assert not history.leader.local.machine.world.placements


@EVERY_KIND
@pytest.mark.parametrize("marked", [f"origin-1/{ANOTHER}/1", "elsewhere/x/1", None])
@pytest.mark.parametrize("labelled", [False, True], ids=["labels as they were", "labels too"])
def test_hd_219_a_worker_knows_after_a_restart_what_it_has_placed_whatever_people_wrote_there(
    labelled: bool, marked: str | None, kind: str
) -> None:
    history, cluster = runs(kind, "travels")
    history.kill_agent(cluster, again=False)
    if marked is not None:
        (found,) = [each for each in history.objects(cluster, KINDS[kind]) if each["metadata"]["name"] == "one"]
        origin = found["metadata"]["annotations"]["gatelift.dev/placed-as"].partition("/")[0]
        marked = marked.replace("origin-1", origin)
    labels = EDITS["both"] if labelled else {}
    history.edit(
        cluster, KINDS[kind], "one", {"metadata": {"annotations": {"gatelift.dev/placed-as": marked}, "labels": labels}}
    )
    history.passes(3.0)
    history.world.start_agent(cluster)
    history.passes(200.0)
    assert (history.containers("one", kind), history.runs("one", kind)) == (1, {cluster})
    deactivate(history, kind)
    history.until("it has stopped", lambda: not history.containers("one", kind), 120.0)


@pytest.mark.parametrize("queue", ["stays", "travels"])
def test_hd_219_a_second_mark_that_its_user_adds_says_nothing(queue: str) -> None:
    history, cluster = runs("Pod", queue)
    where = "home" if queue == "stays" else cluster
    (pod,) = [each for each in history.objects(where, POD) if each["metadata"]["name"] == "one"]
    tolerations = pod["spec"]["tolerations"]
    (mark,) = [each for each in tolerations if ".placed-as." in each["key"]]
    history.edit(where, POD, "one", {"spec": {"tolerations": [{**mark, "value": f"{ANOTHER}.9"}, *tolerations]}})
    history.passes(1.0)
    if queue == "stays":
        history.kill_leader()
    else:
        history.kill_agent(cluster)
    history.passes(120.0)
    assert history.containers("one") == 1
    deactivate(history, "Pod")
    history.until("it has stopped", lambda: not history.containers("one"), 120.0)
