"""CustomResourceDefinitions and their objects. On the embedded and the real API server."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.servers.contract_api import STRATEGIC, Api, until_said
from support.servers.contract_crd import DEFINITIONS, served, widgets

pytestmark = pytest.mark.contract
OURS = str(Path(__file__).parents[2] / "deploy" / "crds")
FOLDERS = [folder for folder in (OURS, os.environ.get("GATELIFT_KUEUE_CRDS")) if folder]
"""Ours, and Kueue's own where somebody has them."""


def definitions_in(folder: str) -> list[dict[str, Any]]:
    """Return the CustomResourceDefinitions in a folder."""
    texts = [path.read_text() for path in sorted(Path(folder).glob("*.yaml"))]
    found = [document for text in texts for document in yaml.safe_load_all(text) if document]
    return [document for document in found if document["kind"] == "CustomResourceDefinition"]


async def test_a_definition_is_established_and_discovered(api: Api) -> None:
    async with widgets(api) as custom:
        found = (await api.get(f"{DEFINITIONS}/{custom.name}")).ok()
        true = {c["type"] for c in found["status"]["conditions"] if c["status"] == "True"}
        assert {"Established", "NamesAccepted"} <= true
        assert found["status"]["storedVersions"] == ["v1"]
        assert found["spec"]["names"]["listKind"] == "WidgetList"
        listed = (await api.get(f"/apis/{custom.group}/v1")).ok()
        assert {each["name"] for each in listed["resources"]} == {"widgets", "widgets/status"}
        (group,) = (g for g in (await api.get("/apis")).ok()["groups"] if g["name"] == custom.group)
        assert [v["version"] for v in group["versions"]] == ["v1", "v1alpha1"]


