"""HD-207: a term in a WorkerCluster that no leader has written: what its link writes, and when."""

from __future__ import annotations

import msgspec

from gatelift.core.api import events
from gatelift.core.clusters.link_values import HigherTermRead
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import WORKER_CLUSTER
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api


def state(api: Api, term: int) -> None:
    status = msgspec.to_builtins(api.get("w1").status)
    api.put("w1", status={**status, "term": term})


def forge(api: Api, manager: Manager, term: int) -> WorkerCluster:
    """Let somebody write a term into the status; the manager sees it."""
    state(api, term)
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    return api.get("w1")


def test_hd_207_what_no_leader_has_written_is_written_over_and_nothing_before_that() -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    before = manager.writes
    found = forge(api, manager, 9)
    manager.pass_time(5)
    assert api.get("w1").status.term == 9, "as long as nobody has answered"
    manager.event(events.TermUnconfirmed(found=found))
    manager.pass_time(3)
    assert api.get("w1").status.term == 3
    assert manager.writes > before
    assert "LinkBroken" not in manager.kinds()


def test_hd_207_a_later_version_is_asked_about_itself() -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    found = forge(api, manager, 9)
    forge(api, manager, 10)
    manager.event(events.TermUnconfirmed(found=found))
    manager.pass_time(3)
    assert api.get("w1").status.term == 10
    manager.event(events.TermUnconfirmed(found=api.get("w1")))
    manager.pass_time(3)
    assert api.get("w1").status.term == 3


def test_hd_207_who_begins_to_lead_below_the_term_that_stands_there_asks_and_writes_nothing() -> None:
    api = Api()
    Manager(api, term=1, instance="m0").dial(1)
    state(api, 9)
    manager = Manager(api, term=3)
    assert [each.term for each in manager.upcalls if isinstance(each, HigherTermRead)] == [9]
    before = api.get("w1")
    manager.dial(2)
    manager.pass_time(100)
    assert (api.get("w1"), manager.agents[2].live) == (before, False)
    manager.event(events.TermUnconfirmed(found=before))
    manager.pass_time(3)
    assert api.get("w1").status.term == 3
