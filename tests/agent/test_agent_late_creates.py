"""A create of the agent's process before that lands when this one has listed: the manager's word ends it."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import Create
from gatelift_kube.values.resources import JOB, POD, Resource
from gatelift_wire.values import messages as m
from support.agent.stage import Stage
from support.agent.values import KEY


def _started() -> Stage:
    stage = Stage()
    stage.start()
    return stage


@pytest.mark.parametrize("said", [m.Forget(key=KEY), m.Stop(key=KEY, reason="Evicted")], ids=["Forget", "Stop"])
def test_hd_215_a_create_of_the_process_before_that_lands_after_the_lists_is_removed_by_the_managers_word(
    said: m.Message,
) -> None:
    """HD-215: nobody had told this process of that epoch; the symptom: a gated pod that stayed there for ever."""
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == POD
    stage.place()
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage.restart()
    stage._write(create, answered=False)
    stage.settle()
    stage.pass_seconds(5.0)
    assert stage.document(POD, "p") is not None, "that nobody knows of it is no reason to remove it"
    stage.send(said)
    stage.pass_seconds(12.0)
    if isinstance(said, m.Stop):
        assert len(stage.peer.of(m.Stopped)) == 1
        found = stage.document(POD, "p")
        assert found is None or found["metadata"].get("deletionTimestamp"), "said when it is so"
        stage.send(m.Forget(key=KEY))
        stage.pass_seconds(2.0)
    assert stage.document(POD, "p") is None
    assert stage.state() == "none"


@pytest.mark.parametrize(("kind", "name", "resource"), [("Pod", "p", POD), ("Job", "j", JOB)])
def test_hd_237_a_create_of_the_process_before_that_nobody_names_again_is_in_the_next_inventory(
    kind: str, name: str, resource: Resource
) -> None:
    """HD-237: a person had said *fenced* meanwhile, and its Workload was gone; the symptom: a gated pod for ever."""
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == resource
    stage.place(kind=kind, name=name)
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage.restart()
    stage._write(create, answered=False)
    stage.settle()
    stage.cut_stream()
    stage.mend(resume=False)
    assert [(one.key, one.name, one.lifted) for one in stage.peer.inventories[-1]] == [(KEY, name, False)]
    stage.send(m.Stop(key=KEY, reason="NotLive"))
    stage.pass_seconds(12.0)
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(2.0)
    assert stage.document(resource, name) is None


def test_hd_215_a_job_that_is_found_so_is_listed_with_its_pod_set_while_it_stops() -> None:
    """HD-215: without a name for what it counts the inventory was no message, and the agent ended."""
    stage = _started()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.resource == JOB
    stage.place(kind="Job", name="j")
    create = stage.held[0].command
    stage.hold = lambda _write: False
    stage.restart()
    stage._write(create, answered=False)
    stage.settle()
    stage.hold = lambda write: write.ref.resource == JOB
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.cut_stream()
    stage.mend(resume=False)
    (entry,) = stage.peer.inventories[-1]
    assert (entry.key, entry.state) == (KEY, "Draining")
    assert [name for name, *_ in entry.counts] == ["main"]


def _listed_with(stage: Stage, pod_set: str) -> tuple[tuple[str, int], ...]:
    """Let the object of a placement count as one of that pod set, and return what the next inventory counts."""
    [tracked] = stage.machine.world.placements[KEY].objects.values()
    tracked.pod_set = pod_set
    stage.cut_stream()
    stage.mend(resume=False)
    [entry] = [each for each in stage.peer.inventories[-1] if each.key == KEY]
    return entry.counts


def test_hd_268_what_cannot_be_said_of_a_placement_is_left_out_and_the_cluster_is_served() -> None:
    """HD-268: the symptom: an inventory that is no message ended each session, and with it the whole cluster."""
    stage = _started()
    stage.place()
    stage.run()
    assert _listed_with(stage, "main") == (("main", 1),)
    assert _listed_with(stage, "") == ()
    assert [note.text for note in stage.notes if "without its counts" in note.text]
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(5.0)
    assert stage.pod("p")["metadata"].get("deletionTimestamp"), "it is served as before"
