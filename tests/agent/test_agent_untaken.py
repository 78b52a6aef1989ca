"""IS-4: words about objects that an agent cannot take: what they prove meanwhile, and what becomes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.placement.placements import Move, Placement
from gatelift_agent.core.seeing import early, foreign, observing, taking
from gatelift_agent.core.state import untaken
from gatelift_agent.core.state.untaken import AgentUntaken, subject_of
from gatelift_agent.core.watched import ownership
from gatelift_agent.core.watched.nodes import Nodes
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import JOB, NAMESPACE, NODE, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.drivers import running_job
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC
from support.on_purpose import OnPurposeError

OURS = ("gatelift.dev/origin", "gatelift.dev/workload-uid", "gatelift.dev/epoch")
BESIDE = PlacementKey("beside", 1)


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def breaks(
    monkeypatch: pytest.MonkeyPatch, where: Any, name: str, hits: Callable[..., Any], *, times: int = 0
) -> list[bool]:
    """Let a function raise where it hits, so many times or always; return one entry for each time."""
    function = getattr(where, name)
    raised: list[bool] = []

    def faulty(*args: Any, **named: Any) -> Any:
        if not 0 < times <= len(raised) and hits(*args, **named):
            raised.append(True)
            raise OnPurposeError("on purpose")
        return function(*args, **named)

    monkeypatch.setattr(where, name, faulty)
    return raised


def is_p(*args: Any) -> bool:
    """Say whether a call is about the object `p`."""
    return "name='p'" in repr(args[1:])


def is_kind(kind: str) -> Callable[..., bool]:
    """Say whether a word is about an object of a kind."""
    return lambda _world, word, _now: word.resource.kind == kind


def a_pod(stage: Stage) -> str:
    """Return the name of a pod that is there."""
    return str(stage.store.look_all(("", "pods"))[0]["metadata"]["name"])


def placed(stage: Stage) -> None:
    """Let a pod run that is placed."""
    stage.start()
    stage.place()
    stage.run()
    assert stage.state() == "Running"


def test_is_4_what_is_not_ours_makes_no_absence_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one object of a stranger would keep a whole cluster's quota for as long as it is there."""
    stage = Stage()
    stage.start()  # so that the next process knows whom it serves
    labels = dict(zip(OURS, ("former", "old-1", "1"), strict=True))
    meta = {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels}
    stage.create(POD, {"metadata": meta, "spec": POD_SPEC})
    stage.settle()
    raised = breaks(monkeypatch, observing, "seen", is_p)
    breaks(monkeypatch, ownership, "marks", lambda _kinds, obj: obj.metadata.name == "p")
    stage.restart()
    stage.pass_seconds(300.0)
    assert raised
    assert not stage.machine.world.unread
    assert not stage.machine.world.unheard


@pytest.mark.parametrize("reads", [True, False], ids=["it says whose it is", "even that cannot be read"])
def test_is_4_what_is_ours_and_cannot_be_taken_makes_absence_prove_nothing_and_is_listed(
    monkeypatch: pytest.MonkeyPatch, *, reads: bool
) -> None:
    stage = Stage()
    placed(stage)
    breaks(monkeypatch, observing, "seen", is_p)
    if not reads:
        breaks(monkeypatch, ownership, "placed_as", lambda _kinds, obj: obj.metadata.name == "p")
    stage.restart()
    stage.pass_seconds(1000.0)
    assert stage.machine.world.unheard
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]
    assert stage.peer.inventories[-1][0].lifted


