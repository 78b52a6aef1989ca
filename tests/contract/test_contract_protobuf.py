"""IS-53: what kubectl sends when it makes objects from its arguments, as bytes, on both servers."""

from __future__ import annotations

import pytest

from gatelift_sandbox.embedded import protobuf
from support.servers.contract_api import Api, Said

pytestmark = pytest.mark.contract

META = bytes.fromhex("1a0022002a0032003800")


def text(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def body(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + text(1, text(1, version.encode()) + text(2, kind.encode())) + text(2, raw)


async def send(api: Api, path: str, sent: bytes) -> Said:
    return await api.call("POST", path, sent, media=protobuf.CONTENT_TYPE, accept="application/json")


async def test_is_53_a_namespace_and_what_is_made_in_it(api: Api) -> None:
    name = (await api.namespace()).rpartition("/")[2]
    made = (
        await send(api, "/api/v1/namespaces", body("v1", "Namespace", text(1, text(1, f"{name}-b".encode()) + META)))
    ).ok()
    assert (made["kind"], made["metadata"]["name"]) == ("Namespace", f"{name}-b")
    raw = text(1, text(1, b"c") + META) + text(2, text(1, b"A") + text(2, b"b"))
    made = (await send(api, f"/api/v1/namespaces/{name}/configmaps", body("v1", "ConfigMap", raw))).ok()
    assert made["data"] == {"A": "b"}
    raw = text(1, text(1, b"s") + META) + text(2, text(1, b"A") + text(2, b"b"))
    assert (await send(api, f"/api/v1/namespaces/{name}/secrets", body("v1", "Secret", raw))).ok()["data"] == {
        "A": "Yg=="
    }
    await api.delete(f"/api/v1/namespaces/{name}-b")


async def test_is_53_may_i(api: Api) -> None:
    spec = text(2, text(1, text(1, b"default") + text(2, b"create") + text(5, b"pods")))
    sent = body("authorization.k8s.io/v1", "SelfSubjectAccessReview", text(1, META) + spec)
    said = (await send(api, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", sent)).ok()
    assert said["status"]["allowed"] is True
    assert said["spec"]["resourceAttributes"] == {"namespace": "default", "verb": "create", "resource": "pods"}


async def test_is_53_bytes_that_are_no_object_are_a_bad_request(api: Api) -> None:
    for sent in (b"k8s\x00\xff", b"{}"):
        assert (await send(api, "/api/v1/namespaces", sent)).code in {400, 422}
