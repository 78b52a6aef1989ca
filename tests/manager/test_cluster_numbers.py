"""HD-226, HD-230, HD-231: what session numbers count as, whatever stands in the status of a WorkerCluster."""

from __future__ import annotations

import msgspec
import pytest

from gatelift.cli.manifests import MANAGEMENT, load_manifests
from gatelift.core.api import events
from gatelift.core.clusters import cluster_numbers
from gatelift.core.clusters.cluster_conditions import OURS
from gatelift.core.clusters.cluster_numbers import GO_ON_ABOVE, SESSION_MAX, WITNESS_MAX, Tried, as_written, begun_from
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_AFTER, ANNOTATION_FENCED_THROUGH
from gatelift.core.clusters.identity import SESSION_JUMP_MAX
from gatelift_kube.deciding.writes import ObjectSeen, Patch, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.resources import WORKER_CLUSTER
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

HIGHEST = 2**63 - 1
TRUE = WorkerClusterStatus(
    term=3, session=9, opened_session=8, restored_session=4, settled_session=4, fenced_through_session=2
)


def status(**numbers: int) -> WorkerClusterStatus:
    return msgspec.structs.replace(TRUE, **numbers)


def test_hd_226_true_numbers_count_as_what_they_are() -> None:
    first = WorkerClusterStatus(session=1, replaced_session=2)
    anew = WorkerClusterStatus(session=SESSION_JUMP_MAX)
    for each in (TRUE, WorkerClusterStatus(), first, anew, status(session=8 + SESSION_JUMP_MAX)):
        assert begun_from(each) is not None
        assert begun_from(each) == each


@pytest.mark.parametrize("number", [8 + SESSION_JUMP_MAX + 1, SESSION_MAX + 1, HIGHEST])
def test_hd_226_a_last_session_that_nobody_can_have_come_to_goes_on_above_the_others(number: int) -> None:
    assert begun_from(status(session=number)) == status(session=8 + GO_ON_ABOVE)


@pytest.mark.parametrize("number", [0, 3, 6])
def test_hd_226_one_below_the_others_was_lowered(number: int) -> None:
    assert begun_from(status(session=number)).session == 8


@pytest.mark.parametrize("name", ["settled_session", "fenced_through_session"])
def test_hd_226_an_end_of_doubts_or_a_word_about_no_session_is_none(name: str) -> None:
    assert begun_from(status(**{name: HIGHEST})) == status(**{name: 0})


@pytest.mark.parametrize("name", ["opened_session", "restored_session", "replaced_session", "taken_over_session"])
def test_hd_226_an_answer_or_a_doubt_of_no_session_is_of_the_last_one(name: str) -> None:
    assert begun_from(status(**{name: HIGHEST})) == status(**{name: 9})


def test_hd_226_a_word_of_before_a_restore_is_bounded_as_well() -> None:
    assert begun_from(status(fenced_after_through=HIGHEST)) == TRUE


def test_hd_226_what_is_gone_on_to_is_believed_by_the_next_leader_and_can_be_said_by_a_person() -> None:
    numbers = dict.fromkeys(("session", *cluster_numbers.SIBLINGS), HIGHEST)
    for found in (status(**numbers), status(session=HIGHEST, opened_session=WITNESS_MAX)):
        counts = begun_from(found)
        assert begun_from(counts) == counts
        assert whole(str(counts.session + SESSION_JUMP_MAX)) is not None
    assert whole(str(SESSION_MAX)) == SESSION_MAX


@pytest.mark.parametrize("name", ["session", *cluster_numbers.SIBLINGS])
@pytest.mark.parametrize("number", [0, 1, 1000, HIGHEST])
def test_hd_226_who_has_written_here_knows_each_number(name: str, number: int) -> None:
    assert as_written(status(**{name: number}), TRUE, Tried()) == TRUE


def test_hd_226_what_was_tried_may_have_landed() -> None:
    tried = Tried().and_then({"session": 10, "replacedSession": 10, "settledSession": 10})
    landed = status(session=10, replaced_session=10, settled_session=10)
    assert as_written(landed, TRUE, tried) == landed
    assert as_written(TRUE, TRUE, tried) == TRUE
    over = status(session=HIGHEST, replaced_session=HIGHEST, settled_session=HIGHEST)
    assert as_written(over, TRUE, tried) == status(session=10, replaced_session=10)
    assert tried.and_then({"session": 3}).numbers["session"] == 10


@pytest.mark.parametrize("term", [0, 2])
def test_hd_230_who_has_written_here_knows_the_term_that_they_are_of(term: int) -> None:
    for each in ({}, dict.fromkeys(cluster_numbers.SIBLINGS, 9)):
        assert as_written(status(term=term, **each), TRUE, Tried()) == TRUE


AFTER = msgspec.structs.replace(TRUE, fenced_after="s1", fenced_after_through=2)


@pytest.mark.parametrize("after", [("s2", 2), ("s2", 9), ("s1", 9), ("s1", 1), ("s1", 0), ("", 0), ("", 2)])
def test_hd_231_who_has_written_here_knows_which_restore_a_word_was_said_after(after: tuple[str, int]) -> None:
    finding, through = after
    found = msgspec.structs.replace(AFTER, fenced_after=finding, fenced_after_through=through)
    assert as_written(found, AFTER, Tried()) == AFTER
    assert as_written(found, AFTER, Tried().and_then({"fencedAfter": "s1", "fencedAfterThrough": 2})) == AFTER


