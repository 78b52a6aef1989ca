"""The account of what was released early (KEP-6143): by accepted deletions, and nothing starts under it (QR-11)."""

from __future__ import annotations

import pytest

from support.sim.account import Account, AccountError
from support.sim.attribution import LOCAL, Doc

NAME = "work"


def pod(uid: str, *, leaves: bool = False, phase: str = "Running") -> Doc:
    owner = {"kind": "Job", "name": NAME, "uid": "job", "controller": True}
    meta: Doc = {"name": f"{NAME}-{uid}", "namespace": "team", "uid": uid, "ownerReferences": [owner], "labels": {}}
    if leaves:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    requests = {"requests": {"cpu": "1"}}
    return {
        "metadata": meta,
        "spec": {"containers": [{"resources": requests}], "nodeName": "n"},
        "status": {"phase": phase},
    }


def job(*, suspended: bool) -> Doc:
    template = {"spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
    meta = {"name": NAME, "namespace": "team", "uid": "job", "labels": {}}
    return {"metadata": meta, "spec": {"suspend": suspended, "parallelism": 2, "completions": 9, "template": template}}


def workload(*, released: bool = False) -> Doc:
    assigned = [{"name": "main", "count": 2, "resourceUsage": {"cpu": "2"}}]
    said = [{"type": "QuotaReserved", "status": "True"}]
    if released:
        said.append({"type": "gatelift.dev/Draining", "status": "True", "reason": "QuotaReleased"})
    return {
        "metadata": {
            "name": "w",
            "namespace": "team",
            "uid": "w-uid",
            "ownerReferences": [{"kind": "Job", "name": NAME, "uid": "job", "controller": True}],
        },
        "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 2}]},
        "status": {"conditions": said, "admission": {"clusterQueue": "main", "podSetAssignments": assigned}},
    }


def draining(*, leaving: tuple[bool, bool]) -> Account:
    """Return an account of a Job that was suspended and whose two pods run on."""
    account = Account()
    account.workload(workload(), 0.0)
    account.object(LOCAL, "Job", job(suspended=False), 0.0)
    for number, leaves in enumerate(leaving):
        account.object(LOCAL, "Pod", pod(f"p{number}"), 0.0)
        account.object(LOCAL, "Pod", pod(f"p{number}", leaves=leaves), 1.0)
    account.object(LOCAL, "Job", job(suspended=True), 1.0)
    return account


def test_qr_11_what_leaves_runs_on_as_ghost_and_the_ghost_ends_with_it() -> None:
    account = draining(leaving=(True, True))
    account.workload(workload(released=True), 2.0)
    assert account.totals() == {"main": (2000, 2000)}
    account.compare(lambda _queue: 0)
    assert not account.ghosts(), "somebody granted it"
    account.object(LOCAL, "Pod", pod("p0", leaves=True, phase="Failed"), 3.0)
    assert account.totals() == {"main": (1000, 1000)}


def test_qr_11_red_on_a_release_while_one_of_its_pods_goes_on() -> None:
    account = draining(leaving=(True, False))
    with pytest.raises(AccountError, match="nobody has asked these to leave"):
        account.workload(workload(released=True), 2.0)


def test_qr_11_red_on_a_pod_that_starts_under_what_was_released() -> None:
    account = draining(leaving=(True, True))
    account.workload(workload(released=True), 2.0)
    account.object(LOCAL, "Pod", pod("p0", leaves=True, phase="Failed"), 3.0)
    with pytest.raises(AccountError, match="ghost 0m"):
        account.object(LOCAL, "Pod", pod("p2"), 4.0)
