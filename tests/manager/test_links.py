"""Sessions of worker clusters at the manager: rule R2 (written first), leases, refusals, a person's word."""

from __future__ import annotations

import json

import pytest

from gatelift.core.api import events
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_BY
from gatelift.core.clusters.link_values import (
    HigherTermRead,
    LinkBroken,
    LinkLost,
    LinkOpened,
    LinkState,
    PlaceCounts,
    PlacementsInventoried,
    Reported,
)
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Capacity,
    CapacityEntry,
    CertificateRenewed,
    CertificateRequest,
    Cordon,
    Forget,
    Frame,
    GatesLifted,
)
from gatelift_wire.values.refusals import CloseReason
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

KEY = PlacementKey("uid-1", 1)


def test_a_session_number_is_written_before_the_agent_is_welcomed() -> None:
    manager = Manager(Api())
    manager.hold_writes = True
    manager.dial()
    assert not manager.agents[1].live
    (write,) = manager.held
    assert json.loads(write.body)["status"]["session"] == 1
    assert json.loads(write.body)["status"]["term"] == 1
    manager.hold_writes = False
    manager.event(manager.api.write(write))
    assert manager.agents[1].session == 1
    assert manager.kinds() == ["PlacementsInventoried", "LinkOpened"]


def test_the_condition_connected_is_true_with_a_session_unknown_without_and_false_when_lost() -> None:
    def shown() -> tuple[str, str]:
        (found,) = (each for each in manager.api.get("w1").status.conditions if each.type == "Connected")
        return found.status, found.reason

    manager = Manager(Api())
    manager.pass_time(3)
    assert shown() == ("False", "NeverConnected")
    manager.dial()
    manager.pass_time(3, agents=True)
    assert shown() == ("True", "Connected")
    manager.event(events.AgentStreamClosed(stream_id=1))
    manager.pass_time(3)
    assert shown() == ("Unknown", "NoSession"), "its lease still counts"
    manager.pass_time(70)
    assert shown() == ("False", "Lost")
    manager.dial(2)
    manager.pass_time(3, agents=True)
    assert shown() == ("True", "Connected")


def test_an_inventory_carries_the_revision_of_the_record_at_the_time_it_was_asked_for() -> None:
    manager = Manager(Api())
    manager.inventory = (InventoryEntry(key=KEY, namespace="d", name="p", state="RUNNING", lifted=True),)
    manager.dial()
    (inventoried,) = [each for each in manager.upcalls if isinstance(each, PlacementsInventoried)]
    assert inventoried.record_revision == 7
    assert [entry.key for entry in inventoried.entries] == [KEY]
    assert inventoried.unproven_through == 0


REFUSED = {
    "a standby": (lambda: Manager(Api(), term=0), {}, CloseReason.NOT_LEADER),
    "the agent of its own process, before all is listed": (
        lambda: Manager(Api(), term=0),
        {"cluster": "local", "key": ""},
        CloseReason.SHUTTING_DOWN,
    ),
    "a cluster nobody expects": (lambda: Manager(Api()), {"cluster": "w9"}, CloseReason.UNKNOWN_CLUSTER),
    "a revoked cluster": (lambda: Manager(Api(revoked=True)), {}, CloseReason.REVOKED),
    "a key that is not the approved one": (lambda: Manager(Api()), {"key": "other"}, CloseReason.REVOKED),
}


