"""HD-7: a write that only informs, and is refused again and again, keeps nothing else of its object waiting."""

from __future__ import annotations

from gatelift.core.api.purposes import Purpose
from gatelift_kube.deciding.writes import ApiWrite, WriteError, WriteFailed
from gatelift_kube.values.resources import WORKLOAD
from support.sim.history import History


def test_hd_7_an_eviction_does_not_wait_for_what_was_reclaimed_to_be_written() -> None:
    """HD-7: the symptom: the eviction came 43 s later."""
    history, refused = History(shown=False), list[float]()
    port, inflight, time = history.leader.port, history.leader.machine.core.inflight, history.world.time
    send = port._send

    def refuses(command: ApiWrite, deadline: float) -> None:
        if inflight.purpose(command.ref) is not Purpose.RECLAIM:
            send(command, deadline)
            return
        refused.append(time.now)
        no = WriteFailed(write_id=command.write_id, error=WriteError.INVALID, message="no")
        time.after(0.01, lambda: port._answer(command, no))

    port._send = refuses  # type: ignore[method-assign]
    history.job("one", pods=2, completions=3, seconds=90.0)
    history.until_runs("one", "Job")
    history.until("what is over is refused often enough", lambda: len(refused) > 3, 200.0)
    workload = history.workload("one", "Job")
    assert workload is not None
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.passes(2.0)
    assert history.shows("one", "Evicted", "Job")
    history.until("its quota is free", lambda: history.leader.charges("travels") == 0, 60.0)
