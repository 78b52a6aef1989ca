"""HD-717, HD-718: what Leases of kubelets prove of what vanished unseen (P10), and when they are read at all."""

from __future__ import annotations

import asyncio
import random

import pytest

from gatelift_agent.adapters.kubelet_leases import OF_KUBELETS, KubeletLeases
from gatelift_agent.core.values.events import KubeletsRead
from gatelift_agent.core.watched.nodes import SILENT_SECONDS, Nodes
from gatelift_agent.core.watched.renewals import BREAK_SECONDS, LeaseRenewals
from gatelift_kube.api.client import Client
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.retry import RetryPolicy
from gatelift_kube.process.clock import monotonic
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import JOB, LEASE
from gatelift_wire.values.limits import KUBELET_MARGIN_SECONDS
from support.agent.namespaces import node_heard
from support.agent.size_stage import SizeStage
from support.agent.values import UNSEEN_SECONDS
from support.servers.fake_apiserver import FakeApiServer, status_of

from .test_agent_sizes import grown
from .test_agent_unseen_nodes import _node

SURE = 30.0 + KUBELET_MARGIN_SECONDS
EVERY = 10.0
QUICK = RetryPolicy(tries=2, first_seconds=0.001, max_seconds=0.01)


def _doubting() -> Nodes:
    """Return nodes of which none repeats its status, and a pod that vanished on one of them at 0."""
    nodes = Nodes()
    nodes.seen(*_node("node-1", "t0"), 0.0)
    nodes.synced()
    nodes.vanished("u", "node-1", 30.0, 0.0)
    return nodes


def _renews(nodes: Nodes, begin: float, end: float) -> None:
    """Have it renew every ten seconds, and each list see that a second later."""
    at = begin
    while at <= end:
        nodes.renewed([("node-1", f"at {at}"), ("node-9", "of nobody")], at, at + 1.0)
        at += EVERY


def test_hd_717_a_ready_node_that_renews_without_a_break_for_grace_and_margin_was_heard_of() -> None:
    nodes = _doubting()
    _renews(nodes, 0.0, SURE + 20.0)
    assert nodes.may_run("u", SURE + 21.0), (
        "the first renewal that is new came at 11, and grace and margin since are not over"
    )
    _renews(nodes, SURE + 30.0, SURE + 30.0)
    assert not nodes.may_run("u", SURE + 31.0)


def test_hd_718_a_cut_between_two_renewals_begins_it_anew() -> None:
    """HD-718: the node was cut off while its pod was removed; its Lease is back before its Node says so."""
    nodes = _doubting()
    _renews(nodes, 0.0, 20.0)
    nodes.renewed([("node-1", "at 20.0")], 200.0, 201.0)
    _renews(nodes, 210.0, 210.0 + SURE)
    assert nodes.may_run("u", 211.0 + SURE)
    _renews(nodes, 220.0 + SURE, 230.0 + SURE)
    assert not nodes.may_run("u", 231.0 + SURE)


def test_hd_718_a_node_that_is_not_ready_or_renews_no_more_proves_nothing() -> None:
    nodes = _doubting()
    _renews(nodes, 0.0, SURE - EVERY)
    for late in (0.0, 50.0, 100.0):
        nodes.renewed([("node-1", f"at {SURE - EVERY}")], SURE + late, SURE + late)
    assert nodes.may_run("u", SURE + 101.0), "all that it renewed it renewed before grace and margin were over"
    unready = _doubting()
    unready.seen(*_node("node-1", ""), 1.0)
    _renews(unready, 0.0, 2 * SURE)
    assert unready.may_run("u", 2 * SURE)


