"""What the agent keeps in its own namespace: state that no object says, final states that a cut holds back."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_agent.core.memory import keeper as keeping
from gatelift_agent.core.memory import kept_state, records
from gatelift_agent.core.placement.placements import EndingKind, Placement, PlacementEnding, PlacementState, Tracked
from gatelift_agent.core.values.asked import Writes
from gatelift_kinds.registry import SERVED
from gatelift_kube.deciding.writes import ApiWrite, Create, Patch, WriteError
from gatelift_kube.objects.core import ConfigMap
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE, POD, ObjectKey, ObjectRef
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN

MERGE = "application/merge-patch+json"


def _running() -> Stage:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    return stage


def _own(stage: Stage, name: str) -> dict[str, Any] | None:
    return stage.document(CONFIG_MAP, name, "gatelift-system")


def _drain_while_away(stage: Stage) -> None:
    """Cut the stream, and let somebody evict the pod as a node drain does."""
    stage.cut_stream()
    stage.remove(POD, "p")
    stage.finish(phase="Failed")


def test_origin_session_and_term_are_kept_for_the_next_process() -> None:
    stage = _running()
    kept = _own(stage, keeping.STATE_NAME)
    assert kept is not None
    state = msgspec.json.decode(kept["data"]["state"])
    assert state == {"origin": ORIGIN, "session": 1, "term": 1, "namespaces": [NAMESPACE_NAME]}


def test_a_namespace_is_written_down_before_the_first_object_is_made_in_it() -> None:
    stage = Stage()
    stage.start()
    stage.hold = lambda write: write.ref.resource == CONFIG_MAP
    stage.place()
    assert stage.written(Create) == []
    stage.hold = lambda _write: False
    stage.land()
    assert len(stage.written(Create)) == 1


def test_a_namespace_that_is_gone_is_not_looked_into_any_more() -> None:
    stage = Stage()
    stage.start()
    stage.place()
    stage.run()
    stage.finish()
    stage.send(m.Forget(key=KEY))
    stage.store.delete(stage.store.kinds.of(NAMESPACE), "", NAMESPACE_NAME, Deletion(), stage.now)
    document = stage.store.look(("", "namespaces"), "", NAMESPACE_NAME)
    if document is not None:
        body = msgspec.json.encode({"spec": {"finalizers": []}})
        kind = stage.store.kinds.of(NAMESPACE)
        stage.store.patch(kind, "", NAMESPACE_NAME, body, MERGE, stage.now, subresource="finalize")
    stage.settle()
    stage.pass_seconds(2.0)
    kept = _own(stage, keeping.STATE_NAME)
    assert kept is not None
    assert "namespaces" not in msgspec.json.decode(kept["data"]["state"])


def test_a_drain_waits_sixty_seconds_for_a_manager_that_is_away_and_no_longer() -> None:
    stage = _running()
    _drain_while_away(stage)
    stage.pass_seconds(55.0)
    assert stage.document(POD, "p") is not None
    stage.pass_seconds(7.0)
    assert stage.document(POD, "p") is None
    kept = _own(stage, keeping.SHARD_PREFIX + "0")
    assert kept is not None
    assert list(kept["data"]) == ["w-1.1"]


def test_a_drain_does_not_wait_at_all_when_the_manager_was_away_for_long() -> None:
    stage = _running()
    stage.cut_stream()
    stage.pass_seconds(100.0)
    stage.remove(POD, "p")
    stage.finish(phase="Failed")
    stage.pass_seconds(2.0)
    assert stage.document(POD, "p") is None


def test_a_recorded_end_is_reported_after_the_cut_and_its_record_removed_after_the_ack() -> None:
    stage = _running()
    _drain_while_away(stage)
    stage.pass_seconds(70.0)
    stage.mend(resume=False)
    assert stage.peer.of(m.Evicted)[-1].reason == "WorkerObjectDeleted"
    assert stage.peer.inventories[-1][0].state == "Reported"
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(2.0)
    kept = _own(stage, keeping.SHARD_PREFIX + "0")
    assert kept is not None
    assert kept.get("data", {}) == {}
    assert stage.state() == "none"


def test_a_recorded_end_survives_a_restart_with_the_objects_last_status() -> None:
    stage = _running()
    stage.cut_stream()
    stage.finish(message="done well")
    stage.remove(POD, "p")
    stage.pass_seconds(70.0)
    assert stage.document(POD, "p") is None
    stage.crash()
    stage.cut = False
    stage.start()
    [finished] = stage.peer.of(m.Finished)
    assert finished.succeeded
    assert b"done well" in finished.objects[0].status
    assert finished.objects[0].gone
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(2.0)
    assert stage.state() == "none"


def test_a_manager_that_never_acknowledges_does_not_hold_a_deletion_up_for_ever() -> None:
    stage = _running()
    stage.remove(POD, "p")
    stage.finish(phase="Failed")
    assert len(stage.peer.of(m.Evicted)) == 1
    stage.pass_seconds(62.0)
    assert stage.document(POD, "p") is None
    assert stage.state() == "Reported", "it is told until it is acknowledged"


def test_what_nobody_deletes_keeps_its_finalizer_however_long_the_manager_is_away() -> None:
    stage = _running()
    stage.cut_stream()
    stage.finish()
    stage.pass_seconds(600.0)
    assert "gatelift.dev/report" in stage.pod()["metadata"]["finalizers"]
    assert _own(stage, keeping.SHARD_PREFIX + "0") is None


# --- the keeper alone --------------------------------------------------------------------------------------------


def _ended(number: int, size: int = 10) -> Placement:
    name = f"p{number}"
    ref = ObjectRef(POD, ObjectKey(NAMESPACE_NAME, name))
    status = b'{"status":{"message":"' + b"x" * size + b'"}}'
    return Placement(
        key=PlacementKey(f"w-{number}", 3),
        kind="Pod",
        namespace=NAMESPACE_NAME,
        name=name,
        state=PlacementState.STOPPED,
        ending=PlacementEnding(kind=EndingKind.STOPPED, reason="Evicted", message="why"),
        objects={name: Tracked(ref=ref, uid=f"uid-{number}", raw=status)},
    )


def _stands(name: str, version: str, data: dict[str, str]) -> ConfigMap:
    """Return a ConfigMap as the API server answers it."""
    return ConfigMap(metadata=ObjectMeta(name=name, resource_version=version), data=data)


def _sent(write: ApiWrite) -> dict[str, Any]:
    assert isinstance(write, Create | Patch)
    return msgspec.json.decode(write.body)  # type: ignore[no-any-return]


def _own_state(*namespaces: str, origin: str = "", session: int = 0) -> str:
    return kept_state.encode(kept_state.KeptState(origin=origin, session=session, namespaces=namespaces))


def test_hd_125_a_state_is_written_only_over_what_was_read() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    keeper.read(_stands(keeping.STATE_NAME, "7", {"state": _own_state("a")}))
    keeper.cover("b")
    [patch] = keeper.flush(writes, 10.0)
    assert _sent(patch).get("metadata") == {"resourceVersion": "7"}
    keeper.written(keeping.STATE_NAME, _stands(keeping.STATE_NAME, "8", _sent(patch)["data"]))
    keeper.cover("c")
    [patch] = keeper.flush(writes, 11.0)
    assert _sent(patch).get("metadata") == {"resourceVersion": "8"}


@pytest.mark.parametrize("error", [WriteError.CONFLICT, WriteError.UNKNOWN, WriteError.ALREADY_EXISTS])
def test_hd_125_a_write_that_failed_is_followed_by_a_read_that_is_merged(error: WriteError) -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    keeper.remember("origin", 4, 1)
    keeper.cover("mine")
    keeper.flush(writes, 10.0)
    keeper.failed(keeping.STATE_NAME, error, 11.0)
    assert keeper.flush(writes, 12.0) == [], "not without a pause"
    [read] = keeper.flush(writes, 13.0)
    assert _sent(read) == {"metadata": {"labels": {keeping.LABEL: "true"}}}, "it changes nothing"
    found = {"state": _own_state("theirs", origin="origin", session=3)}
    assert keeper.written(keeping.STATE_NAME, _stands(keeping.STATE_NAME, "9", found)), "more is to be watched"
    assert not keeper.covers("mine")
    assert keeper.covers("theirs")
    [patch] = keeper.flush(writes, 13.0)
    assert _sent(patch).get("metadata") == {"resourceVersion": "9"}
    kept = kept_state.decode(_sent(patch)["data"]["state"])
    assert kept is not None
    assert (kept.session, set(kept.namespaces)) == (4, {"mine", "theirs"})


def test_hd_125_what_had_landed_after_all_is_not_written_again() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    keeper.cover("mine")
    [create] = keeper.flush(writes, 10.0)
    keeper.failed(keeping.STATE_NAME, WriteError.UNKNOWN, 20.0)
    keeper.flush(writes, 22.0)
    assert not keeper.written(keeping.STATE_NAME, _stands(keeping.STATE_NAME, "2", _sent(create)["data"]))
    assert keeper.covers("mine")
    assert keeper.next_deadline() is None


def test_hd_125_what_another_manager_had_written_takes_nothing_off_and_no_session_along() -> None:
    own = kept_state.KeptState(origin="ours", session=2, namespaces=("a",))
    merged = kept_state.merge(own, kept_state.KeptState(origin="theirs", session=9, namespaces=("b",), counter=5))
    assert merged == kept_state.KeptState(origin="ours", session=2, namespaces=("a", "b"))


def test_records_of_one_second_are_one_write() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    assert not keeper.keep(_ended(1))
    assert not keeper.keep(_ended(2))
    [create] = keeper.flush(writes, 10.0)
    assert isinstance(create, Create)
    assert set(msgspec.json.decode(create.body)["data"]) == {"w-1.3", "w-2.3"}
    assert not keeper.keep(_ended(3))
    assert keeper.flush(writes, 10.5) == []
    keeper.written(create.ref.key.name, _stands(create.ref.key.name, "1", _sent(create)["data"]))
    assert keeper.keep(_ended(1))
    assert keeper.flush(writes, 10.5) == []
    assert keeper.next_deadline() == 11.0
    [patch] = keeper.flush(writes, 11.0)
    assert isinstance(patch, Patch)
    assert set(msgspec.json.decode(patch.body)["data"]) == {"w-3.3"}


def test_a_record_that_could_not_be_written_is_tried_again() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    keeper.keep(_ended(1))
    [create] = keeper.flush(writes, 10.0)
    keeper.failed(create.ref.key.name, WriteError.ALREADY_EXISTS, 10.1)
    assert not keeper.keep(_ended(1))
    [patch] = keeper.flush(writes, 10.1 + keeping.RETRY_SECONDS)
    assert isinstance(patch, Patch)
    assert "data" not in _sent(patch), "it is read first"
    keeper.failed(patch.ref.key.name, WriteError.NOT_FOUND, 13.0)
    [again] = keeper.flush(writes, 16.0)
    assert isinstance(again, Create)
    keeper.written(again.ref.key.name, _stands(again.ref.key.name, "1", _sent(again)["data"]))
    assert keeper.keep(_ended(1))


def test_a_full_shard_is_followed_by_another() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    for number in range(60):
        keeper.keep(_ended(number, records.STATUS_BYTES_MAX - 100))
    names = {write.ref.key.name for write in keeper.flush(writes, 10.0)}
    assert names == {keeping.SHARD_PREFIX + "0", keeping.SHARD_PREFIX + "1"}


def test_an_acknowledged_record_is_removed_by_a_null() -> None:
    keeper, writes = keeping.Keeper("own", keeps=True), Writes()
    keeper.keep(_ended(1))
    [create] = keeper.flush(writes, 10.0)
    keeper.written(create.ref.key.name, _stands(create.ref.key.name, "1", _sent(create)["data"]))
    key = PlacementKey("w-1", 3)
    assert not keeper.forgotten(key)
    [patch] = keeper.flush(writes, 12.0)
    assert isinstance(patch, Patch)
    assert _sent(patch) == {"metadata": {"resourceVersion": "1"}, "data": {"w-1.3": None}}
    keeper.written(patch.ref.key.name, _stands(patch.ref.key.name, "2", {}))
    assert keeper.forgotten(key)


def test_a_status_that_is_too_long_is_left_out_and_the_outcome_kept() -> None:
    text = records.encode(_ended(1, records.STATUS_BYTES_MAX * 2))
    back = records.decode(SERVED, text)
    assert back is not None
    assert back.ending == PlacementEnding(kind=EndingKind.STOPPED, reason="Evicted", message="why")
    assert back.objects["p1"].raw == b'{"status":{}}'


def test_a_record_that_cannot_be_read_is_left_alone() -> None:
    assert records.decode(SERVED, "{") is None
    assert (
        records.decode(SERVED, '{"uid":"u","epoch":1,"kind":"Gone","namespace":"n","name":"x","ending":"Stopped"}')
        is None
    )
    assert (
        records.decode(SERVED, '{"uid":"u","epoch":1,"kind":"Pod","namespace":"n","name":"x","ending":"Odd"}') is None
    )


def test_a_damaged_state_counts_as_none() -> None:
    keeper = keeping.Keeper("own", keeps=True)
    keeper.read(ConfigMap(metadata=ObjectMeta(name=keeping.STATE_NAME), data={"state": "{"}))
    assert keeper.state.session == 0
    assert not keeper.covers(NAMESPACE_NAME)


def test_local_keeps_nothing() -> None:
    keeper, writes = keeping.Keeper("own", keeps=False), Writes()
    keeper.remember("origin", 1, 1)
    assert keeper.covers("anything")
    assert keeper.flush(writes, 0.0) == []
