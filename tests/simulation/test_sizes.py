"""The outside account knows sizes (SL-08), and users resize in drawn histories, which come to their end (SL-83)."""

from __future__ import annotations

from typing import Any

import pytest

from support.sim.account import Account, AccountError
from support.sim.attribution import LOCAL, Attribution, Doc
from support.sim.objects import job_is_free, pod_is_free
from support.sim.world import PLANS, SIZES_FROM, SimWorld

SEEDS = tuple(range(4))
FIRST, NEXT, JOB_UID = "w-1", "w-2", "job"


def a_slice(uid: str, number: int, pods: int, *, reserved: bool = True, reason: str = "", owner: str = JOB_UID) -> Doc:
    """Return a slice of the chain of `FIRST` with quota for so many pods of one CPU, in the pod set main."""
    notes = {"kueue.x-k8s.io/elastic-job": "true", "gatelift.dev/size": str(number), "gatelift.dev/epoch": "1"}
    if uid != FIRST:
        notes["gatelift.dev/chain"] = FIRST
    conditions = [{"type": "QuotaReserved", "status": "True" if reserved else "False"}]
    if reason:
        conditions.append({"type": "Finished", "status": "True", "reason": reason})
    status: Doc = {"conditions": conditions}
    if reserved:
        usage = {"name": "main", "count": pods, "resourceUsage": {"cpu": str(pods)}}
        status |= {"admission": {"clusterQueue": "main", "podSetAssignments": [usage]}, "clusterName": LOCAL}
    owners = [{"kind": "Job", "name": "work", "uid": owner, "controller": True}]
    meta = {"name": uid, "namespace": "team", "uid": uid, "annotations": notes, "ownerReferences": owners}
    return {
        "metadata": meta,
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": pods}]},
        "status": status,
    }