async def test_unknown_fields_are_dropped_with_a_warning(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        document = custom.object("a", size=3, bogus=1, inner={"x": 1}, free={"any": {"thing": 1}}) | {"extra": 1}
        said = await api.post(custom.path(space), document)
        assert said.ok()["spec"] == {"size": 3, "mode": "Safe", "inner": {"on": True}, "free": {"any": {"thing": 1}}}
        assert "extra" not in said.body
        texts = " ".join(said.warnings)
        assert all(f'unknown field \\"{path}\\"' in texts for path in ("spec.bogus", "spec.inner.x", "extra"))


async def test_unknown_fields_are_refused_where_validation_is_strict(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        said = await api.post(custom.path(space), custom.object("a", size=3, bogus=1), fieldValidation="Strict")
        assert (said.code, said.reason) == (400, "BadRequest")
        assert 'strict decoding error: unknown field "spec.bogus"' in said.message


async def test_defaults_are_filled_in(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        made = (await api.post(custom.path(space), custom.object("a", size=1, parts=[{"name": "p"}], mode=None))).ok()
        assert made["spec"] == {
            "size": 1,
            "mode": "Safe",
            "parts": [{"name": "p", "count": 1}],
            "inner": {"on": True},
        }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.size: Required value"),
        ({"size": None}, "spec.size: Required value"),
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"size": 11}, "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10"),
        ({"size": 1, "mode": "Odd"}, 'spec.mode: Unsupported value: "Odd": supported values: "Fast", "Safe"'),
        (
            {"size": 1, "label": "a"},
            'spec.label: Invalid value: "a": spec.label in body should be at least 2 chars long',
        ),
        ({"size": 1, "label": "abcdef"}, "spec.label: Too long: may not be more than 5 bytes"),
        ({"size": 1, "label": "ABC"}, "spec.label: Invalid value: \"ABC\": spec.label in body should match '^[a-z]+$'"),
        (
            {"size": 1, "when": "no"},
            'spec.when: Invalid value: "no": spec.when in body must be of type date-time: "no"',
        ),
        ({"size": 1, "tags": ["a", "b", "c"]}, "spec.tags: Too many: 3: must have at most 2 items"),
        ({"size": 1, "tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"size": 1, "parts": [{"name": "p"}, {"name": "p"}]}, 'spec.parts[1]: Duplicate value: {"name":"p"}'),
        ({"size": 1, "parts": [{}]}, "spec.parts[0].name: Required value"),
        (
            {"size": 1, "map": {"a": "b"}},
            'spec.map.a: Invalid value: "string": spec.map.a in body must be of type integer: "string"',
        ),
    ],
)
async def test_what_breaks_the_schema_is_invalid(api: Api, spec: dict[str, Any], message: str) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        said = await api.post(custom.path(space), custom.object("a", **spec))
        assert (said.code, said.reason) == (422, "Invalid")
        assert said.message == f'Widget.{custom.group} "a" is invalid: {message}'
        assert said.body["details"]["causes"][0]["field"] == message.partition(":")[0]


async def test_both_integers_and_texts_are_amounts(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        for name, amount in (("a", 1), ("b", "1")):
            made = (await api.post(custom.path(space), custom.object(name, size=1, amount=amount))).ok()
            assert made["spec"]["amount"] == amount


async def test_the_status_is_written_through_its_own_path_only(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        made = (await api.post(path, custom.object("a", size=1) | {"status": {"phase": "x"}})).ok()
        assert "status" not in made
        changed = (await api.patch(f"{path}/a", {"spec": {"size": 2}, "status": {"phase": "y"}})).ok()
        assert "status" not in changed
        assert changed["spec"]["size"] == 2
        changed = (await api.patch(f"{path}/a/status", {"spec": {"size": 3}, "status": {"phase": "z"}})).ok()
        assert changed["status"] == {"phase": "z"}
        assert changed["spec"]["size"] == 2


async def test_a_status_write_carries_no_metadata(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        await api.post(path, custom.object("a", size=1))
        metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"]}
        changed = (await api.patch(f"{path}/a/status", {"metadata": metadata, "status": {"phase": "z"}})).ok()
        assert not changed["metadata"].keys() & metadata.keys()
        assert changed["status"] == {"phase": "z"}


async def test_the_generation_follows_the_spec_only(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        assert (await api.post(path, custom.object("a", size=1))).ok()["metadata"]["generation"] == 1
        changes = (
            ("", {"metadata": {"labels": {"a": "b"}}}, 1),
            ("/status", {"status": {"phase": "z"}}, 1),
            ("", {"spec": {"size": 2}}, 2),
            ("", {"spec": {"size": 2}}, 2),
        )
        for place, patch, generation in changes:
            assert (await api.patch(f"{path}/a{place}", patch)).ok()["metadata"]["generation"] == generation


async def test_a_status_write_with_an_old_version_conflicts(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        made = (await api.post(path, custom.object("a", size=1))).ok()
        await api.patch(f"{path}/a", {"metadata": {"annotations": {"epoch": "2"}}})
        patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"phase": "z"}}
        said = await api.patch(f"{path}/a/status", patch)
        assert (said.code, said.reason) == (409, "Conflict")


async def test_a_status_that_is_replaced_without_the_rest_leaves_the_rest_as_it_was(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        metadata = {"name": "a", "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e.f/g"]}
        made = (await api.post(path, custom.object("a", size=1) | {"metadata": metadata})).ok()
        await api.patch(
            f"{path}/a/status", {"status": {"phase": "x", "conditions": [{"type": "Ready", "status": "True"}]}}
        )
        before = (await api.get(f"{path}/a")).ok()
        about = {name: before["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion")}
        bare = {"apiVersion": made["apiVersion"], "kind": made["kind"], "metadata": about, "status": {"phase": "z"}}
        after = (await api.put(f"{path}/a/status", bare)).ok()
        assert after["status"] == {"phase": "z"}
        assert after["spec"] == before["spec"]
        for name in ("labels", "annotations", "finalizers", "generation", "uid"):
            assert after["metadata"][name] == before["metadata"][name]
        assert owners_of_spec(after) == owners_of_spec(before)
        said = await api.put(f"{path}/a/status", bare | {"status": {"phase": "y"}})
        assert (said.code, said.reason) == (409, "Conflict"), "the version is an old one"
        other = about | {"uid": "other", "resourceVersion": after["metadata"]["resourceVersion"]}
        said = await api.put(f"{path}/a/status", bare | {"metadata": other})
        assert (said.code, said.reason) == (409, "Conflict"), "it is another object"
        await api.patch(f"{path}/a", {"metadata": {"finalizers": None}})


def owners_of_spec(document: dict[str, Any]) -> list[str]:
    """Return who owns fields of the spec; an API server that keeps no such books names nobody."""
    entries = document["metadata"].get("managedFields", [])
    return [entry["manager"] for entry in entries if "f:spec" in entry["fieldsV1"]]


async def test_a_custom_object_must_say_its_kind(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        said = await api.post(custom.path(space), {"metadata": {"name": "a"}, "spec": {"size": 1}})
        assert (said.code, said.reason) == (400, "BadRequest")
        assert "Object 'Kind' is missing" in said.message


async def test_an_update_needs_a_version(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        await api.post(path, custom.object("a", size=1))
        said = await api.put(f"{path}/a", custom.object("a", size=2))
        assert (said.code, said.reason) == (422, "Invalid")
        assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in said.message


async def test_custom_objects_have_no_strategic_patch(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        await api.post(custom.path(space), custom.object("a", size=1))
        said = await api.patch(f"{custom.path(space)}/a", {"spec": {"size": 2}}, STRATEGIC)
        assert (said.code, said.reason) == (415, "UnsupportedMediaType")


async def test_another_version_shows_the_same_object_and_warns(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        made = (await api.post(custom.path(space), custom.object("a", size=1))).ok()
        said = await api.get(f"{custom.path(space, 'v1alpha1')}/a")
        assert said.ok() == {**made, "apiVersion": f"{custom.group}/v1alpha1"}
        assert said.warnings == ['299 - "use v1"']


async def test_an_object_that_became_invalid_may_keep_what_it_has(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        path = custom.path(space)
        await api.post(path, custom.object("a", size=5, label="abc"))
        stricter = copy.deepcopy(custom.definition)
        for version in stricter["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["label"]["maxLength"] = 2
        patch = {"spec": {"versions": stricter["spec"]["versions"]}}
        (await api.patch(f"{DEFINITIONS}/{custom.name}", patch)).ok()

        await until_said(
            lambda: api.post(path, custom.object("probe", size=1, label="abc"), dryRun="All"),
            lambda said: said.code == 422,
            "the stricter definition is in force",
        )
        assert (await api.patch(f"{path}/a", {"spec": {"size": 6}})).ok()["spec"]["label"] == "abc"
        assert (await api.patch(f"{path}/a", {"spec": {"label": "abcd"}})).code == 422


async def test_a_deleted_definition_takes_its_objects_along(api: Api) -> None:
    space = await api.namespace()
    async with widgets(api) as custom:
        await api.post(custom.path(space), custom.object("a", size=1))
        await api.delete(f"{DEFINITIONS}/{custom.name}")
        await api.until_gone(f"{DEFINITIONS}/{custom.name}")
        await api.until_gone(f"/apis/{custom.group}/v1/widgets")


async def test_a_definition_whose_name_does_not_fit_is_invalid(api: Api) -> None:
    async with widgets(api) as custom:
        wrong = copy.deepcopy(custom.definition)
        wrong["metadata"]["name"] = "other"
        said = await api.post(DEFINITIONS, wrong)
        assert (said.code, said.reason) == (422, "Invalid")
        assert "metadata.name: Invalid value" in said.message


def _objects_of(definition: dict[str, Any]) -> str:
    """Return the path of a definition's objects, in the version that is stored."""
    spec = definition["spec"]
    (stored,) = (one["name"] for one in spec["versions"] if one["storage"])
    return f"/apis/{spec['group']}/{stored}/{spec['names']['plural']}"


@pytest.mark.parametrize("folder", FOLDERS)
async def test_our_and_kueues_definitions_are_served_with_their_defaults(api: Api, folder: str) -> None:
    definitions = definitions_in(folder)
    try:
        for definition in definitions:
            said = await api.post(DEFINITIONS, definition)
            assert said.code in (201, 409), said.body
        for definition in definitions:  # one that is deleted before its storage stands is gone after minutes
            await served(api, definition["metadata"]["name"], _objects_of(definition))
        queues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
        head = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue"}
        queue = head | {"metadata": {"generateName": "q-"}, "spec": {"namespaceSelector": {}}}
        made = (await api.post(queues, queue)).ok()
        assert made["spec"]["queueingStrategy"] == "BestEffortFIFO"
        assert made["spec"]["stopPolicy"] == "None"
        said = await api.post(queues, head | {"metadata": {"name": "bad"}, "spec": {"queueingStrategy": "Random"}})
        assert (said.code, said.reason) == (422, "Invalid")
        await api.delete(f"{queues}/{made['metadata']['name']}")
    finally:
        for definition in definitions:
            name = definition["metadata"]["name"]
            await api.delete(f"{DEFINITIONS}/{name}")
            await api.until_gone(f"{DEFINITIONS}/{name}")
