"""HD-361: a record restored to when its quota was free while it drained, and the Workload ran again since."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD, WORKLOAD
from histories.test_recovery import cordon, recovered, say, until_found
from histories.test_release import WHOLE, a_world, drains, prioritised, workload
from support.sim.history import History
from support.sim.port import ApiPort
from support.sim.restoring import backup, restore

ALL = WHOLE["travels"]


def ran_again() -> History:
    """Return a restored history: `low` drained released on a as of the backup, and runs in its next epoch on b."""
    history = a_world(workers=("a", "b", "c"), seed=11)
    history.passes(1.0)
    cordon(history, "b")
    cordon(history, "c")
    prioritised(history, "low", 1, stops=25.0)
    assert history.until_runs("low") == "a"
    prioritised(history, "high", 9, stops=1.0)
    history.until("its quota is free", lambda: drains(history) and history.shows("high", "QuotaReserved"), 10.0)
    kept = backup(history)
    history.until("it has stopped", lambda: not history.containers("low"), 60.0)
    history.passes(5.0)
    history.delete("home", POD, "high")
    cordon(history, "a")
    cordon(history, "b", on=False)
    history.until("it runs again", lambda: history.containers("low") == 1, 60.0)
    assert history.runs("low") == {"b"}
    history.passes(90.0)
    restore(history, kept)
    history.passes(1.0)
    cordon(history, "c", on=False)
    history.world.truth.check_quota = lambda *_, **__: None  # type: ignore[method-assign]  # `high` was granted then
    return history


def slow_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each write that gives the reservation of `low` back take long."""
    send = ApiPort._send

    def sent(port: ApiPort, command: ApiWrite, deadline: float) -> None:
        of_low = command.ref.resource == WORKLOAD and "-low-" in command.ref.key.name
        if of_low and isinstance(command, Patch) and b'"type":"QuotaReserved","status":"False"' in command.body:
            port._timeline.after(8.0, lambda: port._land(command, answered=True))
            return
        send(port, command, deadline)

    monkeypatch.setattr(ApiPort, "_send", sent)


def test_hd_361_what_runs_in_a_later_epoch_is_charged_as_soon_as_it_is_named_though_its_record_was_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = ran_again()
    slow_ends(monkeypatch)
    uid = workload(history, "low")["metadata"]["uid"]
    finding = until_found(history)

    def charged() -> int:
        if not (history.leads() and history.connected("b")):
            return ALL  # nobody decides, or it is yet to be named
        usage = history.leader.machine.core.ledger.usage(uid)
        return sum(amount for (_, resource), amount in usage.items() if resource == "cpu")

    say(history, finding)
    for _ in range(120):
        history.passes(1.0)
        assert history.runs("low") == {"b"}
        assert charged() == ALL
        assert history.containers("high") == 0, "there is no room beside what runs"
    assert recovered(history)
