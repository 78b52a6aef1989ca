"""Which cluster gets a workload: filters, order, bids, next ones, giving back, and who is woken when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from gatelift.core.clusters.capacities import ResourceRoom
from gatelift.core.clusters.link_values import ClusterChanged, ClusterView, LinkState
from gatelift.core.dispatching.fit import Requirements, rank, unfit
from gatelift.core.state.dispatch_values import DispatchFailures, DispatchSettings, backoff
from gatelift_kube.values.resources import POD, WORKER_CLUSTER, ObjectKey, ObjectRef
from gatelift_wire.values.messages import (
    Bid,
    BidKind,
    Commit,
    Offer,
    PodSetRequest,
    TemplateBlob,
    Withdraw,
)
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.single import SetUserGates
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting, kueue_object
from support.manager.world import World, a_world

A_VIEW = ClusterView(
    name="a", state=LinkState.CONNECTED, session=1, open=True, kinds=frozenset({"Pod"}), credits=10, weight=1
)
ONE_CPU = Requirements(
    kind="Pod", namespace=NAMESPACE, pod_sets=(PodSetRequest(name="main", count=1, requests=(("cpu", 1000),)),)
)


def cpus(*, nominal: int, used: int = 0, largest: int | None = None) -> Mapping[str, ResourceRoom]:
    fit = nominal - used if largest is None else largest
    return {"cpu": ResourceRoom(nominal=nominal * 1000, used=used * 1000, largest_fit=fit * 1000)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"state": LinkState.SUSPECT}, "not connected"),
        ({"open": False}, "not connected"),
        ({"api_reachable": False}, "its agent does not reach its API server"),
        ({"cordoned": True}, "cordoned"),
        ({"cordoned": True, "why_cordoned": "who serves it is in doubt"}, "who serves it is in doubt"),
        ({"draining": True}, "draining"),
        ({"kinds": frozenset({"Job"})}, "does not serve kind Pod"),
        ({"allowed_namespaces": ("other",)}, "namespace team is not in spec.allowedNamespaces of WorkerCluster a"),
        (
            {"accepted_namespaces": frozenset({"other"})},
            "namespace team is not there, or accepts no work (label gatelift.dev/accept=true)",
        ),
        ({"capacity": cpus(nominal=0)}, "never fits: 1 cpu asked, 0 in all"),
        ({}, ""),
    ],
)
def test_why_a_cluster_is_not_asked(changes: dict[str, Any], why: str) -> None:
    assert unfit(replace(A_VIEW, **changes), ONE_CPU) == why


def test_a_name_without_a_workercluster_is_said_so() -> None:
    assert unfit(None, ONE_CPU) == "no WorkerCluster of that name"


@pytest.mark.parametrize(
    ("want", "why"),
    [
        (replace(ONE_CPU, only="b"), "the workload asks for cluster b"),
        (replace(ONE_CPU, selector="zone=x"), "the workload asks for clusters with zone=x"),
        (replace(ONE_CPU, selector="zone in (x, y)"), "the workload asks for clusters with zone in (x, y)"),
        (replace(ONE_CPU, selector="not a selector!"), "the workload asks for clusters with not a selector!"),
        (replace(ONE_CPU, selector="zone=z,!spot"), ""),
        (replace(ONE_CPU, only="a"), ""),
    ],
)
def test_a_users_wish_for_a_cluster_is_a_filter(want: Requirements, why: str) -> None:
    assert unfit(replace(A_VIEW, labels=(("zone", "z"),)), want) == why


def test_clusters_are_ranked_by_fit_then_free_share_then_weight_then_failures_then_name() -> None:
    fits = replace(A_VIEW, name="fits", capacity=cpus(nominal=4, used=2))
    full = replace(A_VIEW, name="full", capacity=cpus(nominal=4, used=0, largest=0))
    freer = replace(A_VIEW, name="freer", capacity=cpus(nominal=4, used=1))
    heavy = replace(A_VIEW, name="heavy", capacity=cpus(nominal=4, used=2), weight=5)
    named = replace(A_VIEW, name="afits", capacity=cpus(nominal=4, used=2))
    ranked = sorted([fits, full, freer, heavy, named], key=lambda view: rank(view, ONE_CPU, 0.0))
    assert [view.name for view in ranked] == ["freer", "heavy", "afits", "fits", "full"]
    assert rank(fits, ONE_CPU, 1.0) > rank(fits, ONE_CPU, 0.0)


def test_hd_264_where_a_workload_ended_lately_comes_after_all_others_that_fit() -> None:
    freer = replace(A_VIEW, name="freer", capacity=cpus(nominal=4, used=0))
    used = replace(A_VIEW, name="used", capacity=cpus(nominal=4, used=2))
    full = replace(A_VIEW, name="full", capacity=cpus(nominal=4, used=0, largest=0))
    ended = {"freer": 1, "used": 0, "full": 0}
    ranked = sorted([freer, used, full], key=lambda view: rank(view, ONE_CPU, 0.0, ended=ended[view.name]))
    assert [view.name for view in ranked] == ["used", "freer", "full"]


def test_among_equals_the_cluster_with_fewer_placements_comes_first() -> None:
    a, b = replace(A_VIEW, name="a"), replace(A_VIEW, name="b")
    placed = {"a": 3, "b": 2}
    assert min([a, b], key=lambda view: rank(view, ONE_CPU, 0.0, placed[view.name])) == b


def test_failures_fade() -> None:
    failures = DispatchFailures(half_life=100.0)
    failures.failed("u", "a", 0.0)
    assert failures.weight("a", 0.0) == 1.0
    assert failures.weight("a", 100.0) == 0.5
    failures.avoid("u", "a", 50.0, "why")
    assert failures.avoided("u", "a", 49.0) == "why"
    assert failures.avoided("u", "a", 50.0) == ""


def test_a_backoff_doubles_up_to_its_limit() -> None:
    assert [backoff(count, 5.0, 60.0) for count in (1, 2, 3, 4, 5, 99)] == [5.0, 10.0, 20.0, 40.0, 60.0, 60.0]


def bids(**kinds: Bid | BidKind) -> dict[str, Callable[[Offer], Bid]]:
    def answer(kind: Bid | BidKind) -> Callable[[Offer], Bid]:
        if isinstance(kind, Bid):
            return lambda offer: replace(kind, key=offer.key)
        refusal = Refusal.QUOTA_BUSY if kind is BidKind.REFUSED else None
        return lambda offer: Bid(key=offer.key, kind=kind, refusal=refusal, hold_seconds=30.0)

    return {name: answer(kind) for name, kind in kinds.items()}


def bidding(clusters: str, dispatch: DispatchSettings | None = None, **kinds: BidKind) -> World:
    """Return a world whose clusters answer as told, with one pod submitted."""
    names = tuple(clusters)
    world = a_world(a_setting(clusters=names), clusters=names, dispatch=dispatch)
    for name, answer in bids(**kinds).items():
        world.agents[name].bid = answer
    world.api.apply(a_pod().document())
    world.settle()
    return world


def winner(world: World) -> str:
    return str(world.find("Workload").get("status", {}).get("clusterName", ""))


def test_the_best_three_are_asked_and_the_first_choice_wins_at_once() -> None:
    world = bidding("abcde")
    assert [cluster for cluster, _ in world.messages(Offer)] == ["a", "b", "c"]
    assert winner(world) == "a"
    assert {cluster for cluster, _ in world.messages(Withdraw)} == {"b", "c"}


def asked_next(world: World, name: str = "next") -> list[str]:
    """Submit another pod and return who is asked for it, in order."""
    before = len(world.messages(Offer))
    world.api.apply(a_pod(name).document())
    world.settle()
    return [cluster for cluster, _ in world.messages(Offer)[before:]]


def won(world: World, name: str = "next") -> str:
    (found,) = (one for one in world.all("Workload") if one["metadata"]["ownerReferences"][0]["name"] == name)
    return str(found.get("status", {}).get("clusterName", ""))


def preferring_a(clusters: str) -> World:
    """Return a world in which all have held room for a first pod, and `a` is the best for the next one."""
    world = bidding(clusters)
    world.links.views["a"] = replace(world.links.views["a"], weight=5)
    return world


def test_who_held_room_the_last_time_is_asked_alone_and_load_is_spread_all_the_same() -> None:
    world = bidding("abc")
    assert len(world.messages(Offer)) == 3, "nobody knows yet how they answer"
    assert [asked_next(world, f"pod-{number}") for number in range(3)] == [["b"], ["c"], ["a"]]


def test_one_that_is_asked_alone_and_refuses_costs_one_more_round_and_is_asked_with_others_then() -> None:
    world = preferring_a("ab")
    world.agents["a"].bid = bids(a=BidKind.REFUSED)["a"]
    assert asked_next(world) == ["a", "b"]
    assert won(world) == "b"
    world.agents["a"].bid = None
    assert asked_next(world, "third") == ["a", "b"]
    assert won(world, "third") == "a"
    assert asked_next(world, "fourth") == ["a"]


def test_one_that_is_asked_alone_and_is_silent_is_waited_for_shorter_than_a_choice_takes() -> None:
    world = preferring_a("ab")
    world.agents["a"].silent = True
    assert asked_next(world) == ["a"]
    world.advance(0.09)
    assert won(world) == ""
    world.advance(0.02)
    assert won(world) == "b", "the first other bid wins at once"
    assert asked_next(world, "third") == ["b"], "silence ends the trust, and others come first"


def test_one_that_is_not_known_to_have_room_is_not_asked_alone() -> None:
    world = preferring_a("ab")
    for name in "ab":
        world.links.views[name] = replace(world.links.views[name], capacity=cpus(nominal=10, largest=0))
    assert asked_next(world) == ["a", "b"]


def test_a_refusal_lets_the_next_bid_win() -> None:
    assert winner(bidding("ab", a=BidKind.REFUSED)) == "b"


def test_silence_is_waited_for_no_longer_than_the_bid_time() -> None:
    world = a_world(a_setting())
    world.agents["a"].silent = True
    world.api.apply(a_pod().document())
    world.settle()
    assert winner(world) == ""
    world.advance(0.29)
    assert winner(world) == ""
    world.advance(0.02)
    assert winner(world) == "b"


def test_the_next_ones_are_asked_when_the_best_refuse() -> None:
    world = bidding("abcde", a=BidKind.REFUSED, b=BidKind.REFUSED, c=BidKind.REFUSED)
    assert [cluster for cluster, _ in world.messages(Offer)] == ["a", "b", "c", "d", "e"]
    assert winner(world) == "d"


def test_a_bid_that_needs_preemption_wins_only_when_nobody_else_can() -> None:
    preempts = BidKind.WOULD_PREEMPT
    assert winner(bidding("abcd", DispatchSettings(best=2), a=preempts, b=preempts)) == "c"
    world = bidding("ab", a=preempts, b=preempts)
    assert winner(world) == "a"
    assert [cluster for cluster, _ in world.messages(Commit)] == ["a"], "preemption in one cluster, never in all"


def test_the_cheaper_bid_wins_among_those_that_answered_in_time() -> None:
    world = a_world(a_setting(clusters=("a", "b", "c")), clusters=("a", "b", "c"))
    world.agents["a"].silent = True
    for name, cost in (("b", 2.0), ("c", 1.0)):
        world.agents[name].bid = lambda offer, cost=cost: Bid(
            key=offer.key, kind=BidKind.HELD, cost=cost, hold_seconds=30.0
        )
    world.api.apply(a_pod().document())
    world.advance(1.0)
    assert winner(world) == "c"


def test_a_cluster_that_needs_time_may_still_win_when_nobody_else_can() -> None:
    world = bidding("a", a=BidKind.NEEDS_TIME)
    assert winner(world) == ""
    world.advance(2.0)
    (key,) = {message.key for _, message in world.messages(Offer)}
    world.agents["a"].say(Bid(key=key, kind=BidKind.HELD, hold_seconds=30.0))
    world.settle()
    assert winner(world) == "a"


def test_a_hold_that_is_about_to_run_out_does_not_win() -> None:
    short = DispatchSettings(hold_margin_seconds=2.0)
    world = a_world(a_setting(clusters=("a",)), clusters=("a",), dispatch=short)
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=1.0)
    world.api.apply(a_pod().document())
    world.settle()
    assert winner(world) == ""


def test_when_no_cluster_can_take_it_the_quota_goes_back_and_each_reason_is_on_the_object() -> None:
    world = bidding("ab", a=BidKind.REFUSED, b=BidKind.REFUSED)
    world.advance(1.0)
    reserved = world.condition(world.find("Workload"), "QuotaReserved")
    assert (reserved["status"], reserved["reason"]) == ("False", "NoClusterAvailable")
    assert reserved["message"] == "No worker cluster can take it: a: QuotaBusy; b: QuotaBusy"
    (key,) = {message.key for _, message in world.messages(Offer)}
    assert world.machine.core.ledger.engine.charged(key.uid) == {}
    assert key.epoch == 1


def test_a_change_at_a_cluster_ends_the_wait_early() -> None:
    world = bidding("a", a=BidKind.REFUSED)
    world.agents["a"].bid = None
    world.advance(1.0)
    assert winner(world) == ""
    world.links.views["a"] = replace(world.links.views["a"], labels=(("zone", "north"),))
    world.upcall(ClusterChanged(cluster="a"))
    world.settle()
    assert winner(world) == "a"


def test_without_a_change_it_is_tried_again_after_a_backoff() -> None:
    world = bidding("a", a=BidKind.REFUSED)
    world.agents["a"].bid = None
    world.advance(6.0)
    assert winner(world) == "a"


def test_quota_that_no_cluster_used_goes_to_who_can() -> None:
    world = a_world(a_setting(cpu=1))
    for agent in world.agents.values():
        agent.bid = lambda offer: Bid(
            key=offer.key,
            kind=BidKind.REFUSED if offer.name == "one" else BidKind.HELD,
            refusal=Refusal.TEMPLATE_MISSING if offer.name == "one" else None,
            hold_seconds=30.0,
        )
    world.api.apply(a_pod("one").document())
    world.api.apply(a_pod("two").document())
    world.settle()
    assert {commit.name for _, commit in world.messages(Commit)} == {"two"}


def test_an_epoch_that_an_agent_knows_as_used_is_raised() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.api.apply(a_pod().document())
    uid = "uid-7"
    world.agents["a"].used[uid] = 1
    world.settle()
    used = next(message.key for _, message in world.messages(Offer))
    world.agents["a"].used[used.uid] = max(used.epoch, world.agents["a"].used.get(used.uid, 0))
    world.advance(10.0)
    assert winner(world) == "a"


def test_a_stale_epoch_bid_raises_the_epoch_by_one() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].bid = lambda offer: (
        Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.EPOCH_STALE)
        if offer.key.epoch == 1
        else Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=30.0)
    )
    world.api.apply(a_pod().document())
    world.advance(10.0)
    assert [key.epoch for key in world.agents["a"].commits] == [2]
    assert world.find("Workload")["metadata"]["annotations"]["gatelift.dev/epoch"] == "2"


def test_no_more_offers_are_out_than_a_cluster_has_credit_for() -> None:
    world = a_world(a_setting(clusters=("a",), cpu=100), clusters=("a",))
    world.links.views["a"] = replace(world.links.views["a"], credits=2)
    agent = world.agents["a"]
    agent.silent = True
    for number in range(6):
        world.api.apply(a_pod(f"pod-{number}").document())
    world.settle()
    assert len(world.messages(Offer)) == 2
    agent.silent = False
    for _, offer in list(world.messages(Offer)):
        agent.receive(agent.session, agent.applied + 1, offer)
    world.settle()
    assert len(agent.commits) == 6, "each placement that is applied makes room for the next"


def test_a_raised_credit_wakes_who_waits_for_room() -> None:
    world = a_world(a_setting(clusters=("a",), cpu=100), clusters=("a",))
    world.links.views["a"] = replace(world.links.views["a"], credits=0)
    world.api.apply(a_pod().document())
    world.settle()
    assert not world.messages(Offer)
    world.links.views["a"] = replace(world.links.views["a"], credits=5)
    world.upcall(ClusterChanged(cluster="a"))
    world.settle()
    assert winner(world) == "a"


def test_a_reservation_without_a_winner_is_shown_after_a_second() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].silent = True
    world.api.apply(a_pod().document())
    world.advance(0.9)
    assert world.condition(world.find("Workload"), "QuotaReserved") == {}
    world.advance(0.2)
    workload = world.find("Workload")
    assert world.condition(workload, "QuotaReserved")["status"] == "True"
    assert world.condition(workload, "Admitted") == {}
    assert workload["status"]["admissionChecks"][0]["state"] == "Pending"


def test_other_checks_are_waited_for_before_any_cluster_is_asked() -> None:
    setting = a_setting()
    queue = next(one for one in setting if one["kind"] == "ClusterQueue")
    queue["spec"]["admissionChecksStrategy"]["admissionChecks"].append({"name": "budget"})
    budget = kueue_object("AdmissionCheck", "budget", {"controllerName": "acme.example/budget"})
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    budget["status"] = {"conditions": [active]}
    world = a_world([*setting, budget])
    world.api.apply(a_pod().document())
    world.settle()
    workload = world.find("Workload")
    assert world.condition(workload, "QuotaReserved")["status"] == "True", "others see it at once"
    assert not world.messages(Offer)
    ref = next(ref for ref in world.api.objects if ref.resource.kind == "Workload")

    def ready(document: dict[str, Any]) -> None:
        for check in document["status"]["admissionChecks"]:
            if check["name"] == "budget":
                check.update(state="Ready", message="paid")

    world.api.edit(ref, ready)
    world.settle()
    assert winner(world) == "a"
    states = {check["name"]: check["state"] for check in world.find("Workload")["status"]["admissionChecks"]}
    assert states == {"budget": "Ready", "dispatch": "Ready"}


def test_the_second_flavor_is_taken_when_the_first_is_full() -> None:
    world = a_world(a_setting(flavors={"spot": 1, "on-demand": 1}))
    for name in ("one", "two"):
        world.api.apply(a_pod(name).document())
        world.settle()
    granted = [one["status"]["admission"]["podSetAssignments"][0]["flavors"]["cpu"] for one in world.all("Workload")]
    assert granted == ["spot", "on-demand"]
    assert [offer.pod_sets[0].flavors for _, offer in world.messages(Offer)][-1] == (("cpu", "on-demand"),)


def test_a_workload_that_never_fits_says_why_on_the_object_and_in_an_event() -> None:
    world = a_world(a_setting(cpu=2))
    world.api.apply(a_pod().asking(cpu=3).document())
    world.advance(2.0)
    reserved = world.condition(world.find("Workload"), "QuotaReserved")
    assert reserved["reason"] == "ExceedsMaxQuota"
    assert "insufficient quota for cpu in flavor default" in reserved["message"]
    warnings = [event for event in world.emitted if event.warning]
    said = [(event.ref.resource.kind, event.reason) for event in warnings]
    assert said == [("Workload", "ExceedsMaxQuota"), ("Pod", "ExceedsMaxQuota")]


def test_templates_travel_once_per_session() -> None:
    world = a_world(a_setting(clusters=("a",), cpu=10), clusters=("a",))
    for number in range(3):
        document = a_pod(f"pod-{number}").document()
        world.api.apply(document)
        world.settle()
    assert len(world.messages(Commit)) == 3
    assert len(world.messages(TemplateBlob)) == 1


def test_the_users_own_gates_are_passed_on_when_he_removes_them() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].auto = False
    world.api.apply(a_pod().gated_by("example.com/wait").document())
    world.settle()
    assert not world.messages(SetUserGates)
    gate = {"name": "kueue.x-k8s.io/admission"}
    world.api.edit(ObjectRef(POD, ObjectKey(NAMESPACE, "one")), lambda pod: pod["spec"].update(schedulingGates=[gate]))
    world.settle()
    assert [(message.name, message.gates) for _, message in world.messages(SetUserGates)] == [("one", ())]


@pytest.mark.parametrize(("gates", "said"), [((), 0), (("example.com/wait",), 1)], ids=["never", "one"])
def test_hd_257_what_is_left_of_gates_is_said_once_in_each_session_where_there_were_any(
    gates: tuple[str, ...], said: int
) -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].auto = False
    pod = a_pod()
    for gate in gates:
        pod = pod.gated_by(gate)
    world.api.apply(pod.document())
    world.settle()
    assert not world.messages(SetUserGates)
    for session in range(1, 4):
        world.connect("a").auto = False
        world.settle()
        world.advance(5.0)
        assert [message.gates for _, message in world.messages(SetUserGates)] == [gates] * said * session


def test_a_job_is_unsuspended_at_home_once_it_is_placed_and_shows_what_the_worker_reports() -> None:
    world = a_world(a_setting())
    world.api.apply(a_job(parallelism=2))
    world.settle()
    assert world.find("Job")["spec"]["suspend"] is False
    agent = world.agents["a"]
    agent.show(agent.commits[0], {"active": 2, "ready": 1, "startTime": "2026-11-21T00:00:00Z"})
    world.settle()
    assert world.find("Job")["status"]["active"] == 2
    offer = world.messages(Offer)[0][1]
    assert (offer.kind, offer.pod_sets[0].count) == ("Job", 2)


def test_the_worker_cluster_kind_is_the_links_business() -> None:
    world = a_world(a_setting())
    assert world.machine.core.known(ObjectRef(WORKER_CLUSTER, ObjectKey("", "a"))) is None
