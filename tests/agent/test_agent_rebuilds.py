"""IS-3: what raises as an agent rebuilds its placements stops no other, on a worker and at home."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.seeing import doubts, orphans
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN, POD_SPEC
from support.on_purpose import OnPurposeError

BESIDE, LATER, NEXT = PlacementKey("beside", 1), PlacementKey("later", 1), PlacementKey("next", 1)


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def user_pods(stage: Stage, *names: str) -> None:
    """Let there be what is let go at home."""
    for name in names if stage.mode is AgentMode.LOCAL else ():
        meta = {"name": name, "namespace": NAMESPACE_NAME, "labels": {"kueue.x-k8s.io/managed": "true"}}
        spec = {**POD_SPEC, "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
        stage.create(POD, {"metadata": meta, "spec": spec})
    stage.settle()


def orphaned(stage: Stage, name: str, key: PlacementKey, *, marked: bool) -> None:
    """Let there be a pod whose Job is gone: by its mark, or by its labels alone."""
    labels = {"gatelift.dev/origin": ORIGIN, "gatelift.dev/workload-uid": key.uid, "gatelift.dev/epoch": "1"}
    mark = {"key": f"{ORIGIN}.placed-as.gatelift.dev/{name}", "operator": "Equal", "value": f"{key.uid}.1"}
    spec = {**POD_SPEC, "tolerations": [{**mark, "effect": "NoSchedule"}]} if marked else POD_SPEC
    made_by = {} if marked else {"job-name": name, "controller-uid": f"gone-{name}"}
    stage.create(
        POD, {"metadata": {"name": name, "namespace": NAMESPACE_NAME, "labels": {**labels, **made_by}}, "spec": spec}
    )
    stage.settle()


def breaks(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, about: str) -> list[str]:
    """Let a function raise for one object; return what it raised for, as it comes."""
    function, raised = getattr(module, name), []

    def faulty(*args: Any, **named: Any) -> Any:
        if about in repr(args[1:]):
            raised.append(name)
            raise OnPurposeError("on purpose")
        return function(*args, **named)

    monkeypatch.setattr(module, name, faulty)
    return raised


def starts(stage: Stage) -> None:
    """Start the next process; it does not end by what raises."""
    stage.crash()
    stage.cut = False
    try:
        stage.start()
    except OnPurposeError:
        pytest.fail("one object ended the agent as it started")


def lists_and_takes_others(stage: Stage) -> None:
    """See that the others are listed, and what is placed from now on runs."""
    assert BESIDE in {entry.key for entry in stage.peer.inventories[-1]}
    stage.confirm(BESIDE)
    stage.place(LATER, name="later")
    assert stage.state(LATER) == "Running"
    assert not [told for told in stage.peer.of(m.Stopped) if told.key == BESIDE]


@pytest.mark.parametrize("mode", list(AgentMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    ("name", "marked"), [("_from_marked", True), ("_from_child", False)], ids=["by its mark", "by its labels"]
)
def test_is_3_an_orphaned_pod_that_raises_stops_nobody_else(
    monkeypatch: pytest.MonkeyPatch, mode: AgentMode, name: str, marked: bool
) -> None:
    """The symptom: an orphaned pod ended the agent of `local` for good, and a worker's at each start."""
    stage = Stage(mode=mode)
    stage.start()
    user_pods(stage, "beside", "later")
    stage.place(BESIDE, name="beside")
    orphaned(stage, "orphan", KEY, marked=marked)
    orphaned(stage, "the-next", NEXT, marked=marked)
    raised = breaks(monkeypatch, rebuilding, name, "orphan")
    starts(stage)
    assert raised
    assert NEXT in {entry.key for entry in stage.peer.inventories[-1]}
    lists_and_takes_others(stage)


@pytest.mark.parametrize(
    ("module", "name"),
    [(orphans, "all_pods"), (doubts, "miss"), (rebuilding, "_key_of"), (rebuilding, "_from_held")],
    ids=["which pods there are", "what is missing of it", "whose it is", "what it is"],
)
def test_is_3_nor_does_a_look_at_an_object_or_at_all_pods(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.place(BESIDE, name="beside")
    raised = breaks(monkeypatch, module, name, "" if name == "all_pods" else KEY.uid)
    starts(stage)
    assert raised
    lists_and_takes_others(stage)


def test_is_3_nor_does_a_record_that_cannot_be_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.start()
    stage.place(BESIDE, name="beside")
    stage.place()
    stage.cut_stream()
    stage.finish()
    stage.remove(POD, "p")
    stage.pass_seconds(600.0)
    assert stage.document(POD, "p") is None, "what became of it stands in a record"
    raised = breaks(monkeypatch, rebuilding, "_from_record", KEY.uid)
    starts(stage)
    assert raised
    lists_and_takes_others(stage)
