"""Histories of elastic Jobs whose queue asks checks of other controllers about each growth (SL-33), on the real cores.

The outside account judges each write: no more may run than is charged to what was admitted, and none of the first pods
is ever touched.
"""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import ADMISSION_CHECK, CLUSTER_QUEUE, WORKLOAD
from support.manager.builders import kueue_object
from support.sim.cluster import Doc
from support.sim.objects import holds
from support.sim.sized_history import SizedHistory, number

QUEUES = pytest.mark.parametrize("queue", ["travels", "stays"])
ON = {
    "type": "Active",
    "status": "True",
    "reason": "Active",
    "message": "On",
    "lastTransitionTime": "2026-11-18T11:00:00Z",
}
ACTIVE = {"conditions": [ON]}
SELECTOR = [{"name": "main", "annotations": {"provisioned.example/by": "request-2"}}]


def that_is_asked(monkeypatch: pytest.MonkeyPatch, queue: str, *, to: int = 10) -> SizedHistory:
    """Return a history of three pods that run, and whose growth a check is asked about."""
    history = SizedHistory(monkeypatch, queue=queue)
    history.begins(3)
    history.account.first = set()
    home = history.cluster("home")
    home.create(ADMISSION_CHECK, kueue_object("AdmissionCheck", "budget", {"controllerName": "example.com/b"}))
    history.edit("home", ADMISSION_CHECK, "budget", {"status": ACTIVE}, "status")
    names = [{"name": name} for name in (("dispatch",) if queue == "travels" else ()) + ("budget",)]
    history.edit("home", CLUSTER_QUEUE, queue, {"spec": {"admissionChecksStrategy": {"admissionChecks": names}}})
    history.passes(2.0)
    history.resize(to)
    history.until("it is asked", lambda: is_asked(last(history)), 20.0)
    return history


def last(history: SizedHistory) -> Doc:
    """Return the slice of the highest number."""
    return max(history.account.workloads.values(), key=number)


def is_asked(workload: Doc) -> bool:
    said = [one["state"] for one in workload.get("status", {}).get("admissionChecks", []) if one["name"] == "budget"]
    return holds(workload, "QuotaReserved") and not holds(workload, "Admitted") and said == ["Pending"]


def says(history: SizedHistory, state: str, **more: object) -> None:
    """Let the check say something of the last slice."""
    one = last(history)
    checks = [dict(each) for each in one["status"]["admissionChecks"]]
    next(each for each in checks if each["name"] == "budget").update(state=state, message="said", **more)
    history.edit("home", WORKLOAD, one["metadata"]["name"], {"status": {"admissionChecks": checks}}, "status")


@QUEUES
@pytest.mark.parametrize("led", ["by one", "by the next"])
def test_sl_33_ready_grows_it_and_nothing_before(monkeypatch: pytest.MonkeyPatch, queue: str, led: str) -> None:
    history = that_is_asked(monkeypatch, queue)
    if led == "by the next":
        history.kill_leader()
    history.passes(40.0)
    assert history.slices() == [(1, 3, 3, ""), (2, 10, 10, "")]
    assert history.running() == 3
    says(history, "Ready", podSetUpdates=SELECTOR)
    history.rests(10)


@QUEUES
def test_sl_33_retry_and_rejected_cost_what_runs_nothing(monkeypatch: pytest.MonkeyPatch, queue: str) -> None:
    history = that_is_asked(monkeypatch, queue)
    says(history, "Retry", requeueAfterSeconds=5)
    history.until("it is given back", lambda: not holds(last(history), "QuotaReserved"), 10.0)
    history.kill_leader()
    history.until("it is asked again", lambda: is_asked(last(history)), 120.0)
    says(history, "Rejected")
    history.passes(60.0)
    assert history.slices() == [(1, 3, 3, ""), (2, 10, 10, "OutOfSync")]
    assert history.running() == 3


@QUEUES
@pytest.mark.parametrize("step", range(0, 12, 3))
def test_sl_33_evicted_as_it_is_asked_and_its_leader_dies(
    monkeypatch: pytest.MonkeyPatch, queue: str, step: int
) -> None:
    """What reserves is given back before what runs has ended (Size 1), whoever leads by then."""
    history = that_is_asked(monkeypatch, queue)
    first = min(history.account.workloads.values(), key=number)
    history.edit("home", WORKLOAD, first["metadata"]["name"], {"spec": {"active": False}})
    history.passes(step / 100.0)
    history.kill_leader()
    history.until("all is stopped", lambda: history.account.may_run() == 0, 120.0)
    history.until("nothing is reserved", lambda: {one[2] for one in history.slices()} == {None}, 300.0)
