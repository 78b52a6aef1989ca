"""Who leads: never two by their own clocks, a term that only grows, and a lease that is given back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.api.leader import Floors, LeaderElector
from gatelift_kube.deciding import election as elections
from gatelift_kube.deciding.election import ANNOTATION_COUNTER, Election, ElectionStep, ElectionTimes
from gatelift_kube.deciding.errors import UnreachableError
from gatelift_kube.objects.core import Lease
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.resources import LEASE, ObjectKey, ObjectRef
from support.servers.fake_apiserver import FakeApiServer, status_of
from support.until import until

TIMES = ElectionTimes()
STEADY = ElectionTimes(lease_seconds=120.0, renew_seconds=60.0, retry_seconds=0.05)
"""A lease that does not run out under a test, however busy the machine; where it shall, the clock is set forward."""
KEY = ObjectKey("gatelift-system", "manager")


def lease(holder: str, transitions: int, version: str, seconds: int = 15) -> Lease:
    return msgspec.convert(
        {
            "metadata": {"name": KEY.name, "namespace": KEY.namespace, "resourceVersion": version},
            "spec": {
                "holderIdentity": holder,
                "leaseTransitions": transitions,
                "leaseDurationSeconds": seconds,
                "renewTime": "2000-01-01T00:00:00Z",
            },
        },
        Lease,
    )


def candidate(identity: str = "me", floor: int = 0) -> Election:
    return Election(KEY, identity, TIMES, floor=floor)


# Deciding


def test_hd_44_a_lease_that_is_not_there_is_waited_for_as_one_that_ran_out() -> None:
    """HD-44: a person may have deleted it a moment ago, while somebody held it."""
    election = candidate()
    election.observe(None, 100.0)
    assert election.step(100.0) is ElectionStep.WAIT
    election.observe(None, 114.9)
    assert election.step(114.9) is ElectionStep.WAIT
    assert election.free_at() == 115.0, "looking again does not make it longer"
    assert election.step(115.0) is ElectionStep.CREATE
    assert election.body(ElectionStep.CREATE, 0.0)["spec"]["leaseTransitions"] == 1


def test_hd_44_a_lease_that_was_given_back_and_then_deleted_may_have_been_held_in_between() -> None:
    election = candidate()
    election.observe(lease("", 4, "1"), 0.0)
    election.observe(None, 2.0)
    assert election.step(16.9) is ElectionStep.WAIT
    assert election.step(17.0) is ElectionStep.CREATE
    assert election.body(ElectionStep.CREATE, 0.0)["spec"]["leaseTransitions"] == 5


def test_a_lease_that_nobody_ever_held_is_taken_at_once_in_the_first_term() -> None:
    election = candidate()
    election.observe(lease("", 0, "1"), 0.0)
    assert election.step(0.0) is ElectionStep.TAKE
    assert election.body(ElectionStep.TAKE, 0.0)["spec"]["leaseTransitions"] == 1


def test_anothers_lease_is_waited_for_by_our_own_clock_whatever_its_times_say() -> None:
    election = candidate()
    election.observe(lease("other", 4, "1"), 100.0)
    assert election.step(114.9) is ElectionStep.WAIT
    election.observe(lease("other", 4, "2"), 110.0)
    assert election.step(124.9) is ElectionStep.WAIT
    assert election.step(125.0) is ElectionStep.TAKE
    body = election.body(ElectionStep.TAKE, 0.0)
    assert body["spec"]["leaseTransitions"] == 5
    assert body["metadata"] == {"resourceVersion": "2"}


def test_a_holder_that_says_a_longer_time_is_given_it() -> None:
    election = candidate()
    election.observe(lease("other", 4, "1", seconds=60), 0.0)
    assert election.step(59.0) is ElectionStep.WAIT
    assert election.step(60.0) is ElectionStep.TAKE


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    election = candidate()
    election.observe(lease("", 4, "1"), 0.0)
    assert election.step(0.0) is ElectionStep.TAKE


def test_our_own_name_in_the_lease_of_a_former_life_is_waited_for_and_gets_a_new_term() -> None:
    election = candidate()
    election.observe(lease("me", 4, "1"), 0.0)
    assert election.step(0.0) is ElectionStep.WAIT
    assert election.step(15.0) is ElectionStep.TAKE
    assert election.body(ElectionStep.TAKE, 0.0)["spec"]["leaseTransitions"] == 5


def test_our_time_runs_from_the_moment_the_renewal_was_sent() -> None:
    election = candidate()
    election.observe(None, 0.0)
    election.acquired(lease("me", 1, "1"), 1.0, 4.0)
    assert election.standing.term == 1
    assert election.standing.valid_until == 11.0
    assert election.standing.leads(10.9)
    assert not election.standing.leads(11.0)
    assert election.step(5.0) is ElectionStep.RENEW
    election.renewed(lease("me", 1, "2"), 6.0, 7.0)
    assert election.standing.valid_until == 16.0
    assert "leaseTransitions" not in election.body(ElectionStep.RENEW, 0.0)["spec"]


def test_after_a_lapse_the_same_process_gets_a_higher_term() -> None:
    election = candidate()
    election.observe(None, 0.0)
    election.acquired(lease("me", 1, "1"), 0.0, 0.0)
    assert election.lost(10.0) == "the Lease was not renewed within 10 s"
    election.resigned()
    assert election.step(14.0) is ElectionStep.WAIT
    assert election.step(15.0) is ElectionStep.TAKE
    assert election.body(ElectionStep.TAKE, 0.0)["spec"]["leaseTransitions"] == 2


def test_a_lease_that_another_took_is_lost_at_once() -> None:
    election = candidate()
    election.acquired(lease("me", 1, "1"), 0.0, 0.0)
    assert election.lost(1.0) == ""
    election.observe(lease("other", 2, "2"), 1.0)
    assert election.lost(1.0) == "the Lease is held by other"


def test_a_deleted_lease_is_lost_and_created_anew_only_when_its_holder_must_know_with_a_higher_term() -> None:
    election = candidate()
    election.acquired(lease("me", 7, "1"), 0.0, 0.0)
    election.observe(None, 1.0)
    assert election.lost(1.0) == "the Lease was deleted"
    election.resigned()
    assert election.step(2.0) is ElectionStep.WAIT
    assert election.step(16.0) is ElectionStep.CREATE
    assert election.body(ElectionStep.CREATE, 0.0)["spec"]["leaseTransitions"] == 8


def test_a_term_recorded_elsewhere_is_exceeded() -> None:
    election = candidate(floor=41)
    election.observe(None, 0.0)
    assert election.body(ElectionStep.CREATE, 0.0)["spec"]["leaseTransitions"] == 42
    election.raise_floor(50)
    assert election.body(ElectionStep.CREATE, 0.0)["spec"]["leaseTransitions"] == 51


def test_only_what_is_ours_is_given_back() -> None:
    election = candidate()
    election.observe(lease("other", 1, "1"), 0.0)
    assert election.release_body(0.0) is None
    election.acquired(lease("me", 2, "2"), 0.0, 0.0)
    body = election.release_body(0.0)
    assert body is not None
    assert body["spec"]["holderIdentity"] == ""
    assert body["metadata"] == {"resourceVersion": "2"}


@pytest.mark.parametrize("seconds", [(10.0, 10.0, 2.0), (15.0, 3.0, 2.0), (15.0, 10.0, 0.0)])
def test_times_that_do_not_fit_together_are_refused(seconds: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="leader election: leaseSeconds must exceed renewSeconds"):
        ElectionTimes(lease_seconds=seconds[0], renew_seconds=seconds[1], retry_seconds=seconds[2])


# Running


class Running:
    """An elector on its own thread, and what it told."""

    def __init__(
        self,
        server: FakeApiServer,
        identity: str,
        clock: Clock = monotonic,
        *,
        counts: bool = False,
        floors: Floors | None = None,
    ) -> None:
        self.told: list[str] = []
        self.problems: list[str] = []
        self.edited: list[str] = []
        if server.find(LEASE, KEY.name, KEY.namespace) is None:
            server.put(LEASE, KEY.name, KEY.namespace, spec={})
        self.elector = LeaderElector(
            server.config,
            KEY.namespace,
            KEY.name,
            identity,
            on_acquired=lambda term: self.told.append(f"acquired {term}"),
            on_lost=lambda reason: self.told.append(f"lost: {reason}"),
            on_problem=self.problems.append,
            on_edited=self.edited.append,
            times=STEADY,
            floors=floors,
            counts=counts,
            clock=clock,
            user_agent=identity,
        )


@asynccontextmanager
async def started(*electors: Running) -> AsyncIterator[None]:
    for each in electors:
        each.elector.start()
    try:
        yield
    finally:
        await asyncio.gather(*(each.elector.stop() for each in electors))


async def test_one_of_two_leads_and_the_other_follows_when_it_stops(server: FakeApiServer) -> None:
    first, second = Running(server, "a"), Running(server, "b")
    async with started(first):
        await until(lambda: first.told == ["acquired 1"])
        async with started(second):
            await until(lambda: second.elector.holder == "a")
            assert first.elector.leads()
            assert not second.elector.leads()
            assert first.elector.term == 1
            assert second.elector.term == 0
            assert await first.elector.stop()
            assert first.told == ["acquired 1", "lost: stopped"]
            await until(lambda: second.told == ["acquired 2"])
            assert second.elector.term == 2
    record = server.find(LEASE, KEY.name, KEY.namespace)
    assert record is not None
    assert record["spec"]["holderIdentity"] == ""


async def test_a_leader_that_cannot_renew_steps_down_before_another_may_lead(server: FakeApiServer) -> None:
    ahead = 0.0
    first, second = (Running(server, identity, lambda: monotonic() + ahead) for identity in ("a", "b"))

    def asked_by_second() -> int:
        return len([seen for seen in server.asked("GET", KEY.name) if seen.headers["User-Agent"] == "b"])

    async with started(first):
        await until(lambda: first.told == ["acquired 1"])
        server.fault("PATCH", KEY.name, times=10_000, by="a", status=503, body=status_of(503, "ServiceUnavailable"))
        async with started(second):
            await until(lambda: second.elector.holder == "a")
            ahead += STEADY.renew_seconds
            await until(lambda: len(first.told) == 2)
            assert first.told[1] == "lost: the Lease was not renewed within 60 s"
            assert not first.elector.leads()
            assert first.elector.valid_until() == -math.inf
            looked = asked_by_second()
            await until(lambda: asked_by_second() >= looked + 3)
            assert second.told == [], "the lease still runs"
            ahead += STEADY.lease_seconds
            await until(lambda: second.told == ["acquired 2"])
            assert len(first.told) == 2


async def test_hd_77_a_standby_whose_lease_goes_back_is_told_so_though_it_never_led(server: FakeApiServer) -> None:
    """It would take over with what it remembers of a history that is no more."""
    leader, standby = Running(server, "a", counts=True), Running(server, "b", counts=True)
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        async with started(standby):
            await until(lambda: standby.elector.holder == "a")
            found = server.find(LEASE, KEY.name, KEY.namespace)
            assert found is not None
            backup = {"metadata": {"annotations": {ANNOTATION_COUNTER: "1"}}, "spec": {**found["spec"]}}
            seen = len(server.asked("GET"))
            await until(lambda: len(server.asked("GET")) >= seen + 4 and len(server.asked("PATCH")) >= 4)
            server.put(LEASE, KEY.name, KEY.namespace, **backup)
            await until(lambda: bool(standby.told))
            assert standby.told[0].startswith("lost: the Lease counts ")
            assert "was it restored?" in standby.told[0]


@pytest.mark.parametrize("number", ["9" * 17 + "0", str(2**63), "abc"])
async def test_hd_200_a_leader_whose_number_was_edited_says_so_and_leads_on(server: FakeApiServer, number: str) -> None:
    """HD-208: also where it cannot be read; and who leads is not told of as *not elected*."""
    leader = Running(server, "a", counts=True)
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        found = server.find(LEASE, KEY.name, KEY.namespace)
        assert found is not None
        edited = {"metadata": {"annotations": {ANNOTATION_COUNTER: number}}, "spec": {**found["spec"]}}
        server.put(LEASE, KEY.name, KEY.namespace, **edited)
        await until(lambda: any("which no holder wrote" in each for each in leader.edited))
        assert number in leader.edited[0]
        assert (leader.told, leader.problems) == (["acquired 1"], [])
        assert leader.elector.standing.counter < 10_000


async def test_hd_177_what_a_leader_says_of_its_lead_stands_in_the_lease_from_the_next_renewal_on(
    server: FakeApiServer,
) -> None:
    def said() -> str:
        found = server.find(LEASE, KEY.name, KEY.namespace) or {}
        return str(found.get("metadata", {}).get("annotations", {}).get(elections.ANNOTATION_SETTLED, ""))

    leader = Running(server, "a", counts=True)
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        assert not said()
        leader.elector.settle(1, settled=True)
        await until(lambda: said() == "1")
        leader.elector.settle(1, settled=False)
        await until(lambda: said() == "0")


async def test_hd_77_who_reads_the_cluster_before_it_is_a_candidate_has_looked_at_the_lease_first(
    server: FakeApiServer, client: Client
) -> None:
    def count(number: int) -> None:
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 1}
        server.put(
            LEASE, KEY.name, KEY.namespace, spec=spec, metadata={"annotations": {ANNOTATION_COUNTER: str(number)}}
        )

    count(40)
    starting = Running(server, "b", counts=True)
    await starting.elector.look(client)
    count(12)
    async with started(starting):
        await until(lambda: starting.told == ["lost: the Lease counts 12, it counted 40: was it restored?"])


class Recorded:
    """How far terms and counter have come elsewhere; without a value nobody answers."""

    def __init__(self) -> None:
        self.value: tuple[int, int] | None = (0, 0)
        self.asked = 0

    async def __call__(self, _client: Client) -> tuple[int, int]:
        self.asked += 1
        if self.value is None:
            raise UnreachableError("nobody answers", maybe_done=False)
        return self.value


async def test_hd_182_who_takes_over_asks_how_far_all_has_come_after_it_found_the_lease_free(
    server: FakeApiServer, client: Client
) -> None:
    """HD-182: a standby of long ago knew nothing of what a person had said since, for which the leader had gone."""
    recorded = Recorded()
    leader, standby = (Running(server, who, counts=True, floors=recorded) for who in ("a", "b"))
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        async with started(standby):
            await until(lambda: standby.elector.holder == "a")
            assert recorded.asked == 1, "who only renews or waits has nothing to ask"
            recorded.value = (40, 5000)
            await leader.elector.stop()
            await until(lambda: standby.told == ["acquired 41"])
            assert standby.elector.standing.counter == 5001
            assert [each.found for each in standby.elector.standing.tenures] == [5000]
    served = await client.get(ObjectRef(LEASE, KEY))
    assert isinstance(served.object, Lease)
    assert elections.counter_of(served.object) >= 5001


async def test_hd_182_while_nobody_can_tell_how_far_all_has_come_the_lease_is_not_taken(server: FakeApiServer) -> None:
    recorded = Recorded()
    recorded.value = None
    only = Running(server, "a", counts=True, floors=recorded)
    async with started(only):
        await until(lambda: recorded.asked >= 3)
        assert only.told == []
        assert server.asked("PATCH", KEY.name) == []
        recorded.value = (6, 0)
        await until(lambda: only.told == ["acquired 7"])


async def test_a_leader_whose_renewal_got_through_without_an_answer_leads_on(server: FakeApiServer) -> None:
    leader = Running(server, "a")
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        server.fault("PATCH", KEY.name, drop=True, carry_out=True)
        renewals = len(server.asked("PATCH"))
        await until(lambda: len(server.asked("PATCH")) >= renewals + 4)
        assert leader.told == ["acquired 1"]
        assert leader.elector.leads()


async def test_a_leader_whose_lease_is_taken_away_hears_of_it(server: FakeApiServer) -> None:
    ahead = 0.0
    leader = Running(server, "a", lambda: monotonic() + ahead)
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        server.put(
            LEASE,
            KEY.name,
            KEY.namespace,
            spec={"holderIdentity": "thief", "leaseTransitions": 9, "leaseDurationSeconds": 1},
        )
        await until(lambda: len(leader.told) >= 2)
        assert leader.told[1] == "lost: the Lease is held by thief"
        ahead += STEADY.lease_seconds
        await until(lambda: len(leader.told) == 3)
        assert leader.told[2] == "acquired 10"


async def test_hd_44_a_lease_that_a_person_deletes_is_waited_for_by_one_that_never_saw_it(
    server: FakeApiServer,
) -> None:
    ahead = 0.0
    holder = Running(server, "a")
    async with started(holder):
        await until(lambda: holder.told == ["acquired 1"])
        server.fault("PATCH", KEY.name, times=10_000, by="a", status=503, body=status_of(503, "ServiceUnavailable"))
        server.fault("GET", KEY.name, times=10_000, by="a", status=503, body=status_of(503, "ServiceUnavailable"))
        fresh = Running(server, "b", lambda: monotonic() + ahead)
        server.remove(LEASE, KEY.name, KEY.namespace)
        async with started(fresh):

            def looked() -> int:
                return len([seen for seen in server.asked("GET", KEY.name) if seen.headers["User-Agent"] == "b"])

            await until(lambda: looked() >= 3)
            assert holder.elector.leads(), "it has not heard of it"
            assert fresh.told == []
            ahead += STEADY.lease_seconds
            await until(lambda: fresh.told == ["acquired 1"])


async def test_an_elector_that_is_stopped_before_it_leads_ends(server: FakeApiServer) -> None:
    server.fault("GET", KEY.name, times=10_000, status=503, body=status_of(503, "ServiceUnavailable"))
    waiting = Running(server, "a")
    waiting.elector.start()
    assert await waiting.elector.stop()
    assert waiting.told == []


async def test_the_lease_keeps_fields_that_we_do_not_know(server: FakeApiServer, client: Client) -> None:
    server.put(LEASE, KEY.name, KEY.namespace, metadata={"labels": {"x": "y"}}, spec={"strategy": "OldestEmulation"})
    leader = Running(server, "a")
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
    record = server.find(LEASE, KEY.name, KEY.namespace)
    assert record is not None
    assert record["spec"]["strategy"] == "OldestEmulation"
    assert record["metadata"]["labels"] == {"x": "y"}


@pytest.mark.parametrize(
    ("method", "code", "reason", "way_out"),
    [
        ("PATCH", 403, "Forbidden", "its ServiceAccount needs the Role that deploy/ gives it"),
        ("GET", 403, "Forbidden", "its ServiceAccount needs the Role that deploy/ gives it"),
        ("PATCH", 404, "NotFound", "is its namespace there?"),
        ("PATCH", 422, "Invalid", "is the API server well?"),
    ],
)
async def test_is_6_who_cannot_be_elected_says_what_is_wrong_until_it_is_mended(
    server: FakeApiServer, method: str, code: int, reason: str, way_out: str
) -> None:
    server.fault(method, KEY.name, times=8, status=code, body=status_of(code, reason, "not for you"))
    one = Running(server, "a")
    async with started(one):
        await until(lambda: one.told == ["acquired 1"])
        await until(lambda: one.elector.problem == "")
    assert one.problems
    for text in one.problems:
        assert text.startswith(f"leader election by Lease {KEY}: ")
        assert "not for you" in text
        assert text.endswith(way_out) or way_out in text


async def test_is_6_a_standby_that_can_read_again_says_no_more_that_it_cannot(server: FakeApiServer) -> None:
    leader, standby = Running(server, "a"), Running(server, "b")
    async with started(leader):
        await until(lambda: leader.told == ["acquired 1"])
        server.fault("GET", KEY.name, times=10_000, by="b", status=403, body=status_of(403, "Forbidden"))
        async with started(standby):
            await until(lambda: standby.elector.problem)
            server.faults.clear()
            await until(lambda: standby.elector.problem == "", "it reads the Lease again")
            assert standby.told == []


async def test_is_6_one_request_that_comes_to_nothing_is_no_problem(server: FakeApiServer) -> None:
    server.fault("PATCH", KEY.name, times=2, status=503, body=status_of(503, "ServiceUnavailable"))
    one = Running(server, "a")
    async with started(one):
        await until(lambda: one.told == ["acquired 1"])
    assert one.problems == []