def test_is_4_a_commit_or_a_stop_of_what_may_be_here_is_not_answered_before_it_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Refused and stopped say that nothing runs (R7)."""
    stage = Stage()
    placed(stage)
    breaks(monkeypatch, observing, "seen", is_p)
    stage.restart()
    stage.commit()
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.send(m.Stop(key=BESIDE, reason="Deleted"))
    stage.pass_seconds(5.0)
    assert stage.pod()["metadata"].get("deletionTimestamp"), "it is asked to end all the same"
    assert not stage.peer.of(m.Refused)
    assert [told.key for told in stage.peer.of(m.Stopped)] == [BESIDE], "what cannot be here is answered"


@pytest.mark.parametrize("name", ["seen", "take"])
def test_is_4_what_loses_its_label_before_it_could_be_taken_is_read_as_it_was_and_asked_for(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A watch by label calls it gone, and it runs: without what was seen of it nobody knows that it is ours."""
    stage = Stage()
    placed(stage)
    raised = breaks(monkeypatch, early, "seen", lambda _world, obj: obj.metadata.name == "p", times=2)
    if name == "take":
        breaks(monkeypatch, early, "gone", is_p, times=1)
    stage.restart()
    stage.change(POD, "p", {"metadata": {"labels": dict.fromkeys(OURS)}})
    stage.pass_seconds(60.0)
    assert raised
    stage.confirm()
    stage.pass_seconds(60.0)
    assert stage.state() == "Running"
    assert stage.pod()["metadata"]["labels"]["gatelift.dev/workload-uid"] == KEY.uid