def a_pod(number: int, *, gated: bool, pod_set: str = "main", **status: Any) -> Doc:
    owners = [{"kind": "Job", "name": "work", "uid": JOB_UID, "controller": True}]
    meta = {
        "name": f"work-{number}",
        "namespace": "team",
        "uid": f"pod-{number}",
        "ownerReferences": owners,
        "labels": {"kueue.x-k8s.io/podset": pod_set},
    }
    gates = [{"name": "kueue.x-k8s.io/elastic-job"}] if gated else []
    containers = [{"resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": meta, "spec": {"containers": containers, "schedulingGates": gates}, "status": status}


def begun(pods: int, *, lifted: int) -> Account:
    """Return the account of an elastic Job at home of five pods, of which some are let go, with quota for `pods`."""
    account = Account()
    account.workload(a_slice(FIRST, 1, pods), 0.0)
    gate = {"spec": {"containers": [], "schedulingGates": [{"name": "kueue.x-k8s.io/elastic-job"}]}}
    meta = {"name": "work", "namespace": "team", "uid": JOB_UID}
    job = {"metadata": meta, "spec": {"suspend": False, "parallelism": 5, "template": gate}}
    assert job_is_free(job)
    account.object(LOCAL, "Job", job, 0.0)
    for number in range(5):
        account.object(LOCAL, "Pod", a_pod(number, gated=True), 0.0)
    for number in range(lifted):
        account.object(LOCAL, "Pod", a_pod(number, gated=False), 0.0)
    return account


def test_sl_08_pods_that_wait_at_their_gate_may_not_run_however_many_their_job_makes() -> None:
    account = begun(2, lifted=2)
    assert not pod_is_free(a_pod(4, gated=True))
    with pytest.raises(AccountError, match="main: 3 of 2"):
        account.object(LOCAL, "Pod", a_pod(2, gated=False), 1.0)


def test_sl_08_a_chain_is_charged_once_for_its_record() -> None:
    """Two slices of it with quota are one charge, that of the higher number."""
    account = begun(2, lifted=2)
    account.workload(a_slice(NEXT, 2, 3), 1.0)
    account.object(LOCAL, "Pod", a_pod(2, gated=False), 2.0)
    with pytest.raises(AccountError, match="main: 4 of 3"):
        account.object(LOCAL, "Pod", a_pod(3, gated=False), 3.0)


def test_sl_08_who_finishes_the_slice_before_frees_nothing_and_charges_nothing() -> None:
    account = begun(2, lifted=2)
    account.workload(a_slice(NEXT, 2, 3), 1.0)
    account.workload(a_slice(FIRST, 1, 2, reason="WorkloadSliceReplaced"), 2.0)
    account.object(LOCAL, "Pod", a_pod(2, gated=False), 3.0)
    account.workload(a_slice(FIRST, 1, 2, reason="WorkloadSliceReplaced"), 4.0, removed=True)
    assert account.totals()["main"] == (3000, 0)


def test_sl_08_the_finish_of_a_slice_before_the_next_one_has_quota_is_no_charge() -> None:
    account = begun(2, lifted=2)
    account.workload(a_slice(NEXT, 2, 3, reserved=False), 1.0)
    with pytest.raises(AccountError, match="ask for 2000m"):
        account.workload(a_slice(FIRST, 1, 2, reason="WorkloadSliceReplaced"), 2.0)


def test_sl_08_a_charge_that_is_lowered_before_its_pods_have_stopped_is_noticed() -> None:
    account = begun(3, lifted=3)
    account.object(LOCAL, "Pod", {**a_pod(2, gated=False, phase="Succeeded")}, 1.0)
    account.workload(a_slice(FIRST, 2, 2), 2.0)
    with pytest.raises(AccountError, match="main: 2 of 1"):
        account.workload(a_slice(FIRST, 3, 1), 3.0)


def stops(account: Account, number: int) -> None:
    """Let a pod that runs on a node be deleted."""
    pod = a_pod(number, gated=False)
    pod["spec"]["nodeName"] = "node"
    pod["metadata"]["deletionTimestamp"] = "2026-11-30T00:00:00Z"
    account.object(LOCAL, "Pod", pod, 1.0)


def test_sl_08_a_surplus_that_stops_is_a_ghost_once_its_charge_was_lowered_and_makes_no_room() -> None:
    """By *OnTerminating*: what was free before stays free, and who comes in its place is charged."""
    account = begun(3, lifted=3)
    stops(account, 2)
    account.workload(a_slice(FIRST, 2, 2), 2.0)
    assert account.totals()["main"] == (3000, 1000)
    with pytest.raises(AccountError, match="main: 3 of 2"):
        account.object(LOCAL, "Pod", a_pod(3, gated=False), 3.0)


def test_sl_08_by_on_terminal_nothing_is_free_before_it_has_stopped() -> None:
    account = begun(3, lifted=3)
    account.on_terminal = True
    stops(account, 2)
    with pytest.raises(AccountError, match="main: 3 of 2"):
        account.workload(a_slice(FIRST, 2, 2), 2.0)


def test_sl_23_a_size_of_none_lets_nothing_run() -> None:
    account = begun(1, lifted=0)
    account.workload(a_slice(FIRST, 2, 0), 1.0)
    with pytest.raises(AccountError, match="main: 1 of 0"):
        account.object(LOCAL, "Pod", a_pod(0, gated=False), 2.0)


def test_sl_08_room_of_one_pod_set_is_none_of_another() -> None:
    account = begun(2, lifted=0)
    account.object(LOCAL, "Pod", a_pod(7, gated=True, pod_set="other"), 1.0)
    with pytest.raises(AccountError, match="other: 1 of 0"):
        account.object(LOCAL, "Pod", a_pod(7, gated=False, pod_set="other"), 2.0)


def test_sl_49_a_slice_of_another_object_is_none_of_the_chain_that_it_names() -> None:
    whose = Attribution()
    whose.workload(a_slice(FIRST, 1, 2))
    whose.workload(a_slice(NEXT, 2, 3, owner="another"))
    assert (whose.chain_of(NEXT), whose.record_of(FIRST)) == (NEXT, FIRST)


def test_sl_40_a_reservation_of_an_epoch_that_has_ended_is_no_record() -> None:
    whose = Attribution()
    first = a_slice(FIRST, 1, 2)
    first["metadata"]["annotations"]["gatelift.dev/epoch"] = "2"
    whose.workload(first)
    whose.workload(a_slice(NEXT, 2, 3))
    assert whose.record_of(FIRST) == FIRST


@pytest.mark.parametrize("seed", SEEDS)
def test_sl_83_users_resize_in_every_plan(seed: int) -> None:
    """With groups or without, under all faults: what is charged is never less than what may run, and all ends."""
    world = SimWorld(SIZES_FROM + seed, PLANS[seed % len(PLANS)]).run()
    assert world.resizers is not None
    assert world.resizers.resized
    assert world.account.checks
