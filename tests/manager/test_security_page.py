"""The numbers and names on the page about security are those of the code."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from gatelift import own_settings
from gatelift.adapters import agents_server, authority, authority_store, enrol_server, peer_budget
from gatelift.core.clusters import links, renewals
from gatelift.introduction import TOKEN_SECONDS_USUAL
from gatelift_agent.adapters import enrolment
from gatelift_wire.values import limits, tokens

ROOT = Path(__file__).parents[2]
PAGE = " ".join((ROOT / "docs" / "security.md").read_text(encoding="utf-8").split())
HOUR = timedelta(hours=1)
CERTIFICATES = own_settings.Certificates()

TOLD = {
    "life of the CA": f"{authority.CA_LIFETIME.days // 365} years, rotated by hand",
    "life of the server's certificate": f"{authority_store.SERVER_LIFETIME.days} days, remade at half of it",
    "how soon a rotation is seen": f"seen by every replica within {authority_store.REFRESH_SECONDS:g} s",
    "how soon trust is looked at": f"looked at every {agents_server.TRUST_SECONDS:g} s",
    "life of an agent's certificate": f"`certificates.lifetime`, {CERTIFICATES.lifetime / 3600:g} h",
    "renewal by the key": f"until {CERTIFICATES.renew_by_key_for / 86400:g} days (`certificates.renewByKeyFor`)",
    "life of a token": f"| {TOKEN_SECONDS_USUAL // 3600} h until first use |",
    "bits of a token": f"{tokens.SECRET_BYTES * 8} random bits",
    "the codec's limit": f"a frame above {limits.FRAME_BYTES_MAX >> 20} MiB,",
    "gRPC's limit": f"(4 MiB + {(agents_server.MESSAGE_BYTES_MAX - limits.FRAME_BYTES_MAX) >> 10} KiB)",
    "frames that wait": (
        f"when {agents_server.FRAMES_WAITING_MAX:,} frames or {agents_server.BYTES_WAITING_MAX >> 20} MiB wait for it, "
        f"or one frame for {agents_server.WRITE_SECONDS_MAX:g} s"
    ),
    "streams of one identity": (
        f"{limits.STREAMS_WAITING_MAX} that have not greeted, {agents_server.STREAMS_PER_CLUSTER_MAX} in all"
    ),
    "a peer's share": (
        f"above {peer_budget.CPU_SHARE:g} s of CPU, {peer_budget.BYTES_PER_SECOND >> 20} MiB or "
        f"{peer_budget.ITEMS_PER_SECOND:,} items a second (bursts: {peer_budget.CPU_BURST_SECONDS:g} s at a fifth of "
        f"the process, {peer_budget.BYTES_BURST >> 20} MiB, {peer_budget.ITEMS_BURST:,} items) its streams wait, "
        f"at most {peer_budget.WAIT_SECONDS_MAX:g} s a frame"
    ),
    "parts": f"more than {limits.JSON_PARTS_MAX:,} objects and lists in one status, or items in the lists of one frame",
    "values": (
        f"a long status of more than {limits.STATUS_VALUES_MAX:,} values, or with numbers of more than "
        f"{limits.STATUS_DIGITS_MAX} digits"
    ),
    "streams of all": f"{links.STREAMS_MAX:,}, then RESOURCE_EXHAUSTED",
    "enrolments": (
        f"{enrol_server.REQUESTS_MAX} are answered at a time, each within {enrol_server.ANSWER_SECONDS:g} s; "
        f"a request holds {enrol_server.REQUEST_BYTES_MAX >> 10} KiB at the most"
    ),
}


@pytest.mark.parametrize("words", TOLD.values(), ids=TOLD.keys())
def test_a_number_on_the_page_is_that_of_the_code(words: str) -> None:
    assert words in PAGE


def test_a_certificate_is_renewed_when_and_as_often_as_the_page_says() -> None:
    assert pytest.approx(2 / 3) == enrolment.RENEW_SHARE
    assert "at two thirds of a certificate's life" in PAGE
    assert renewals.CERTIFICATE_SECONDS == 1.0
    assert "one per second is signed" in PAGE


def test_the_tests_that_the_page_names_are_there() -> None:
    for name in (
        "agents_server",
        "agents_certificates",
        "foreign_reports",
        "enrol_server",
        "authority_store",
        "links",
        "enrolment",
    ):
        assert f"test_{name}.py" in PAGE
        assert (Path(__file__).parent / f"test_{name}.py").exists()
    assert (ROOT / "tests" / "bad_input.yaml").exists()
