"""Guarded metrics (IS-26): for whoever the API server lets `get /metrics`, by TLS, on a port of their own."""

from __future__ import annotations

import datetime as dt
import json
import ssl
from typing import Any, cast

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import ApiError
from gatelift_kube.serving import metrics_access, self_signed
from gatelift_kube.serving.metrics_access import KEPT_MAX, KEPT_SECONDS, REVIEWS_BURST, Access, MetricsAccess
from gatelift_kube.serving.status_server import StatusServer

SCRAPER = {"username": "system:serviceaccount:monitoring:prometheus", "groups": ["system:serviceaccounts"], "uid": "u"}


class Reviews:
    """An API server that knows two tokens and answers nothing but reviews."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.users = {"good": SCRAPER, "other": {"username": "somebody"}}
        self.down = False

    async def raw(self, _method: str, path: str, body: bytes = b"") -> bytes:
        document = json.loads(body)
        self.asked.append(document)
        if self.down:
            raise ApiError(500, "InternalError", "down")
        if path.endswith("/tokenreviews"):
            user = self.users.get(document["spec"]["token"])
            status = {"authenticated": user is not None, "user": user or {}}
        else:
            status = {"allowed": document["spec"]["user"] == SCRAPER["username"], "reason": "as told"}
        return json.dumps({"kind": document["kind"], "status": status}).encode()


@pytest.fixture
def reviews() -> Reviews:
    return Reviews()


class Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def access(reviews: Reviews, time: Time) -> MetricsAccess:
    return MetricsAccess(cast("Client", reviews), time)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("Bearer good", Access.ALLOWED),
        ("bearer good", Access.ALLOWED),
        ("Bearer other", Access.DENIED),
        ("Bearer nobody", Access.UNKNOWN),
        ("", Access.UNKNOWN),
        ("Bearer ", Access.UNKNOWN),
        ("Basic good", Access.UNKNOWN),
        ("Bearer " + "x" * 20_000, Access.UNKNOWN),
    ],
)
async def test_is_26_a_token_is_let_in_whose_owner_may_get_the_path(
    access: MetricsAccess, header: str, said: Access
) -> None:
    assert await access.judge(header) is said


async def test_is_26_it_is_asked_of_the_path_as_the_owner_of_the_token(access: MetricsAccess, reviews: Reviews) -> None:
    await access.judge("Bearer good")
    spec = reviews.asked[1]["spec"]
    assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
    assert (spec["user"], spec["groups"]) == (SCRAPER["username"], SCRAPER["groups"])


async def test_is_26_what_was_said_is_believed_for_a_moment_only(
    access: MetricsAccess, reviews: Reviews, time: Time
) -> None:
    await access.judge("Bearer good")
    await access.judge("Bearer good")
    assert len(reviews.asked) == 2
    del reviews.users["good"]
    time.now += KEPT_SECONDS
    assert await access.judge("Bearer good") is Access.UNKNOWN


async def test_is_26_who_guesses_tokens_costs_the_api_server_nothing_and_keeps_nobody_out(
    access: MetricsAccess, reviews: Reviews, time: Time
) -> None:
    await access.judge("Bearer good")
    reviews.asked.clear()
    said = [await access.judge(f"Bearer guess-{number}") for number in range(1000)]
    assert len(reviews.asked) <= REVIEWS_BURST
    assert said[-1] is Access.TOO_MANY
    time.now += KEPT_SECONDS - 1
    assert await access.judge("Bearer good") is Access.ALLOWED
    time.now += 1.0
    for number in range(1000):
        await access.judge(f"Bearer again-{number}")
    assert await access.judge("Bearer good") is Access.ALLOWED, "who was let in has a share of its own"


async def test_is_26_few_answers_are_kept_and_those_that_let_in_go_last(access: MetricsAccess, time: Time) -> None:
    await access.judge("Bearer good")
    for number in range(2 * KEPT_MAX):
        time.now += 0.5  # as fast as strangers are asked about
        await access.judge(f"Bearer guess-{number}")
    assert len(access._kept) == KEPT_MAX
    assert any(said is Access.ALLOWED for said, _ in access._kept.values())


async def test_is_26_an_api_server_that_does_not_answer_lets_nobody_in_and_nothing_is_kept(
    access: MetricsAccess, reviews: Reviews
) -> None:
    reviews.down = True
    assert await access.judge("Bearer good") is Access.UNANSWERED
    reviews.down = False
    assert await access.judge("Bearer good") is Access.ALLOWED


async def get(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as answer:
        return answer.status, await answer.text()


async def test_is_26_guarded_metrics_are_on_a_port_of_tls_and_on_no_other(access: MetricsAccess) -> None:
    """The symptom: whoever reached the port read them."""
    registry = CollectorRegistry()
    Gauge("figure", "One.", registry=registry).set(1)
    health, guarded = (StatusServer(registry, str, lambda: None, access=access) for _ in range(2))
    await health.start("127.0.0.1:0")
    await guarded.start("127.0.0.1:0", self_signed.context("gatelift-manager", dt.datetime.now(dt.UTC)))
    try:
        assert (await get(f"http://{health.address}/healthz"))[0] == 200
        assert (await get(f"http://{health.address}/metrics", "good"))[0] == 404
        url = f"https://{guarded.address}/metrics"
        assert "figure 1.0" in (await get(url, "good"))[1]
        assert (await get(url, "other"))[0] == 403
        status, text = await get(url)
        assert (status, "figure" in text) == (401, False)
        assert "bearer token" in text
        assert (await get(f"https://{guarded.address}/readyz"))[0] == 404
        with pytest.raises(aiohttp.ClientError):
            await get(f"http://{guarded.address}/metrics", "good")
    finally:
        await guarded.stop()
        await health.stop()


def test_is_26_a_certificate_of_its_own_takes_no_old_handshake() -> None:
    context = self_signed.context("gatelift-agent", dt.datetime.now(dt.UTC))
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert metrics_access.PATH == "/metrics"
