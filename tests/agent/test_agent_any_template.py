"""Whatever JSON a manager sends as a template, the agent answers: it never raises, and goes on serving others."""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift_agent.core.refusing.podspecs import SpecError, read
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_kinds import registry
from gatelift_kube.deciding.writes import ApiWrite, Create, WriteError, WriteFailed
from gatelift_kube.decoding import decoding
from gatelift_kube.values.resources import POD as POD_RESOURCE
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.watches import Stored
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME

SOUND = PlacementKey("w-sound", 1)
"""A placement without fault, after the one in question: the agent must still serve it."""

POD: dict[str, Any] = {
    "containers": [
        {
            "name": "main",
            "image": "app",
            "ports": [{"containerPort": 80, "hostPort": 0}],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
            "securityContext": {"privileged": False, "capabilities": {"add": []}, "windowsOptions": {}},
        }
    ],
    "initContainers": [{"name": "first", "image": "app"}],
    "volumes": [{"name": "data", "projected": {"sources": [{"configMap": {"name": "c"}}]}}],
    "tolerations": [{"key": "spot", "operator": "Exists", "tolerationSeconds": 5}],
    "schedulingGates": [],
    "nodeSelector": {"zone": "a"},
    "securityContext": {"windowsOptions": {"hostProcess": False}},
    "serviceAccountName": "default",
    "runtimeClassName": "",
    "hostNetwork": False,
}
JOB: dict[str, Any] = {
    "parallelism": 1,
    "template": {
        "metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}},
        "spec": {**POD, "restartPolicy": "Never"},
    },
}
REACTIONS_MAX = 20
METADATA: dict[str, Any] = {"labels": {"app": "x"}, "annotations": {"a": "b"}}

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value inside of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in _places(each, (*path, key)))]


