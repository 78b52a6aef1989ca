"""When a certificate counts as issued: when it is used, since whoever replays a request has one signed."""

from __future__ import annotations

from gatelift.core.api import events
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_kube.values.timestamps import to_text
from gatelift_wire.sessions.session_agent import AgentSession
from gatelift_wire.values.messages import CertificateRequest
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

ISSUED = 1_800_000_000.0
HOUR = 3600.0


def issued_at(manager: Manager) -> str | None:
    return manager.api.get("w1").status.certificate_issued_at


def test_is_16_a_certificate_counts_as_issued_when_its_agent_greets_with_it() -> None:
    manager = Manager(Api())
    manager.dial(issued_at=ISSUED)
    assert issued_at(manager) == to_text(ISSUED)
    manager.dial_again(1, 2, issued_at=ISSUED + HOUR)
    assert issued_at(manager) == to_text(ISSUED + HOUR)
    manager.dial_again(2, 3, issued_at=ISSUED)
    assert issued_at(manager) == to_text(ISSUED + HOUR), "an older one takes nothing back"


def test_is_16_a_certificate_that_is_handed_out_counts_for_nothing_yet() -> None:
    manager = Manager(Api())
    manager.dial(issued_at=ISSUED)
    manager.report(1, CertificateRequest(request=b"1"))
    (asked,) = manager.issued
    manager.event(events.CertificateIssued(request_id=asked.request_id, certificate=b"c", ca_bundle=b"b"))
    manager.pass_time(3, agents=True)
    assert issued_at(manager) == to_text(ISSUED)


def test_is_16_a_successor_learns_of_the_use_as_well() -> None:
    api = Api()
    Manager(api).dial(issued_at=ISSUED)
    successor = Manager(api, term=2, instance="m2")
    successor.dial(issued_at=ISSUED + HOUR, agent=AgentSession(instance="a", last_session=1, last_term=1))
    successor.pass_time(3, agents=True)
    assert issued_at(successor) == to_text(ISSUED + HOUR)


def test_is_16_what_an_older_key_used_is_not_written_back_for_a_new_one() -> None:
    manager = Manager(Api())
    manager.dial(issued_at=ISSUED)
    status = {**manager.api.objects["w1"]["status"], "keyDigest": "k2"}  # type: ignore[dict-item]
    status.pop("certificateIssuedAt")
    manager.api.put("w1", status=status)
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3)
    assert issued_at(manager) is None
    manager.dial(5, key="k2", issued_at=ISSUED - HOUR)
    assert issued_at(manager) == to_text(ISSUED - HOUR)