def test_hd_718_a_renewal_counts_from_the_list_that_did_not_show_it() -> None:
    """HD-718: a process that stood still takes an old answer late: that it came late makes no renewal younger."""
    renewals = LeaseRenewals()
    renewals.shown("1", 0.0, 1.0)
    renewals.shown("2", 10.0, 500.0)
    assert (renewals.made_after, renewals.steady_from) == (0.0, 500.0)
    renewals.shown("3", 501.0, 502.0)
    assert renewals.steady_from == 502.0, "it may have been away from 10 to 501"
    assert not renewals.reached(0.0, SURE)
    assert BREAK_SECONDS > 3 * EVERY


def test_hd_717_leases_are_in_question_while_something_is_doubted_and_not_for_ever() -> None:
    nodes = Nodes()
    assert not nodes.in_question(0.0)
    nodes = _doubting()
    assert nodes.in_question(0.0)
    assert not nodes.in_question(SURE + SILENT_SECONDS)
    _renews(nodes, 0.0, 2 * SURE)
    assert not nodes.may_run("u", 2 * SURE)
    assert not nodes.in_question(2 * SURE)


# --- the agent -----------------------------------------------------------------------------------------------------


def _killed_as_it_grows() -> SizeStage:
    """Return a stage on which an agent died with seven new pods there, and the next one has taken the size."""
    stage = grown(count=3)
    node_heard(stage, 0)
    stage.change(JOB, "j", {"status": {"startTime": "1970-01-01T00:16:40Z"}}, "status")
    stage.pass_seconds(2.0)
    stage.resize(2, main=10)
    stage.crash()
    stage.react()
    stage.start()
    stage.confirm()
    stage.confirm_size(2)
    assert len(stage.waiting()) == 7
    return stage


def _renewing(stage: SizeStage, seconds: float, beat: str = "r") -> None:
    for number in range(int(seconds / EVERY)):
        stage.pass_seconds(EVERY)
        stage.post(KubeletsRead(asked_at=stage.now, renewals=(("node-1", f"{beat}{number}"),)))
        stage.settle()


def test_hd_717_an_agent_that_dies_as_a_job_grows_lets_the_new_pods_go_before_a_status_is_repeated() -> None:
    """HD-717: real kubelets repeat their status every five minutes: so long nothing of the growth was let go."""
    stage = _killed_as_it_grows()
    assert stage.machine.world.nodes.in_question(stage.now)
    _renewing(stage, UNSEEN_SECONDS)
    assert len(stage.lifted()) == 3, "what vanished before may take its grace"
    _renewing(stage, 4 * EVERY, "later ")
    assert len(stage.lifted()) == 10


# --- the adapter ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("may", [True, False])
async def test_hd_717_leases_are_listed_while_they_are_wanted_and_who_may_not_goes_on(
    server: FakeApiServer, may: bool
) -> None:
    server.put(LEASE, "node-1", OF_KUBELETS.namespace, spec={"renewTime": "2026-01-01T00:00:00.000000Z"})
    server.put(LEASE, "new", OF_KUBELETS.namespace, spec={})
    if not may:
        server.fault("GET", "/leases", times=999, status=403, body=status_of(403, "Forbidden"))
    wanted = iter([False, True, False, True])
    told: list[KubeletsRead] = []
    problems: list[str] = []
    done = asyncio.Event()

    def is_wanted() -> bool:
        found = next(wanted, None)
        if found is None:
            done.set()
        return bool(found)

    async with Client(HttpTransport(server.config), policy=QUICK, rng=random.Random(1)) as client:  # noqa: S311 - a seed makes a test repeatable
        leases = KubeletLeases(
            client, told.append, is_wanted, clock=monotonic, problem=problems.append, pause=lambda _: asyncio.sleep(0)
        )
        supervisor = Supervisor(lambda task, error: problems.append(f"{task}: {error}"))
        supervisor.spawn("leases", leases.run())
        await done.wait()
        await supervisor.stop()
    assert [each.renewals for each in told] == may * 2 * [(("node-1", "2026-01-01T00:00:00.000000Z"),)]
    assert len(problems) == (0 if may else 2)