def _with(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    changed = copy.deepcopy(document)
    parent = changed
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    return changed


@st.composite
def _spoilt(draw: st.DrawFn, document: dict[str, Any]) -> bytes:
    """Return a document with one or two of its values replaced by any JSON at all; it stays an object on the wire."""
    found = document
    for _ in range(draw(st.integers(1, 2))):
        found = _with(found, draw(st.sampled_from(_places(found)[1:])), draw(VALUES))
    return msgspec.json.encode(found)


class Strict(Stage):
    """A stage whose API server refuses a document that it cannot decode, as the real one does."""

    def _carry_out(self, command: ApiWrite) -> Stored | None:
        if isinstance(command, Create):
            resource = command.ref.resource
            try:
                msgspec.json.decode(command.body, type=decoding.STRUCTS[resource.group, resource.kind])
            except msgspec.ValidationError as error:
                raise RequestRefusedError(400, "BadRequest", str(error)) from error
        return super()._carry_out(command)


def _commit(kind: str, spec: bytes, metadata: bytes, name: str = "x") -> tuple[m.Message, m.Message]:
    digest = hashlib.sha256(spec).hexdigest()
    one = m.ObjectTemplate(name=name, pod_set="main", template=digest, metadata=metadata)
    commit = m.Commit(key=KEY, kind=kind, namespace=NAMESPACE_NAME, name="x", queue="queue", objects=(one,))
    return m.TemplateBlob(hash=digest, content=spec), commit


def _ends_answered(kind: str, spec: bytes, metadata: bytes) -> None:
    """Offer, commit, stop: each is answered; and what is offered next runs as ever."""
    stage = Strict()
    stage.start()
    stage.offer(kind=kind, name="x")
    assert [bid.kind for bid in stage.peer.of(m.Bid)] == [m.BidKind.HELD]
    stage.send(*_commit(kind, spec, metadata))
    stage.pass_seconds(60)
    answers = [each for each in stage.peer.heard if isinstance(each, m.Applied | m.Refused)]
    assert [each.key for each in answers] == [KEY]
    if isinstance(answers[0], m.Refused):
        assert answers[0].text
        assert "\n" not in answers[0].text
    stage.send(m.Stop(key=KEY, reason="Test"))
    cluster = Cluster(stage)
    for _ in range(REACTIONS_MAX):
        if not cluster.react():
            break
    stage.pass_seconds(60)
    assert KEY in {each.key for each in stage.peer.heard if isinstance(each, m.Stopped | m.Refused)}
    stage.place(SOUND, name="sound")
    assert stage.state(SOUND) == "Running"


@settings(max_examples=60)
@given(spec=_spoilt(POD))
def test_a_pods_spec_of_any_shape_is_answered(spec: bytes) -> None:
    _ends_answered("Pod", spec, b"{}")


@settings(max_examples=40)
@given(spec=_spoilt(JOB))
def test_a_jobs_spec_of_any_shape_is_answered(spec: bytes) -> None:
    _ends_answered("Job", spec, b"{}")


@settings(max_examples=20)
@given(
    spec=st.dictionaries(st.sampled_from([*POD, *JOB]) | st.text(max_size=5), VALUES),
    kind=st.sampled_from(["Pod", "Job"]),
)
def test_a_spec_of_anything_is_answered(spec: dict[str, Any], kind: str) -> None:
    _ends_answered(kind, msgspec.json.encode(spec), b"{}")


@settings(max_examples=20)
@given(metadata=_spoilt(METADATA), kind=st.sampled_from(["Pod", "Job"]))
def test_metadata_of_any_shape_is_answered(metadata: bytes, kind: str) -> None:
    _ends_answered(kind, msgspec.json.encode(POD if kind == "Pod" else JOB), metadata)


@pytest.mark.parametrize("metadata", [b"", b"{}", b'{"labels":null}', b'{"annotations":{}}'])
def test_metadata_may_be_absent(metadata: bytes) -> None:
    assert not shapes.marks(metadata).labels


NAMED = {
    "a list where an object belongs": (
        "nodeSelector",
        ["a"],
        "spec.nodeSelector: must be of JSON type object",
    ),
    "a number as a name": ("containers", [{"name": 7}], "spec.containers[0].name: must be of JSON type str, is int"),
    "a null among containers": ("containers", [None], "spec.containers[0]: must be of JSON type object, is null"),
    "an object where a list belongs": ("tolerations", {"key": "a"}, "spec.tolerations: must be of JSON type array"),
    "a gate without a name": ("schedulingGates", [{}], "spec.schedulingGates[0].name: must be there"),
    "a list as a toleration's key": ("tolerations", [{"key": ["a"]}], "spec.tolerations[0].key: must be of JSON type"),
    "a text that says false": ("hostNetwork", "false", "spec.hostNetwork: must be of JSON type bool, is str"),
    "a list as a service account": ("serviceAccountName", ["a"], "spec.serviceAccountName: must be of JSON type str"),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_refusal_names_the_field(case: str) -> None:
    field, value, text = NAMED[case]
    stage = Stage()
    stage.start()
    stage.offer(name="x")
    stage.send(*_commit("Pod", msgspec.json.encode({**POD, field: value}), b"{}"))
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.INVALID
    assert refused.text.startswith(text)
    assert "; send it as" in refused.text


def test_nulls_are_absent() -> None:
    stage = Stage()
    stage.start()
    stage.offer(name="x")
    nulls = dict.fromkeys(POD) | {"containers": [{"name": "main", "image": "app"}]}
    stage.send(*_commit("Pod", msgspec.json.encode(nulls), b"{}"))
    assert stage.state() == "Running"


@pytest.mark.parametrize("name", ["A", "a_b", "-a", "a."])
def test_an_object_needs_a_name_that_an_object_can_have(name: str) -> None:
    stage = Stage()
    stage.start()
    stage.offer(name="x")
    stage.send(*_commit("Pod", msgspec.json.encode(POD), b"{}", name=name))
    [refused] = stage.peer.of(m.Refused)
    assert (refused.refusal, stage.written(Create, POD_RESOURCE)) == (Refusal.INVALID, [])
    assert "DNS subdomain" in refused.text


def test_a_repeated_commit_brings_no_spec_past_the_policy() -> None:
    stage = Stage()
    stage.start()
    stage.offer(name="x")
    stage.hold = lambda write: isinstance(write, Create)
    stage.send(*_commit("Pod", msgspec.json.encode(POD), b"{}"))
    [first] = stage.held
    stage.held.clear()
    denied = msgspec.json.encode({**POD, "hostNetwork": True})
    stage.send(*_commit("Pod", denied, b"{}"))
    stage.fail = lambda write: WriteError.CONFLICT if write is first.command else None
    stage.post(WriteFailed(write_id=first.command.write_id, error=WriteError.CONFLICT, message="again"))
    stage.pass_seconds(5)
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.POLICY
    assert "spec.hostNetwork" in refused.text
    assert not any(b'hostNetwork":true' in write.body for write in stage.written(Create, POD_RESOURCE))


def test_a_repeated_commit_of_another_shape_ends_what_was_not_let_go() -> None:
    stage = Stage()
    stage.start()
    stage.offer(name="x")
    stage.hold = lambda write: isinstance(write, Create)
    stage.send(*_commit("Pod", msgspec.json.encode(POD), b"{}"))
    stage.send(*_commit("Pod", msgspec.json.encode(POD), b'{"labels":[1]}'))
    stage.hold = lambda _write: False
    stage.land()
    stage.pass_seconds(60)
    [refused] = stage.peer.of(m.Refused)
    assert refused.text.startswith("x: metadata.labels: must be of JSON type object")


def test_a_commit_that_asks_for_more_than_its_offer_held_is_judged_anew() -> None:
    stage = Stage(capacity=(NominalCapacity(flavor="default", resource="cpu", nominal=1000),))
    stage.start()
    asks = m.PodSetRequest(name="main", count=1, requests=(("cpu", 2000),), flavors=(("cpu", "default"),))
    stage.offer()
    stage.commit(pod_sets=(asks,))
    [refused] = stage.peer.of(m.Refused)
    assert refused.refusal is Refusal.QUOTA_NEVER_FITS


def test_an_offer_of_less_than_nothing_is_refused() -> None:
    stage = Stage(capacity=(NominalCapacity(flavor="default", resource="cpu", nominal=1000),))
    stage.start()
    asks = m.PodSetRequest(name="main", count=1, requests=(("cpu", -5),), flavors=(("cpu", "default"),))
    stage.offer(pod_sets=(asks,))
    [bid] = stage.peer.of(m.Bid)
    assert (bid.kind, bid.refusal) == (m.BidKind.REFUSED, Refusal.INVALID)


def test_every_kind_that_travels_has_a_shape() -> None:
    assert all(kind.pod_specs for kind in registry.SERVED if kind.travels)
    with pytest.raises(SpecError, match="shape of a Workload"):
        read(registry.BARE_KIND, b"{}")
