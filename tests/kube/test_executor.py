"""The executor: one outcome for each write, in order, in time."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.api.executor import SEND_SECONDS_MIN, WritesFullError, intent_of, traffic_of
from gatelift_kube.deciding.budget import REST_SECONDS_MAX, Budget, Share, Traffic, budget, rest
from gatelift_kube.deciding.errors import UnreachableError
from gatelift_kube.deciding.retry import Intent, RetryPolicy
from gatelift_kube.deciding.writes import (
    WRITE_SECONDS_MAX,
    ApiEvent,
    Delete,
    EmitEvent,
    Patch,
    PatchKind,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.values.resources import CLUSTER_QUEUE, POD, WORKLOAD
from support.servers.carried import Carried, create, running
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of
from support.until import until

QUICK = RetryPolicy(tries=4, first_seconds=0.001, max_seconds=0.01)


def label(write_id: int, name: str = "p", version: str = "", *, informs: bool = False) -> Patch:
    metadata: dict[str, Any] = {"labels": {"n": str(write_id)}}
    if version:
        metadata["resourceVersion"] = version
    body = json.dumps({"metadata": metadata}).encode()
    return Patch(write_id=write_id, ref=ref_of(POD, name, "ns"), body=body, informs=informs)


async def test_a_create_comes_back_with_the_object(server: FakeApiServer, client: Client) -> None:
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteDone)
    assert outcome.object is not None
    assert outcome.object.metadata.uid


async def test_writes_to_one_object_keep_their_order(server: FakeApiServer, client: Client) -> None:
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        for number in range(2, 12):
            carried.executor.submit(label(number))
        await until(lambda: len(carried.outcomes) == 11)
    assert carried.ids() == list(range(1, 12))
    labels = [json.loads(seen.body)["metadata"]["labels"]["n"] for seen in server.asked("PATCH")]
    assert labels == [str(number) for number in range(2, 12)]


async def test_a_hanging_write_holds_up_its_own_object_only(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "slow", "ns")
    server.put(POD, "quick", "ns")
    server.fault("PATCH", "/slow", hang=True)
    async with running(Carried(client)) as carried:
        carried.executor.submit(label(1, "slow"))
        carried.executor.submit(label(2, "quick"))
        await until(lambda: carried.ids() == [2])
        await until(lambda: server.asked("PATCH", "/slow"))
    assert carried.ids() == [2, 1]


async def test_a_write_without_an_answer_is_of_unknown_outcome_when_its_time_is_over(
    server: FakeApiServer, client: Client
) -> None:
    server.fault("POST", "pods", hang=True)
    async with running(Carried(client, write_seconds=3.0)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.UNKNOWN


async def test_retries_are_over_before_the_outcome_is_told(server: FakeApiServer, client: Client) -> None:
    server.fault("POST", "pods", status=429, body=status_of(429, "TooManyRequests"))
    server.fault("POST", "pods", status=500, body=status_of(500, "InternalError", "failed calling webhook x"))
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        assert isinstance(await carried.only(), WriteDone)
    assert len(server.asked("POST")) == 3


async def test_a_retry_after_that_does_not_fit_into_the_limit_ends_the_write(
    server: FakeApiServer, client: Client
) -> None:
    server.fault(
        "POST", "pods", status=429, body=status_of(429, "TooManyRequests", "slow down"), headers={"Retry-After": "4"}
    )
    async with running(Carried(client, write_seconds=3.5)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.NOT_DONE
    assert "slow down" in outcome.message


async def test_a_create_of_unknown_outcome_is_not_sent_again(server: FakeApiServer, client: Client) -> None:
    server.fault("POST", "pods", drop=True, carry_out=True)
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.UNKNOWN
    assert len(server.asked("POST")) == 1


async def test_a_conditional_patch_of_unknown_outcome_that_was_done_is_not_called_a_conflict(
    server: FakeApiServer, client: Client
) -> None:
    made = server.put(POD, "p", "ns")
    server.fault("PATCH", "/p", drop=True, carry_out=True)
    async with running(Carried(client)) as carried:
        carried.executor.submit(label(1, version=made["metadata"]["resourceVersion"]))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.UNKNOWN
    assert len(server.asked("PATCH")) == 2


async def test_a_conditional_patch_of_unknown_outcome_that_was_not_done_succeeds(
    server: FakeApiServer, client: Client
) -> None:
    made = server.put(POD, "p", "ns")
    server.fault("PATCH", "/p", drop=True)
    async with running(Carried(client)) as carried:
        carried.executor.submit(label(1, version=made["metadata"]["resourceVersion"]))
        assert isinstance(await carried.only(), WriteDone)


REFUSALS = {
    "the namespace is not there": (
        404,
        status_of(404, "NotFound", 'namespaces "ns" not found', kind="namespaces"),
        WriteError.NAMESPACE_MISSING,
    ),
    "the namespace is being terminated": (
        403,
        status_of(
            403,
            "Forbidden",
            'pods "p" is forbidden: unable to create new content in namespace ns because it is being terminated',
            causes=[{"reason": "NamespaceTerminating", "message": "namespace ns is being terminated"}],
        ),
        WriteError.NAMESPACE_MISSING,
    ),
    "a quota is exceeded": (
        403,
        status_of(403, "Forbidden", 'pods "p" is forbidden: exceeded quota: q, requested: cpu=2, used: cpu=0'),
        WriteError.QUOTA,
    ),
    "nobody gave us the right": (
        403,
        status_of(403, "Forbidden", 'pods is forbidden: User "a" cannot create resource "pods" in API group ""'),
        WriteError.FORBIDDEN,
    ),
    "a webhook says no": (
        400,
        status_of(400, "BadRequest", 'admission webhook "w.example.com" denied the request: no'),
        WriteError.DENIED,
    ),
    "a limit range says no": (
        403,
        status_of(403, "Forbidden", 'pods "p" is forbidden: maximum cpu usage per Container is 1, but limit is 2'),
        WriteError.DENIED,
    ),
    "the object is wrong": (422, status_of(422, "Invalid", "spec.containers: Required value"), WriteError.INVALID),
    "the object is too large": (
        413,
        status_of(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728"),
        WriteError.TOO_LARGE,
    ),
    "the name is taken": (409, status_of(409, "AlreadyExists", 'pods "p" already exists'), WriteError.ALREADY_EXISTS),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_a_refused_create_says_why(server: FakeApiServer, client: Client, case: str) -> None:
    code, body, expected = REFUSALS[case]
    server.fault("POST", "pods", times=9, status=code, body=body)
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is expected
    assert body["message"] in outcome.message
    assert len(server.asked("POST")) == 1


async def test_a_quota_that_lost_a_race_for_its_own_object_is_tried_again(
    server: FakeApiServer, client: Client
) -> None:
    body = status_of(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"', kind="resourcequotas")
    server.fault("POST", "pods", status=409, body=body)
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        assert isinstance(await carried.only(), WriteDone)


async def test_a_delete_of_another_uid_is_a_conflict(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    async with running(Carried(client)) as carried:
        carried.executor.submit(Delete(write_id=1, ref=ref_of(POD, "p", "ns"), uid="other"))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.CONFLICT
    assert server.find(POD, "p", "ns") is not None


async def test_a_delete_that_removed_the_object_has_no_object(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    async with running(Carried(client)) as carried:
        carried.executor.submit(Delete(write_id=1, ref=ref_of(POD, "p", "ns"), uid="uid-p"))
        outcome = await carried.only()
    assert outcome == WriteDone(write_id=1, object=None)


async def test_a_full_executor_refuses_and_says_how_much_room_there_is(server: FakeApiServer, client: Client) -> None:
    carried = Carried(client, capacity=2)
    carried.executor.submit(create(1, "a"))
    assert carried.executor.room == 1
    carried.executor.submit(create(2, "b"))
    with pytest.raises(WritesFullError, match="2 writes wait already"):
        carried.executor.submit(create(3, "c"))
    async with running(carried):
        await until(lambda: len(carried.outcomes) == 2)
        assert carried.executor.room == 2


async def test_a_write_that_gets_no_turn_in_time_is_answered_and_never_sent(
    server: FakeApiServer, client: Client
) -> None:
    share = Share(in_flight=1, per_second=0.02, burst=1)
    limits = Budget(dict.fromkeys(Traffic, share))
    async with running(Carried(client, limits=limits)) as carried:
        carried.executor.submit(create(1, "a"))
        carried.executor.submit(create(2, "b"))
        await until(lambda: len(carried.outcomes) == 2)
    late = carried.outcomes[1]
    assert isinstance(late, WriteFailed)
    assert late.error is WriteError.NOT_SENT
    assert "not sent" in late.message
    assert len(server.asked("POST")) == 1


@pytest.mark.parametrize("late", [WRITE_SECONDS_MAX - SEND_SECONDS_MIN / 2, 2 * WRITE_SECONDS_MAX])
async def test_a_write_for_which_the_process_had_no_time_is_no_trouble_with_the_api_server(
    server: FakeApiServer, client: Client, late: float
) -> None:
    now = 0.0
    carried = Carried(client, clock=lambda: now)
    carried.executor.submit(create(1))
    now = late
    async with running(carried):
        told = await carried.only()
    assert isinstance(told, WriteFailed)
    assert told.error is WriteError.NOT_SENT
    assert not server.asked("POST")


class NoConnection:
    """A client for whose requests no connection comes free; each takes `seconds` of a clock to find that out."""

    def __init__(self, seconds: float) -> None:
        self.now = 0.0
        self._seconds = seconds

    async def create(self, *_: Any, **__: Any) -> None:
        self.now += self._seconds
        raise UnreachableError("cannot connect", maybe_done=False)


@pytest.mark.parametrize(
    ("seconds", "error"), [(WRITE_SECONDS_MAX, WriteError.NOT_SENT), (WRITE_SECONDS_MAX / 100, WriteError.NOT_DONE)]
)
async def test_a_write_that_waits_in_vain_for_a_connection_was_not_sent_and_one_that_is_refused_failed(
    seconds: float, error: WriteError
) -> None:
    client = NoConnection(seconds)
    carried = Carried(cast("Client", client), clock=lambda: client.now)
    carried.executor.submit(create(1))
    async with running(carried):
        told = await carried.only()
    assert isinstance(told, WriteFailed)
    assert told.error is error


async def test_writes_that_wait_at_the_end_are_answered(server: FakeApiServer, client: Client) -> None:
    server.fault("POST", "pods", times=99, hang=True)
    share = Share(in_flight=1, per_second=100, burst=100)
    carried = Carried(client, limits=Budget(dict.fromkeys(Traffic, share)))
    async with running(carried):
        carried.executor.submit(create(1, "a"))
        carried.executor.submit(create(2, "b"))
        await until(lambda: server.asked("POST"))
    assert sorted(carried.ids()) == [1, 2]
    told = {outcome.write_id: outcome.error for outcome in carried.outcomes if isinstance(outcome, WriteFailed)}
    assert told == {1: WriteError.UNKNOWN, 2: WriteError.NOT_SENT}, "the first was sent, the second was not"
    assert carried.executor.held == 0


async def test_a_write_that_the_end_finds_before_its_turn_was_not_done(server: FakeApiServer, client: Client) -> None:
    share = Share(in_flight=2, per_second=0.2, burst=1)
    carried = Carried(client, limits=Budget(dict.fromkeys(Traffic, share)))
    async with running(carried):
        carried.executor.submit(create(1, "a"))
        carried.executor.submit(create(2, "b"))
        await until(lambda: carried.ids() == [1])
    (_, interrupted) = carried.outcomes
    assert isinstance(interrupted, WriteFailed)
    assert interrupted.error is WriteError.NOT_SENT
    assert len(server.asked("POST")) == 1


async def test_a_write_to_a_server_that_refuses_connections_was_not_done(server: FakeApiServer, client: Client) -> None:
    await server.stop()
    async with running(Carried(client)) as carried:
        carried.executor.submit(create(1))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.NOT_DONE
    assert "cannot connect" in outcome.message
    assert "after 4 tries" in outcome.message


async def test_one_try_of_unknown_outcome_makes_the_whole_write_unknown(server: FakeApiServer, client: Client) -> None:
    put = server.put(POD, "p", "ns")
    server.fault("PATCH", "pods", drop=True)
    server.fault("PATCH", "pods", times=9, status=429, body=status_of(429, "TooManyRequests"))
    async with running(Carried(client)) as carried:
        carried.executor.submit(label(1, version=put["metadata"]["resourceVersion"]))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.UNKNOWN


async def test_a_transition_is_not_held_up_by_a_status_text_of_the_same_object(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "p", "ns")
    server.put(POD, "other", "ns")
    limits = Budget(
        {
            Traffic.TRANSITION: Share(in_flight=2, per_second=1000, burst=100),
            Traffic.STATUS: Share(in_flight=1, per_second=0.2, burst=1),
        }
    )
    async with running(Carried(client, limits=limits)) as carried:
        carried.executor.submit(label(1, "other", informs=True))  # takes the one token of status texts
        carried.executor.submit(label(2, "other", informs=True))
        carried.executor.submit(label(3, informs=True))
        carried.executor.submit(label(4))
        await until(lambda: 4 in carried.ids())
        assert carried.ids().index(3) < carried.ids().index(4)
        assert 2 not in carried.ids()


class Slow:
    """A client whose patches each take `seconds` of a clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0

    async def apply(self, _patch: Patch, *, seconds: float) -> None:
        self.now += self.seconds


