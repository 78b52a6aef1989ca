"""What kubectl asks first, and how it wants its answers. On the embedded and the real API server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.servers.contract_api import Api, job, pod
from support.servers.contract_crd import AGGREGATED, widgets

pytestmark = pytest.mark.contract

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


async def test_the_server_is_ready_and_says_its_version(api: Api) -> None:
    assert (await api.get("/readyz")).body == "ok"
    version = (await api.get("/version")).ok()
    assert version["major"] == "1"
    assert version["gitVersion"].startswith("v1.")


async def test_legacy_discovery_lists_kinds_with_names_and_verbs(api: Api) -> None:
    core = (await api.get("/api/v1")).ok()
    assert (core["kind"], core["groupVersion"]) == ("APIResourceList", "v1")
    found = {each["name"]: each for each in core["resources"]}
    pods = found["pods"]
    assert (pods["kind"], pods["singularName"], pods["namespaced"], pods["shortNames"]) == ("Pod", "pod", True, ["po"])
    assert sorted(pods["verbs"]) == ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert "pods/status" in found
    assert found["nodes"]["namespaced"] is False
    groups = {each["name"]: each for each in (await api.get("/apis")).ok()["groups"]}
    assert groups["batch"]["preferredVersion"] == {"groupVersion": "batch/v1", "version": "v1"}


async def test_aggregated_discovery_says_all_at_once(api: Api) -> None:
    async with widgets(api) as custom:
        for path, group, resource in (("/api", "", "pods"), ("/apis", custom.group, "widgets")):
            said = await api.call("GET", path, accept=AGGREGATED)
            assert "as=APIGroupDiscoveryList" in said.content_type
            body = said.body if isinstance(said.body, dict) else json.loads(said.body)
            (found,) = (g for g in body["items"] if g["metadata"].get("name", "") == group)
            (entry,) = (r for r in found["versions"][0]["resources"] if r["resource"] == resource)
            assert entry["scope"] == "Namespaced"
            assert entry["responseKind"]["kind"] in ("Pod", "Widget")
            assert "status" in [each["subresource"] for each in entry["subresources"]]


def cells(body: Any) -> list[dict[str, Any]]:
    """Return the rows of a Table by column name."""
    names = [column["name"] for column in body["columnDefinitions"]]
    return [dict(zip(names, row["cells"], strict=True)) for row in body["rows"]]


async def test_pods_as_a_table_have_kubectls_columns(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulingGates=[{"name": "example.com/gate"}]))
    await api.post(f"{space}/pods", pod("b", nodeName="n1"))
    body = (await api.call("GET", f"{space}/pods", accept=TABLE)).ok()
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    gated, bound = cells(body)
    assert {key: gated[key] for key in ("Name", "Ready", "Status", "Restarts")} == {
        "Name": "a",
        "Ready": "0/1",
        "Status": "SchedulingGated",
        "Restarts": "0",
    }
    assert (bound["Status"], bound["Node"]) == ("Pending", "n1")
    assert body["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_jobs_as_a_table_have_kubectls_columns(api: Api) -> None:
    space = (await api.namespace()).removeprefix("/api/v1")
    await api.post(f"/apis/batch/v1{space}/jobs", job("a", suspend=True, completions=3, parallelism=2))
    await api.until(f"/apis/batch/v1{space}/jobs/a", lambda found: found["status"].get("conditions"))
    (row,) = cells((await api.call("GET", f"/apis/batch/v1{space}/jobs", accept=TABLE)).ok())
    assert (row["Name"], row["Status"], row["Completions"]) == ("a", "Suspended", "0/3")


async def test_custom_objects_as_a_table_have_the_columns_of_their_definition(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        await api.post(custom.path(space), custom.object("a", size=3))
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await api.patch(f"{custom.path(space)}/a/status", ready)
        await api.post(custom.path(space), custom.object("b", size=4))
        body = (await api.call("GET", custom.path(space), accept=TABLE)).ok()
        first, second = cells(body)
        assert {key: first[key] for key in ("Name", "Size", "Ready", "Mode")} == {
            "Name": "a",
            "Size": 3,
            "Ready": "True",
            "Mode": "Safe",
        }
        assert second["Ready"] is None
        assert first["Age"].endswith("s")
        assert [column["priority"] for column in body["columnDefinitions"]] == [0, 0, 0, 1, 0]


async def test_metadata_alone_can_be_asked_for(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a"))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    body = (await api.call("GET", f"{space}/pods", accept=accept)).ok()
    assert body["kind"] == "PartialObjectMetadataList"
    (item,) = body["items"]
    assert item["metadata"]["name"] == "a"
    assert "spec" not in item


async def test_a_watch_can_be_a_table_too(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/secrets", {"metadata": {"name": "a"}})
    async with api.watch(f"{space}/secrets", accept="application/json;as=Table;v=v1;g=meta.k8s.io") as following:
        first = await following()
    assert first["type"] == "ADDED"
    assert first["object"]["kind"] == "Table"
    assert first["object"]["rows"][0]["cells"][0] == "a"


async def test_openapi_says_that_fields_are_checked(api: Api) -> None:
    text = (await api.get("/openapi/v3")).ok()
    index = json.loads(text) if isinstance(text, str) else text
    place = index["paths"]["apis/batch/v1"]["serverRelativeURL"]
    text = (await api.get(place.partition("?")[0])).ok()
    document = json.loads(text) if isinstance(text, str) else text
    patch = document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "batch", "version": "v1", "kind": "Job"}
    assert "fieldValidation" in [each["name"] for each in patch["parameters"] if "name" in each]
