"""HD-178: what a commit names at `local` and the agent does not know is asked for before it is refused.

Two watches show its pods, by two labels. One that goes from the one to the other and back is gone by the word of both.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import ApiWrite, Delete, ObjectGone, Patch, WriteError
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from gatelift_wire.values.refusals import Refusal
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN_WITHOUT_MARKS, POD_SPEC, commit_messages, decode

GATE = {"name": "kueue.x-k8s.io/admission"}
OURS = (LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)


def pod_of_a_user(stage: Stage, name: str = "p", *, gated: bool = True, labels: dict[str, str] | None = None) -> None:
    """Let a user make a pod."""
    meta: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE_NAME,
        "labels": {"kueue.x-k8s.io/managed": "true", **(labels or {})},
        "finalizers": ["kueue.x-k8s.io/managed"],
    }
    stage.create(POD, {"metadata": meta, "spec": {**POD_SPEC, "schedulingGates": [GATE] if gated else []}})
    stage.settle()


def at_home() -> Stage:
    """Return a stage at `local` with a user's pod that waits."""
    stage = Stage(mode=AgentMode.LOCAL)
    stage.origin = ORIGIN_WITHOUT_MARKS
    stage.start()
    pod_of_a_user(stage)
    return stage


def out_of_sight(stage: Stage, name: str = "p") -> None:
    """Let a watch call the pod gone that has gone to the other one."""
    stored = stage.store.find(("", "pods"), NAMESPACE_NAME, name)
    assert stored is not None
    stage.post(ObjectGone(POD, decode(POD, stored)))
    assert all(held.ref.key.name != name for held in stage.machine.world.objects.own())


def next_agent_of_what_runs(*, beside: bool = False) -> Stage:
    """Return a stage whose next agent knows nothing of the pod that runs, or another one by its labels."""
    stage = at_home()
    stage.place()
    stage.run()
    stage.crash()
    labels = {name: stage.pod()["metadata"]["labels"][name] for name in OURS}
    stage.change(POD, "p", {"metadata": {"labels": dict.fromkeys(OURS)}})
    if beside:
        pod_of_a_user(stage, "q", gated=False, labels=labels)
    stage.start()
    assert (stage.placement() is not None) == beside
    out_of_sight(stage)
    return stage


def lift_of_a_dead_leader() -> tuple[Stage, ApiWrite]:
    """Return a stage whose next agent does not know the pod, and the lift that may still land."""
    stage = at_home()
    stage.hold = lambda write: isinstance(write, Patch)
    stage.place()
    lift = stage.held.popleft().command
    stage.crash()
    stage.hold = lambda _write: False
    stage.start()
    out_of_sight(stage)
    return stage, lift


def labelled(stage: Stage) -> bool:
    """Say whether the pod carries our labels."""
    labels = stage.pod()["metadata"]["labels"]
    return (labels.get(LABEL_WORKLOAD_UID), labels.get(LABEL_EPOCH)) == (KEY.uid, str(KEY.epoch))


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside one that carries its labels"])
def test_hd_178_what_runs_and_no_watch_shows_is_taken_up_as_it_runs(beside: bool) -> None:
    stage = next_agent_of_what_runs(beside=beside)
    stage.commit()
    stage.pass_seconds(1.0)
    assert stage.state() == "Running"
    assert stage.peer.of(m.Refused) == []
    assert [each.key for each in stage.peer.of(m.GatesLifted)][-1] == KEY
    assert stage.written(Delete) == []
    assert labelled(stage)
    stage.finish()
    assert [each.succeeded for each in stage.peer.of(m.Finished)] == [True]


def test_hd_178_what_waits_and_no_watch_shows_is_refused_after_a_write_to_it() -> None:
    stage, lift = lift_of_a_dead_leader()
    stage.commit()
    stage.pass_seconds(1.0)
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert not labelled(stage), "what was never let go carries no labels of ours"
    stage._write(lift)
    assert stage.pod()["spec"]["schedulingGates"] == [GATE]
    assert stage.placement() is None


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_hd_178_what_is_gone_is_refused_as_soon_as_the_api_server_says_so(again: bool) -> None:
    stage = next_agent_of_what_runs()
    [named] = (replace(one, template=stage.pod()["metadata"]["uid"]) for one in commit_messages()[1].objects)
    stage.change(POD, "p", {"metadata": {"finalizers": None}})
    stage.remove(POD, "p", grace=0)
    if again:
        pod_of_a_user(stage)
    stage.fail = lambda _write: WriteError.UNKNOWN
    stage.send(replace(commit_messages()[1], objects=(named,)))
    stage.pass_seconds(60.0)
    assert stage.peer.of(m.Refused) == [], "no answer is no proof"
    asked = len(stage.written(Patch))
    assert asked < 12, "with a pause that grows"
    stage.fail = lambda _write: None
    stage.pass_seconds(30.0)
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.HOLD_EXPIRED]
    assert stage.placement() is None


def test_hd_178_a_stop_of_what_no_watch_shows_waits_for_the_answer() -> None:
    stage = next_agent_of_what_runs()
    stage.hold = lambda write: isinstance(write, Patch)
    [named] = (replace(one, template=stage.pod()["metadata"]["uid"]) for one in commit_messages()[1].objects)
    stage.send(replace(commit_messages()[1], objects=(named,)), m.Stop(key=KEY, reason="Evicted"))
    assert stage.peer.of(m.Stopped) == []
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(1.0)
    assert len(stage.written(Delete)) == 1
    assert stage.peer.of(m.Stopped) == []
    stage.finish(phase="Failed")
    assert [stopped.reason for stopped in stage.peer.of(m.Stopped)] == ["Evicted"]


def test_hd_178_a_pod_that_goes_out_of_sight_before_its_commit_is_let_go_all_the_same() -> None:
    stage = at_home()
    stage.offer()
    out_of_sight(stage)
    stage.commit()
    assert stage.state() == "Applying", "the watch may be behind"
    stage.pass_seconds(11.0)
    assert stage.state() == "Running"
    assert stage.peer.of(m.Refused) == []


def test_hd_178_what_no_watch_shows_is_not_taken_up_for_an_epoch_that_was_stopped_here() -> None:
    stage = next_agent_of_what_runs()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.commit()
    assert [refused.refusal for refused in stage.peer.of(m.Refused)] == [Refusal.EPOCH_STALE]
    assert stage.written(Patch)[1:] == [], "only the lift of before"
    assert stage.placement() is None