async def test_after_a_slow_answer_what_only_informs_rests_and_transitions_go_on() -> None:
    slow = Slow(REST_SECONDS_MAX)
    limits = Budget(dict.fromkeys(Traffic, Share(in_flight=1, per_second=1000, burst=100)))
    async with running(Carried(cast("Client", slow), limits=limits, clock=lambda: slow.now)) as carried:
        carried.executor.submit(label(1, "one", informs=True))
        await until(lambda: carried.ids() == [1])
        carried.executor.submit(label(2, "two", informs=True))
        carried.executor.submit(label(3, "three"))
        await until(lambda: len(carried.ids()) == 3)
    assert carried.ids() == [1, 3, 2]


def test_the_rest_is_twice_the_time_of_the_answer_and_never_long() -> None:
    assert [rest(took) for took in (0.0, 0.005, 0.1, 60.0)] == [0.0, 0.01, 0.2, REST_SECONDS_MAX]


async def test_an_outcome_may_lead_to_the_next_command(server: FakeApiServer, client: Client) -> None:
    carried = Carried(client)

    def react(event: ApiEvent) -> None:
        carried.outcomes.append(event)
        if isinstance(event, WriteDone) and event.write_id < 3:
            carried.executor.submit(label(event.write_id + 1))

    carried.executor._emit = react
    async with running(carried):
        carried.executor.submit(create(1))
        await until(lambda: len(carried.outcomes) == 3)
    assert carried.ids() == [1, 2, 3]


