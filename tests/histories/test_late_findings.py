"""What a dead leader wrote of a recovery and lands late takes no later finding away."""

from __future__ import annotations

from gatelift.core.state.recovery_values import ANNOTATION_RECOVERY
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import WORKER_CLUSTER
from histories.test_recovery import until_found
from support.sim.history import History
from support.sim.restoring import moved_to_b, restore


def hold_back(history: History) -> list[Patch]:
    """Keep back what the leader writes of its recovery; return where it is kept."""
    port, kept = history.leader.port, list[Patch]()
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        told = isinstance(command, Patch) and command.ref.resource == WORKER_CLUSTER
        if told and isinstance(command, Patch) and ANNOTATION_RECOVERY.encode() in command.body:
            kept.append(command)
        else:
            send(command, deadline)

    port._send = slow  # type: ignore[method-assign]
    return kept


def test_a_finding_that_a_dead_leader_wrote_and_that_lands_late_takes_the_next_one_not_away() -> None:
    history = History(shown=False)
    copy = moved_to_b(history)
    for cluster in ("a", "b"):
        history.cut(cluster)
    restore(history, copy)
    history.until("somebody leads", history.leads)
    first = history.leader
    late = hold_back(history)
    for cluster in ("a", "b"):
        history.mend(cluster)
    history.until("it has found the restore", lambda: bool(late))
    first.kill()
    finding = until_found(history)
    history.passes(20.0)
    history.kill_leader()
    first.port._land(late[0], answered=False)
    assert until_found(history).since == finding.since
    history.until("another leads", history.leads)
    history.passes(5.0)
    assert until_found(history).since == finding.since
