"""Admission webhooks: who is asked, what they may change, what happens when they do not answer.

The webhook is a small HTTPS server of the test, reached by URL from either API server.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import ssl
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gatelift_sandbox import pki
from support.servers.contract_api import Api, config, until_said

pytestmark = pytest.mark.contract

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
Answer = Callable[[dict[str, Any]], dict[str, Any]]


class Hook:
    """A webhook: remembers what it was asked."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []
        self.authority = pki.Authority("webhook-ca")
        self.url = ""
        self.transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one review."""
        assert request.transport is not None
        self.transports.add(request.transport)
        review = json.loads(await request.read())
        self.asked.append(review["request"])
        response = {"uid": review["request"]["uid"], "allowed": True, **self.answer(review["request"])}
        return web.json_response({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[Hook]:
    """Serve a webhook."""
    hook = Hook(answer)
    signed = hook.authority.server("webhook", "127.0.0.1", "localhost")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate, key = Path(folder, "crt"), Path(folder, "key")
        pki.write_private(certificate, signed.certificate)
        pki.write_private(key, signed.key)
        tls.load_cert_chain(certificate, key)
    runner = web.ServerRunner(web.Server(hook.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    hook.url = f"https://127.0.0.1:{runner.addresses[0][1]}/review"
    try:
        yield hook
    finally:
        await runner.cleanup()
        for transport in hook.transports:
            transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def configured(api: Api, hook: Hook, space: str, *, mutating: bool, **more: Any) -> AsyncIterator[None]:
    """Ask the webhook about ConfigMaps of one namespace, as soon as that is in force."""
    name = f"contract-{secrets.token_hex(4)}.example.com"
    kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    webhook = {
        "name": name,
        "clientConfig": {"url": hook.url, "caBundle": base64.b64encode(hook.authority.pem).decode()},
        "rules": [{**rule, **more.pop("rule", {})}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.rpartition("/")[2]}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "timeoutSeconds": 20,
        **more,
    }
    path = f"{CONFIGURATIONS}/{kind.lower()}s"
    (await api.post(path, {"metadata": {"name": name}, "webhooks": [webhook]})).ok()
    try:
        yield
    finally:
        await api.delete(f"{path}/{name}")


async def until_asked(api: Api, hook: Hook, space: str) -> None:
    """Try until the webhook is in force; real API servers take up configurations a little later."""
    document = config("probe")
    document["metadata"]["labels"] = {"asked": "yes"}
    await until_said(
        lambda: api.post(f"{space}/configmaps", document, dryRun="All"), lambda _: hook.asked, "the webhook is asked"
    )
    hook.asked.clear()


def json_patch(*operations: dict[str, Any]) -> dict[str, Any]:
    """Return a response that changes the object."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


