"""IS-53: bodies as kubectl 1.32 sends them, read as the objects that they are."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_sandbox.embedded import protobuf
from gatelift_sandbox.embedded.failures import RequestRefusedError

SENT: dict[str, tuple[str, dict[str, Any] | None]] = {
    "create namespace team-a": (
        (
            "6b3873000a0f0a02763112094e616d657370616365121e0a160a067465616d2d6112001a0022002a0032003800420012"
            "001a020a001a002200"
        ),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}},
    ),
    "auth can-i create pods/status -n team-a": (
        (
            "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365"
            "737352657669657712440a100a0012001a0022002a0032003800420012260a240a067465616d2d611206637265617465"
            "1a0022002a04706f647332003a067374617475731a08080012001a0020001a002200"
        ),
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {
                "resourceAttributes": {
                    "namespace": "team-a",
                    "verb": "create",
                    "resource": "pods",
                    "name": "status",
                }
            },
        },
    ),
    "auth can-i get /healthz": (
        (
            "6b3873000a320a17617574686f72697a6174696f6e2e6b38732e696f2f7631121753656c665375626a65637441636365"
            "7373526576696577122f0a100a0012001a0022002a003200380042001211120f0a082f6865616c74687a12036765741a"
            "08080012001a0020001a002200"
        ),
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
        },
    ),
    "create secret generic s --from-literal=A=b": (
        (
            "6b3873000a0c0a027631120653656372657412230a170a017312001a067465616d2d6122002a0032003800420012060a"
            "01411201621a001a002200"
        ),
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team-a"}, "data": {"A": "Yg=="}},
    ),
    "create configmap c --from-literal=A=b": (
        (
            "6b3873000a0f0a0276311209436f6e6669674d617012210a170a016312001a067465616d2d6122002a00320038004200"
            "12060a01411201621a002200"
        ),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "team-a"}, "data": {"A": "b"}},
    ),
    "create serviceaccount sa": (
        (
            "6b3873000a140a027631120e536572766963654163636f756e74121a0a180a02736112001a067465616d2d6122002a00"
            "3200380042001a002200"
        ),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa", "namespace": "team-a"}},
    ),
    "create token sa": (
        (
            "6b3873000a280a1861757468656e7469636174696f6e2e6b38732e696f2f7631120c546f6b656e52657175657374121a"
            "0a100a0012001a0022002a0032003800420012001a040a0012001a002200"
        ),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"},
    ),
    "create rolebinding rb --role=r --user=me": (
        (
            "6b3873000a2b0a1c726261632e617574686f72697a6174696f6e2e6b38732e696f2f7631120b526f6c6542696e64696e"
            "6712690a180a02726212001a067465616d2d6122002a0032003800420012270a04557365721219726261632e61757468"
            "6f72697a6174696f6e2e6b38732e696f1a026d6522001a240a19726261632e617574686f72697a6174696f6e2e6b3873"
            "2e696f1204526f6c651a01721a002200"
        ),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "rb", "namespace": "team-a"},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "me"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        },
    ),
    "create priorityclass pc --value=5": (
        (
            "6b3873000a250a147363686564756c696e672e6b38732e696f2f7631120d5072696f72697479436c61737312300a120a"
            "02706312001a0022002a003200380042001005180022002a14507265656d70744c6f7765725072696f726974791a0022"
            "00"
        ),
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "pc"},
            "value": 5,
            "globalDefault": False,
            "preemptionPolicy": "PreemptLowerPriority",
        },
    ),
    "create job j --image=busybox -- sleep 1": (
        (
            "6b3873000a0f0a0862617463682f763112034a6f621288010a170a016a12001a067465616d2d6122002a003200380042"
            "00126332610a100a0012001a0022002a00320038004200124d122a0a016a120762757379626f781a05736c6565701a01"
            "312a0042006a007200800100880100900100a201001a054e65766572320042004a0052005800600068008201008a0100"
            "9a0100c201001a082000280030003a001a002200"
        ),
        None,
    ),
    "auth whoami": (
        (
            "6b3873000a2d0a1861757468656e7469636174696f6e2e6b38732e696f2f7631121153656c665375626a656374526576"
            "696577121a0a100a0012001a0022002a0032003800420012060a040a0012001a002200"
        ),
        {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"},
    ),
}
NAMESPACE = bytes.fromhex(SENT["create namespace team-a"][0])


@pytest.mark.parametrize("command", SENT)
def test_is_53_what_kubectl_sends_for(command: str) -> None:
    sent, meant = SENT[command]
    assert protobuf.document(bytes.fromhex(sent)) == meant


def varint(value: int) -> bytes:
    """Return a number as protobuf writes it: seven bits a byte, the lowest first."""
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def part(number: int, content: bytes) -> bytes:
    """Return a field of bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def test_is_53_negative_numbers_flags_and_long_texts_are_read_and_fields_of_other_widths_passed_over() -> None:
    meta = part(1, part(1, b"pc"))
    value = varint(2 << 3) + varint((1 << 64) - 5)
    flag = varint(3 << 3) + varint(1)
    others = varint(90 << 3 | 5) + b"\xff" * 4 + varint(91 << 3 | 1) + b"\xff" * 8 + varint(92 << 3) + varint(300)
    body = part(1, part(1, b"scheduling.k8s.io/v1") + part(2, b"PriorityClass"))
    body += part(2, meta + value + flag + others + part(4, b"d" * 300))
    found = protobuf.document(b"k8s\0" + body)
    assert found is not None
    assert found["globalDefault"] is True
    assert (found["value"], found["description"], found["metadata"]) == (-5, "d" * 300, {"name": "pc"})


def test_is_53_bytes_in_the_place_of_a_number_are_a_bad_request() -> None:
    body = part(1, part(1, b"scheduling.k8s.io/v1") + part(2, b"PriorityClass")) + part(2, part(2, b"x"))
    with pytest.raises(RequestRefusedError, match="bytes stand where there is a number"):
        protobuf.document(b"k8s\0" + body)


def test_is_53_a_body_that_ends_early_is_read_or_refused_in_words() -> None:
    refused = 0
    for size in range(len(NAMESPACE)):
        try:
            protobuf.document(NAMESPACE[:size])
        except RequestRefusedError:
            refused += 1
    assert refused > len(NAMESPACE) / 2


@pytest.mark.parametrize("broken", [b"{}", b"k8s\x00\xff", b"k8s\x00" + b"\xff" * 20, b"k8s\x00\x08\x01"])
def test_is_53_what_is_no_protobuf_is_a_bad_request(broken: bytes) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        protobuf.document(broken)
    assert refused.value.code == 400
