"""The small parts of the manager's core, each by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift.core.api.agenda import Agenda, Key, Look
from gatelift.core.api.inflight import RETRY_SECONDS_MAX, STALE_SECONDS_MAX, InFlight, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.resting import Resting
from gatelift.core.api.wall import Wall
from gatelift.core.records import admission_writes, epochs, metadata_patches, record, release_writes
from gatelift.core.records.attempts import Attempt, Ending
from gatelift.core.records.gone import Evidence, Inventory, is_gone
from gatelift.core.records.knowledge import DEPARTED_MAX, Knowledge
from gatelift.core.records.ledger import AttemptLedger, LedgerError
from gatelift.core.told.mirror import is_first
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared.cluster_selector import SELECTOR_CHARS_MAX, parse_selector
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.objects.kueue import Admission, PodSetAssignment, Workload
from gatelift_kube.objects.selectors import matches
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import DisconnectPolicy

REF = ObjectRef(WORKLOAD, ObjectKey("team", "w"))
KEY = Key(Look.WORKLOAD, ObjectKey("team", "w"))
OTHER = Key(Look.WORKLOAD, ObjectKey("team", "other"))


# --- R4 -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "inventory", "gone"),
    [
        (
            Evidence(written_revision=5),
            Inventory(session=2, latest_session=2, record_revision=5, applied=0),
            True,
        ),
        (
            Evidence(written_revision=6),
            Inventory(session=2, latest_session=2, record_revision=5, applied=9),
            False,
        ),
        (
            Evidence(written_revision=5),
            Inventory(session=1, latest_session=2, record_revision=9, applied=9),
            False,
        ),
        (
            Evidence(written_revision=5, commit_session=2, commit_sequence=7),
            Inventory(session=2, latest_session=2, record_revision=5, applied=6),
            False,
        ),
        (
            Evidence(written_revision=5, commit_session=2, commit_sequence=7),
            Inventory(session=2, latest_session=2, record_revision=5, applied=7),
            True,
        ),
        (
            Evidence(written_revision=5, commit_session=1, commit_sequence=7),
            Inventory(session=2, latest_session=2, record_revision=5, applied=0),
            True,
        ),
        (
            Evidence(written_revision=5, commit_session=3, commit_sequence=7),
            Inventory(session=2, latest_session=2, record_revision=5, applied=9),
            False,
        ),
        (
            Evidence(written_revision=5),
            Inventory(session=2, latest_session=2, record_revision=5, applied=9, unproven=True),
            False,
        ),
        (
            Evidence(written_revision=5),
            Inventory(session=2, latest_session=2, record_revision=5, applied=9, unheard=True),
            False,
        ),
    ],
    ids=[
        "written before it was asked for",
        "written after it was asked for (H1)",
        "an inventory of an earlier session (H8)",
        "the commit was still on its way (H1)",
        "the commit was applied",
        "the commit's session is over",
        "a commit of a later session",
        "a restored worker",
        "not all of its nodes were heard of since its agent watches (HD-80)",
    ],
)
def test_absence_means_gone_only_under_rule_r4(known: Evidence, inventory: Inventory, gone: bool) -> None:
    assert is_gone(known, inventory) is gone


# --- agenda -------------------------------------------------------------------------------------------------------


def test_repeated_marks_are_one_and_the_oldest_comes_first() -> None:
    agenda = Agenda()
    for key in (KEY, OTHER, KEY):
        agenda.mark(key)
    assert [agenda.take(), agenda.take(), agenda.take()] == [KEY, OTHER, None]


def test_an_earlier_time_wins_and_a_later_one_is_ignored() -> None:
    agenda = Agenda()
    agenda.wake(KEY, 10.0)
    agenda.wake(KEY, 20.0)
    agenda.wake(OTHER, 5.0)
    assert agenda.next_time() == 5.0
    agenda.ring(9.0)
    assert agenda.take() == OTHER
    assert agenda.next_time() == 10.0
    agenda.ring(10.0)
    assert agenda.take() == KEY
    assert agenda.next_time() is None


def test_a_forgotten_key_neither_waits_nor_rings() -> None:
    agenda = Agenda()
    agenda.mark(KEY)
    agenda.wake(KEY, 1.0)
    agenda.forget(KEY)
    agenda.ring(2.0)
    assert agenda.take() is None
    assert not agenda.waits(KEY)


# --- writes in flight ---------------------------------------------------------------------------------------------


def test_two_requests_for_one_object_are_our_mistake() -> None:
    inflight = InFlight()
    inflight.begin(1, Outstanding(ref=REF, purpose=Purpose.WINNER))
    with pytest.raises(RuntimeError, match="two requests in flight"):
        inflight.begin(2, Outstanding(ref=REF, purpose=Purpose.EVICT))
    assert inflight.end(1) == Outstanding(ref=REF, purpose=Purpose.WINNER)
    assert inflight.end(1) is None, "an answer given twice is dropped"


def test_after_a_conflict_a_newer_version_is_waited_for_and_then_read() -> None:
    inflight = InFlight()
    inflight.conflicted(REF, "7", now=0.0)
    assert inflight.hindrance(REF, 1.0) == (True, False, STALE_SECONDS_MAX)
    inflight.seen(REF, "7")
    assert inflight.hindrance(REF, STALE_SECONDS_MAX) == (True, True, STALE_SECONDS_MAX)
    inflight.seen(REF, "8")
    assert inflight.hindrance(REF, 1.0) == (False, False, 0.0)


def test_after_an_unknown_outcome_the_object_is_read_first() -> None:
    inflight = InFlight()
    inflight.unsure(REF, now=0.0)
    inflight.seen(REF, "8")
    assert inflight.hindrance(REF, 0.0)[:2] == (True, True), "a watch event may be older than the write"
    inflight.was_read(REF)
    assert inflight.hindrance(REF, 0.0) == (False, False, 0.0)


def test_hd_7_doubt_about_what_only_informs_is_read_and_lengthens_no_pause_of_the_object() -> None:
    inflight = InFlight()
    for _ in range(5):
        inflight.unsure(REF, now=0.0, informs=True)
        assert inflight.hindrance(REF, 0.0)[:2] == (True, True)
        inflight.was_read(REF)
        assert inflight.hindrance(REF, 0.0) == (False, False, 0.0)
    inflight.failed(REF, now=0.0)
    inflight.unsure(REF, now=10.0, informs=True)
    inflight.was_read(REF, now=10.0)
    assert inflight.hindrance(REF, 10.0) == (False, False, 0.0)


def test_hd_7_purposes_that_inform_rest_each_by_itself() -> None:
    resting = Resting()
    assert resting.failed(REF, Purpose.MIRROR, 0.0) == 0.5
    assert resting.failed(REF, Purpose.MIRROR, 0.5) == 1.5
    assert resting.until(REF, Purpose.MIRROR, 1.0) == 1.5
    assert resting.until(REF, Purpose.SHOW_END, 1.0) == 0.0
    assert resting.failed(REF, Purpose.SHOW_END, 1.0, doubt=True) == 1.0, "it was read: at once"
    assert resting.failed(REF, Purpose.SHOW_END, 1.0, doubt=True) == 1.5
    resting.succeeded(REF, Purpose.MIRROR)
    assert resting.until(REF, Purpose.MIRROR, 1.0) == 0.0
    resting.succeeded(REF, Purpose.SHOW_END)
    assert not resting.pauses


def test_refusals_pause_longer_each_time_up_to_a_limit() -> None:
    inflight = InFlight()
    pauses = [inflight.failed(REF, now=0.0) for _ in range(12)]
    assert pauses[:3] == [0.5, 1.0, 2.0]
    assert pauses[-1] == RETRY_SECONDS_MAX
    assert inflight.hindrance(REF, RETRY_SECONDS_MAX) == (False, False, 0.0)


# --- the books ----------------------------------------------------------------------------------------------------


def test_an_epoch_is_charged_once_and_released_once() -> None:
    ledger = AttemptLedger()
    ledger.charge("u", 1, now=0.0)
    ledger.charge("u", 1, now=1.0)
    assert ledger.reserved == 1
    assert ledger.release("u", now=2.0)
    assert not ledger.release("u", now=3.0)
    with pytest.raises(LedgerError, match="epoch 1 already"):
        ledger.charge("u", 1, now=4.0)
    ledger.charge("u", 2, now=5.0)
    with pytest.raises(LedgerError, match="not yet released"):
        ledger.charge("u", 3, now=6.0)
    assert (ledger.reserved, ledger.released) == (2, 1)


def test_a_reservation_of_which_nothing_was_written_is_struck() -> None:
    ledger = AttemptLedger()
    ledger.charge("u", 1, now=0.0)
    ledger.undo("u")
    ledger.charge("u", 1, now=1.0)
    assert (ledger.reserved, ledger.released) == (1, 0)


# --- record -------------------------------------------------------------------------------------------------------


def workload(**status: Any) -> Workload:
    document = {
        "metadata": {
            "name": "w",
            "namespace": "team",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 3,
            "annotations": {"gatelift.dev/epoch": "2"},
            "finalizers": ["kueue.x-k8s.io/resource-in-use", "foreign"],
        },
        "spec": {"podSets": [{"name": "main", "count": 1, "template": {}}], "queueName": "main"},
        "status": status,
    }
    read = read_object(WORKLOAD, json.dumps(document).encode())
    assert isinstance(read, Workload)
    return read


ADMISSION = Admission(
    cluster_queue="shared",
    pod_set_assignments=(PodSetAssignment(name="main", flavors={"cpu": "x"}, resource_usage={"cpu": "1"}, count=1),),
)
NOW = "2026-11-21T00:00:00Z"
RESERVE = Reserve("u", ObjectKey("team", "w"), ADMISSION, ("dispatch",), 0.0, "", "Quota reserved", "")
CHOICE = admission_writes.Choice(cluster="a", epoch=2, term=5, policy=DisconnectPolicy.FAILOVER, check="dispatch")


def written(body: bytes) -> Workload:
    patch = json.loads(body)
    return workload(**{name: value for name, value in patch["status"].items() if value is not None})


def test_what_is_written_of_a_winner_is_read_back() -> None:
    body = admission_writes.admission_write(workload(), RESERVE, CHOICE, NOW)
    metadata = json.loads(body)["metadata"]
    assert (metadata["uid"], metadata["resourceVersion"]) == ("u", "7")
    read = record.read(written(body), travels=True)
    assert (read.cluster, read.epoch, read.term, read.policy) == ("a", 2, 5, DisconnectPolicy.FAILOVER)
    assert read.reserved
    assert read.admitted


def test_hd_55_the_epoch_of_a_reservation_is_the_one_that_was_written_with_it() -> None:
    """HD-30: whatever the annotation says by then, which anybody may raise."""
    body = admission_writes.admission_write(workload(), RESERVE, CHOICE, NOW)
    reserved = written(body)
    reserved.metadata.annotations["gatelift.dev/epoch"] = "9"
    read = record.read(reserved, travels=True)
    assert (read.epoch, read.highest_epoch) == (CHOICE.epoch, 9)


def test_a_local_placement_is_told_by_its_admission() -> None:
    choice = admission_writes.Choice(cluster="local", epoch=2, term=5, policy=DisconnectPolicy.WAIT)
    body = admission_writes.admission_write(workload(), RESERVE._replace(checks=()), choice, NOW)
    assert "clusterName" not in json.loads(body)["status"]
    read = record.read(written(body), travels=True)
    assert (read.cluster, read.epoch) == ("local", 2)
    assert record.read(written(body), travels=False).cluster == "", "a Workload without owner is placed nowhere"


def test_adoption_changes_the_term_and_nothing_else() -> None:
    admitted = admission_writes.admission_write(workload(), RESERVE, CHOICE, NOW)
    body = json.loads(admission_writes.adoption_write(written(admitted), 9))
    assert {**body["status"], "admissionChecks": []} == {**json.loads(admitted)["status"], "admissionChecks": []}
    marks = body["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]
    assert marks == {"gatelift.dev/term": "9", "gatelift.dev/epoch": "2", "gatelift.dev/disconnect": "failover"}


def test_a_released_record_marks_its_epoch_as_used_until_it_is_raised() -> None:
    before = written(admission_writes.admission_write(workload(), RESERVE, CHOICE, NOW))
    given_back = release_writes.GivenBack(
        evicted=Ending(reason="AdmissionCheck", message="why"),
        reason="PendingEvaluation",
        message="why",
        requeue=release_writes.Requeue(count=1, at="2026-11-21T00:01:00Z"),
        used=release_writes.Used(check="dispatch", epoch=2, term=5),
        retried="why",
    )
    after = written(release_writes.release_write(before, given_back, "2026-11-21T00:00:30Z"))
    assert record.read(after, travels=True).epoch_used
    assert not record.read(before, travels=True).epoch_used, "it is in use, not used up"
    check = after.status.admission_checks[0]
    assert (check.state, check.message, check.retry_count) == (
        "Pending",
        "Reset to Pending after eviction. Previously: Retry (why)",
        1,
    )
    assert json.loads(metadata_patches.epoch_patch(after, 3))["metadata"]["annotations"] == {"gatelift.dev/epoch": "3"}


def test_only_our_own_finalizer_is_dropped() -> None:
    body = metadata_patches.finalizers_patch(workload().metadata, "kueue.x-k8s.io/resource-in-use")
    assert body is not None
    assert json.loads(body)["metadata"]["finalizers"] == ["foreign"]
    assert metadata_patches.finalizers_patch(workload().metadata, "absent") is None


@pytest.mark.parametrize(("text", "epoch"), [("", 1), ("0", 1), ("-3", 1), ("x", 1), ("7", 7), ("٣", 1), ("9" * 19, 1)])
def test_a_malformed_epoch_counts_as_the_first(text: str, epoch: int) -> None:
    document = {"metadata": {"name": "w", "annotations": {"gatelift.dev/epoch": text}}}
    read = read_object(WORKLOAD, json.dumps(document).encode())
    assert isinstance(read, Workload)
    assert epochs.of(read) == epoch


# --- selectors, mirror, wall, knowledge ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "labels", "selected"),
    [
        ("", {}, True),
        ("zone=a", {"zone": "a"}, True),
        ("zone==a", {"zone": "b"}, False),
        ("zone!=a", {}, True),
        ("zone in (a, b),gpu", {"zone": "b", "gpu": ""}, True),
        ("zone notin (a,b)", {"zone": "a"}, False),
        ("!spot", {"spot": "true"}, False),
    ],
)
def test_a_cluster_selector_selects(text: str, labels: dict[str, str], selected: bool) -> None:
    assert matches(parse_selector(text), labels) is selected


@pytest.mark.parametrize("text", ["a b", "zone in ()", "zone in a", "=", "x" * (SELECTOR_CHARS_MAX + 1)])
def test_a_malformed_selector_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        parse_selector(text)


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("shown", "reported", "due"),
    [
        ({"phase": "Pending"}, {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]}, False),
        ({"phase": "Pending"}, {"phase": "Running"}, False),
        ({"phase": "Pending"}, {"phase": "Running", "conditions": READY}, True),
        ({"phase": "Running", "conditions": READY}, {"phase": "Running", "conditions": READY, "podIP": "x"}, False),
        ({"phase": "Running", "conditions": READY}, {"phase": "Failed"}, True),
        ({}, {"active": 1}, True),
        ({"active": 1}, {"active": 2}, False),
        ({"active": 2}, {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}, True),
    ],
)
def test_the_first_run_and_the_end_are_shown_at_once(
    shown: dict[str, Any], reported: dict[str, Any], due: bool
) -> None:
    document = json.dumps({"status": shown}).encode()
    assert is_first(an_attempt(), "p", document, json.dumps(reported).encode()) is due


def an_attempt() -> Attempt:
    return Attempt(uid="u", workload=ObjectKey("team", "p"), epoch=1)


def test_hd_291_what_an_object_has_shown_of_a_placement_is_no_news_any_more() -> None:
    attempt, runs, over = an_attempt(), {"phase": "Running", "conditions": READY}, {"phase": "Succeeded"}
    news = []
    for shown, reported in [({}, runs), (runs, over), (over, runs), (runs, over)]:
        document = json.dumps({"status": shown}).encode()
        news.append(is_first(attempt, "p", document, json.dumps(reported).encode()))
    assert news == [True, True, False, False]
    assert is_first(attempt, "another pod of it", b"{}", json.dumps(runs).encode())


@pytest.mark.parametrize("status", [b"[", b'{"phase":"Running","conditions":null}'])
def test_hd_291_a_status_that_cannot_be_read_waits_its_turn(status: bytes) -> None:
    assert not is_first(an_attempt(), "p", b"{}", status)


def test_the_wall_clock_is_read_not_asked() -> None:
    wall = Wall()
    wall.read(1_795_000_000.0, now=100.0)
    assert wall.text(160.0) == "2026-11-18T11:07:40Z"
    assert wall.at("2026-11-18T11:07:40Z", 0.0) == 160.0
    assert wall.at("yesterday", 3.0) == 3.0
    assert wall.at(None, 3.0) == 3.0


def test_an_older_version_does_not_replace_a_newer_one() -> None:
    knowledge = Knowledge()
    assert knowledge.put_workload(workload(), (None, record.read(workload(), travels=False)))
    older = {"metadata": {"name": "w", "namespace": "team", "uid": "u", "resourceVersion": "6"}}
    read = read_object(WORKLOAD, json.dumps(older).encode())
    assert isinstance(read, Workload)
    assert not knowledge.put_workload(read, (None, record.read(read, travels=False)))
    assert knowledge.workload_of("u") == workload()


def test_gone_workloads_are_remembered_within_a_bound() -> None:
    knowledge = Knowledge()
    for number in range(DEPARTED_MAX + 5):
        knowledge.has_gone(f"u{number}")
    assert len(knowledge.departed) == DEPARTED_MAX
    assert not knowledge.saw_go("u0")
    assert knowledge.saw_go(f"u{DEPARTED_MAX}")
    for number in range(DEPARTED_MAX + 5):
        knowledge.object_has_gone((POD, "team", "p", f"u{number}"))
    assert len(knowledge.departed_objects) == DEPARTED_MAX