async def test_a_mutating_webhook_changes_what_is_kept(api: Api) -> None:
    space = await api.namespace()
    change = json_patch({"op": "add", "path": "/data", "value": {"by": "webhook"}})
    async with serving(lambda _: change) as hook, configured(api, hook, space, mutating=True):
        await until_asked(api, hook, space)
        assert (await api.post(f"{space}/configmaps", config("a"))).ok()["data"] == {"by": "webhook"}
        (asked,) = hook.asked
    assert (asked["operation"], asked["name"], asked["namespace"]) == ("CREATE", "a", space.rpartition("/")[2])
    assert asked["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert asked["object"]["metadata"]["name"] == "a"
    assert asked["oldObject"] is None
    assert "system:masters" in asked["userInfo"]["groups"]
    assert asked["dryRun"] is False


async def test_a_denial_shows_the_webhooks_words(api: Api) -> None:
    space = await api.namespace()
    denial = {"allowed": False, "status": {"message": "not today", "code": 403}}
    answer: Answer = lambda r: denial if r["name"] == "a" else {}  # noqa: E731 (one line says it)
    async with serving(answer) as hook, configured(api, hook, space, mutating=False):
        await until_asked(api, hook, space)
        said = await api.post(f"{space}/configmaps", config("a"))
    assert said.code == 403
    assert said.message.startswith('admission webhook "contract-')
    assert said.message.endswith('" denied the request: not today')


async def test_a_webhook_sees_old_and_new_of_an_update(api: Api) -> None:
    space = await api.namespace()
    async with serving(lambda _: {}) as hook, configured(api, hook, space, mutating=False):
        await until_asked(api, hook, space)
        await api.post(f"{space}/configmaps", config("a", k="1"))
        await api.patch(f"{space}/configmaps/a", {"data": {"k": "2"}})
        asked = hook.asked[-1]
    assert asked["operation"] == "UPDATE"
    assert (asked["oldObject"]["data"], asked["object"]["data"]) == ({"k": "1"}, {"k": "2"})


async def test_a_webhook_can_refuse_a_delete(api: Api) -> None:
    space = await api.namespace()
    rule = {"operations": ["CREATE", "DELETE"]}

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        return {"allowed": request["operation"] != "DELETE", "status": {"message": "keep it"}}

    async with serving(answer) as hook, configured(api, hook, space, mutating=False, rule=rule):
        await until_asked(api, hook, space)
        await api.post(f"{space}/configmaps", config("a"))
        said = await api.delete(f"{space}/configmaps/a")
        assert said.code >= 400
        assert said.message.endswith("denied the request: keep it")
        assert hook.asked[-1]["oldObject"]["metadata"]["name"] == "a"
    assert (await api.get(f"{space}/configmaps/a")).code == 200


async def test_a_webhook_that_does_not_answer_fails_the_request(api: Api) -> None:
    space = await api.namespace()
    async with serving(lambda _: {}) as hook, configured(api, hook, space, mutating=True):
        await until_asked(api, hook, space)
        url, hook.url = hook.url, ""
        assert url
        hook.answer = _broken
        said = await api.post(f"{space}/configmaps", config("a"))
    assert (said.code, said.reason) == (500, "InternalError")
    assert 'Internal error occurred: failed calling webhook "contract-' in said.message


def _broken(_: dict[str, Any]) -> dict[str, Any]:
    raise web.HTTPServiceUnavailable


async def test_a_webhook_that_may_be_ignored_is(api: Api) -> None:
    space = await api.namespace()
    async with serving(lambda _: {}) as hook, configured(api, hook, space, mutating=True, failurePolicy="Ignore"):
        await until_asked(api, hook, space)
        hook.answer = _broken
        assert (await api.post(f"{space}/configmaps", config("a"))).code == 201


async def test_only_selected_objects_are_asked_about(api: Api) -> None:
    space, elsewhere = await api.namespace(), await api.namespace()
    selector = {"matchLabels": {"asked": "yes"}}
    async with serving(lambda _: {}) as hook, configured(api, hook, space, mutating=False, objectSelector=selector):
        await until_asked(api, hook, space)
        await api.post(f"{space}/configmaps", config("no"))
        labelled = config("yes")
        labelled["metadata"]["labels"] = {"asked": "yes"}
        await api.post(f"{elsewhere}/configmaps", labelled)
        await api.post(f"{space}/configmaps", labelled)
        assert [each["name"] for each in hook.asked] == ["yes"]


async def test_a_match_condition_decides_who_is_asked(api: Api) -> None:
    space = await api.namespace()
    expression = "has(object.metadata.labels) && 'asked' in object.metadata.labels && request.operation == 'CREATE'"
    conditions = [{"name": "labelled", "expression": expression}]
    async with serving(lambda _: {}) as hook, configured(api, hook, space, mutating=False, matchConditions=conditions):
        await until_asked(api, hook, space)
        await api.post(f"{space}/configmaps", config("no"))
        labelled = config("yes")
        labelled["metadata"]["labels"] = {"asked": "yes"}
        await api.post(f"{space}/configmaps", labelled)
        assert [each["name"] for each in hook.asked] == ["yes"]


async def test_warnings_of_a_webhook_reach_the_client(api: Api) -> None:
    space = await api.namespace()
    async with serving(lambda _: {"warnings": ["mind the gap"]}) as hook, configured(api, hook, space, mutating=False):
        await until_asked(api, hook, space)
        assert (await api.post(f"{space}/configmaps", config("a"))).warnings == ['299 - "mind the gap"']
