"""What any object goes through: creation, reading, locking, lists. On the embedded and the real API server."""

from __future__ import annotations

import asyncio

import pytest

from support.servers.contract_api import Api, config, pod

pytestmark = pytest.mark.contract


async def test_a_created_object_gets_uid_version_and_time(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/configmaps", config("a", k="v"))
    assert said.code == 201
    about = said.body["metadata"]
    assert about["uid"]
    assert about["resourceVersion"].isdigit()
    assert about["creationTimestamp"].endswith("Z")
    assert about["namespace"] == space.rpartition("/")[2]
    assert "generation" not in about


async def test_a_second_object_of_the_same_name_already_exists(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.post(f"{space}/configmaps", config("a"))
    assert (said.code, said.reason) == (409, "AlreadyExists")
    assert said.message == 'configmaps "a" already exists'
    assert said.body["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_missing_object_is_not_found_with_its_group(api: Api) -> None:
    space = (await api.namespace()).removeprefix("/api/v1")
    said = await api.get(f"/apis/batch/v1{space}/jobs/a")
    assert (said.code, said.reason, said.message) == (404, "NotFound", 'jobs.batch "a" not found')
    assert said.body["details"] == {"name": "a", "group": "batch", "kind": "jobs"}


async def test_an_object_in_a_missing_namespace_is_not_found_by_the_namespace(api: Api) -> None:
    said = await api.post("/api/v1/namespaces/no-such-place/configmaps", config("a"))
    assert (said.code, said.reason, said.message) == (404, "NotFound", 'namespaces "no-such-place" not found')
    assert said.body["details"]["kind"] == "namespaces"


async def test_generate_name_adds_five_letters(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/configmaps", {"metadata": {"generateName": "some-"}})
    name = said.ok()["metadata"]["name"]
    assert name.startswith("some-")
    assert len(name) == len("some-") + 5


async def test_an_object_without_a_name_is_invalid(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/configmaps", {"data": {}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert "metadata.name: Required value: name or generateName is required" in said.message


async def test_a_name_with_capitals_is_invalid(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/configmaps", config("Capital"))
    assert (said.code, said.reason) == (422, "Invalid")
    assert said.message.startswith(
        'ConfigMap "Capital" is invalid: metadata.name: Invalid value: "Capital": a lowercase'
    )
    assert said.body["details"]["causes"][0]["field"] == "metadata.name"


async def test_labels_and_annotations_must_be_well_formed(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"] |= {"labels": {"a b": "x", "ok": "not ok"}, "annotations": {"/x": "y"}}
    said = await api.post(f"{space}/configmaps", document)
    assert (said.code, said.reason) == (422, "Invalid")
    fields = [cause["field"] for cause in said.body["details"]["causes"]]
    assert sorted(fields) == ["metadata.annotations", "metadata.labels", "metadata.labels"]


async def test_another_namespace_in_the_body_is_a_bad_request(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["namespace"] = "default"
    said = await api.post(f"{space}/configmaps", document)
    assert (said.code, said.reason) == (400, "BadRequest")
    assert "the namespace of the provided object does not match the namespace sent on the request" in said.message


async def test_another_name_in_the_body_is_a_bad_request(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.put(f"{space}/configmaps/a", config("b"))
    assert (said.code, said.reason) == (400, "BadRequest")
    assert "the name of the object (b) does not match the name on the URL (a)" in said.message


async def test_a_body_that_is_no_json_is_a_bad_request(api: Api) -> None:
    space = await api.namespace()
    said = await api.call("POST", f"{space}/configmaps", b"{not json")
    assert (said.code, said.reason) == (400, "BadRequest")


async def test_a_new_object_must_not_bring_a_version(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["resourceVersion"] = "1"
    said = await api.post(f"{space}/configmaps", document)
    assert said.code == 500
    assert "resourceVersion should not be set on objects to be created" in said.message


async def test_an_update_with_an_old_version_conflicts(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a"))).ok()
    second = (await api.put(f"{space}/configmaps/a", {**first, "data": {"k": "1"}})).ok()
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    said = await api.put(f"{space}/configmaps/a", {**first, "data": {"k": "2"}})
    assert (said.code, said.reason) == (409, "Conflict")
    assert said.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified;'
        " please apply your changes to the latest version and try again"
    )


async def test_an_update_that_changes_nothing_keeps_the_version(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a", k="v"))).ok()
    second = (await api.put(f"{space}/configmaps/a", first)).ok()
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_an_update_without_a_version_wins_where_the_kind_allows_it(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    assert (await api.put(f"{space}/configmaps/a", config("a", k="v"))).ok()["data"] == {"k": "v"}


async def test_an_update_of_a_lease_needs_a_version(api: Api) -> None:
    space = (await api.namespace()).removeprefix("/api/v1")
    leases = f"/apis/coordination.k8s.io/v1{space}/leases"
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    await api.post(leases, lease)
    said = await api.put(f"{leases}/a", lease)
    assert (said.code, said.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value" in said.message
    assert "must be specified for an update" in said.message


async def test_an_update_for_another_uid_conflicts(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a"))).ok()
    other = {**first, "metadata": {**first["metadata"], "uid": "00000000-0000-4000-8000-000000000000"}}
    said = await api.put(f"{space}/configmaps/a", other)
    assert (said.code, said.reason) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 00000000-0000-4000-8000-000000000000" in said.message


async def test_an_update_of_a_missing_object_is_not_found(api: Api) -> None:
    space = await api.namespace()
    assert (await api.put(f"{space}/configmaps/a", config("a"))).code == 404


async def test_what_the_server_set_cannot_be_changed(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a"))).ok()
    forged = {**first["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
    second = (await api.put(f"{space}/configmaps/a", {**first, "metadata": forged, "data": {"k": "v"}})).ok()
    assert second["metadata"]["creationTimestamp"] == first["metadata"]["creationTimestamp"]


async def test_a_list_has_kind_version_and_items(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a"))
    body = (await api.get(f"{space}/pods")).ok()
    assert (body["kind"], body["apiVersion"]) == ("PodList", "v1")
    assert body["metadata"]["resourceVersion"].isdigit()
    assert [item["metadata"]["name"] for item in body["items"]] == ["a"]


async def test_a_list_comes_in_pages_of_the_limit(api: Api) -> None:
    space = await api.namespace()
    for name in "abcde":
        await api.post(f"{space}/secrets", {"metadata": {"name": name}})
    first = (await api.get(f"{space}/secrets", limit="2")).ok()
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 3
    second = (await api.get(f"{space}/secrets", **{"limit": "2", "continue": first["metadata"]["continue"]})).ok()
    assert [item["metadata"]["name"] for item in second["items"]] == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    third = (await api.get(f"{space}/secrets", **{"limit": "2", "continue": second["metadata"]["continue"]})).ok()
    assert [item["metadata"]["name"] for item in third["items"]] == ["e"]
    assert "continue" not in third["metadata"]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=front", ["a"]),
        ("tier==front", ["a"]),
        ("tier!=front", ["b", "c"]),
        ("tier in (front, back)", ["a", "b"]),
        ("tier notin (front)", ["b", "c"]),
        ("tier", ["a", "b"]),
        ("!tier", ["c"]),
        ("tier,app=x", ["a"]),
    ],
)
async def test_a_label_selector_selects(api: Api, selector: str, expected: list[str]) -> None:
    space = await api.namespace()
    for name, labels in (("a", {"tier": "front", "app": "x"}), ("b", {"tier": "back"}), ("c", {})):
        await api.post(f"{space}/secrets", {"metadata": {"name": name, "labels": labels}})
    found = (await api.get(f"{space}/secrets", labelSelector=selector)).ok()
    assert [item["metadata"]["name"] for item in found["items"]] == expected


async def test_field_selectors_select_by_name_node_and_phase(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", nodeName="n1"))
    await api.post(f"{space}/pods", pod("b", schedulerName="nobody"))

    async def names(selector: str) -> list[str]:
        found = (await api.get(f"{space}/pods", fieldSelector=selector)).ok()
        return [item["metadata"]["name"] for item in found["items"]]

    assert await names("metadata.name=b") == ["b"]
    assert await names("spec.nodeName=n1") == ["a"]
    assert await names("spec.nodeName=") == ["b"]
    assert await names("status.phase!=Running,metadata.name!=a") == ["b"]


async def test_a_field_that_cannot_be_selected_is_a_bad_request(api: Api) -> None:
    space = await api.namespace()
    said = await api.get(f"{space}/pods", fieldSelector="spec.priority=1")
    assert (said.code, said.reason) == (400, "BadRequest")


async def test_a_version_from_the_future_times_out(api: Api) -> None:
    space = await api.namespace()
    said = await api.get(f"{space}/configmaps", resourceVersion="999999999999")
    assert said.code == 504
    assert "Too large resource version" in said.message


async def test_versions_are_ordered_over_all_kinds(api: Api) -> None:
    space = await api.namespace()
    paths = [f"{space}/configmaps", f"{space}/secrets", f"{space}/configmaps"]
    made = [(await api.post(path, {"metadata": {"name": f"o{i}"}})).ok() for i, path in enumerate(paths)]
    versions = [int(document["metadata"]["resourceVersion"]) for document in made]
    assert versions == sorted(set(versions))


async def test_of_two_concurrent_writers_with_one_version_one_wins(api: Api) -> None:
    space = await api.namespace()
    first = (await api.post(f"{space}/configmaps", config("a"))).ok()
    bodies = [{**first, "data": {"winner": str(number)}} for number in range(2)]
    said = await asyncio.gather(*(api.put(f"{space}/configmaps/a", body) for body in bodies))
    assert sorted(each.code for each in said) == [200, 409]


async def test_a_dry_run_answers_and_keeps_nothing(api: Api) -> None:
    space = await api.namespace()
    said = await api.post(f"{space}/configmaps", config("a"), dryRun="All")
    assert said.code == 201
    assert said.body["metadata"]["uid"]
    assert (await api.get(f"{space}/configmaps/a")).code == 404


async def test_an_event_is_the_same_in_both_groups(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    about = {"kind": "Pod", "name": "p", "namespace": name}
    event = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "Why", "message": "text", "type": "Normal"}
    (await api.post(f"{space}/events", event)).ok()
    seen = (await api.get(f"/apis/events.k8s.io/v1/namespaces/{name}/events/e")).ok()
    assert seen["apiVersion"] == "events.k8s.io/v1"
    assert (seen["note"], seen["regarding"]["name"], seen["reason"]) == ("text", "p", "Why")
    listed = (await api.get(f"{space}/events", fieldSelector="involvedObject.name=p")).ok()
    assert [item["metadata"]["name"] for item in listed["items"]] == ["e"]
    unsaid = {"firstTimestamp", "lastTimestamp", "eventTime", "source", "reportingComponent", "reportingInstance"}
    assert {key: listed["items"][0].get(key, "missing") for key in unsaid} == dict.fromkeys(unsaid) | {
        "source": {},
        "reportingComponent": "",
        "reportingInstance": "",
    }
    assert (seen["deprecatedLastTimestamp"], seen["eventTime"]) == (None, None)


async def test_string_data_of_a_secret_is_encoded_into_data(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/secrets", {"metadata": {"name": "a"}, "stringData": {"k": "v"}})).ok()
    assert made["data"] == {"k": "dg=="}
    assert made["type"] == "Opaque"
    assert "stringData" not in made


async def test_an_unknown_path_is_not_found(api: Api) -> None:
    said = await api.get("/apis/nobody.example/v1/things")
    assert said.code == 404
