"""What a binding gives is waited for: a server that does not know of it yet is asked again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kube.api.client import Client
from gatelift_sandbox import access, applying
from gatelift_sandbox.errors import SandboxError
from support.servers.fake_apiserver import FakeApiServer

RBAC = "rbac.authorization.k8s.io/v1"
RULES = [
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch", "get"]},
    {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["get"], "resourceNames": ["one"]},
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]
ROLE = {"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "r", "namespace": "team"}, "rules": RULES}
BINDING = {
    "apiVersion": RBAC,
    "kind": "RoleBinding",
    "metadata": {"name": "b", "namespace": "team"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
    "subjects": [{"kind": "ServiceAccount", "name": "agent", "namespace": "system"}],
}


def answers(server: FakeApiServer, *, allowed: bool, times: int = 1) -> None:
    server.fault("POST", "subjectaccessreviews", times, status=201, body={"status": {"allowed": allowed}})


def asked(server: FakeApiServer) -> list[dict[str, Any]]:
    return [json.loads(each.body)["spec"] for each in server.asked("POST", "subjectaccessreviews")]


async def test_a_binding_is_applied_when_a_right_of_each_rule_is_granted(server: FakeApiServer) -> None:
    answers(server, allowed=False, times=2)
    server.fault("POST", "subjectaccessreviews", status=503)
    answers(server, allowed=True, times=2)
    async with Client.connect(server.config, user_agent="test") as client:
        await applying.apply(client, [BINDING, ROLE])
    user = "system:serviceaccount:system:agent"
    first = {"namespace": "team", "verb": "patch", "resource": "pods", "subresource": "status"}
    second = {"namespace": "team", "verb": "get", "group": "batch", "resource": "jobs", "name": "one"}
    assert asked(server) == [
        *4 * [{"user": user, "resourceAttributes": first}],
        {"user": user, "resourceAttributes": second},
    ]


async def test_a_group_and_a_user_are_asked_for_as_what_they_are(server: FakeApiServer) -> None:
    answers(server, allowed=True, times=4)
    subjects = [{"kind": "Group", "name": "system:nodes"}, {"kind": "User", "name": "jane"}]
    async with Client.connect(server.config, user_agent="test") as client:
        await applying.apply(client, [ROLE, {**BINDING, "subjects": subjects}])
    group, user = {"user": "somebody", "groups": ["system:nodes"]}, {"user": "jane"}
    who = [{name: each[name] for name in ("user", "groups") if name in each} for each in asked(server)]
    assert who == [group, group, user, user]


async def test_a_binding_to_a_role_that_is_not_there_gives_nothing_to_wait_for(server: FakeApiServer) -> None:
    async with Client.connect(server.config, user_agent="test") as client:
        await applying.apply(client, [BINDING])
    assert asked(server) == []


async def test_what_is_never_granted_is_named(server: FakeApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "GRANTED_SECONDS", 0.0)
    answers(server, allowed=False, times=100)
    async with Client.connect(server.config, user_agent="test") as client:
        with pytest.raises(SandboxError, match="RoleBinding b gives nothing after 0 s: agent may not patch pods"):
            await applying.apply(client, [ROLE, BINDING])


async def test_a_server_that_does_not_review_is_named(server: FakeApiServer) -> None:
    server.fault("POST", "subjectaccessreviews", status=403)
    async with Client.connect(server.config, user_agent="test") as client:
        with pytest.raises(SandboxError, match="SubjectAccessReview: 403"):
            await applying.apply(client, [ROLE, BINDING])
