"""HD-101, HD-102, HD-103, HD-133, HD-249, HD-250: writes that land after their time limit, given up by everybody.

How late is bounded (decision 28); within that bound nothing that is concluded may be made untrue by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gatelift_kube.deciding.writes import ApiWrite, Create, Patch
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKER_CLUSTER, WORKLOAD
from gatelift_wire.values.limits import CLOCK_DRIFT, LANDED_SECONDS
from support.sim.clock import ProcessClock
from support.sim.history import History
from support.sim.manager import SimManager
from support.sim.port import AFTER_SECONDS_MAX

LATE_SECONDS = 26.0
"""From when a lift was asked for until it lands: 16 s after its time limit."""

KINDS = pytest.mark.parametrize("kind", ["Pod", "Job"])


def _let_the_lift_land_late(history: History, kind: str, asked: list[float]) -> None:
    port, resource = history.leader.local.port, POD if kind == "Pod" else JOB
    send, time = port._send, history.world.time

    def slow(command: ApiWrite, deadline: float) -> None:
        if asked or not isinstance(command, Patch) or command.ref.resource != resource or command.subresource:
            send(command, deadline)
            return
        asked.append(time.now)
        time.after(deadline - time.now, lambda: port._unsure(command))
        time.after(LATE_SECONDS, lambda: port._land(command, answered=False))

    port._send = slow  # type: ignore[method-assign]


def _leader_dies_while_it_lets_go(kind: str) -> History:
    history, asked = History(shown=False), list[float]()
    _let_the_lift_land_late(history, kind, asked)
    (history.pod if kind == "Pod" else history.job)("one", queue="stays")
    history.until("the lift is on its way", lambda: bool(asked), 30.0)
    history.kill_leader()
    return history


@KINDS
def test_hd_101_a_late_lift_of_a_dead_leader_lets_nothing_go_that_was_stopped_since(kind: str) -> None:
    history = _leader_dies_while_it_lets_go(kind)
    history.passes(0.5)
    workload = history.workload("one", kind)
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.passes(60.0)
    assert history.containers("one", kind) == 0
    assert history.leader.charges("stays") == 0
    assert not history.shows("one", "QuotaReserved", kind)


@KINDS
def test_hd_101_a_late_lift_of_a_dead_leader_lets_nothing_go_that_was_refused_since(kind: str) -> None:
    """The next leader commits the epoch again, its agent holds no room for it; nothing is admitted after that."""
    history = _leader_dies_while_it_lets_go(kind)
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "Hold"}})
    history.passes(60.0)
    assert history.containers("one", kind) == 0
    assert history.leader.charges("stays") == 0
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "None"}})
    history.until_runs("one", kind)
    assert history.leader.charges("stays") == 500


@KINDS
def test_hd_192_what_a_late_lift_let_go_is_charged_until_it_has_stopped_though_its_user_has_deleted_it(
    kind: str,
) -> None:
    """HD-192: the next leader waited for a cluster, so it had named the object to nobody when it was deleted."""
    history, asked = History(shown=False), list[float]()
    _let_the_lift_land_late(history, kind, asked)
    history.cut("a")
    (history.pod if kind == "Pod" else history.job)("one", queue="stays", stops_in=20.0)
    history.until("the lift is on its way", lambda: bool(asked), 30.0)
    history.kill_leader()
    history.until_runs("one", kind)
    assert "a" in history.leader.machine.core.caution.halted
    history.delete("home", POD if kind == "Pod" else JOB, "one")
    history.passes(10.0)
    assert history.containers("one", kind) == 1
    assert history.leader.charges("stays") == 500
    history.until("its quota is free", lambda: history.leader.charges("stays") == 0)
    assert history.containers("one", kind) == 0


def _lift_lands_where_a_former_attempt_stands() -> History:
    """Return a history in which the next leader waits for a cluster, while what its predecessor let go runs."""
    history = History(shown=False)
    history.job("one", queue="stays")
    history.until_runs("one", "Job")
    former = history.workload("one", "Job") or {}
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "Hold"}})
    history.delete("home", WORKLOAD, former["metadata"]["name"])
    history.until("it has stopped", lambda: history.containers("one", "Job") == 0)
    history.passes(30.0)
    history.cut("a")
    asked = list[float]()
    _let_the_lift_land_late(history, "Job", asked)
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "None"}})
    history.until("the lift is on its way", lambda: bool(asked), 30.0)
    history.kill_leader()
    history.until_runs("one", "Job")
    assert "a" in history.leader.machine.core.caution.halted
    assert (history.workload("one", "Job") or {})["metadata"]["uid"] != former["metadata"]["uid"]
    return history


def _ends_when_asked(history: History) -> None:
    name = (history.workload("one", "Job") or {})["metadata"]["name"]
    history.edit("home", WORKLOAD, name, {"spec": {"active": False}})
    history.until("it is stopped when that is asked for", lambda: history.containers("one", "Job") == 0)
    history.until("its quota is free", lambda: history.leader.charges("stays") == 0)


def test_hd_249_a_late_lift_of_a_job_that_another_attempt_has_left_at_home_is_taken_up() -> None:
    """Its labels named the former attempt as the next agent listed it, so two placements stood in one place."""
    history = _lift_lands_where_a_former_attempt_stands()
    history.passes(90.0)
    assert not history.leader.machine.core.caution.halted
    assert (history.containers("one", "Job"), history.leader.charges("stays")) == (1, 500)
    assert (history.workload("one", "Job") or {})["metadata"]["annotations"]["gatelift.dev/epoch"] == "1"
    _ends_when_asked(history)


def test_hd_249_where_a_former_attempt_stands_a_late_lift_that_is_not_wanted_any_more_ends_as_any() -> None:
    history = _lift_lands_where_a_former_attempt_stands()
    _ends_when_asked(history)


def test_hd_249_where_a_former_attempt_stands_a_late_lift_goes_with_its_workload() -> None:
    history = _lift_lands_where_a_former_attempt_stands()
    history.delete("home", WORKLOAD, (history.workload("one", "Job") or {})["metadata"]["name"])
    history.passes(120.0)
    assert history.leader.charges("stays") == 500 * history.containers("one", "Job")
    history.delete("home", JOB, "one")
    history.until("nothing of it is left", lambda: history.containers("one", "Job") == 0)
    history.until("its quota is free", lambda: history.leader.charges("stays") == 0)


SEEN_SECONDS = 31.5
"""From when a reservation was asked for until its leader, which stands still for two seconds, sees that it landed."""


def _reservation_lands_late(history: History, kind: str, seconds: float) -> float:
    """Let the winner that the leader writes land so late, unheard; return when it asked for that.

    If the leader writes to that Workload before that time, it lands just before that.
    """
    leader, time, asked, late = history.leader, history.world.time, list[float](), list[ApiWrite]()
    send = leader.port._send

    def land() -> None:
        if late:
            leader.port._land(late.pop(), answered=False)

    def slow(command: ApiWrite, deadline: float) -> None:
        if late and command.ref == late[0].ref:
            land()
        if asked or not isinstance(command, Patch) or b'"clusterName"' not in command.body:
            send(command, deadline)
            return
        asked.append(time.now)
        late.append(command)
        time.after(deadline - time.now, lambda: leader.port._unsure(command))
        time.after(seconds, land)

    leader.port._send = slow  # type: ignore[method-assign]
    (history.pod if kind == "Pod" else history.job)("one")
    history.until("its reservation is on its way", lambda: bool(asked), 30.0)
    return asked[0]


def _goes_on(history: History, leader: SimManager, kind: str) -> None:
    assert not [each for each in history.world.time.trace if "Gatelift has reserved none" in each]
    assert history.leader is leader
    history.edit("home", CLUSTER_QUEUE, "travels", {"spec": {"stopPolicy": "None"}})
    history.until_runs("one", kind)
    assert (history.containers("one", kind), history.leader.charges("travels")) == (1, 500)


@KINDS
def test_hd_250_a_reservation_that_landed_in_time_and_is_seen_later_is_its_leaders_own(kind: str) -> None:
    history = History(shown=False)
    leader, time = history.leader, history.world.time
    asked = _reservation_lands_late(history, kind, LANDED_SECONDS - 0.5)
    history.passes(asked + LANDED_SECONDS - 1.0 - time.now)
    leader.process.pause()
    history.passes(asked + SEEN_SECONDS - time.now)
    leader.process.wake()
    history.passes(20.0)
    _goes_on(history, leader, kind)


@KINDS
def test_hd_250_by_a_fast_clock_a_reservation_that_lands_as_late_as_it_can_is_its_leaders_own(kind: str) -> None:
    """It had been given up by then, and was written back as a stranger's: its epoch given back (seed 8907358)."""
    history = History(shown=False)
    leader, time = history.leader, history.world.time
    leader.process.clock = ProcessClock(offset=-CLOCK_DRIFT * time.now, rate=1.0 + CLOCK_DRIFT)
    asked = _reservation_lands_late(history, kind, LANDED_SECONDS - 0.005)
    history.passes(5.0)
    for cluster in history.world.names:
        history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": True}})
    history.passes(asked + SEEN_SECONDS - time.now)
    for cluster in history.world.names:
        history.edit("home", WORKER_CLUSTER, cluster, {"spec": {"cordoned": False}})
    history.passes(20.0)
    _goes_on(history, leader, kind)