def test_hd_231_a_word_of_its_own_that_landed_unanswered_is_no_edit() -> None:
    tried = Tried().and_then({"fencedAfter": "s2", "fencedAfterThrough": 9}).and_then({"session": 10})
    landed = msgspec.structs.replace(AFTER, fenced_after="s2", fenced_after_through=9)
    assert as_written(landed, AFTER, tried) == landed
    assert as_written(AFTER, AFTER, tried) == AFTER
    assert as_written(msgspec.structs.replace(AFTER, fenced_after="s3"), AFTER, tried) == AFTER


@pytest.mark.parametrize("finding", ["s2", "", "s\n2"])
def test_hd_231_what_is_put_back_of_a_word_is_told_at_the_object(finding: str) -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    manager.pass_time(80)
    api.annotate("w1", {ANNOTATION_FENCED_THROUGH: "1", ANNOTATION_FENCED_AFTER: "s1"})
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    manager.pass_time(3)
    said = api.get("w1").status
    assert (said.fenced_after, said.fenced_after_through) == ("s1", 1)
    assert manager.told == [], "its own word is no edit"
    forge(api, manager, fencedAfter=finding)
    manager.pass_time(3)
    said = api.get("w1").status
    assert (said.fenced_after, said.fenced_after_through) == ("s1", 1)
    (told,) = [each for each in manager.told if each.reason == "RecordPutBack"]
    assert f"fencedAfter {finding.replace(chr(10), ' ') or 'nothing'}, which" in told.message


def forge(api: Api, manager: Manager, **said: int | str) -> WorkerCluster:
    known = msgspec.to_builtins(api.get("w1").status)
    api.put("w1", status={**known, **said})
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    return api.get("w1")


def test_hd_226_what_is_put_back_is_told_at_the_object_once() -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    manager.pass_time(2)
    forge(api, manager, session=HIGHEST, settledSession=7)
    manager.pass_time(3)
    assert (api.get("w1").status.session, api.get("w1").status.settled_session) == (1, 0)
    (told,) = [each for each in manager.told if each.reason == "RecordPutBack"]
    assert f"session {HIGHEST}, settledSession 7" in told.message


def test_hd_230_nor_are_facts_taken_from_a_version_of_a_lower_term() -> None:
    """The symptom: all of them were adopted as an earlier leader's, with no word of it."""
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    manager.pass_time(2)
    before = api.get("w1").status
    forge(api, manager, term=2, settledSession=1, mark=9, openedSession=0, clusterUid="other", agentLease="other/other")
    manager.pass_time(3)
    after = api.get("w1").status
    kept = ("term", "session", "opened_session", "settled_session", "mark", "cluster_uid", "agent_lease")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    (told,) = [each for each in manager.told if each.reason == "RecordPutBack"]
    assert "term 2, openedSession 0, settledSession 1" in told.message
    assert "LinkBroken" not in manager.kinds()


def test_hd_226_a_session_that_is_written_meanwhile_writes_over_the_others_as_well() -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    manager.pass_time(2)
    manager.hold_writes = True
    forge(api, manager, session=HIGHEST, fencedThroughSession=HIGHEST)
    manager.held.clear()
    later = Manager(api, term=4, instance="m2")
    later.dial(2)
    later.pass_time(3)
    after = api.get("w1").status
    assert (after.session, after.fenced_through_session) == (1 + GO_ON_ABOVE + 1, 0)
    assert api.refused == []


def test_hd_225_the_policy_leaves_all_that_is_written_here_to_gatelift() -> None:
    """HD-226 as well: conditions of others are theirs."""
    documents = [each for each in load_manifests(*MANAGEMENT) if each["kind"] == "ValidatingAdmissionPolicy"]
    (policy,) = [each for each in documents if each["metadata"]["name"] == "gatelift-worker-cluster-status"]
    said = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}
    names = {each.encode_name for each in msgspec.structs.fields(WorkerClusterStatus)} - {"conditions"}
    for variable, expected in (("fields", names), ("conditions", OURS)):
        assert {each.strip(" '") for each in said[variable].strip("[] \n").split(",")} == expected


def test_hd_226_a_write_of_its_own_that_landed_unanswered_is_no_edit() -> None:
    api = Api()
    manager = Manager(api, term=3)
    manager.dial()
    manager.pass_time(2)
    manager.hold_writes = True
    manager.dial(2)
    (write,) = manager.held
    assert isinstance(write, Patch)
    api.write(write)
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    manager.hold_writes = False
    manager.event(WriteFailed(write_id=write.write_id, error=WriteError.UNKNOWN, message="no answer"))
    manager.pass_time(3)
    assert api.get("w1").status.session == 3, "2 was written, and is used once"
    assert [each.reason for each in manager.told] == []


def test_hd_226_a_late_write_of_an_earlier_leader_is_no_edit() -> None:
    api = Api()
    before = Manager(api, term=1)
    before.dial()
    before.pass_time(2)
    manager = Manager(api, term=0, instance="m2")
    manager.hold_writes = True
    manager.event(events.LeadershipExtended(valid_until=1e9))
    manager.event(events.LeadershipGained(term=2))
    before.dial(2)
    before.pass_time(2)
    assert (api.get("w1").status.term, api.get("w1").status.session) == (1, 2)
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    manager.hold_writes = False
    for held in manager.held:
        manager.event(api.write(held))
    manager.pass_time(3)
    manager.dial(3)
    manager.pass_time(3)
    assert api.get("w1").status.session == 3
    assert [each.reason for each in manager.told] == []
