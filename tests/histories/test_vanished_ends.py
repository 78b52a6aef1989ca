"""HD-217: a Workload vanishes, its finalizer first, when its cluster has told the end and no record says so yet.

The end is acknowledged as it is written; of what is written no more the agent heard nothing, and kept the object and
its placement until its next session.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.works import following
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Stop
from histories.test_containment import uid_of
from histories.test_strays import halted
from support.on_purpose import Broken
from support.sim.cluster import Doc
from support.sim.history import History

NO_FINALIZERS: Doc = {"metadata": {"finalizers": None}}
ENDS_WHILE_HALTED = 45.0
"""It runs for so long that the next leader has it listed before, and still waits for another cluster behind that."""
TOLD_SECONDS = 120.0
ANSWERED_SECONDS = 30.0
"""Longer than a message and the clean-up behind it take, and far shorter than a session that nothing breaks."""


def attempts(history: History) -> list[Attempt]:
    return [each for manager in history.world.managers for each in manager.machine.core.attempts.values()]


def told(history: History, kind: str) -> Attempt | None:
    """Return the attempt whose end has been told and is in no record yet, None while there is none."""
    workload = history.workload("one", kind)
    uid = workload["metadata"]["uid"] if workload is not None else ""
    over = [each for each in attempts(history) if each.state is AttemptState.ENDED and not each.forgotten]
    return next((each for each in over if each.uid == uid), None)


def until_told(history: History, kind: str) -> PlacementKey:
    """Wait until its end has been told, to the moment: what is written of it is done some milliseconds later."""
    time = history.world.time
    limit = time.now + TOLD_SECONDS
    while (attempt := told(history, kind)) is None:
        assert time.step(limit), "its end has not been told"
    return attempt.key


def vanishes(history: History, kind: str) -> None:
    """Let a person take finalizer and Workload away in one moment; nobody has seen either then."""
    workload = history.workload("one", kind)
    assert workload is not None
    name = workload["metadata"]["name"]
    history.edit("home", WORKLOAD, name, NO_FINALIZERS)
    history.delete("home", WORKLOAD, name)


def until_nothing_is_left(history: History, cluster: str, key: PlacementKey) -> None:
    placements = history.agent(cluster).machine.world.placements
    history.until("its agent forgets it", lambda: key not in placements, ANSWERED_SECONDS)


def finishes(history: History, kind: str) -> None:
    """Nothing is to be done: it runs for some seconds."""
    del history, kind


def is_deactivated(history: History, kind: str) -> None:
    workload = history.workload("one", kind)
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})


def is_deleted_there(history: History, kind: str) -> None:
    (cluster,) = history.runs("one", kind)
    history.delete(cluster, JOB if kind == "Job" else POD, "one")


Ends = Callable[[History, str], None]
ENDS = pytest.mark.parametrize("ends", [finishes, is_deactivated, is_deleted_there])
KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


def running(kind: str, *, seconds: float) -> tuple[History, str]:
    history = History(shown=False)
    (history.pod if kind == "Pod" else history.job)("one", seconds=seconds)
    return history, history.until_runs("one", kind)


@ENDS
@KINDS
@pytest.mark.parametrize("later", [0.0, 0.003, 0.01, 0.03, 0.1], ids=lambda later: f"{later:g}s")
def test_hd_217_an_end_that_is_written_no_more_is_answered(later: float, kind: str, ends: Ends) -> None:
    """HD-217: before its write, while that is under way, or as it is answered by *not found*."""
    history, cluster = running(kind, seconds=20.0 if ends is finishes else 0.0)
    ends(history, kind)
    key = until_told(history, kind)
    history.passes(later)
    if history.workload("one", kind) is not None:
        vanishes(history, kind)
    until_nothing_is_left(history, cluster, key)


@KINDS
def test_hd_217_under_a_leader_that_only_read_of_the_placement(kind: str) -> None:
    """HD-217: it ended while its cluster was cut off, and is told to the next leader."""
    history, cluster = running(kind, seconds=20.0)
    history.cut(cluster)
    history.until("it has ended there", lambda: history.containers("one", kind) == 0)
    history.kill_leader()
    history.passes(30.0)
    history.mend(cluster)
    key = until_told(history, kind)
    vanishes(history, kind)
    until_nothing_is_left(history, cluster, key)


@KINDS
@pytest.mark.parametrize("breaks", [False, True], ids=["", "its stream breaks meanwhile"])
@pytest.mark.parametrize("seconds", [20.0, ENDS_WHILE_HALTED], ids=["listed as over", "listed as it ran"])
def test_hd_217_while_dispatch_is_halted_it_is_answered_when_that_goes_on(
    seconds: float, kind: str, *, breaks: bool
) -> None:
    """HD-217: a leader that waits for another cluster drops nothing; what was listed is compared again behind it."""
    history, cluster = running(kind, seconds=seconds)
    if seconds < ENDS_WHILE_HALTED:
        history.cut(cluster)
        history.until("it has ended there", lambda: history.containers("one", kind) == 0)
    other = next(name for name in history.workers if name != cluster)
    history.cut(other)
    history.kill_leader()
    history.until("the next leader waits", lambda: halted(history))
    history.mend(cluster)
    key = until_told(history, kind)
    vanishes(history, kind)
    history.passes(2.0)
    assert halted(history)
    assert key in history.agent(cluster).machine.world.placements
    if breaks:
        history.world.net.break_all(cluster)
    history.until("dispatch goes on", lambda: not halted(history))
    until_nothing_is_left(history, cluster, key)


@KINDS
def test_hd_217_what_only_a_person_called_over_is_told_to_stop(kind: str) -> None:
    """HD-217: *fenced* was not true; what its cluster did not tell itself is not acknowledged, but ended."""
    history, cluster = running(kind, seconds=0.0)
    history.cut(cluster)
    history.until_lost(cluster)
    history.say_fenced(cluster)
    key = until_told(history, kind)
    vanishes(history, kind)
    history.delete("home", JOB if kind == "Job" else POD, "one")
    history.passes(1.0)
    assert isinstance(history.leader.machine.core.sessions._owed[cluster][key], Stop)
    history.mend(cluster)
    history.until("it has stopped", lambda: history.containers("one", kind) == 0)


@KINDS
def test_hd_217_a_workload_that_could_not_be_handled_is_remembered_as_it_vanishes(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-217: of what is set aside no attempt is made; what was made anew under its name ran beside it."""
    monkeypatch.setattr(Contained, "surfaces", False)
    history, cluster = running(kind, seconds=0.0)
    uid = uid_of(history, "one", kind)
    broken = Broken(monkeypatch, (following, "case_of"), lambda _core, known, *_: known.metadata.uid == uid)
    history.kill_leader()
    history.passes(60.0)
    assert broken.raised
    assert history.runs("one", kind) == {cluster}
    vanishes(history, kind)
    history.until("another runs in its place", lambda: history.shows("one", "Admitted", kind))
    until_nothing_is_left(history, cluster, PlacementKey(uid, 1))
    history.until_runs("one", kind)


@pytest.mark.parametrize("seed", [5, 6, 17])
def test_hd_217_what_ended_at_the_users_own_object_is_answered_when_its_agent_tells_it(seed: int) -> None:
    """HD-217: an agent that is told to forget what runs, by its watch, stops it first: the user's pod would be gone."""
    history = History(seed, shown=False)
    history.pod("one", "stays", seconds=20.0)
    assert history.until_runs("one") == "local"
    key = until_told(history, "Pod")
    attempt = told(history, "Pod")
    assert attempt is not None
    assert attempt.unreported
    vanishes(history, "Pod")
    history.passes(ANSWERED_SECONDS)
    assert [pod["status"]["phase"] for pod in history.objects("home", POD)] == ["Succeeded"]
    assert key not in history.leader.local.machine.world.placements
