"""An agent that is turned away, since another one serves its cluster: it does nothing, and begins anew."""

from __future__ import annotations

import msgspec

from gatelift_agent.core.machine import STAND_DOWN_SECONDS
from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, Create, Delete, WriteError
from gatelift_kube.values.resources import CONFIG_MAP, POD
from gatelift_wire.values.limits import LEASE_SECONDS
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME, ORIGIN


def turned_away(*tickets: str) -> Stage:
    """Return an agent that has let a pod run, lost its stream, and was turned away when it greeted again."""
    stage = Stage(lease="elsewhere/gatelift-agent")
    stage.start()
    stage.post(events.AgentLeadershipExtended(valid_until=stage.now + 1e9, mark=77))
    stage.place()
    stage.run()
    stage.peer.turns_away = list(tickets)
    stage.cut_stream()
    stage.cut = False
    for _ in range(200):
        if stage.machine.turned_away:
            return stage
        stage.pass_seconds(0.25)
    raise AssertionError("it was not turned away within 50 s")


def test_hd_60_a_greeting_names_the_lease() -> None:
    stage = turned_away("")
    assert {hello.lease for hello in stage.peer.greetings} == {"elsewhere/gatelift-agent"}


def test_hd_60_it_does_nothing_for_placements_until_it_has_listed_everything_anew() -> None:
    """R8: what it asked for before may land meanwhile, so it waits longer than a write may take."""
    stage = turned_away("")
    before = len(stage.writes)
    assert not stage.watching
    assert STAND_DOWN_SECONDS > WRITE_SECONDS_MAX
    assert stage.placement() is None
    stage.remove(POD, "p", grace=0)
    stage.pass_seconds(STAND_DOWN_SECONDS - 1.0)
    assert len(stage.writes) == before
    assert len(stage.peer.greetings) == 2
    stage.pass_seconds(10.0)
    assert stage.peer.open


def test_hd_60_its_inventory_holds_what_the_other_one_has_made_meanwhile() -> None:
    stage = turned_away("")
    stage.create(POD, labelled_copy(stage, "q", "other"))
    stage.pass_seconds(STAND_DOWN_SECONDS + 5.0)
    assert sorted(entry.name for entry in stage.peer.inventories[-1]) == ["p", "q"]


def labelled_copy(stage: Stage, name: str, uid: str) -> dict[str, object]:
    """Return a pod as the other agent would have made it for another workload."""
    found = stage.pod()
    labels = {**found["metadata"]["labels"], "gatelift.dev/workload-uid": uid}
    annotations = {
        key: value.replace(KEY.uid, uid) for key, value in found["metadata"]["annotations"].items() if "made" not in key
    }
    metadata = {
        "name": name,
        "namespace": found["metadata"]["namespace"],
        "labels": labels,
        "annotations": annotations,
        "finalizers": found["metadata"]["finalizers"],
    }
    return {**found, "metadata": metadata}


def test_hd_60_a_ticket_is_shown_only_after_everything_was_listed_anew() -> None:
    """R8: it says that all objects were listed since it was given."""
    stage = turned_away("m1/7")
    assert [hello.ticket for hello in stage.peer.greetings] == ["", ""]
    stage.pass_seconds(STAND_DOWN_SECONDS + 5.0)
    assert [hello.ticket for hello in stage.peer.greetings] == ["", "", "m1/7"]
    assert stage.peer.open
    assert stage.state() == "Running"


def test_hd_60_it_reads_anew_what_the_other_one_has_kept() -> None:
    stage = turned_away("")
    found = stage.document(CONFIG_MAP, "gatelift-agent-state", "gatelift-system")
    assert found is not None
    text = found["data"]["state"].replace('"session":1', '"session":41')
    body = msgspec.json.encode({"data": {"state": text}})
    media = "application/merge-patch+json"
    stage.store.patch(
        stage.store.kinds.of(CONFIG_MAP), "gatelift-system", "gatelift-agent-state", body, media, stage.now
    )
    stage.peer.number = 41
    stage.pass_seconds(STAND_DOWN_SECONDS + 5.0)
    assert stage.peer.greetings[-1].last_session == 41


def test_hd_60_its_mark_is_what_its_lease_counted_before_it_listed() -> None:
    """HD-22: it kept its Lease all the time, so a lower mark would pass for a restored worker."""
    stage = turned_away("")
    stage.pass_seconds(STAND_DOWN_SECONDS + 5.0)
    assert stage.peer.greetings[-1].mark == 77


def test_hd_62_who_may_not_start_removes_nothing_that_has_the_name_it_wants() -> None:
    """HD-62: cut off with a commit that it has not carried out, it finds what another agent runs there since."""
    stage = Stage()
    stage.start()
    stage.fail = lambda write: WriteError.UNKNOWN if isinstance(write, Create) and write.ref.resource == POD else None
    stage.place()
    stage.cut_stream()
    stage.pass_seconds(LEASE_SECONDS + 5.0)
    stage.create(POD, of_a_later_attempt())
    stage.pass_seconds(120.0)
    assert stage.written(Delete) == []
    assert stage.document(POD, "p") is not None


def of_a_later_attempt() -> dict[str, object]:
    """Return the pod of the next attempt as another agent has made it."""
    labels = {
        "gatelift.dev/origin": ORIGIN,
        "gatelift.dev/workload-uid": KEY.uid,
        "gatelift.dev/epoch": str(KEY.epoch + 1),
    }
    annotations = {
        "gatelift.dev/pod-set": "main",
        "gatelift.dev/placed-as": f"{ORIGIN}/{KEY.uid}/{KEY.epoch + 1}",
    }
    metadata = {"name": "p", "namespace": NAMESPACE_NAME, "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main", "image": "work"}]}}