def test_is_4_what_is_gone_before_it_could_be_taken_is_doubted(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: its containers may run on the node that it was bound to, until that was heard of."""
    stage = Stage()
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    placed(stage)
    breaks(monkeypatch, observing, "seen", is_p)
    stage.restart()
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    stage.pass_seconds(10.0)
    world = stage.machine.world
    assert not world.unread
    assert world.untaken.doubted
    assert world.unheard


def test_is_4_a_version_behind_a_rebuild_that_raised_is_no_stray(monkeypatch: pytest.MonkeyPatch) -> None:
    """The symptom: its epoch was used up by the rebuild, so its next version was removed, and nobody was told."""
    stage = Stage()
    placed(stage)
    raised = breaks(monkeypatch, rebuilding, "_from_held", lambda _world, key, *_: key == KEY, times=3)
    stage.restart()
    stage.change(POD, "p", {"metadata": {"annotations": {"somebodys": "note"}}})
    stage.pass_seconds(20.0)
    assert len(raised) == 3
    stage.confirm()
    assert stage.state() == "Running"
    assert not stage.pod()["metadata"].get("deletionTimestamp")


def test_is_4_a_version_that_was_half_taken_is_taken_as_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known by then; what follows from it is not."""
    stage = Stage()
    placed(stage)
    raised = breaks(monkeypatch, observing, "take", lambda *_: True, times=2)
    stage.finish()
    assert not stage.peer.of(m.Finished)
    stage.pass_seconds(5.0)
    assert len(raised) == 2
    assert [told.key for told in stage.peer.of(m.Finished)] == [KEY]


def test_is_4_a_namespace_that_cannot_be_taken_is_not_taken_for_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    placed(stage)
    raised = breaks(monkeypatch, taking, "_take", is_kind(NAMESPACE.kind), times=6)
    stage.restart()
    assert raised
    assert stage.machine.world.unheard
    assert NAMESPACE_NAME in stage.machine.world.keeper.state.namespaces
    stage.pass_seconds(600.0)
    stage.confirm()
    assert stage.state() == "Running"
    assert not stage.machine.world.unread


def test_is_4_a_node_that_cannot_be_taken_is_there_and_was_not_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: else what vanished on it would count as over."""
    stage = Stage()
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    breaks(monkeypatch, Nodes, "seen", lambda *_: True)
    stage.start()
    stage.pass_seconds(1000.0)
    assert stage.machine.world.unheard


def test_is_4_our_own_memory_that_cannot_be_taken_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    placed(stage)
    ready: list[bool] = []

    def is_ours(world: Any, word: Any, _now: float) -> bool:
        if word.resource.kind == "ConfigMap":
            ready.append(world.ready)
        return bool(word.resource.kind == "ConfigMap")

    breaks(monkeypatch, taking, "_take", is_ours, times=3)
    stage.restart()
    assert ready == [False] * 3, "it says nothing before it knows what it has said"
    assert [entry.key for entry in stage.peer.inventories[-1]] == [KEY]


def test_is_4_a_doubt_that_raises_is_a_doubt_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """P10: an answer that it is gone must not count for more when it is taken another time."""
    stage = Stage()
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    placed(stage)
    raised = breaks(monkeypatch, observing, "_doubt", lambda *_: True, times=1)
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.pass_seconds(60.0)
    assert raised
    assert not stage.peer.of(m.Stopped), "its containers may run"


def test_is_4_a_pod_of_a_job_that_could_not_be_taken_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, _ = running_job()
    first = a_pod(stage)
    raised = breaks(monkeypatch, ownership, "controlled_by", lambda *_: True, times=1)
    stage.finish(first)
    stage.change(POD, first, {"metadata": {"finalizers": None}})
    stage.remove(POD, first, grace=0)
    stage.pass_seconds(5.0)
    placement = stage.placement()
    assert placement is not None
    assert raised
    assert placement.children_gone == 1


def test_is_4_a_job_that_could_not_be_taken_is_not_taken_for_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, _ = running_job()
    breaks(monkeypatch, observing, "seen", lambda _world, resource, *_: resource == JOB, times=1)
    stage.restart()
    stage.pass_seconds(5.0)
    stage.confirm()
    assert stage.state() == "Running"
    assert not stage.peer.of(m.Evicted)


def test_is_4_a_placement_is_not_still_while_something_may_be_of_it_that_could_not_be_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    placed(stage)
    labels = dict(zip(OURS, (ORIGIN, KEY.uid, str(KEY.epoch)), strict=True))
    broken = breaks(monkeypatch, foreign, "note", lambda _world, obj: obj.metadata.name == "more")
    meta = {"name": "more", "namespace": NAMESPACE_NAME, "labels": labels}
    stage.create(POD, {"metadata": meta, "spec": POD_SPEC})
    stage.settle()
    assert broken
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.finish()
    stage.pass_seconds(600.0)
    assert not stage.peer.of(m.Stopped)
    monkeypatch.undo()
    stage.pass_seconds(600.0)
    assert stage.peer.of(m.Stopped)


def test_is_4_a_stop_that_raised_half_way_is_obeyed_when_it_is_said_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    placed(stage)
    raised = breaks(monkeypatch, Placement, "move", lambda _placement, move: move is Move.END, times=1)
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.mend()
    assert raised
    stage.send(m.Stop(key=KEY, reason="Deleted"))
    stage.finish()
    stage.pass_seconds(60.0)
    assert [told.key for told in stage.peer.of(m.Stopped)] == [KEY]


def word(number: int, version: str = "1", *, gone: bool = False, last: bool = False) -> ObjectSeen | ObjectGone:
    """Return a word about a pod."""
    meta = ObjectMeta(
        name=f"p-{number}",
        namespace=NAMESPACE_NAME,
        uid=f"uid-{number}",
        resource_version=version,
        deletion_timestamp="2026-01-01T00:00:00Z" if last else None,
    )
    pod = Pod(metadata=meta)
    return ObjectGone(POD, pod) if gone else ObjectSeen(POD, pod, b"")


@pytest.mark.parametrize(
    ("said", "unknown", "kept"),
    [
        ([word(1), word(1, "2")], True, [word(1, "2")]),
        ([word(1, "2"), word(1)], True, [word(1, "2")]),
        ([word(1), word(1, "2", gone=True)], True, [word(1), word(1, "2", gone=True)]),
        ([word(1), word(1, "2", gone=True, last=True)], True, [word(1, "2", gone=True, last=True)]),
        ([word(1), word(1, "2", gone=True)], False, [word(1, "2", gone=True)]),
        ([word(1), word(1, "2", gone=True), word(1, "3")], True, [word(1, "3")]),
    ],
    ids=["newer", "older", "no longer labelled", "its last", "known", "labelled again"],
)
def test_is_4_the_newest_word_is_kept(said: list[Any], unknown: bool, kept: list[Any]) -> None:
    words = AgentUntaken()
    words.keep(subject_of(said[0]), (said[0],), 1.0)
    for each in said[1:]:
        words.hear(each, unknown=unknown)
    assert list(words.words(subject_of(said[0]))) == kept


def test_is_4_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untaken, "UNTAKEN_MAX", 2)
    words = AgentUntaken()
    assert [words.keep(subject_of(word(number)), (word(number),), 1.0) for number in range(3)] == [True, True, False]
    assert words.keep(subject_of(word(1)), (word(1, "2"),), 1.0)
    assert len(words) == 2
