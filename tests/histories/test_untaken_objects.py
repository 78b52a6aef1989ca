"""Scripted histories (IS-4, IS-3): what an agent could not take or read is kept, proves no absence, and is read again.

Each raises on purpose for one object, once or until it is mended.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.advancing import outcomes
from gatelift_agent.core.beginning import rebuilding
from gatelift_agent.core.leaving import draining
from gatelift_agent.core.seeing import foreign, observing
from gatelift_agent.core.session import inventory
from gatelift_agent.core.session.link import ManagerLink
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import JOB, POD
from support.on_purpose import FOR_GOOD, Broken
from support.sim.history import History
from support.sim.others import REST_SECONDS, others_go_on


@pytest.fixture(autouse=True)
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def makes(history: History, kind: str, name: str = "bad", *, seconds: float = 0.0) -> None:
    """Let a user create one of a kind."""
    if kind == "Job":
        history.job(name, completions=1, seconds=seconds)
    else:
        history.pod(name, seconds=seconds)


def deletes(history: History, kind: str) -> None:
    """Let a user delete it."""
    history.delete("home", JOB if kind == "Job" else POD, "bad")


def is_bad(_world: Any, resource: Any, obj: Any, *_: Any) -> bool:
    """Say whether it is the worker's object, not a pod that it made."""
    return bool(obj.metadata.name == "bad" and resource in {POD, JOB})


KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


