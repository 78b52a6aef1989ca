"""Events: counted, combined, dropped oldest first, and never in the way."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

from gatelift_kube.api.client import Client
from gatelift_kube.api.events import EventRecorder
from gatelift_kube.deciding import event_series
from gatelift_kube.deciding.event_series import EventSeries, EventWrite
from gatelift_kube.deciding.writes import EmitEvent
from gatelift_kube.process.tasks import spawn
from gatelift_kube.values.resources import CLUSTER_QUEUE, EVENT, POD, Resource
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of
from support.until import until

WALL = 1795234500.0


def event(message: str = "m", name: str = "p", reason: str = "Started", resource: Resource = POD) -> EmitEvent:
    namespace = "ns" if resource.namespaced else ""
    return EmitEvent(ref=ref_of(resource, name, namespace), uid="u", warning=False, reason=reason, message=message)


def taken(series: EventSeries, now: float) -> list[tuple[EventWrite, Any]]:
    """Take all that is due and say that it was written."""
    found = []
    while (write := series.take(now)) is not None:
        series.written(write, now)
        found.append((write, json.loads(write.body)))
    return found


def test_an_event_has_what_the_api_server_asks_for() -> None:
    series = EventSeries("gatelift.dev/manager", "manager-0")
    series.add(event("Quota reserved"), 0.0, WALL)
    ((write, body),) = taken(series, 0.0)
    assert write.create
    assert write.ref.path == f"/apis/events.k8s.io/v1/namespaces/ns/events/{body['metadata']['name']}"
    assert body["metadata"]["name"].startswith("p.")
    assert {name: value for name, value in body.items() if name != "metadata"} == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": "2026-11-21T04:15:00.000000Z",
        "reportingController": "gatelift.dev/manager",
        "reportingInstance": "manager-0",
        "type": "Normal",
        "reason": "Started",
        "action": "Started",
        "note": "Quota reserved",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "name": "p", "namespace": "ns", "uid": "u"},
    }


def test_events_of_kinds_without_namespace_go_to_default() -> None:
    series = EventSeries("c", "i")
    series.add(event(name="q", resource=CLUSTER_QUEUE), 0.0, WALL)
    ((_, body),) = taken(series, 0.0)
    assert body["metadata"]["namespace"] == "default"


def test_a_repeated_event_raises_a_count_at_most_every_ten_seconds() -> None:
    series = EventSeries("c", "i")
    series.add(event(), 0.0, WALL)
    assert len(taken(series, 0.0)) == 1
    for second in range(1, 6):
        series.add(event(), float(second), WALL + second)
    assert taken(series, 5.0) == []
    assert series.next_deadline(5.0) == 10.0
    ((write, body),) = taken(series, 10.0)
    assert not write.create
    assert body == {"series": {"count": 6, "lastObservedTime": "2026-11-21T04:15:05.000000Z"}}
    assert taken(series, 100.0) == []
    assert series.next_deadline(100.0) is None


def test_repetitions_before_the_first_write_are_part_of_it() -> None:
    series = EventSeries("c", "i")
    for _ in range(3):
        series.add(event(), 0.0, WALL)
    ((write, body),) = taken(series, 0.0)
    assert write.create
    assert body["series"]["count"] == 3
    assert series.next_deadline(0.0) is None


def test_an_event_that_was_quiet_for_long_is_a_new_one() -> None:
    series = EventSeries("c", "i")
    series.add(event(), 0.0, WALL)
    ((first, _),) = taken(series, 0.0)
    later = event_series.WINDOW_SECONDS + 1
    series.add(event(), later, WALL + later)
    ((second, _),) = taken(series, later)
    assert second.create
    assert second.ref != first.ref


def test_too_many_similar_events_are_combined() -> None:
    series = EventSeries("c", "i")
    for number in range(event_series.SIMILAR_MAX + 5):
        series.add(event(f"{number} pods missing"), 0.0, WALL)
    bodies = [body for _, body in taken(series, 0.0)]
    assert len(bodies) == event_series.SIMILAR_MAX + 1
    assert bodies[-1]["note"] == "(combined from similar events): 10 pods missing"
    assert bodies[-1]["series"]["count"] == 5


def test_the_oldest_events_are_dropped_when_too_many_wait() -> None:
    series = EventSeries("c", "i", waiting_max=2)
    for name in ("a", "b", "c"):
        series.add(event(name=name), 0.0, WALL)
    assert [body["regarding"]["name"] for _, body in taken(series, 0.0)] == ["b", "c"]
    assert series.dropped == 1


def test_memory_of_events_is_bounded() -> None:
    series = EventSeries("c", "i", waiting_max=10 * event_series.SERIES_MAX)
    for number in range(event_series.SERIES_MAX + 10):
        series.add(event(name=f"p{number}"), 0.0, WALL)
    assert len(taken(series, 0.0)) == event_series.SERIES_MAX
    assert series.dropped == 10


def test_a_long_note_is_cut_by_bytes_without_breaking_a_character() -> None:
    series = EventSeries("c", "i")
    series.add(event("é" * 2000), 0.0, WALL)
    ((_, body),) = taken(series, 0.0)
    assert len(body["note"].encode()) <= event_series.NOTE_BYTES_MAX
    assert body["note"].endswith("é ...")


def test_an_event_whose_write_failed_starts_anew() -> None:
    series = EventSeries("c", "i")
    series.add(event(), 0.0, WALL)
    write = series.take(0.0)
    assert write is not None
    series.failed(write)
    series.add(event(), 1.0, WALL)
    ((again, _),) = taken(series, 1.0)
    assert again.create
    assert series.dropped == 1


async def test_the_recorder_writes_and_survives_refusals(server: FakeApiServer, client: Client) -> None:
    recorder = EventRecorder(client, "gatelift.dev/agent", "agent-0")
    task = spawn("events", recorder.run())
    server.fault("POST", "/events", status=403, body=status_of(403, "Forbidden", "no"))
    recorder.record(event(name="refused"))
    await until(lambda: recorder.dropped == 1)
    recorder.record(event(name="written"))
    await until(lambda: server.all(EVENT))
    assert [made["regarding"]["name"] for made in server.all(EVENT)] == ["written"]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_count_that_comes_due_when_nothing_may_be_told_any_more_is_dropped(
    server: FakeApiServer, client: Client
) -> None:
    now, asked = 0.0, 0

    def leads() -> bool:
        """Lead at the first write; before the second it was paused: the count is due, and another process leads."""
        nonlocal now, asked
        asked += 1
        now = 0.0 if asked == 1 else 60.0
        return asked == 1

    recorder = EventRecorder(client, "c", "i", allowed=leads, clock=lambda: now)
    task = spawn("events", recorder.run())
    recorder.record(event(name="before"))
    await until(lambda: server.all(EVENT))
    recorder.record(event(name="before"))
    recorder.record(event(name="after"))
    await until(lambda: recorder.dropped == 2)
    assert not server.asked("PATCH")
    assert [made["regarding"]["name"] for made in server.all(EVENT)] == ["before"]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
