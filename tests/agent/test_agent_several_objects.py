"""A placement of several objects at a worker: made held back as a whole, or not at all, each for its user's object."""

from __future__ import annotations

import hashlib

import msgspec
import pytest

from gatelift_kube.deciding.writes import Create, Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.rules import measure
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC, CrashError

NAMES = ("a", "b", "c")
SPEC = msgspec.json.encode(POD_SPEC)
MARKS = msgspec.json.encode({"labels": {"app": "crew"}, "annotations": {}})
USER_UID = "gatelift.dev/user-uid"


def blob(content: bytes) -> m.TemplateBlob:
    return m.TemplateBlob(hash=hashlib.sha256(content).hexdigest(), content=content)


def an_order(*names: str) -> m.Commit:
    spec, marks = blob(SPEC).hash, blob(MARKS).hash
    objects = tuple(
        m.ObjectTemplate(name=name, pod_set="main", template=spec, marks=marks, uid=f"home-{name}") for name in names
    )
    return m.Commit(key=KEY, kind="Pod", namespace=NAMESPACE_NAME, name="a", queue="queue", objects=objects)


def place(stage: Stage, *, marks: bool = True) -> None:
    stage.offer(name="a")
    stage.send(blob(SPEC), *((blob(MARKS),) if marks else ()), an_order(*NAMES))


def pods(stage: Stage) -> dict[str, str]:
    """Return of which user's object each pod here says that it is."""
    found = [each for name in NAMES if (each := stage.document(POD, name)) is not None]
    return {each["metadata"]["name"]: each["metadata"]["annotations"].get(USER_UID, "") for each in found}


def let_go(stage: Stage) -> list[str]:
    return [name for name in pods(stage) if not stage.pod(name)["spec"].get("schedulingGates")]


def a_stranger(stage: Stage, *, user_uid: str) -> None:
    """Make a pod under a member's name: with a UID in all the placement's, but of another pod of the user's."""
    labels = {LABEL_ORIGIN: ORIGIN, LABEL_WORKLOAD_UID: KEY.uid, LABEL_EPOCH: str(KEY.epoch)} if user_uid else {}
    meta = {"name": "b", "namespace": NAMESPACE_NAME, "labels": labels, "annotations": {USER_UID: user_uid}}
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": [{"name": "example.com/own"}]}})
    stage.settle()


def test_each_object_has_what_all_have_in_common_and_says_whose_it_is() -> None:
    stage = Stage()
    stage.start()
    place(stage)
    assert pods(stage) == {name: f"home-{name}" for name in NAMES}
    assert {stage.pod(name)["metadata"]["labels"]["app"] for name in NAMES} == {"crew"}
    assert let_go(stage) == list(NAMES)
    writes = stage.written(Create) + stage.written(Patch)
    first_lift = min(stage.writes.index(each) for each in stage.written(Patch))
    assert all(stage.writes.index(each) < first_lift for each in writes if isinstance(each, Create))
    stage.run("b")
    assert {each.owner_uid for each in stage.peer.of(m.ObjectReport) if each.name == "b"} == {"home-b"}


def test_what_all_have_in_common_has_to_be_there_before_any_of_it_is_made() -> None:
    stage = Stage()
    stage.start()
    place(stage, marks=False)
    assert [each.refusal for each in stage.peer.of(m.Refused)] == [Refusal.TEMPLATE_MISSING]
    assert pods(stage) == {}


@pytest.mark.parametrize("whose", ["", "home-b-of-before"])
def test_mc_3_a_name_that_is_taken_has_nothing_let_go_and_is_refused_in_words(whose: str) -> None:
    """Y8: also where origin, workload and epoch are those of the placement, and the user's pod is another one."""
    stage = Stage()
    stage.start()
    stage.hold = lambda write: isinstance(write, Create) and write.ref.key.name == "b"
    place(stage)
    a_stranger(stage, user_uid=whose)
    stage.hold = lambda _write: False
    stage.land()
    for _ in range(60):
        assert not {"a", "c"} & set(let_go(stage))
        stage.pass_seconds(1.0)
    assert [each.refusal for each in stage.peer.of(m.Refused)] == [Refusal.NAME_CONFLICT]
    assert stage.peer.of(m.ObjectReport) == []
    assert sorted(pods(stage)) == ([] if whose else ["b"])  # what wears our labels of an end is taken away


def life(crash_before: int | None) -> tuple[Stage, int]:
    """Place three; kill the agent before its nth command; then the manager says again what it said."""
    stage = Stage()
    stage.start()
    stage.offer(name="a")
    begun = stage.performed
    stage.crash_before = begun + crash_before if crash_before is not None else None
    try:
        stage.send(blob(SPEC), blob(MARKS), an_order(*NAMES))
    except CrashError:
        stage.crash_before = None
        assert not let_go(stage) or len(pods(stage)) == len(NAMES), "let go while some are not there"
        stage.restart()
        stage.send(blob(SPEC), blob(MARKS), an_order(*NAMES))
        stage.pass_seconds(60.0)
    return stage, stage.performed - begun


def test_mc_2_an_agent_killed_at_each_step_leaves_all_of_it_or_nothing() -> None:
    """Y13: what was half made is completed, or nothing of it is left and that is said."""
    _, steps = life(None)
    for step in range(1, steps + 1):
        stage, _ = life(step)
        if stage.placement() is not None:
            assert let_go(stage) == list(NAMES), step
            assert pods(stage) == {name: f"home-{name}" for name in NAMES}, step
        else:
            assert pods(stage) == {}, step
            assert stage.peer.of(m.Refused), step


def test_pf_5_of_an_object_like_all_others_travel_three_hundred_bytes() -> None:
    many, fewer = (measure(an_order(*(f"trainer-of-some-length-{at:04}" for at in range(n)))) for n in (1001, 1))
    assert (many - fewer) / 1000 <= 300
