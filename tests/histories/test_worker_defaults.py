"""Histories of what a worker adds to what pods ask for, on both real cores: LimitRanges, RuntimeClasses, webhooks.

The cores are real, the admission plugin is a line here: it sets a request where a container has none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER
from support.manager.builders import a_job, a_pod
from support.sim.cluster import TEAM, Doc, SimCluster
from support.sim.history import History
from support.sim.manager import REQUEUE_MAX_SECONDS
from support.sim.port import die_after

AMOUNT = "1500m"
MINUTES = 600.0
PLACEMENTS_MAX = 8 + MINUTES / REQUEUE_MAX_SECONDS
"""In `MINUTES`: the pauses double up to the longest, which in an installation is an hour."""


def _requests_by_default(spec: Doc) -> None:
    for container in spec["containers"]:
        container.setdefault("resources", {}).setdefault("requests", {}).setdefault("cpu", AMOUNT)


def _overhead(spec: Doc) -> None:
    spec["overhead"] = {"cpu": AMOUNT}


def _sidecar(spec: Doc) -> None:
    beside = {"name": "beside", "image": "i", "restartPolicy": "Always", "resources": {"requests": {"cpu": AMOUNT}}}
    spec.setdefault("initContainers", []).append(beside)


ADDED = {"LimitRange": _requests_by_default, "RuntimeClass": _overhead, "webhook": _sidecar}


def _adds(cluster: SimCluster, change: Callable[[Doc], None]) -> None:
    """Let a cluster change each pod that is made in the team's namespace, also one that is only asked about."""
    create = cluster.store.create

    def admitted(kind: Any, namespace: str, document: Doc, *args: Any, **more: Any) -> Any:
        if document.get("kind") == "Pod" and namespace == TEAM:
            change(document["spec"])
        return create(kind, namespace, document, *args, **more)

    cluster.store.create = admitted  # type: ignore[method-assign,assignment]


def _make(history: History, kind: str, name: str) -> None:
    """Make what asks for nothing."""
    document = a_pod(name).document() if kind == "Pod" else a_job(name, parallelism=2, completions=2, cpu="1")
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "travels"
    for container in (document["spec"] if kind == "Pod" else document["spec"]["template"]["spec"])["containers"]:
        container.pop("resources", None)
    document.pop("status", None)
    history.home.create(POD if kind == "Pod" else JOB, document)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
@pytest.mark.parametrize("by", ADDED)
def test_hd_151_what_a_worker_adds_to_requests_never_runs_uncharged(by: str, kind: str) -> None:
    history = History()
    for worker in history.workers.values():
        _adds(worker, ADDED[by])
    _make(history, kind, "one")
    history.passes(60.0)
    assert history.runs("one", kind) == set()
    said = str(history.workload("one", kind))
    for part in ("RequestsRaised", "cpu", AMOUNT, "LimitRange", "RuntimeClass"):
        assert part in said


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_151_a_cluster_that_adds_to_requests_is_left_for_one_that_does_not(kind: str) -> None:
    history = History()
    first, other = history.workers
    _adds(history.workers[first], _requests_by_default)
    history.edit("home", WORKER_CLUSTER, other, {"spec": {"cordoned": True}})
    history.passes(5.0)
    _make(history, kind, "one")
    history.until("it is refused", lambda: "RequestsRaised" in str(history.workload("one", kind)))
    history.edit("home", WORKER_CLUSTER, other, {"spec": {"cordoned": False}})
    assert history.until_runs("one", kind) == other


def test_hd_151_what_every_cluster_adds_to_is_tried_with_longer_and_longer_pauses() -> None:
    history = History()
    for worker in history.workers.values():
        _adds(worker, _requests_by_default)
    _make(history, "Job", "one")
    history.passes(MINUTES)
    workload = history.workload("one", "Job")
    assert workload is not None
    assert 2 <= int(workload["metadata"]["annotations"]["gatelift.dev/epoch"]) <= PLACEMENTS_MAX
    assert history.runs("one", "Job") == set()


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_151_what_was_asked_for_at_home_runs_where_the_worker_adds_no_more(kind: str) -> None:
    history = History()
    for worker in history.workers.values():
        _adds(worker, _requests_by_default)
    if kind == "Pod":
        history.pod("one", cpu="500m")
    else:
        history.job("one", cpu="500m", pods=2)
    history.until_runs("one", kind)
    history.passes(60.0)
    assert history.shows("one", "Admitted", kind)


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_hd_151_the_agent_that_comes_after_the_create_knows_what_was_granted(kind: str) -> None:
    history = History()
    for worker in history.workers.values():
        _adds(worker, _requests_by_default)
    for name in history.workers:
        die_after(history.agent(name).ports, partial(history.kill_agent, name), 1, POD if kind == "Pod" else JOB)
    _make(history, kind, "one")
    history.passes(120.0)
    assert history.runs("one", kind) == set()
    assert "RequestsRaised" in str(history.workload("one", kind))
