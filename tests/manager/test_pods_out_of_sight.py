"""HD-145: what a watch by a label says of a pod that has lost it: no more than that, whatever comes first."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.adapters.kubernetes import (
    ManagementApi,
    WriterNames,
    is_told_of_unmarked,
    lost,
    out_of_sight,
    ungated,
    unmarked,
)
from gatelift.core.api.commands import Read
from gatelift.core.api.events import Event
from gatelift_kinds.registry import SERVED
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client
from gatelift_kube.api.transport import HttpTransport
from gatelift_kube.deciding.budget import budget
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, Synced
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD, ObjectRef
from gatelift_wire.values.messages import Stop
from support.manager.api import seen
from support.manager.builders import a_pod
from support.manager.world import THE_POD, World, a_running_pod
from support.servers.fake_apiserver import FakeApiServer
from support.until import until


def the_pod(world: World) -> ObjectSeen:
    """Return the pod as it is."""
    return seen(THE_POD, world.api.objects[THE_POD])


def reads(world: World) -> list[ObjectRef]:
    return [command.ref for command in world.history if isinstance(command, Read)]


def test_hd_145_a_read_that_a_watch_overtakes_is_asked_again() -> None:
    world, _ = a_running_pod()
    world.hidden = {THE_POD}
    overtaking = [ObjectGone(POD, the_pod(world).object)]

    def overtake(_read: Read) -> None:
        if overtaking:
            world.put(overtaking.pop())

    world.read_fails = overtake
    world.history.clear()
    world.restart()
    world.advance(30.0)
    assert reads(world) == [THE_POD, THE_POD]
    assert not world.messages(Stop)
    assert world.running


def test_hd_145_that_a_watch_lost_what_is_known_to_have_lost_its_label_is_no_news() -> None:
    world, _ = a_running_pod()
    queue = {markers.QUEUE_NAME: "user-queue"}
    world.hidden = {THE_POD}
    world.api.edit(THE_POD, lambda document: document["metadata"].update(labels=queue))
    world.history.clear()
    unmarked = the_pod(world)
    world.give(unmarked)
    world.give(ObjectGone(POD, unmarked.object))
    world.advance(30.0)
    assert world.api.objects[THE_POD]["metadata"]["labels"] == {**queue, markers.MANAGED: markers.MANAGED_VALUE}
    assert reads(world) == []
    assert not world.messages(Stop)


def unmarked_pod(**changes: Any) -> ObjectSeen:
    """Return what the watch of pods without the label says of one."""
    document = a_pod().document()
    del document["metadata"]["labels"][markers.MANAGED]
    document["metadata"] |= changes.get("metadata", {})
    document["spec"] |= changes.get("spec", {})
    return seen(THE_POD, document)


DELETED = unmarked_pod(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}).object


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param(unmarked_pod(), True, id="it was taken over"),
        pytest.param(unmarked_pod(spec={"schedulingGates": []}, metadata={"finalizers": []}), False, id="never"),
        pytest.param(ObjectGone(POD, unmarked_pod().object), False, id="its label is back"),
        pytest.param(ObjectGone(POD, DELETED), True, id="it was deleted"),
        pytest.param(Synced(POD), False, id="a list is complete"),
    ],
)
def test_hd_145_of_pods_without_the_label_those_are_told_that_were_taken_over(event: Event, *, told: bool) -> None:
    ((_, watched),) = unmarked(SERVED)
    assert watched.labels == f"{markers.QUEUE_NAME},{markers.MANAGED}!={markers.MANAGED_VALUE}"
    assert is_told_of_unmarked(SERVED, event) is told


UNGATED: dict[str, Any] = {"schedulingGates": []}


@pytest.mark.parametrize(
    ("event", "told"),
    [
        pytest.param(unmarked_pod(spec=UNGATED, metadata={"finalizers": []}), True, id="nobody asked the webhooks"),
        pytest.param(unmarked_pod(), False, id="it lost its label"),
        pytest.param(unmarked_pod(spec={**UNGATED, "nodeName": "n"}), False, id="it was said"),
        pytest.param(unmarked_pod(spec=UNGATED, metadata={"finalizers": [markers.MANAGED]}), False, id="taken over"),
        pytest.param(
            unmarked_pod(
                spec=UNGATED,
                metadata={"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}]},
            ),
            False,
            id="somebody makes it",
        ),
        pytest.param(Synced(POD), False, id="a list is complete"),
    ],
)
def test_hd_577_a_queued_pod_without_a_gate_is_told_so(event: Any, *, told: bool) -> None:
    """HD-577: while a webhook configuration is not there such pods ran without quota and without a word."""
    said = ungated(event)
    assert (said is not None) is told
    if said is not None:
        assert (said.reason, said.ref, said.warning) == ("NotGated", THE_POD, True)


async def test_hd_577_it_is_written_as_an_event() -> None:
    server, failed = FakeApiServer(), list[str]()
    await server.start()
    supervisor = Supervisor(lambda task, _error: failed.append(task))
    async with Client(HttpTransport(server.config)) as client:
        names = WriterNames(controller="c", instance="i")
        api = ManagementApi(client, lambda _event: None, budget(), names, lambda: True)
        document = unmarked_pod(spec=UNGATED, metadata={"finalizers": []})
        api._unmarked_told(document)
        supervisor.spawn("events", api._recorder.run())
        await until(lambda: len(server.asked("POST", "events")) == 1, "it is told")
        await supervisor.stop()
    await server.stop()
    assert failed == []


def lost_both(**changes: Any) -> ObjectSeen:
    """Return a pod that was taken over and lost both its labels."""
    return unmarked_pod(metadata={"labels": {}, **changes.get("metadata", {})}, spec=changes.get("spec", {}))


@pytest.mark.parametrize(
    ("event", "found"),
    [
        pytest.param(lost_both(), True, id="it waits at our gate"),
        pytest.param(unmarked_pod(), False, id="its queue's name is there, which is watched"),
        pytest.param(lost_both(metadata={"finalizers": []}), False, id="nothing of ours is on it"),
        pytest.param(lost_both(spec={"nodeName": "one"}), False, id="a node has it"),
        pytest.param(lost_both(metadata={"labels": {markers.POD_GROUP_NAME: "many"}}), True, id="it is of a group"),
    ],
)
def test_hd_220_of_pods_that_no_watch_shows_those_are_told_that_have_our_finalizer(
    event: ObjectSeen, *, found: bool
) -> None:
    ((_, listed),) = lost(SERVED)
    assert listed.labels == f"!{markers.QUEUE_NAME},{markers.MANAGED}!={markers.MANAGED_VALUE}"
    assert listed.fields == "spec.nodeName="
    meta = event.object.metadata
    assert out_of_sight(SERVED, POD, event.object) == ((THE_POD, meta.uid) if found else None)
