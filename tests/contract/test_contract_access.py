"""Who may do what: RBAC, ServiceAccount tokens, reviews. On the embedded and the real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.servers.contract_api import Api, Said, config, pod, until_said

pytestmark = pytest.mark.contract

RBAC = "/apis/rbac.authorization.k8s.io/v1"


async def agent(api: Api, space: str, *rules: dict[str, Any]) -> str:
    """Make a ServiceAccount `agent` with a Role of these rules in its namespace; return a token."""
    name = space.rpartition("/")[2]
    await api.post(f"{space}/serviceaccounts", {"metadata": {"name": "agent"}})
    own = f"{RBAC}/namespaces/{name}"
    await api.post(f"{own}/roles", {"metadata": {"name": "agent"}, "rules": list(rules)})
    binding = {
        "metadata": {"name": "agent"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "agent"},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": name}],
    }
    (await api.post(f"{own}/rolebindings", binding)).ok()
    return await token(api, space)


async def token(api: Api, space: str) -> str:
    """Return a token of ServiceAccount `agent`."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    made = (await api.post(f"{space}/serviceaccounts/agent/token", request)).ok()
    assert made["status"]["expirationTimestamp"].endswith("Z")
    return str(made["status"]["token"])


@asynccontextmanager
async def acting(api: Api, space: str, *rules: dict[str, Any]) -> AsyncIterator[Api]:
    """Act as a ServiceAccount with these rules, as soon as they hold."""
    async with Api.open(api.kubeconfig, await agent(api, space, *rules)) as other:
        first = rules[0]
        group = first["apiGroups"][0]
        attributes = {
            "namespace": space.rpartition("/")[2],
            "verb": first["verbs"][0],
            "group": group,
            "resource": first["resources"][0],
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        await until_said(
            lambda: other.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review),
            lambda said: said.ok()["status"]["allowed"],
            "the rules hold",
        )
        yield other


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> dict[str, Any]:
    """Return a rule."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}


async def test_what_no_rule_allows_is_forbidden_by_name(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    async with acting(api, space, rule("get list", "pods")) as other:
        assert (await other.get(f"{space}/pods")).code == 200
        said = await other.get(f"{space}/secrets")
        assert (said.code, said.reason) == (403, "Forbidden")
        assert said.message == (
            f'secrets is forbidden: User "system:serviceaccount:{name}:agent" cannot list resource "secrets"'
            f' in API group "" in the namespace "{name}"'
        )
        said = await other.delete(f"{space}/pods/a")
        assert said.message == (
            f'pods "a" is forbidden: User "system:serviceaccount:{name}:agent" cannot delete resource "pods"'
            f' in API group "" in the namespace "{name}"'
        )


async def test_a_role_reaches_no_other_namespace_and_no_cluster(api: Api) -> None:
    space, elsewhere = await api.namespace(), await api.namespace()
    async with acting(api, space, rule("*", "*")) as other:
        assert (await other.get(f"{space}/secrets")).code == 200
        assert (await other.get(f"{elsewhere}/secrets")).code == 403
        said = await other.get("/api/v1/pods")
        assert said.code == 403
        assert said.message.endswith('cannot list resource "pods" in API group "" at the cluster scope')


async def test_a_subresource_needs_a_rule_of_its_own(api: Api) -> None:
    space = await api.namespace()
    await api.post(f"{space}/pods", pod("a", schedulerName="nobody"))
    async with acting(api, space, rule("patch", "pods")) as other:
        assert (await other.patch(f"{space}/pods/a", {"metadata": {"labels": {"a": "b"}}})).code == 200
        said = await other.patch(f"{space}/pods/a/status", {"status": {"phase": "Running"}})
        assert said.code == 403
        assert 'cannot patch resource "pods/status"' in said.message


async def test_a_rule_may_name_objects(api: Api) -> None:
    space = await api.namespace()
    for name in ("mine", "other"):
        await api.post(f"{space}/configmaps", config(name))
    rules = (rule("get", "pods"), rule("get", "configmaps", resourceNames=["mine"]))
    async with acting(api, space, *rules) as other:
        assert (await other.get(f"{space}/configmaps/mine")).code == 200
        assert (await other.get(f"{space}/configmaps/other")).code == 403
        assert (await other.get(f"{space}/configmaps")).code == 403


async def test_a_cluster_role_bound_in_a_namespace_holds_there(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule("list", "configmaps")]})
    binding = {
        "metadata": {"name": "more"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [
            {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:serviceaccounts:{name}"}
        ],
    }
    (await api.post(f"{RBAC}/namespaces/{name}/rolebindings", binding)).ok()
    async with acting(api, space, rule("get", "pods")) as other:
        path = f"{space}/configmaps"
        await until_said(lambda: other.get(path), lambda said: said.code == 200, "the cluster role holds")
        assert (await other.get("/api/v1/configmaps")).code == 403
    await api.delete(f"{RBAC}/clusterroles/{name}")


async def test_a_broken_token_is_unauthorized(api: Api) -> None:
    async with Api.open(api.kubeconfig, "broken") as other:
        said = await other.get("/api/v1/namespaces/default")
        assert (said.code, said.reason) == (401, "Unauthorized")


async def test_a_token_dies_with_its_account(api: Api) -> None:
    space = await api.namespace()
    secret = await agent(api, space, rule("get", "pods"))
    await api.delete(f"{space}/serviceaccounts/agent")
    async with Api.open(api.kubeconfig, secret) as other:
        # A server that knew the token a moment before goes on knowing it for ten seconds.
        await until_said(
            lambda: other.get("/version"), lambda said: said.code == 401, "the token is not known any more"
        )
        assert (await other.get(f"{space}/pods/a")).code == 401


async def test_a_token_review_names_the_account(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    secret = await agent(api, space, rule("get", "pods"))
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview"}
    status = (await api.post(reviews, head | {"spec": {"token": secret}})).ok()["status"]
    assert status["authenticated"] is True
    assert status["user"]["username"] == f"system:serviceaccount:{name}:agent"
    assert "system:serviceaccounts" in status["user"]["groups"]
    status = (await api.post(reviews, head | {"spec": {"token": "broken"}})).ok()["status"]
    assert not status.get("authenticated")


async def test_an_access_review_answers_for_another_user(api: Api) -> None:
    space = await api.namespace()
    name = space.rpartition("/")[2]
    await agent(api, space, rule("get", "pods"))

    async def may(verb: str) -> Said:
        attributes = {"namespace": name, "verb": verb, "resource": "pods"}
        spec = {"user": f"system:serviceaccount:{name}:agent", "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        return await api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)

    await until_said(lambda: may("get"), lambda said: said.ok()["status"]["allowed"], "the rule holds")
    assert not (await may("delete")).ok()["status"]["allowed"]


async def test_an_administrators_certificate_may_do_all(api: Api) -> None:
    head = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    said = (await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", head)).ok()
    assert {"system:masters", "system:authenticated"} <= set(said["status"]["userInfo"]["groups"])


async def test_is_44_one_object_is_listed_in_all_namespaces_by_who_may_list_it_by_its_name(api: Api) -> None:
    """As the manager finds a Kueue: a rule with `resourceNames` covers a list by `metadata.name`."""
    space = await api.namespace()
    name = space.rpartition("/")[2]
    await api.post(f"{space}/serviceaccounts", {"metadata": {"name": "agent"}})
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["seen"], "verbs": ["list"]}
    await api.post(f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": [rule]})
    binding = {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": name}],
    }
    (await api.post(f"{RBAC}/clusterrolebindings", binding)).ok()
    for each in ("seen", "not-seen"):
        await api.post(f"{space}/configmaps", config(each, a="b"))
    async with Api.open(api.kubeconfig, await token(api, space)) as reader:
        path = "/api/v1/configmaps"
        said = await until_said(
            lambda: reader.get(path, fieldSelector="metadata.name=seen"),
            lambda said: said.code == 200,
            "listed by its name",
        )
        assert {one["metadata"]["name"] for one in said.ok()["items"]} == {"seen"}
        assert (await reader.get(path)).code == 403
        assert (await reader.get(path, fieldSelector="metadata.name=not-seen")).code == 403
    for kind in ("clusterrolebindings", "clusterroles"):
        await api.delete(f"{RBAC}/{kind}/{name}")