@KINDS
def test_is_3_what_raises_once_as_a_starting_agent_lists_it_is_not_absent(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The symptom: its inventory left it out, absence proved that it was gone, and it was run a second time."""
    history = History(shown=False)
    makes(history, kind)
    cluster = history.until_runs("bad", kind)
    broken = Broken(monkeypatch, (observing, "seen"), is_bad, times=1)
    history.kill_agent(cluster)
    history.passes(600.0)
    assert broken.raised == 1
    assert history.runs("bad", kind) == {cluster}
    assert history.containers("bad", kind) == 1
    assert history.leader.charges("travels") == 500
    assert not history.agent(cluster).machine.world.unheard, "absence proves again"
    deletes(history, kind)
    history.until("it is gone", lambda: history.workload("bad", kind) is None)
    assert history.leader.charges("travels") == 0


@KINDS
def test_is_4_what_cannot_be_taken_obeys_a_stop_and_is_not_called_stopped(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    history = History(shown=False)
    makes(history, kind)
    cluster = history.until_runs("bad", kind)
    broken = Broken(monkeypatch, (observing, "seen"), is_bad)
    history.kill_agent(cluster)
    history.passes(400.0)
    assert history.runs("bad", kind) == {cluster}
    assert broken.raised < 20, "with growing pauses"
    deletes(history, kind)
    history.until("it obeys the stop all the same", lambda: history.containers("bad", kind) == 0, 120.0)
    others_go_on(history)
    history.passes(300.0)
    assert history.leader.charges("travels") == 500, "and is neither called stopped nor absent"
    broken.mend()
    history.until("it is gone", lambda: history.workload("bad", kind) is None, REST_SECONDS)
    assert history.leader.charges("travels") == 0


@pytest.mark.parametrize("name", ["_from_held", "_key_of", "_most_likely"])
def test_is_4_what_a_rebuild_could_not_read_once_is_read_again_and_obeys_its_stop(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The symptom: 83 minutes after its deletion its container ran, and absence proved nothing for that cluster."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    broken = Broken(monkeypatch, (rebuilding, name), lambda *args: "name='bad'" in repr(args), times=1)
    history.kill_agent(cluster)
    history.passes(60.0)
    assert broken.raised == 1
    assert history.runs("bad") == {cluster}
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: history.workload("bad") is None, 60.0)
    assert history.leader.charges("travels") == 0


def test_is_4_what_could_not_be_read_once_keeps_no_other_from_being_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pod was removed at the worker while its agent was away: it is placed anew."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    others = [each for each in history.workers if each != cluster]
    for other in others:
        history.cut(other)
    history.passes(80.0)
    history.pod("good")
    history.until("good runs there", lambda: history.runs("good") == {cluster})
    broken = Broken(monkeypatch, (rebuilding, "_from_held"), lambda *args: "name='bad'" in repr(args), times=1)
    history.agent(cluster).kill()
    history.edit(cluster, POD, "good", {"metadata": {"finalizers": None}})
    history.cluster(cluster).delete(POD, "good")
    history.passes(60.0)
    history.world.start_agent(cluster)
    history.until("good runs anew", lambda: history.containers("good") == 1, 600.0)
    assert broken.raised == 1


@pytest.mark.parametrize("times", [1, FOR_GOOD], ids=["once", "until it is mended"])
def test_is_4_a_version_that_could_not_be_taken_is_taken_again(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The symptom: its container was over, no end was ever told, and it was charged for ever."""
    history = History(shown=False)
    history.pod("bad", seconds=20.0)
    history.until_runs("bad")

    def is_over(_world: Any, obj: Any) -> bool:
        return bool(obj.metadata.name == "bad" and getattr(obj.status, "phase", "") == "Succeeded")

    broken = Broken(monkeypatch, (foreign, "note"), is_over, times=times)
    history.until("it has raised", lambda: broken.raised > 0)
    if times == FOR_GOOD:
        history.passes(60.0)
        assert history.leader.charges("travels") == 500
        broken.mend()
    history.until("its end is told", lambda: history.shows("bad", "Finished"), 30.0 if times == 1 else REST_SECONDS)
    assert history.leader.charges("travels") == 0


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("times", [1, FOR_GOOD], ids=["once", "until it is mended"])
@pytest.mark.parametrize("name", ["done", "_carried_out"])
def test_is_4_an_answer_that_raises_ends_no_agent(
    monkeypatch: pytest.MonkeyPatch, name: str, times: int, kind: str
) -> None:
    """The symptom: an exception in an answer about one object ended the agent of that cluster, and each next one."""
    history = History(shown=False)
    broken = Broken(monkeypatch, (outcomes, name), lambda *args: "name='bad'" in repr(args), times=times)
    makes(history, kind)
    history.until("it has raised", lambda: broken.raised > 0)
    others_go_on(history)
    history.passes(100.0)
    assert broken.raised < 40, "with growing pauses"
    broken.mend()
    history.until("it runs", lambda: history.containers("bad", kind) == 1, REST_SECONDS)
    assert history.leader.charges("travels") == 500
    deletes(history, kind)
    history.until("it is gone", lambda: history.workload("bad", kind) is None, REST_SECONDS)
    assert history.leader.charges("travels") == 0


def test_is_4_a_read_that_raises_ends_no_agent_and_counts_as_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.job("bad")
    history.until_runs("bad", "Job")
    broken = Broken(monkeypatch, (draining, "pods_read"), lambda *_: True)
    history.delete("home", JOB, "bad")
    history.until("it has raised", lambda: broken.raised > 0)
    others_go_on(history)
    assert history.leader.charges("travels") == 500, "nothing is concluded"
    broken.mend()
    history.until("it is gone", lambda: history.workload("bad", "Job") is None, REST_SECONDS)
    assert history.leader.charges("travels") == 0


def test_is_3_an_entry_that_cannot_be_made_is_listed_as_what_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """The symptom: an entry that raised ended the agent at each of its starts."""
    history = History(shown=False)
    history.pod("bad")
    cluster = history.until_runs("bad")
    broken = Broken(monkeypatch, (inventory, "_given"), lambda found: any(each.name == "bad" for each in found))
    history.kill_agent(cluster)
    history.passes(300.0)
    assert broken.raised
    assert history.connected(cluster)
    assert history.runs("bad") == {cluster}
    assert history.leader.charges("travels") == 500
    others_go_on(history)
    history.delete("home", POD, "bad")
    history.until("it is gone", lambda: history.workload("bad") is None, REST_SECONDS)


def test_is_4_what_raises_as_a_session_goes_on_ends_that_session(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    session = history.status(cluster)["session"]
    broken = Broken(
        monkeypatch,
        (ManagerLink, "_answer_inventory"),
        lambda link, _: link._world.settings.instance.startswith(cluster),
        times=1,
    )
    history.until("it has raised", lambda: broken.raised == 1)
    history.until("there is another session", lambda: history.status(cluster)["session"] > session)
    others_go_on(history)
    assert history.runs("one") == {cluster}
