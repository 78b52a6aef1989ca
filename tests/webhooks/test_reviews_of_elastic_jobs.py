"""Elastic Jobs (KEP-77) as an API server asks about them, by a daemon with the kind that the product has not yet."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gatelift.webhooks.app import Daemon
from gatelift_kinds.job.hook import CONTROLLERS
from gatelift_kinds.registry import WITH_SLICES
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client
from gatelift_kube.values.resources import JOB
from support.manager.webhook_requests import operations, owned, queued
from support.servers.fake_apiserver import FakeApiServer
from support.until import until

from .conftest import SETTINGS, Asking

GATE = {"name": markers.ELASTIC_JOB}
GATES = "/spec/template/spec/schedulingGates"
ASKS = {markers.ELASTIC_JOB: "true"}


@pytest.fixture
async def daemon(client: Client) -> AsyncIterator[Daemon]:
    made = Daemon(client, SETTINGS, kinds=WITH_SLICES)
    await made.start()
    await until(lambda: not made.missing(), "the daemon is ready")
    yield made
    await made.stop()


def a_job(*gates: Any, **spec: Any) -> dict[str, Any]:
    document = queued(annotations=ASKS, name="j", uid="u-j")
    pods = {"containers": [{"name": "c"}], **({"schedulingGates": list(gates)} if gates else {})}
    return {**document, "spec": {"template": {"spec": pods}, **spec}}


async def test_sl_05_a_job_that_asks_is_suspended_and_its_pods_come_gated(asking: Asking) -> None:
    patch = operations(await asking.review("/mutate-job", "Job", a_job()))
    assert patch == {"/spec/suspend": True, GATES: [GATE]}
    made = a_job(GATE, suspend=True)
    assert "patch" not in await asking.review("/mutate-job", "Job", made)
    response = await asking.review("/validate-job", "Job", made)
    assert response["allowed"]
    assert "warnings" not in response


async def test_sl_06_a_manifest_without_the_gate_that_is_applied_again_leaves_it(asking: Asking) -> None:
    response = await asking.review("/mutate-job", "Job", a_job(suspend=True), a_job(GATE, suspend=True))
    assert operations(response) == {GATES: [GATE]}
    assert response["warnings"][0].startswith("spec.template.spec.schedulingGates: kueue.x-k8s.io/elastic-job stays")


async def test_sl_01_another_size_of_one_that_runs_is_taken_without_a_word(asking: Asking) -> None:
    before = a_job(GATE, suspend=False, parallelism=3, completions=9)
    for wanted in (8, 1):
        after = {**before, "spec": {**before["spec"], "parallelism": wanted}}
        response = await asking.review("/validate-job", "Job", after, before)
        assert response["allowed"]
        assert "warnings" not in response


@pytest.mark.parametrize("username", sorted(CONTROLLERS))
async def test_sl_06_a_job_controllers_own_pods_are_let_through_with_the_gate_and_nothing_else_of_ours(
    server: FakeApiServer, asking: Asking, username: str
) -> None:
    server.put(JOB, "j", "team", **a_job(GATE, suspend=False))
    pod = {"metadata": {"name": "j-0", "ownerReferences": owned("j", "u-j")}, "spec": {"schedulingGates": [GATE]}}
    made_by: dict[str, Any] = {"userInfo": {"username": username}}
    response = await asking.review("/mutate-pod", "Pod", pod, **made_by)
    assert response["allowed"]
    assert markers.ADMISSION_GATE not in str(operations(response))
    assert (await asking.review("/validate-pod", "Pod", pod, **made_by))["allowed"]
