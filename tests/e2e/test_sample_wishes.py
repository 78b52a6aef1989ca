"""IS-40 on a real API server: what is asked for and not served is refused, or comes back as the API's warning."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from gatelift.webhooks.configuration import SHOWN
from gatelift_kube.values.resources import JOB, POD, Resource
from support.e2e.rules import webhooks_alone
from support.servers.contract_api import Api, until_said

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(600)]

Json = dict[str, Any]
KINDS: dict[str, Resource] = {one.kind: one for one in (*SHOWN.values(), JOB, POD)}
FILE = Path(__file__).parents[1] / "webhooks" / "sample_wishes.yaml"
SAMPLES: list[Json] = [one for one in yaml.safe_load(FILE.read_text()) if one["object"]["kind"] in KINDS]
NAMESPACE = "default"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    async with webhooks_alone(tmp_path_factory.mktemp("wishes"), "wishes") as (_, _, made):
        refused = next(one for one in SAMPLES if one["answer"] == "refused")
        await until_said(lambda: post(made, refused), lambda said: said.code == 403, "the webhooks are asked")
        yield made


def complete(found: Json) -> Json:
    """Return an object with what a real API server asks for and no wish is about."""
    made: Json = copy.deepcopy(found)
    resource = KINDS[made["kind"]]
    made["apiVersion"] = resource.api_version
    if resource.namespaced:
        made["metadata"]["namespace"] = NAMESPACE
    for spec in (made.get("spec", {}), made.get("spec", {}).get("template", {}).get("spec", {})):
        for container in spec.get("containers", ()):
            container["image"] = "registry.local/worker:1"
            spec["restartPolicy"] = "Never"
    return made


async def post(api: Api, case: Json) -> Any:
    made = complete(case["object"])
    resource = KINDS[made["kind"]]
    return await api.post(resource.path(NAMESPACE if resource.namespaced else ""), made, dryRun="All")


@pytest.mark.parametrize("case", [pytest.param(one, id=one["asks"]) for one in SAMPLES])
async def test_is_40_is_answered(api: Api, case: Json) -> None:
    said = await post(api, case)
    warnings = [one.partition('"')[2].rpartition('"')[0].replace('\\"', '"') for one in said.warnings]
    if case["answer"] == "refused":
        assert said.code == 403
        assert case["says"] in said.message
    else:
        said.ok()
        assert [one.startswith(case["says"]) for one in warnings] == ([True] if case["answer"] == "warned" else [])
