"""HD-254: what a watch calls gone while an agent starts is asked for, once it is known whose it is.

A watch by label says of what lost its label that it is gone. The symptom: a pod that ran was in no inventory.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_agent.core.seeing import early, observing
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import events
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import KubeObject, ObjectGone, ObjectSeen
from gatelift_kube.values.resources import JOB, POD, Resource
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.agent.drivers import running_job
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC, decode

OURS = (LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)
UNLABELLED: dict[str, Any] = {"metadata": {"labels": dict.fromkeys(OURS)}}
ORPHANED: dict[str, Any] = {"metadata": {"labels": dict.fromkeys(OURS), "ownerReferences": None}}


def lists_half(stage: Stage) -> None:
    """Let the next agent of a worker list its pods, and not yet its Jobs."""
    stage.crash()
    stage.listing = False
    stage.post(events.AgentLeadershipGained(term=2, settle_seconds=0.0))
    stage.lead()
    show(stage, POD)
    stage.watched = {NAMESPACE_NAME}
    stage.settle()
    assert not stage.machine.world.ready


def show(stage: Stage, resource: Resource) -> None:
    """Let a list bring all that it shows."""
    for stored in stage.store.all((resource.group, resource.plural)):
        stage.events.append(ObjectSeen(resource, decode(resource, stored), stored.raw))


def lists_the_rest(stage: Stage) -> None:
    """Let the lists be complete, and a session begin."""
    show(stage, JOB)
    stage.post(events.NamespaceSynced(namespace=NAMESPACE_NAME))
    stage.mend()


def names(stage: Stage) -> list[str]:
    """Return the pods that are there."""
    return [pod["metadata"]["name"] for pod in stage.store.look_all(("", "pods"))]


def labelled(stage: Stage, name: str) -> bool:
    """Say whether a pod carries the labels of the placement."""
    wanted = {LABEL_ORIGIN: ORIGIN, LABEL_WORKLOAD_UID: KEY.uid, LABEL_EPOCH: str(KEY.epoch)}
    return bool(wanted.items() <= stage.pod(name)["metadata"].get("labels", {}).items())


def test_is_3_such_a_word_that_raises_ends_no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, heard = Stage(), []
    stage.start()
    stage.place()
    stage.run()
    lists_half(stage)
    stage.change(POD, "p", UNLABELLED)

    def raises(_world: World, _resource: Resource, gone: KubeObject, _now: float) -> None:
        heard.append(gone.metadata.name)
        raise LookupError("on purpose")

    monkeypatch.setattr(Contained, "surfaces", False)
    monkeypatch.setattr(observing, "gone", raises)
    try:
        lists_the_rest(stage)
    except LookupError:
        pytest.fail("it ended the agent as it started")
    assert heard == ["p"]
    assert stage.machine.world.unheard, "what is not listed is not absent"


def test_hd_254_a_pod_that_loses_its_labels_while_its_agent_lists_is_listed_and_has_them_again() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    lists_half(stage)
    stage.change(POD, "p", UNLABELLED)
    lists_the_rest(stage)
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    stage.confirm()
    stage.pass_seconds(10.0)
    assert labelled(stage, "p")
    assert stage.state() == "Running"


@pytest.mark.parametrize("patch", [UNLABELLED, ORPHANED], ids=["labels", "labels and owner"])
@pytest.mark.parametrize("job", ["stays", "goes"])
def test_hd_254_pods_of_a_job_that_lose_their_labels_while_its_agent_lists_are_counted(
    patch: dict[str, Any], job: str
) -> None:
    stage, _ = running_job()
    lists_half(stage)
    for name in names(stage):
        stage.change(POD, name, patch)
    if job == "goes":
        stage.change(JOB, "j", {"metadata": {"finalizers": None}})
        stage.remove(JOB, "j", grace=0, propagation="Orphan")
    lists_the_rest(stage)
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    stage.pass_seconds(3.0)
    assert all(labelled(stage, name) for name in names(stage))
    assert len(stage.machine.world.objects.all_children()) == 2
    assert stage.peer.of(m.Evicted) == []


def at_home_without_a_session(count: int = 1) -> Stage:
    """Return a stage of `local` whose agent has listed pods of a Job that is gone, and whose it serves is not known."""
    stage = Stage(mode=AgentMode.LOCAL)
    for number in range(count):
        mark = {
            "key": f"{ORIGIN}.{KEY.uid}.placed-as.gatelift.dev/j",
            "operator": "Equal",
            "value": f"{KEY.uid}.1",
            "effect": "NoSchedule",
        }
        labels = {LABEL_ORIGIN: ORIGIN, LABEL_WORKLOAD_UID: KEY.uid, LABEL_EPOCH: "1"}
        meta = {"name": f"j-{number}", "namespace": NAMESPACE_NAME, "labels": labels}
        stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "tolerations": [mark]}})
        stage.run(f"j-{number}")
    stage.cut = True
    stage.post(events.AgentLeadershipGained(term=1, settle_seconds=0.0))
    stage.lead()
    stage.pass_seconds(3.0)
    assert stage.machine.world.ready
    assert not stage.machine.world.standing.origin
    return stage


def test_hd_254_what_loses_its_labels_at_home_before_a_session_is_in_its_inventory() -> None:
    stage = at_home_without_a_session()
    stage.change(POD, "j-0", UNLABELLED)
    stage.mend()
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    stage.pass_seconds(3.0)
    assert labelled(stage, "j-0")


def test_hd_268_a_job_of_which_pods_alone_were_found_is_listed_with_its_pod_set_once_it_is_seen() -> None:
    """HD-268: it was found by the mark of a pod; nobody had told of which pod set it is."""
    stage = at_home_without_a_session()
    stage.mend()
    [placement] = stage.machine.world.placements.values()
    assert [(each.ref.resource, each.pod_set) for each in placement.objects.values()] == [(JOB, "main")]


def test_hd_254_what_is_really_gone_at_home_before_a_session_is_found_to_be_and_let_go() -> None:
    stage = at_home_without_a_session()
    stage.finish("j-0")
    stage.remove(POD, "j-0", grace=0)
    stage.mend()
    stage.pass_seconds(600.0)
    assert stage.machine.world.objects.all_children() == ()
    assert [each.key for each in stage.peer.of(m.Evicted)] == [KEY]
    assert stage.machine.world.early == {}


def test_hd_254_what_is_shown_again_before_a_session_is_not_asked_for() -> None:
    stage = at_home_without_a_session()
    labels = stage.pod("j-0")["metadata"]["labels"]
    stage.change(POD, "j-0", UNLABELLED)
    stage.change(POD, "j-0", {"metadata": {"labels": labels}})
    assert stage.machine.world.early == {}
    stage.mend()
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    assert stage.written(object, POD) == []


def test_hd_254_with_more_words_than_are_kept_absence_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "EARLY_MAX", 2)
    stage = at_home_without_a_session(4)
    for number in range(4):
        stage.change(POD, f"j-{number}", UNLABELLED)
    assert len(stage.machine.world.early) == 2
    assert [note.text for note in stage.notes if "absence proves nothing" in note.text] == [
        "more than 2 objects went before it was known whose: absence proves nothing"
    ]
    stage.mend()
    stage.pass_seconds(600.0)
    assert stage.machine.world.unheard, "what is not listed may run"


def test_hd_254_with_more_words_of_a_namespace_that_is_not_listed_yet_its_next_session_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Placements are made of each namespace as it is listed, for the first time after the start: no rebuild follows."""
    monkeypatch.setattr(early, "EARLY_MAX", 2)
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.pass_seconds(600.0)
    assert not stage.machine.world.unheard, "as its first session was told"
    [pod] = stage.store.all(("", "pods"))
    found = decode(POD, pod)
    for number in range(3):
        meta = msgspec.structs.replace(found.metadata, namespace="later", name=f"p-{number}", uid=f"uid-{number}")
        elsewhere = msgspec.structs.replace(found, metadata=meta)
        stage.post(ObjectSeen(POD, elsewhere, pod.raw))
        stage.post(ObjectGone(POD, elsewhere))
    stage.cut_stream()
    stage.mend(resume=False)
    assert stage.peer.unheard == [True, True], "what is not listed may run"


def test_hd_254_a_late_version_from_before_the_word_does_not_undo_it() -> None:
    stage = at_home_without_a_session()
    [before] = stage.store.all(("", "pods"))
    stage.change(POD, "j-0", UNLABELLED)
    stage.post(ObjectSeen(POD, decode(POD, before), before.raw))
    assert len(stage.machine.world.early) == 1


def test_hd_254_a_word_that_comes_after_placements_were_made_is_heard_at_once() -> None:
    stage = at_home_without_a_session()
    stage.mend()
    [pod] = stage.store.all(("", "pods"))
    stage.post(ObjectGone(POD, decode(POD, pod)))
    assert stage.machine.world.early == {}
