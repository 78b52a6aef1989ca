"""The three patch types. On the embedded and the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.contract_api import JSON_PATCH, STRATEGIC, Api, config, pod

pytestmark = pytest.mark.contract


async def test_a_merge_patch_adds_changes_and_removes(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a", keep="1", drop="2"))
    patched = (await api.patch(f"{space}/configmaps/a", {"data": {"drop": None, "new": "3"}})).ok()
    assert patched["data"] == {"keep": "1", "new": "3"}


async def test_a_merge_patch_replaces_lists(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await api.post(f"{space}/configmaps", document)
    patched = (await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": ["example.com/b"]}})).ok()
    assert patched["metadata"]["finalizers"] == ["example.com/b"]
    await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": None}})


async def test_a_merge_patch_with_an_old_version_conflicts(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a"))).ok()
    await api.patch(f"{space}/configmaps/a", {"data": {"k": "1"}})
    version = first["metadata"]["resourceVersion"]
    said = await api.patch(f"{space}/configmaps/a", {"metadata": {"resourceVersion": version}, "data": {"k": "2"}})
    assert (said.code, said.reason) == (409, "Conflict")
    assert "the object has been modified" in said.message


async def test_a_patch_for_another_uid_is_invalid(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.patch(f"{space}/configmaps/a", {"metadata": {"uid": "another"}, "data": {"k": "2"}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert 'metadata.uid: Invalid value: "another": field is immutable' in said.message
    named = {"metadata": {"uid": "another", "resourceVersion": "1"}, "data": {"k": "2"}}
    said = await api.patch(f"{space}/configmaps/a", named)
    assert (said.code, said.reason) == (409, "Conflict")


async def test_a_patch_of_a_missing_object_is_not_found(api: Api) -> None:
    space = await api.namespace()
    assert (await api.patch(f"{space}/configmaps/a", {"data": {}})).code == 404


async def test_a_json_patch_does_all_its_operations(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a", x="1", y="2", z="3"))
    operations = [
        {"op": "test", "path": "/data/x", "value": "1"},
        {"op": "replace", "path": "/data/x", "value": "10"},
        {"op": "remove", "path": "/data/y"},
        {"op": "move", "from": "/data/z", "path": "/data/w"},
        {"op": "copy", "from": "/data/x", "path": "/data/v"},
        {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}},
        {"op": "add", "path": "/metadata/annotations/e~1f", "value": "g"},
    ]
    patched = (await api.patch(f"{space}/configmaps/a", operations, JSON_PATCH)).ok()
    assert patched["data"] == {"x": "10", "w": "3", "v": "10"}
    assert patched["metadata"]["annotations"] == {"a/b": "c", "e/f": "g"}


async def test_a_failed_test_of_a_json_patch_changes_nothing(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a", x="1"))
    operations = [
        {"op": "replace", "path": "/data/x", "value": "2"},
        {"op": "test", "path": "/metadata/uid", "value": "another"},
    ]
    said = await api.patch(f"{space}/configmaps/a", operations, JSON_PATCH)
    assert (said.code, said.reason) == (422, "Invalid")
    assert said.message == "the server rejected our request due to an error in our request"
    assert (await api.get(f"{space}/configmaps/a")).body["data"] == {"x": "1"}


async def test_a_json_patch_may_test_uid_and_version(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a", x="1"))).ok()
    operations = [
        {"op": "test", "path": "/metadata/uid", "value": first["metadata"]["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": first["metadata"]["resourceVersion"]},
        {"op": "replace", "path": "/data/x", "value": "2"},
    ]
    assert (await api.patch(f"{space}/configmaps/a", operations, JSON_PATCH)).ok()["data"] == {"x": "2"}
    said = await api.patch(f"{space}/configmaps/a", operations, JSON_PATCH)
    assert (said.code, said.reason) == (422, "Invalid")


async def test_a_json_patch_of_a_missing_place_is_refused(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    for operation in ({"op": "remove", "path": "/data/x"}, {"op": "replace", "path": "/data/x", "value": "1"}):
        said = await api.patch(f"{space}/configmaps/a", [operation], JSON_PATCH)
        assert (said.code, said.reason) == (422, "Invalid")


async def test_a_strategic_patch_merges_containers_by_name(api: Api) -> None:
    space = await api.namespace()
    body = pod("a")
    body["spec"]["containers"].append({"name": "side", "image": "registry.example/side:1"})
    await api.post(f"{space}/pods", body)
    patch = {"spec": {"containers": [{"name": "side", "image": "registry.example/side:2"}]}}
    patched = (await api.patch(f"{space}/pods/a", patch, STRATEGIC)).ok()
    images = {each["name"]: each["image"] for each in patched["spec"]["containers"]}
    assert images == {"main": "registry.example/app:1", "side": "registry.example/side:2"}


async def test_a_strategic_patch_adds_to_finalizers_and_takes_from_them(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["finalizers"] = ["example.com/a"]
    await api.post(f"{space}/configmaps", document)
    add: Any = {"metadata": {"finalizers": ["example.com/b"]}}
    patched = (await api.patch(f"{space}/configmaps/a", add, STRATEGIC)).ok()
    assert sorted(patched["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
    drop = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a", "example.com/b"]}}
    patched = (await api.patch(f"{space}/configmaps/a", drop, STRATEGIC)).ok()
    assert "finalizers" not in patched["metadata"]


async def test_a_strategic_patch_merges_conditions_by_type_and_deletes_by_directive(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    for kind in ("One", "Two"):
        patch = {"status": {"conditions": [{"type": f"example.com/{kind}", "status": "True"}]}}
        await api.patch(f"{space}/pods/a/status", patch, STRATEGIC)
    patch = {"status": {"conditions": [{"type": "example.com/One", "$patch": "delete"}]}}
    patched = (await api.patch(f"{space}/pods/a/status", patch, STRATEGIC)).ok()
    assert [each["type"] for each in patched["status"]["conditions"]] == ["example.com/Two"]


async def test_an_unknown_kind_of_patch_is_an_unsupported_media_type(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.patch(f"{space}/configmaps/a", {"data": {}}, "application/json")
    assert (said.code, said.reason) == (415, "UnsupportedMediaType")


async def test_a_patch_cannot_rename_an_object(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.patch(f"{space}/configmaps/a", {"metadata": {"name": "b"}})
    assert (said.code, said.reason) == (400, "BadRequest")
