"""Enrolment: a double opt-in, each refusal one line that says the way out."""

from __future__ import annotations

import json

import msgspec
import pytest

from gatelift.core.api.commands import AnswerEnrolment, Command, EnrolmentVerdict, IssueCertificate
from gatelift.core.api.events import CertificateIssued, EnrolmentAsked
from gatelift.core.clusters.enrolment import REQUESTS_MAX, Enrolments, EnrolmentSettings
from gatelift.core.clusters.link_values import WriteIds
from gatelift_kube.deciding.writes import Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values import timestamps
from gatelift_wire.values import tokens

TOKEN = tokens.compose("w1", bytes(24), b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")
WALL = 1_800_000_000.0
DAY = 86_400.0


class Bench:
    """A WorkerCluster, the enrolments, and an API that takes every write."""

    def __init__(self, *, approve_by_token: bool = False, **spec: object) -> None:
        self.document: dict[str, object] = {
            "metadata": {"name": "w1", "uid": "u", "resourceVersion": "1"},
            "spec": {"tokenDigest": tokens.digest(TOKEN), "tokenExpiresAt": "2027-12-01T00:00:00Z", **spec},
            "status": {},
        }
        self.enrolments = Enrolments(WriteIds(), EnrolmentSettings(approve_by_token=approve_by_token))
        self.wall = WALL
        self.requests = 0

    @property
    def cluster(self) -> WorkerCluster:
        return msgspec.convert(self.document, WorkerCluster)

    def ask(self, token: str = TOKEN, key: str = "k1", cluster: str = "w1") -> AnswerEnrolment:
        self.requests += 1
        event = EnrolmentAsked(
            request_id=self.requests, cluster=cluster, token=token, key_digest=key, request=b"csr of " + key.encode()
        )
        found = self.cluster if cluster == "w1" else None
        return self.settle(self.enrolments.asked(event, found, self.wall))

    def settle(self, commands: list[Command]) -> AnswerEnrolment:
        """Carry out what is asked until there is an answer."""
        for command in commands:
            match command:
                case AnswerEnrolment():
                    return command
                case Patch():
                    body = json.loads(command.body)
                    assert body["metadata"]["resourceVersion"] == "1", "every write names the version it was decided on"
                    self.status(**body["status"])
                    return self.settle(self.enrolments.wrote(WriteDone(write_id=command.write_id, object=None)))
                case IssueCertificate():
                    issued = CertificateIssued(request_id=command.request_id, certificate=b"cert", ca_bundle=b"ca")
                    return self.settle(self.enrolments.issued(issued, self.cluster))
                case _:
                    pass
        raise AssertionError(f"no answer in {commands}")

    def status(self, **parts: object) -> None:
        """Merge into the status, as a patch does."""
        merged = {**self.document["status"], **parts}  # type: ignore[dict-item]
        self.document["status"] = {name: value for name, value in merged.items() if value is not None}

    def greets(self) -> None:
        """Have the agent use the certificate that it has just been given."""
        self.status(certificateIssuedAt=timestamps.to_text(self.wall))

    def approve(self, key: str = "k1") -> None:
        self.document["spec"] = {**self.document["spec"], "approvedRequest": key}  # type: ignore[dict-item]


def test_a_token_alone_waits_for_a_person_and_says_which_command() -> None:
    answer = Bench().ask()
    assert answer.verdict is EnrolmentVerdict.PENDING
    assert "gatelift cluster approve w1" in answer.text
    assert not answer.certificate


def test_after_approval_the_same_key_gets_its_certificate_and_is_recorded() -> None:
    bench = Bench()
    bench.ask()
    bench.approve()
    answer = bench.ask()
    assert answer.verdict is EnrolmentVerdict.APPROVED
    assert answer.certificate == b"cert"
    assert bench.cluster.status.key_digest == "k1"


def test_a_token_is_used_up_by_the_first_key_that_shows_it() -> None:
    bench = Bench()
    bench.ask(key="k1")
    answer = bench.ask(key="thief")
    assert answer.verdict is EnrolmentVerdict.REFUSED
    assert "was used by another key" in answer.text


def test_an_approval_of_one_key_opens_nothing_for_another() -> None:
    bench = Bench()
    bench.ask(key="k1")
    bench.approve("k2")
    assert bench.ask(key="k1").verdict is EnrolmentVerdict.PENDING


def test_a_policy_may_take_the_token_for_approval() -> None:
    assert Bench(approve_by_token=True).ask().verdict is EnrolmentVerdict.APPROVED


REFUSALS = {
    "a wrong token": (Bench(), {"token": TOKEN[:-1] + "x"}, "cluster: w1 is not expected here with this token or key"),
    "an expired token": (Bench(tokenExpiresAt="2020-01-01T00:00:00Z"), {}, "expired at 2020-01-01T00:00:00Z"),
    "a cluster nobody expects": (Bench(), {"cluster": "w9"}, "w9 is not expected here with this token or key"),
    "the name local": (Bench(), {"cluster": "local"}, "needs no agent"),
    "a revoked cluster": (Bench(revoked=True), {}, "was revoked"),
    "a key nobody approved": (Bench(), {"token": ""}, "w1 is not expected here with this token or key"),
}


@pytest.mark.parametrize(("bench", "asked", "text"), REFUSALS.values(), ids=REFUSALS.keys())
def test_what_is_refused_says_the_field_and_the_way_out(bench: Bench, asked: dict[str, str], text: str) -> None:
    answer = bench.ask(**asked)
    assert answer.verdict is EnrolmentVerdict.REFUSED
    assert text in answer.text


def in_general(answer: AnswerEnrolment, cluster: str) -> tuple[object, ...]:
    """Return all that an answer says, but for the name that was asked for."""
    return (answer.verdict, answer.text.replace(cluster, "NAME"), answer.certificate, answer.ca_bundle)


@pytest.mark.parametrize("token", [pytest.param("", id="no token"), pytest.param("gl1.x", id="a wrong token")])
@pytest.mark.parametrize(
    "bench",
    [
        pytest.param(Bench(), id="a cluster that is expected"),
        pytest.param(Bench(tokenExpiresAt="2020-01-01T00:00:00Z"), id="one whose token expired"),
        pytest.param(Bench(revoked=True), id="one that was revoked"),
        pytest.param(Bench(tokenDigest=""), id="one without a token"),
    ],
)
def test_is_15_who_proves_nothing_is_not_told_whether_there_is_such_a_cluster(bench: Bench, token: str) -> None:
    there = bench.ask(token=token, key="a strangers")
    assert in_general(there, "w1") == in_general(bench.ask(token=token, key="a strangers", cluster="w9"), "w9")


def test_is_15_who_has_the_token_or_the_approved_key_is_told_what_is_wrong() -> None:
    bench = Bench(approve_by_token=True)
    assert "was revoked" in Bench(revoked=True).ask().text
    bench.ask()
    assert "expired" in Bench(tokenExpiresAt="2020-01-01T00:00:00Z").ask().text
    assert "token: is not the one last printed for w1" in bench.ask(token="gl1.x").text


def test_the_approved_key_renews_without_a_person_until_thirty_days_after_its_certificates_end() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    bench.wall = WALL + 30 * DAY
    assert bench.ask(token="").verdict is EnrolmentVerdict.APPROVED
    bench.greets()
    bench.wall += 32 * DAY
    answer = bench.ask(token="")
    assert answer.verdict is EnrolmentVerdict.REFUSED
    assert "more than 30 days ago" in answer.text


def test_is_16_a_replayed_request_keeps_nothing_fresh() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    bench.greets()
    used_at = bench.cluster.status.certificate_issued_at
    for _ in range(20):
        bench.wall += 1.5 * DAY
        assert bench.ask(token="").verdict is EnrolmentVerdict.APPROVED, "the key's owner could use what is signed"
        assert bench.cluster.status.certificate_issued_at == used_at
    bench.wall += 1.5 * DAY
    assert bench.ask(token="").verdict is EnrolmentVerdict.REFUSED, "and no replay makes its thirty days any longer"


def test_is_16_another_key_has_used_no_certificate_until_it_has() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    bench.greets()
    token = tokens.compose("w1", bytes(range(24)), b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")
    bench.document["spec"] = {**bench.document["spec"], "tokenDigest": tokens.digest(token)}  # type: ignore[dict-item]
    assert bench.ask(token, key="k2").verdict is EnrolmentVerdict.APPROVED
    assert bench.cluster.status.certificate_issued_at is None
    assert bench.ask(token, key="k2").verdict is EnrolmentVerdict.APPROVED, "an answer that was lost is given again"
    bench.wall += 10 * DAY
    assert bench.ask(token="", key="k2").verdict is EnrolmentVerdict.APPROVED
    bench.wall += 30 * DAY
    assert bench.ask(token="", key="k2").verdict is EnrolmentVerdict.REFUSED


def test_no_other_key_renews_for_a_cluster_that_has_one() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    answer = bench.ask(token="", key="another")
    assert (answer.verdict, answer.certificate) == (EnrolmentVerdict.REFUSED, b"")
    assert "cluster: w1 is not expected here with this token or key" in answer.text
    assert bench.ask(token="").verdict is EnrolmentVerdict.APPROVED


def test_a_used_token_renews_no_longer_than_the_key_it_was_used_by() -> None:
    bench = Bench()
    bench.ask()
    bench.approve()
    bench.wall = WALL + 1
    assert bench.ask().verdict is EnrolmentVerdict.APPROVED
    bench.greets()
    bench.wall = WALL + 20 * DAY
    assert bench.ask().verdict is EnrolmentVerdict.APPROVED
    bench.greets()
    bench.wall += 32 * DAY
    answer = bench.ask()
    assert answer.verdict is EnrolmentVerdict.REFUSED
    assert "enrol w1 anew with a token" in answer.text


def test_a_new_token_makes_the_same_key_wait_for_a_person_again() -> None:
    bench = Bench()
    bench.ask()
    bench.approve()
    bench.wall = WALL + 1
    bench.ask()
    bench.greets()
    token = tokens.compose("w1", bytes(range(24)), b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n")
    bench.document["spec"] = {  # what `gatelift cluster add` writes
        **bench.document["spec"],  # type: ignore[dict-item]
        "tokenDigest": tokens.digest(token),
        "tokenExpiresAt": "2030-01-01T00:00:00Z",
        "approvedRequest": "",
    }
    bench.wall = WALL + 60 * DAY
    assert bench.ask(token).verdict is EnrolmentVerdict.PENDING
    bench.approve()
    assert bench.ask(token).verdict is EnrolmentVerdict.APPROVED


def test_no_certificate_leaves_before_its_key_is_recorded() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    event = EnrolmentAsked(request_id=99, cluster="w1", token="", key_digest="k1", request=b"r")
    (issue,) = bench.enrolments.asked(event, bench.cluster, WALL)
    assert isinstance(issue, IssueCertificate)
    (write,) = bench.enrolments.issued(
        CertificateIssued(request_id=99, certificate=b"c", ca_bundle=b"b"), bench.cluster
    )
    assert isinstance(write, Patch)
    (answer,) = bench.enrolments.wrote(
        WriteFailed(write_id=write.write_id, error=WriteError.CONFLICT, message="changed")
    )
    assert isinstance(answer, AnswerEnrolment)
    assert answer.verdict is EnrolmentVerdict.PENDING
    assert not answer.certificate


def test_a_cluster_revoked_while_its_certificate_was_being_signed_gets_none() -> None:
    bench = Bench(approve_by_token=True)
    bench.ask()
    bench.enrolments.asked(
        EnrolmentAsked(request_id=7, cluster="w1", token="", key_digest="k1", request=b"r"), bench.cluster, WALL
    )
    (answer,) = bench.enrolments.issued(CertificateIssued(request_id=7, certificate=b"c", ca_bundle=b"b"), None)
    assert isinstance(answer, AnswerEnrolment)
    assert answer.verdict is EnrolmentVerdict.REFUSED


def test_a_flood_of_requests_is_told_to_come_back() -> None:
    bench = Bench()
    for number in range(REQUESTS_MAX):
        event = EnrolmentAsked(request_id=number, cluster="w1", token=TOKEN, key_digest="k", request=b"r")
        bench.enrolments.asked(event, bench.cluster, WALL)
    answer = bench.ask()
    assert answer.verdict is EnrolmentVerdict.PENDING
    assert "ask again" in answer.text