@KINDS
def test_hd_133_a_late_lift_that_lands_just_before_the_write_that_is_to_defeat_it_is_taken_up(kind: str) -> None:
    """It runs as its record says, admitted and charged: nobody has asked for its end."""
    history, late = History(shown=False), list[Callable[[], None]]()
    port, resource = history.leader.local.port, POD if kind == "Pod" else JOB
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if late or not isinstance(command, Patch) or command.ref.resource != resource or command.subresource:
            send(command, deadline)
            return
        late.append(lambda: port._land(command, answered=False))

    port._send = slow  # type: ignore[method-assign]
    (history.pod if kind == "Pod" else history.job)("one", queue="stays")
    history.until("the lift is on its way", lambda: bool(late), 30.0)
    history.kill_leader()
    history.until("another leads", history.leads, 60.0)
    next_port = history.leader.local.port
    next_send = next_port._send

    def behind(command: ApiWrite, deadline: float) -> None:
        if isinstance(command, Patch) and command.ref.resource == resource and not command.subresource and late:
            late.pop()()
        next_send(command, deadline)

    next_port._send = behind  # type: ignore[method-assign]
    made = history.home.look(resource, "one")
    history.passes(120.0)
    found = history.home.look(resource, "one")
    assert not late
    assert made is not None
    assert found is not None
    assert found["metadata"]["uid"] == made["metadata"]["uid"]
    assert "deletionTimestamp" not in found["metadata"]
    assert "gatelift.dev/stopping" not in found["metadata"].get("labels", {})
    workload = history.workload("one", kind)
    assert workload is not None
    assert workload["metadata"]["annotations"]["gatelift.dev/epoch"] == "1", "it was never ended"
    assert history.containers("one", kind) == 1
    assert history.leader.charges("stays") == 500
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.until("it is stopped when that is asked for", lambda: history.containers("one", kind) == 0)
    history.until("its quota is free", lambda: history.leader.charges("stays") == 0)