async def test_events_go_to_the_recorder_and_have_no_outcome(client: Client) -> None:
    recorded: list[EmitEvent] = []
    carried = Carried(client, record=recorded.append)
    event = EmitEvent(ref=ref_of(POD, "p", "ns"), uid="u", warning=False, reason="Started", message="m")
    carried.executor.submit(event)
    assert recorded == [event]
    assert carried.executor.held == 0


def test_queue_numbers_are_status_texts_and_all_else_moves_something() -> None:
    queue = Patch(write_id=1, ref=ref_of(CLUSTER_QUEUE, "q"), body=b"{}", subresource="status")
    workload = Patch(write_id=1, ref=ref_of(WORKLOAD, "w", "ns"), body=b"{}", subresource="status")
    assert traffic_of(queue) is Traffic.STATUS
    assert traffic_of(workload) is Traffic.TRANSITION
    assert traffic_of(label(1, informs=True)) is Traffic.STATUS


def test_a_write_may_be_repeated_where_its_precondition_stops_a_second_effect() -> None:
    tests = b'[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/x"}]'
    assert intent_of(create(1)) is Intent.ONCE
    assert intent_of(label(1)) is Intent.ONCE
    assert intent_of(label(1, version="7")) is Intent.CONDITIONAL
    assert intent_of(Patch(write_id=1, ref=ref_of(POD, "p"), body=tests, kind=PatchKind.JSON)) is Intent.CONDITIONAL
    assert intent_of(Patch(write_id=1, ref=ref_of(POD, "p"), body=b"[]", kind=PatchKind.JSON)) is Intent.ONCE
    assert intent_of(Delete(write_id=1, ref=ref_of(POD, "p"), uid="u")) is Intent.CONDITIONAL


async def test_a_patch_that_is_no_json_is_answered_as_invalid(server: FakeApiServer, client: Client) -> None:
    server.fault("PATCH", "/p", status=400, body=status_of(400, "BadRequest", "error decoding patch"))
    async with running(Carried(client)) as carried:
        carried.executor.submit(Patch(write_id=1, ref=ref_of(POD, "p", "ns"), body=b"{{"))
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is WriteError.INVALID


def test_a_tenth_of_the_burst_is_for_status_texts() -> None:
    shares = budget(per_second=100, burst=250).shares
    assert (shares[Traffic.TRANSITION].burst, shares[Traffic.STATUS].burst) == (250, 25)
    assert budget(per_second=1, burst=1).shares[Traffic.STATUS].burst == 1


def test_the_budget_is_told_in_one_line() -> None:
    assert budget(per_second=100, in_flight=20, events_per_second=5).describe() == (
        "API budget: transitions: 20 in flight, 100/s, burst 100; status texts: 1 in flight, 10/s, burst 10; "
        "events: 1 in flight, 5/s, burst 10; reads: 8 in flight, 100/s, burst 100"
    )
