"""Deletion: preconditions, finalizers, grace, dependents, namespaces. On the embedded and the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from support.servers.contract_api import Api, config, job, pod

pytestmark = pytest.mark.contract


async def test_a_delete_answers_with_a_status_that_names_the_object(api: Api) -> None:
    space = await api.namespace()
    made = (await api.post(f"{space}/configmaps", config("a"))).ok()
    said = (await api.delete(f"{space}/configmaps/a")).ok()
    assert (said["kind"], said["status"]) == ("Status", "Success")
    assert said["details"] == {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await api.get(f"{space}/configmaps/a")).code == 404


async def test_a_delete_for_another_uid_conflicts(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.delete(f"{space}/configmaps/a", {"preconditions": {"uid": "another"}})
    assert (said.code, said.reason) == (409, "Conflict")
    assert said.message.startswith(
        'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (another) does not match'
    )


async def test_a_delete_of_another_version_conflicts(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    said = await api.delete(f"{space}/configmaps/a", {"preconditions": {"resourceVersion": "1"}})
    assert (said.code, said.reason) == (409, "Conflict")
    assert "the ResourceVersion in the precondition (1) does not match" in said.message


async def test_a_finalizer_holds_a_deleted_object_until_it_is_removed(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/configmaps", document)
    said = (await api.delete(f"{space}/configmaps/a")).ok()
    assert said["metadata"]["deletionTimestamp"]
    assert said["metadata"]["deletionGracePeriodSeconds"] == 0
    again = (await api.delete(f"{space}/configmaps/a")).ok()
    assert again["metadata"]["resourceVersion"] == said["metadata"]["resourceVersion"]
    await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{space}/configmaps/a")).code == 404


async def test_no_finalizer_can_be_added_to_an_object_that_is_being_deleted(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/configmaps", document)
    await api.delete(f"{space}/configmaps/a")
    said = await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": ["example.com/hold", "example.com/n"]}})
    assert (said.code, said.reason) == (422, "Invalid")
    assert "no new finalizers can be added if the object is being deleted" in said.message
    await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": None}})


async def test_a_pod_that_is_not_bound_is_deleted_at_once(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    said = (await api.delete(f"{space}/pods/a")).ok()
    assert said["kind"] == "Pod"
    assert said["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(f"{space}/pods/a")).code == 404


async def test_a_bound_pod_is_marked_and_waits_for_its_kubelet(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", nodeName="no-such-node", terminationGracePeriodSeconds=7))
    said = (await api.delete(f"{space}/pods/a")).ok()
    assert said["metadata"]["deletionGracePeriodSeconds"] == 7
    assert said["metadata"]["generation"] == 2
    shorter = (await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 3})).ok()
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 3
    longer = (await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 30})).ok()
    assert longer["metadata"]["deletionGracePeriodSeconds"] == 3
    (await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 0})).ok()
    assert (await api.get(f"{space}/pods/a")).code == 404


async def test_a_finished_pod_is_deleted_at_once(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", nodeName="no-such-node"))
    await api.patch(f"{space}/pods/a/status", {"status": {"phase": "Succeeded"}})
    await api.delete(f"{space}/pods/a")
    assert (await api.get(f"{space}/pods/a")).code == 404


async def test_a_bound_pod_with_a_finalizer_outlives_its_grace(api: Api) -> None:
    space = await api.namespace()
    document = pod("a", nodeName="no-such-node")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/pods", document)
    await api.delete(f"{space}/pods/a")
    said = (await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 0})).ok()
    assert said["metadata"]["deletionGracePeriodSeconds"] == 0
    await api.patch(f"{space}/pods/a", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{space}/pods/a")).code == 404


async def test_a_finalizer_removed_during_the_grace_does_not_end_it(api: Api) -> None:
    space = await api.namespace()
    document = pod("a", nodeName="no-such-node")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/pods", document)
    await api.delete(f"{space}/pods/a")
    await api.patch(f"{space}/pods/a", {"metadata": {"finalizers": None}})
    assert (await api.get(f"{space}/pods/a")).code == 200
    await api.delete(f"{space}/pods/a", {"gracePeriodSeconds": 0})


async def test_a_collection_is_deleted_by_its_selector(api: Api) -> None:
    space = await api.namespace()
    for name in ("a", "b"):
        await api.post(f"{space}/secrets", {"metadata": {"name": name, "labels": {"which": name}}})
    (await api.delete(f"{space}/secrets", labelSelector="which=a")).ok()
    left = (await api.get(f"{space}/secrets")).ok()["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


def owned(name: str, owner: Any, **more: Any) -> dict[str, Any]:
    """Return a ConfigMap that a ConfigMap owns."""
    document = config(name)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"]}
    document["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"]["uid"], **more}]
    return document


async def test_dependents_go_after_their_owner(api: Api) -> None:
    space = await api.namespace()
    owner = (await api.post(f"{space}/configmaps", config("owner"))).ok()
    await api.post(f"{space}/configmaps", owned("dependent", owner))
    await api.delete(f"{space}/configmaps/owner", {"propagationPolicy": "Background"})
    await api.until_gone(f"{space}/configmaps/dependent")


async def test_a_foreground_deletion_waits_for_blocking_dependents(api: Api) -> None:
    space = await api.namespace()
    owner = (await api.post(f"{space}/configmaps", config("owner"))).ok()
    dependent = owned("dependent", owner, blockOwnerDeletion=True)
    dependent["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/configmaps", dependent)
    said = (await api.delete(f"{space}/configmaps/owner", {"propagationPolicy": "Foreground"})).ok()
    assert said["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until(f"{space}/configmaps/dependent", lambda found: "deletionTimestamp" in found["metadata"])
    assert (await api.get(f"{space}/configmaps/owner")).code == 200
    await api.patch(f"{space}/configmaps/dependent", {"metadata": {"finalizers": None}})
    await api.until_gone(f"{space}/configmaps/owner")


async def test_a_foreground_deletion_waits_for_nothing_that_does_not_block_it(api: Api) -> None:
    """HD-425: the Workload of a group blocks the deletion of none of its pods."""
    space = await api.namespace()
    owner = (await api.post(f"{space}/configmaps", config("owner"))).ok()
    dependent = owned("dependent", owner)
    dependent["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/configmaps", dependent)
    await api.delete(f"{space}/configmaps/owner", {"propagationPolicy": "Foreground"})
    await api.until_gone(f"{space}/configmaps/owner")
    await api.until(f"{space}/configmaps/dependent", lambda found: "deletionTimestamp" in found["metadata"])
    await api.patch(f"{space}/configmaps/dependent", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("blocks", [False, True])
async def test_a_foreground_deletion_leaves_what_has_another_owner(api: Api, *, blocks: bool) -> None:
    """HD-425: a group goes on without one of its pods."""
    space = await api.namespace()
    owner, other = [(await api.post(f"{space}/configmaps", config(name))).ok() for name in ("owner", "other")]
    dependent = owned("dependent", owner, blockOwnerDeletion=blocks)
    dependent["metadata"]["ownerReferences"] += owned("dependent", other)["metadata"]["ownerReferences"]
    await api.post(f"{space}/configmaps", dependent)
    await api.delete(f"{space}/configmaps/owner", {"propagationPolicy": "Foreground"})
    await api.until_gone(f"{space}/configmaps/owner")
    await api.until(f"{space}/configmaps/dependent", lambda found: len(found["metadata"]["ownerReferences"]) == 1)
    left = (await api.get(f"{space}/configmaps/dependent")).ok()["metadata"]
    assert [each["name"] for each in left["ownerReferences"]] == ["other"]
    assert "deletionTimestamp" not in left


async def test_orphans_lose_their_owner_and_stay(api: Api) -> None:
    space = await api.namespace()
    owner = (await api.post(f"{space}/configmaps", config("owner"))).ok()
    await api.post(f"{space}/configmaps", owned("dependent", owner))
    said = (await api.delete(f"{space}/configmaps/owner", {"propagationPolicy": "Orphan"})).ok()
    assert said["metadata"]["finalizers"] == ["orphan"]
    await api.until_gone(f"{space}/configmaps/owner")
    left = (await api.get(f"{space}/configmaps/dependent")).ok()
    assert "ownerReferences" not in left["metadata"]


async def test_an_object_whose_owner_never_was_is_collected(api: Api) -> None:
    space = await api.namespace()
    ghost = {"metadata": {"name": "ghost", "uid": "00000000-0000-4000-8000-000000000001"}}
    await api.post(f"{space}/configmaps", owned("dependent", ghost))
    await api.until_gone(f"{space}/configmaps/dependent")


async def test_a_job_that_is_deleted_without_a_policy_orphans_its_pods_and_says_so(api: Api) -> None:
    space = (await api.namespace()).removeprefix("/api/v1")
    await api.post(f"/apis/batch/v1{space}/jobs", job("a", suspend=True))
    said = await api.delete(f"/apis/batch/v1{space}/jobs/a")
    assert said.ok()["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default when jobs are deleted" in said.warnings[0]
    await api.until_gone(f"/apis/batch/v1{space}/jobs/a")


async def test_a_namespace_takes_all_that_is_in_it_along(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/configmaps", config("a"))
    await api.post(f"{space}/pods", pod("p", schedulerName="nobody"))
    said = (await api.delete(space)).ok()
    assert said["status"]["phase"] == "Terminating"
    await api.until_gone(space)
    assert (await api.get(f"{space}/configmaps/a")).code == 404


async def test_nothing_new_comes_into_a_namespace_that_is_being_deleted(api: Api) -> None:
    space = await api.namespace()
    document = config("a")
    document["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{space}/configmaps", document)
    await api.delete(space)
    said = await api.post(f"{space}/configmaps", config("b"))
    assert (said.code, said.reason) == (403, "Forbidden")
    assert "because it is being terminated" in said.message
    assert said.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert (await api.get(space)).code == 200
    await api.patch(f"{space}/configmaps/a", {"metadata": {"finalizers": None}})
    await api.until_gone(space)


async def test_the_default_namespace_cannot_be_deleted(api: Api) -> None:
    said = await api.delete("/api/v1/namespaces/default")
    assert (said.code, said.reason) == (403, "Forbidden")
    assert said.message == 'namespaces "default" is forbidden: this namespace may not be deleted'