@KINDS
def test_hd_102_the_last_lift_under_a_lease_has_landed_before_a_person_can_say_fenced(kind: str) -> None:
    """Each lift is given up after its time limit; the last one lands as late as one can, all others never."""
    history = History(shown=False)
    time, resource = history.world.time, POD if kind == "Pod" else JOB
    asked: list[tuple[str, ApiWrite, float]] = []

    def slow(name: str) -> None:
        port = history.agent(name).port
        send = port._send

        def _send(command: ApiWrite, deadline: float) -> None:
            if not isinstance(command, Patch) or command.ref.resource != resource:
                send(command, deadline)
                return
            asked.append((name, command, deadline))
            history.world.net.cut.add(name)  # frames stall, and no end notices
            time.after(deadline - time.now, lambda: port._unsure(command))
            late = deadline + AFTER_SECONDS_MAX - time.now
            time.after(late, lambda: port._land(command, answered=False) if asked[-1][1] is command else None)

        port._send = _send  # type: ignore[method-assign]

    for name in history.workers:
        slow(name)
    (history.pod if kind == "Pod" else history.job)("one")
    history.until("a lift is asked for", lambda: bool(asked), 60.0)
    cluster = asked[0][0]
    history.until_lost(cluster)
    assert history.runs("one", kind) == {cluster}, "it has landed by now, and who looks sees it"
    assert len(asked) > 1, "it was asked for as long as the lease allowed it"


