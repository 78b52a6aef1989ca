"""Names of objects that travel: each becomes a segment of a URL's path at the other end."""

from __future__ import annotations

import dataclasses

import pytest

from gatelift_wire.values import rules
from gatelift_wire.values.inventory import ForeignRun, InventoryChunk, InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Hello, ObjectTemplate
from gatelift_wire.values.violations import WireViolation

KEY = PlacementKey("u", 1)
IMPOSSIBLE = ("..", ".", "a/b", "a%2fb", "/", "%")


def chunk(namespace: str = "team", name: str = "job") -> InventoryChunk:
    entry = InventoryEntry(key=KEY, namespace=namespace, name=name, state="Gated", lifted=False)
    foreign = ForeignRun(origin="o", kind="Job", namespace="team", name="job", count=1)
    return InventoryChunk(request=1, applied=0, last=True, entries=(entry,), foreign=(foreign,))


def test_names_of_objects_pass() -> None:
    rules.measure(chunk())
    rules.measure(chunk("", "system:a.b-c"))


@pytest.mark.parametrize("field", ["namespace", "name"])
@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_hd_148_a_name_that_leaves_its_place_in_a_path_is_a_violation(field: str, impossible: str) -> None:
    with pytest.raises(WireViolation, match=field) as violation:
        rules.measure(chunk(**{field: impossible}))
    assert "a name that an object can have" in str(violation.value)


@pytest.mark.parametrize("field", ["namespace", "name"])
def test_hd_148_so_is_that_of_a_run_of_another_origin(field: str) -> None:
    run = {"origin": "o", "kind": "Job", "namespace": "team", "name": "job", "count": 1, field: ".."}
    with pytest.raises(WireViolation, match=field):
        rules.measure(InventoryChunk(request=1, applied=0, last=True, entries=(), foreign=(ForeignRun(**run),)))  # type: ignore[arg-type]


@pytest.mark.parametrize("impossible", IMPOSSIBLE)
def test_hd_148_so_is_that_of_an_object_which_an_agent_is_to_make(impossible: str) -> None:
    with pytest.raises(WireViolation, match="name"):
        rules.measure(ObjectTemplate(name=impossible, pod_set="main", template="", metadata=b"{}"))


@pytest.mark.parametrize("uid", ["\x1b[2J", "a b", "*", "a/b", "..", "-a", "\u0661", "a\n", "u" * 65])
def test_hd_155_a_uid_that_no_workload_can_have_is_a_violation(uid: str) -> None:
    with pytest.raises(WireViolation, match="uid"):
        rules.measure(Applied(key=PlacementKey(uid, 1)))


@pytest.mark.parametrize("uid", ["8f14e45f-ceea-467f-a9f1-0c2a1d3b4c5d", "u", "uid_of.nobody-1"])
def test_uids_pass(uid: str) -> None:
    rules.measure(Applied(key=PlacementKey(uid, 1)))


def hello(**changes: object) -> Hello:
    greeting = Hello(
        instance="i-1",
        peer_instance="m-1",
        version_min=1,
        version_max=1,
        agent_version="0.1.0+g1234",
        last_session=0,
        last_term=0,
        received=0,
        kinds=("Pod", "batch/Job"),
        credits=1,
        replicas=1,
        api_reachable=True,
        cluster_uid="c-1",
        lease="gatelift-system/gatelift-agent",
        ticket="t-1",
    )
    return dataclasses.replace(greeting, **changes)  # type: ignore[arg-type]


def test_a_greeting_passes() -> None:
    rules.measure(hello())


@pytest.mark.parametrize(
    "field", ["instance", "peer_instance", "agent_version", "kinds", "cluster_uid", "lease", "ticket"]
)
@pytest.mark.parametrize("sign", ["\x1b[2J", "\u202e", "\u2066", "\x9b2J", "a\nb", "\u200b", "\x7f"])
def test_is_23_a_greeting_that_steers_a_terminal_is_a_violation(field: str, sign: str) -> None:
    with pytest.raises(WireViolation, match=field):
        rules.measure(hello(**{field: (sign,) if field == "kinds" else sign}))


@pytest.mark.parametrize("field", ["origin", "kind", "namespace", "name"])
def test_is_23_so_is_a_run_of_another_origin_that_does(field: str) -> None:
    run = {"origin": "o", "kind": "Job", "namespace": "team", "name": "job", "count": 1, field: "a\x1b[2J"}
    with pytest.raises(WireViolation, match=field):
        rules.measure(InventoryChunk(request=1, applied=0, last=True, entries=(), foreign=(ForeignRun(**run),)))  # type: ignore[arg-type]
