"""HD-262: an object that somebody has filled up to etcd's limit is written to and deleted all the same."""

from __future__ import annotations

import json

import pytest

from gatelift_kube.api.client import Client
from gatelift_kube.deciding import making_room
from gatelift_kube.deciding.writes import Delete, Patch, PatchKind, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import POD
from support.servers.carried import Carried, running
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of

MARK = {"metadata": {"uid": "uid-p", "labels": {"stopped": "true"}}}
STEPS = [{"op": "test", "path": "/metadata/uid", "value": "uid-p"}]
EMPTIED = {"op": "add", "path": "/metadata/managedFields", "value": [{}]}
FULL = status_of(500, "", "etcdserver: request is too large")


def patch(body: object = MARK, kind: PatchKind = PatchKind.MERGE, *, informs: bool = False) -> Patch:
    return Patch(write_id=1, ref=ref_of(POD, "p", "ns"), body=json.dumps(body).encode(), kind=kind, informs=informs)


def sent(server: FakeApiServer, method: str) -> list[object]:
    return [json.loads(each.body) for each in server.asked(method)]


async def test_hd_262_a_write_that_its_object_is_too_full_for_is_sent_again_with_room(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "p", "ns")
    server.fault("PATCH", "pods/p", status=500, body=FULL)
    async with running(Carried(client)) as carried:
        carried.executor.submit(patch())
        outcome = await carried.only()
    assert isinstance(outcome, WriteDone)
    with_room = {"metadata": {**MARK["metadata"], "managedFields": [{}]}}
    assert sent(server, "PATCH") == [MARK, with_room]


async def test_hd_262_a_deletion_makes_room_first_by_the_same_uid(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    server.fault("DELETE", "pods/p", status=500, body=FULL)
    async with running(Carried(client)) as carried:
        carried.executor.submit(Delete(write_id=1, ref=ref_of(POD, "p", "ns"), uid="uid-p"))
        outcome = await carried.only()
    assert isinstance(outcome, WriteDone)
    assert sent(server, "PATCH") == [{"metadata": {"uid": "uid-p", "managedFields": [{}]}}]
    assert len(server.asked("DELETE")) == 2


@pytest.mark.parametrize(("size", "patches"), [(100, 0), (making_room.FULL_BYTES, 1)], ids=["small", "nearly full"])
async def test_hd_262_what_terminates_has_room_for_its_end(
    server: FakeApiServer, client: Client, size: int, patches: int
) -> None:
    """HD-262: its deletion found room, its kubelet did not: it ran for ever, by what its status said."""
    there = server.put(POD, "p", "ns", metadata={"annotations": {"full": "x" * size}, "finalizers": ["ours"]})
    going = {**there["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    server.fault("DELETE", "pods/p", status=200, body={**there, "metadata": going})
    async with running(Carried(client)) as carried:
        carried.executor.submit(Delete(write_id=1, ref=ref_of(POD, "p", "ns"), uid="uid-p"))
        outcome = await carried.only()
    assert isinstance(outcome, WriteDone)
    assert sent(server, "PATCH") == [{"metadata": {"uid": "uid-p", "managedFields": [{}]}}] * patches


async def test_hd_262_what_is_still_too_large_is_refused_once_and_for_all(
    server: FakeApiServer, client: Client
) -> None:
    server.put(POD, "p", "ns")
    server.fault("PATCH", "pods/p", times=9, status=500, body=FULL)
    async with running(Carried(client)) as carried:
        carried.executor.submit(patch())
        outcome = await carried.only()
    assert isinstance(outcome, WriteFailed)
    assert outcome.error is not WriteError.UNKNOWN, "it was certainly not done"
    assert len(server.asked("PATCH")) == 2


async def test_hd_262_what_only_informs_takes_no_record_away(server: FakeApiServer, client: Client) -> None:
    server.put(POD, "p", "ns")
    server.fault("PATCH", "pods/p", times=9, status=500, body=FULL)
    async with running(Carried(client)) as carried:
        carried.executor.submit(patch(informs=True))
        await carried.only()
    assert sent(server, "PATCH") == [MARK]


@pytest.mark.parametrize(
    ("kind", "body", "wanted"),
    [
        (PatchKind.JSON, STEPS, [*STEPS, EMPTIED]),
        (PatchKind.MERGE, {"status": {}}, {"status": {}, "metadata": {"managedFields": [{}]}}),
        (PatchKind.MERGE, {"metadata": None}, {"metadata": {"managedFields": [{}]}}),
        (PatchKind.REPLACE, MARK, {"metadata": {**MARK["metadata"], "managedFields": [{}]}}),
    ],
    ids=["of steps", "of a status", "without metadata", "of the whole"],
)
def test_hd_262_every_kind_of_patch_can_make_room(kind: PatchKind, body: object, wanted: object) -> None:
    assert json.loads(making_room.with_room(patch(body, kind)).body) == wanted


@pytest.mark.parametrize("body", [b"{", b"3", b"[]"], ids=["cut off", "a number", "steps"])
def test_hd_262_a_body_that_is_none_stays_as_it_is(body: bytes) -> None:
    one = Patch(write_id=1, ref=ref_of(POD, "p", "ns"), body=body)
    assert making_room.with_room(one) is one