def test_hd_103_a_create_that_lands_while_its_placement_is_cleaned_up_is_removed() -> None:
    """The first create of a pod lands when what the second one made has gone, and before the answer that it is gone."""
    history = History(shown=False)
    time = history.world.time
    late: dict[str, Any] = {}

    def slow(name: str) -> None:
        port = history.agent(name).port
        send = port._send

        def _send(command: ApiWrite, deadline: float) -> None:
            if isinstance(command, Create) and command.ref.resource == POD and not late:
                late["create"] = lambda: port._land(command, answered=False)
                time.after(deadline - time.now, lambda: port._unsure(command))
            elif isinstance(command, Patch) and late and b"finalizers/" in command.body and b"remove" in command.body:
                time.after(0.01, lambda: port._land(command, answered=False))
                time.after(0.5, late.pop("create", lambda: None))
                time.after(8.0, lambda: port._unsure(command))
                late["landed"] = True
            else:
                send(command, deadline)

        port._send = _send  # type: ignore[method-assign]

    for name in history.workers:
        slow(name)
    history.pod("one")
    cluster = history.until_runs("one")
    history.workers[cluster].delete(POD, "one", grace_seconds=1)
    history.passes(120.0)
    assert late == {"landed": True}
    assert history.runs("one") not in (set(), {cluster}), "it was evicted, and runs elsewhere"
    assert history.objects(cluster, POD) == []


def _reserved_as_its_leader_dies(history: History) -> list[Callable[[], None]]:
    """Let the leader reserve quota for `late`, and die; return what lets that write land."""
    landing, port = list[Callable[[], None]](), history.leader.port
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        is_of = isinstance(command, Patch) and command.ref.key.name.startswith("pod-late")
        body = msgspec.json.decode(command.body) if isinstance(command, Patch) and is_of else {}
        if not landing and body.get("status", {}).get("admission"):
            landing.append(lambda: port._land(command, answered=False))
        elif not landing:
            send(command, deadline)

    port._send = slow  # type: ignore[method-assign]
    history.pod("late", "stays", "1000m")
    history.until("its reservation is on its way", lambda: bool(landing), 30.0)
    history.kill_leader()
    return landing


def test_a_reservation_of_a_dead_leader_that_lands_late_runs_in_nobodys_room() -> None:
    """Its cluster holds no room for it any more, and it is given back: the record says too much for that moment alone.

    The outside check knows that (drawn seed 9710679): nobody counts with what was asked by one who leads no more.
    """
    history = History()
    history.pod("first", "stays", "1000m", seconds=12.0)
    history.until("it runs", lambda: history.containers("first") == 1)
    history.pod("waits", "stays", "1500m")
    history.passes(2.0)
    landing = _reserved_as_its_leader_dies(history)
    history.until("another one leads", history.leads, 60.0)
    port, time = history.leader.port, history.world.time
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if not command.ref.key.name.startswith("pod-late"):
            send(command, deadline)
            return
        time.after(5.0, lambda: send(command, deadline))  # what it says of the other one

    port._send = slow  # type: ignore[method-assign]
    history.until("who waited first has got the room", lambda: history.shows("waits", "QuotaReserved"), 60.0)
    landing[0]()
    assert history.shows("late", "QuotaReserved")
    history.until("it is given back", lambda: not history.shows("late", "QuotaReserved"), 30.0)
    history.passes(60.0)
    assert history.containers("late") == 0
    assert history.leader.charges("stays") == 1500
    history.delete("home", POD, "waits")
    history.until("it runs in its turn", lambda: history.containers("late") == 1, 60.0)