@pytest.mark.parametrize(("make", "dialled", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_a_stream_that_may_not_be_served_is_closed_with_a_typed_reason(
    make: object, dialled: dict[str, str], reason: CloseReason
) -> None:
    manager: Manager = make()  # type: ignore[operator]  # a factory of the table
    manager.dial(**dialled)  # type: ignore[arg-type]  # names and texts
    assert manager.closed[1] is reason
    assert manager.writes == (0 if reason is CloseReason.NOT_LEADER else manager.writes)
    assert not manager.agents[1].live


def test_a_second_session_with_the_same_identity_fences_the_first() -> None:
    manager = Manager(Api())
    manager.dial(1)
    manager.dial(2)
    assert manager.closed[1] is CloseReason.FENCED_BY_NEWER_SESSION
    assert manager.agents[2].session == 2
    before = len(manager.upcalls)
    manager.event(
        events.AgentFrameArrived(stream_id=1, frame=Frame(session=1, sequence=1, messages=(GatesLifted(key=KEY),)))
    )
    assert not [each for each in manager.upcalls[before:] if isinstance(each, Reported)], "its reports change nothing"


def test_reports_of_the_open_session_reach_the_machine_and_commands_the_agent() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.report(1, GatesLifted(key=KEY))
    (reported,) = [each for each in manager.upcalls if isinstance(each, Reported)]
    assert reported.message == GatesLifted(key=KEY)
    assert reported.cluster == "w1"
    sent = manager.links.send("w1", (Forget(key=KEY), Cordon(cordoned=True)), manager.now)
    assert (sent.session, sent.first_sequence) == (1, 1)
    manager.perform(sent.commands)
    assert manager.delivered == [Forget(key=KEY), Cordon(cordoned=True)]


def test_nothing_is_sent_or_kept_while_a_link_is_not_open() -> None:
    manager = Manager(Api())
    assert manager.links.send("w1", (Forget(key=KEY),), manager.now).session == 0
    manager.dial()
    assert manager.delivered == []


def test_nothing_is_sent_when_the_own_leader_lease_has_run_out() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.event(events.LeadershipExtended(valid_until=manager.now))
    assert manager.links.send("w1", (Forget(key=KEY),), manager.now).session == 0


def test_lost_is_concluded_only_after_it_was_written() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.hold_writes = True
    manager.pass_time(80)
    assert "LinkBroken" in manager.kinds()
    assert "LinkLost" not in manager.kinds()
    lost = manager.held[-1]
    assert json.loads(lost.body)["status"]["connected"] is False
    manager.hold_writes = False
    assert any(isinstance(each, LinkLost) for each in manager.event(manager.api.write(lost)))
    view = manager.links.state("w1")
    assert view is not None
    assert view.state is LinkState.LOST


def test_renewals_keep_a_cluster_connected() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(300, agents=True)
    assert "LinkLost" not in manager.kinds()
    assert manager.agents[1].lease_valid(manager.now)


def test_a_deposed_leader_welcomes_nobody_since_its_write_conflicts() -> None:
    api = Api()
    deposed, leader = Manager(api, term=1, instance="m0"), Manager(api, term=2, instance="m1")
    leader.dial(1)
    deposed.dial(2)
    assert not deposed.agents[2].live
    assert api.get("w1").status.term == 2
    deposed.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    assert any(isinstance(each, HigherTermRead) for each in deposed.upcalls)


def test_a_deposed_leader_cannot_write_lost_over_a_session_that_it_does_not_know() -> None:
    api = Api()
    deposed = Manager(api, term=1, instance="m0")
    deposed.dial(1)
    leader = Manager(api, term=2, instance="m1")
    leader.dial(2)
    deposed.pass_time(80)
    assert "LinkLost" not in deposed.kinds()
    assert api.get("w1").status.connected


def test_session_numbers_go_on_after_a_new_leader_took_over() -> None:
    api = Api()
    Manager(api, term=1, instance="m0").dial(1)
    leader = Manager(api, term=2, instance="m1")
    leader.dial(1)
    assert leader.agents[1].session == 2


def test_an_unreachable_worker_api_is_written_before_the_renewal_is_answered() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(2)
    manager.hold_writes = True
    manager.agents[1].set_facts(credits_=0, api_reachable=False, replicas=1, kinds=("Pod",), now=manager.now)
    acknowledged = manager.agents[1].lease_acknowledged_at
    manager.pass_time(12, agents=True)
    assert manager.agents[1].lease_acknowledged_at == acknowledged
    write = next(each for each in manager.held if b'"apiReachable":false' in each.body)
    manager.hold_writes = False
    manager.event(manager.api.write(write))
    assert manager.agents[1].lease_acknowledged_at != acknowledged
    assert manager.api.get("w1").status.api_reachable is False


def test_an_agent_that_forgot_a_session_it_had_answered_in_is_a_restored_worker() -> None:
    manager = Manager(Api())
    manager.dial(1)
    manager.dial(2)
    manager.pass_time(3, agents=True)
    manager.unexplained = 1
    manager.dial(3, agent=AgentSession(instance="restored", last_session=1, last_term=1))
    inventoried = [each for each in manager.upcalls if isinstance(each, PlacementsInventoried)][-1]
    assert inventoried.unproven
    view = manager.links.state("w1")
    assert view is not None
    assert view.cordoned


def test_the_answer_of_a_status_write_does_not_undo_what_a_person_said_after_it() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    manager.hold_writes = True
    manager.report(1, Capacity(entries=(CapacityEntry(flavor="f", resource="cpu", nominal=8, used=1, largest_fit=7),)))
    manager.pass_time(12, agents=True)
    (write,) = manager.held
    answer = manager.api.write(write)
    manager.api.annotate("w1", {ANNOTATION_FENCED_BY: "ada"})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.event(answer)
    link = manager.links._links["w1"]
    assert link.object is not None
    assert link.object.metadata.annotations[ANNOTATION_FENCED_BY] == "ada"


def test_is_51_capacity_is_shown_and_written_in_quantities() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.report(1, Capacity(entries=(CapacityEntry(flavor="f", resource="cpu", nominal=8, used=1, largest_fit=7),)))
    manager.pass_time(3, agents=True)
    view = manager.links.state("w1")
    assert view is not None
    assert view.capacity["cpu"].nominal == 8
    written = manager.api.get("w1").status.capacity[0]
    assert (written.nominal, written.used, written.largest_fit) == ("8m", "1m", "7m")


def test_a_certificate_is_renewed_over_the_stream() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.report(1, CertificateRequest(request=b"csr"))
    (issue,) = manager.issued
    assert (issue.cluster, issue.request) == ("w1", b"csr")
    manager.event(events.CertificateIssued(request_id=issue.request_id, certificate=b"new", ca_bundle=b"ca"))
    assert manager.delivered == [CertificateRenewed(certificate=b"new", ca_bundle=b"ca")]


def test_a_revocation_closes_the_session_and_nothing_else() -> None:
    api = Api()
    api.put("w2", spec={}, status={"keyDigest": "k"})
    manager = Manager(api)
    manager.dial(1)
    manager.dial(2, cluster="w2")
    api.put("w1", spec={"revoked": True})
    manager.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    manager.pass_time(1)
    assert manager.agents[2].live
    view = manager.links.state("w1")
    assert view is not None
    assert not view.open


def test_a_broken_frame_ends_one_session_and_nothing_else() -> None:
    api = Api()
    api.put("w2", spec={}, status={"keyDigest": "k"})
    manager = Manager(api)
    manager.dial(1)
    manager.dial(2, cluster="w2")
    manager.event(events.StreamViolated(stream_id=1, text="frame.bytes: 9 MiB, 4 MiB allowed", too_large=True))
    assert manager.closed[1] is CloseReason.TOO_LARGE
    assert [each.cluster for each in manager.upcalls if isinstance(each, LinkBroken)] == ["w1"]
    assert manager.agents[2].live


def test_a_write_that_conflicts_is_decided_anew_on_the_newer_object() -> None:
    manager = Manager(Api())
    manager.api.put("w1", spec={"weight": 3})
    manager.dial()
    assert not manager.agents[1].live
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(2)
    assert manager.agents[1].live


def test_the_management_cluster_gets_a_worker_cluster_of_its_own() -> None:
    manager = Manager(Api())
    assert "local" in manager.api.objects


def test_stepping_down_ends_every_session_and_writes_nothing_more() -> None:
    manager = Manager(Api())
    manager.dial()
    before = manager.writes
    manager.event(events.LeadershipLost())
    manager.pass_time(100)
    assert manager.writes == before
    assert not any(isinstance(each, LinkLost) for each in manager.upcalls)
    assert any(isinstance(each, LinkOpened) for each in manager.upcalls)


def test_an_agent_that_claims_to_have_seen_a_higher_term_is_not_served_but_does_not_depose_the_leader() -> None:
    manager = Manager(Api(), term=1)
    before = manager.writes
    manager.dial(1, agent=AgentSession(instance="a", last_session=0, last_term=9))
    manager.pass_time(3)
    assert manager.closed[1] is CloseReason.TERM_STALE
    assert manager.writes == before + 1, "its word is looked into by one conditional write"
    assert not any(isinstance(each, HigherTermRead) for each in manager.upcalls)
    assert any("seen term 9, which nobody wrote here" in note for note in manager.notes)


def test_a_higher_term_that_an_agent_saw_and_another_leader_wrote_deposes_the_leader() -> None:
    api = Api()
    deposed = Manager(api, term=1, instance="m0")
    Manager(api, term=2, instance="m1").dial(1)
    before = deposed.writes
    deposed.dial(2, agent=AgentSession(instance="a", last_session=0, last_term=2))
    deposed.pass_time(3)
    assert deposed.writes == before + 1
    assert not any(isinstance(each, HigherTermRead) for each in deposed.upcalls), "the write conflicted, nothing else"
    deposed.event(ObjectSeen(WORKER_CLUSTER, api.get("w1"), b""))
    assert any(isinstance(each, HigherTermRead) and each.term == 2 for each in deposed.upcalls)


def test_an_agent_that_is_revoked_while_its_session_number_is_being_written_is_not_welcomed() -> None:
    manager = Manager(Api())
    manager.hold_writes = True
    manager.dial()
    (write,) = manager.held
    manager.api.put("w1", spec={"revoked": True})
    manager.hold_writes = False
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.event(manager.api.write(write))
    manager.pass_time(3)
    assert manager.closed[1] is CloseReason.REVOKED
    assert not manager.agents[1].live


def test_the_approval_of_another_key_ends_the_session_of_the_one_before() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.api.put("w1", status={**manager.api.objects["w1"]["status"], "keyDigest": "k2"})  # type: ignore[dict-item]
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    assert manager.closed[1] is CloseReason.REVOKED
    manager.dial(2, key="k2")
    assert manager.agents[2].live


def test_a_revocation_takes_the_approval_of_the_key_with_it() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.api.put("w1", spec={"revoked": True})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3)
    manager.api.put("w1", spec={"revoked": False})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.dial(2)
    assert manager.closed[2] is CloseReason.REVOKED, "added again, it starts from a new token"


def test_deleting_a_worker_cluster_ends_its_session() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.event(ObjectGone(WORKER_CLUSTER, manager.api.get("w1")))
    assert manager.closed[1] is CloseReason.UNKNOWN_CLUSTER
    assert manager.links.state("w1") is None


def test_a_number_that_was_written_for_one_greeting_welcomes_no_other() -> None:
    manager = Manager(Api())
    manager.hold_writes = True
    manager.dial(1)
    manager.dial(2)
    (first,) = manager.held
    manager.hold_writes = False
    manager.event(manager.api.write(first))
    assert manager.agents[2].session == 2
    assert manager.api.get("w1").status.agent_instance == "agent-2"
    assert not manager.agents[1].live


def test_a_message_that_the_agent_would_refuse_is_not_sent_and_says_which_rule_it_breaks() -> None:
    manager = Manager(Api())
    manager.dial()
    sent = manager.links.send("w1", (Forget(key=KEY), Forget(key=PlacementKey("", 1))), manager.now)
    assert (sent.session, sent.first_sequence) == (0, 0)
    assert sent.refused == "Forget.key.uid: must not be empty"
    manager.perform(sent.commands)
    assert manager.delivered == []
    assert manager.agents[1].live


def test_a_standby_has_no_deadline_of_writes_that_it_may_not_make() -> None:
    assert Manager(Api(), term=0).links.next_deadline() is None
    manager = Manager(Api())
    manager.dial()
    manager.event(events.LeadershipExtended(valid_until=manager.now))
    manager.links.place_counts("w1", PlaceCounts(placements=3, offers=0, unexplained=0))
    manager.event(events.Ticked())
    deadline = manager.links.next_deadline()
    assert deadline is not None
    assert deadline > manager.now
    manager.event(events.LeadershipExtended(valid_until=manager.now + 10))
    manager.pass_time(2)
    assert manager.api.get("w1").status.placements == 3


def test_a_standby_answers_enrolment_with_ask_again_and_writes_nothing() -> None:
    manager = Manager(Api(), term=0)
    manager.event(events.EnrolmentAsked(request_id=5, cluster="w1", token="t", key_digest="k", request=b"r"))
    assert [(each.request_id, each.text) for each in manager.answers] == [(5, "this manager is a standby; ask again")]
    assert manager.writes == 0


def test_certificates_are_asked_for_one_at_a_time_and_for_the_approved_key_only() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.report(1, CertificateRequest(request=b"1"), CertificateRequest(request=b"2"))
    assert [(each.request, each.key_digest) for each in manager.issued] == [(b"1", "k")]


def test_a_date_of_issue_that_the_enrolment_port_wrote_is_not_written_back() -> None:
    manager = Manager(Api())
    manager.dial()
    status = manager.api.objects["w1"]["status"]
    manager.api.put("w1", status={**status, "certificateIssuedAt": "2099-01-01T00:00:00Z"})  # type: ignore[dict-item]
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.links.place_counts("w1", PlaceCounts(placements=3, offers=0, unexplained=0))
    manager.pass_time(3)
    assert manager.api.get("w1").status.certificate_issued_at == "2099-01-01T00:00:00Z"
    assert manager.api.get("w1").status.placements == 3


def test_deadlines_are_kept_once_however_much_is_sent() -> None:
    manager = Manager(Api())
    manager.dial()
    for _ in range(500):
        manager.perform(manager.links.send("w1", (Cordon(cordoned=True),), manager.now).commands)
    assert len(manager.links._index._heap) < 20  # what is bounded is inside


def test_the_agent_of_local_is_asked_to_come_back_at_once_while_its_worker_cluster_is_being_made() -> None:
    manager = Manager(Api())
    manager.hold_writes = True
    manager.event(ObjectGone(WORKER_CLUSTER, manager.api.get("local")))
    manager.dial(7, cluster="local", key="")
    assert manager.closed[7] is CloseReason.SHUTTING_DOWN
    assert not manager.agents[7].live
