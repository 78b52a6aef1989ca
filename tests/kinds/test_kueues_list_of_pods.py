"""Kueue's own scenarios of its webhook for pods and of what it reads of them: PW-n and PU-n, by the reference's list.

Those that are missing here, or end otherwise, are in `docs/keps.md` with the reason.
"""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from gatelift_kinds.pod_group import marks
from gatelift_kinds.registry import POD_KIND, WITH_GROUPS
from gatelift_kinds.shared import markers, pods
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kinds.shared.role_hash import role_hash, shape
from gatelift_kube.decoding.decoding import read_object
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.resources import POD
from support.kinds.groups import GROUP, TOTAL, K
from support.manager.webhook_documents import CLASS, DEFAULT, FACTS, GATED, Json, Q, a_pod, defaulted, told

G = {**Q, GROUP: "g"}
THREE = {TOTAL: "3"}
PREBUILT, HASH, MANAGED, RETRIABLE = (
    f"{K}{name}" for name in ("prebuilt-workload-name", "role-hash", "managed", "retriable-in-group")
)
INDEX, INDEX_LABEL = f"{K}pod-group-pod-index", f"{K}pod-group-pod-index-label"
TOPOLOGY = replace(FACTS, topology_gate=True)


def kind_of(document: Json) -> Any:
    kind = WITH_GROUPS.of(POD, read_object(POD, json.dumps(document).encode()))
    assert kind is not None
    return kind


def made(document: Json, facts: WebhookFacts) -> tuple[list[str], bool, str | None, str | None]:
    """Return gates, whether there is our finalizer, the label of those that are taken over, and the queue."""
    found = defaulted(kind_of(document), document, facts)
    meta = found["metadata"]
    labels = meta.get("labels") or {}
    gates = [each["name"] for each in found["spec"].get("schedulingGates", [])]
    return gates, MANAGED in meta.get("finalizers", []), labels.get(MANAGED), labels.get(f"{K}queue-name")


WHOLE = ([f"{K}admission"], True, "true", "q")
DEFAULTED = [
    ("PW-001 suspended by its parent: gate and hash alone", a_pod(Q, {f"{K}pod-suspending-parent": "p"}), WebhookFacts(namespace_selected=False), ([f"{K}admission"], False, None, "q")),
    ("PW-002 PW-003 PW-021 PI-W1 a queue", a_pod(Q), FACTS, WHOLE),
    ("PW-004 PI-W6 none, and everything is managed", a_pod(), WebhookFacts(manage_without_queue=True), ([f"{K}admission"], True, "true", None)),
    ("PW-006 its owner is queued", a_pod(Q), replace(FACTS, owner_managed=True), ([], False, None, "q")),
    ("PW-014 a group without a size: managed as ever", a_pod(G), FACTS, WHOLE),
    ("PW-015 a group and a queue", a_pod(G, THREE), FACTS, WHOLE),
    ("PW-016 topology: its gate as well", a_pod(Q), TOPOLOGY, ([f"{K}admission", f"{K}topology"], True, "true", "q")),
    ("PW-018 the LocalQueue `default`", a_pod(), DEFAULT, ([f"{K}admission"], True, "true", "default")),
    ("PW-019 PI-W3 no queue, and no default", a_pod(), FACTS, ([], False, None, None)),
    ("PW-020 the queue that is named", a_pod(Q), replace(DEFAULT, local_queues={"default": False, "q": False}), WHOLE),
    ("PW-022 PI-W2 PI-W7 kube-system", a_pod(Q), WebhookFacts(namespace_selected=False), ([], False, None, "q")),
    ("PW-023 PW-025 podOptions select it", a_pod(Q), replace(FACTS, pod_taken=True), WHOLE),
    ("PW-024 PW-026 podOptions do not", a_pod(Q), replace(FACTS, pod_taken=False), ([], False, None, "q")),
]  # fmt: skip


@pytest.mark.parametrize(("pod", "facts", "as_made"), [pytest.param(*row[1:], id=row[0]) for row in DEFAULTED])
def test_a_new_pod_is_made(pod: Json, facts: WebhookFacts, as_made: Any) -> None:
    assert made(pod, facts) == as_made


def test_gates_that_are_there_are_not_set_twice_pu_006_pu_007() -> None:
    pod = a_pod(Q, schedulingGates=[{"name": f"{K}topology"}, {"name": "mine"}])
    once = defaulted(POD_KIND, pod, TOPOLOGY)
    assert [each["name"] for each in once["spec"]["schedulingGates"]] == [f"{K}topology", "mine", f"{K}admission"]
    assert POD_KIND.defaults(once, TOPOLOGY) == ()


def test_pw_017_the_rank_is_copied_from_the_label_that_an_annotation_names() -> None:
    pod = a_pod({**G, "rank": "2"}, {**THREE, INDEX_LABEL: "rank"})
    assert defaulted(kind_of(pod), pod, TOPOLOGY)["metadata"]["labels"][INDEX] == "2"


PRIORITY = f"{K}priority-class"


@pytest.mark.parametrize(
    ("labels", "facts", "name"),
    [
        pytest.param(G, CLASS, "default", id="PW-027 there is a class `default`"),
        pytest.param(G, FACTS, None, id="PW-028 PW-030 there is none, or the gate is off"),
        pytest.param({**G, PRIORITY: "high"}, CLASS, "high", id="PW-029 one is named"),
    ],
)
def test_the_priority_class_of_a_member_is(labels: Json, facts: WebhookFacts, name: str | None) -> None:
    pod = a_pod(labels, THREE)
    assert defaulted(kind_of(pod), pod, facts)["metadata"]["labels"].get(PRIORITY) == name


VOLUMES = [
    pytest.param([{"name": "a"}], [{"name": "b"}], id="PW-032 the names of volumes"),
    pytest.param([{"name": "a", "persistentVolumeClaim": {"claimName": "x"}}], [{"name": "a", "persistentVolumeClaim": {"claimName": "y"}}], id="PW-033 their claims"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), VOLUMES)
def test_the_hash_does_not_look_at(one: Json, other: Json) -> None:
    spec = a_pod()["spec"]
    assert role_hash({**spec, "volumes": one}) == role_hash({**spec, "volumes": other})


def test_pw_031_two_pods_that_differ_in_labels_have_one_hash() -> None:
    hashes = [defaulted(kind_of(pod), pod, FACTS)["metadata"]["annotations"][HASH] for pod in (a_pod(Q), a_pod({**Q, f"{K}x": "y"}))]  # fmt: skip
    assert hashes[0] == hashes[1]


COUNT = f"metadata.annotations[{TOTAL}]"
NUMBER = "must be a whole number from 1 to 4096: the pods of the group in all"
NAME_RULE = "must be a DNS subdomain: at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends of each part"
EQUAL = "must be equal to the group's name"
CREATED: list[tuple[str, Json, Json, str]] = [
    ("PW-035 PI-028 a group without its size", G, {}, f"{COUNT}: Required value: has to be given together with the group's name"),
    ("PW-036 a size without a group", Q, THREE, f"metadata.labels[{GROUP}]: Required value: has to be given together with the group's size"),
    ("PW-037 a size of 0", G, {TOTAL: "0"}, f'{COUNT}: Invalid value: "0": {NUMBER}'),
    ("PW-038 an empty size", G, {TOTAL: ""}, f'{COUNT}: Invalid value: "": {NUMBER}'),
    ("PW-039 PW-052 PW-053 no DNS subdomain in the label", {**Q, GROUP: "G_"}, THREE, f'metadata.labels[{GROUP}]: Invalid value: "G_": {NAME_RULE}'),
    ("PW-054 no DNS subdomain in the annotation", Q, {GROUP: "G_", **THREE}, f'metadata.annotations[{GROUP}]: Invalid value: "G_": {NAME_RULE}'),
    ("PW-043 a prebuilt name equal to the group's", {**G, PREBUILT: "g"}, THREE, ""),
    ("PW-044 another one", {**G, PREBUILT: "w"}, THREE, f'metadata.labels[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
    ("PW-048 equal in two annotations", Q, {GROUP: "g", PREBUILT: "g", **THREE}, ""),
    ("PW-049 unlike in two annotations", Q, {GROUP: "g", PREBUILT: "w", **THREE}, f'metadata.annotations[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
    ("PW-050 a label unlike the group's annotation", {**Q, PREBUILT: "w"}, {GROUP: "g", **THREE}, f'metadata.labels[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
    ("PW-051 PI-027 an annotation unlike the group's label", G, {PREBUILT: "w", **THREE}, f'metadata.annotations[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
    ("PW-055 a label unlike the annotation counts for nothing", {**Q, GROUP: "other"}, {GROUP: "g", **THREE}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("labels", "notes", "line"), [pytest.param(*row[1:], id=row[0]) for row in CREATED])
def test_a_new_pod_is_judged(labels: Json, notes: Json, line: str) -> None:
    pod = a_pod(labels, notes, **GATED)
    assert told(kind_of(pod).validate_create(pod, FACTS)) == ([line] if line else [])


IMMUTABLE = "is immutable once set: make a new pod instead"
UNRETRIABLE = f"metadata.annotations[{RETRIABLE}]: Forbidden: an unretriable pod cannot become retriable: keep it false"
A = {GROUP: "g", **THREE}
CHANGED: list[tuple[str, tuple[Json, Json], tuple[Json, Json], str]] = [
    ("PW-059 a group without its size", (G, THREE), (G, {}), f"{COUNT}: Required value: has to be given together with the group's name"),
    ("PW-060 a size of 0", (G, THREE), (G, {TOTAL: "0"}), f'{COUNT}: Invalid value: "0": {NUMBER}'),
    ("PW-061 an empty size", (G, THREE), (G, {TOTAL: ""}), f'{COUNT}: Invalid value: "": {NUMBER}'),
    ("PW-062 PW-063 another name in the label", (G, THREE), ({**Q, GROUP: "h"}, THREE), f'metadata.labels[{GROUP}]: Invalid value: "h": {IMMUTABLE}'),
    ("PW-064 another name in the annotation", (Q, A), (Q, {**A, GROUP: "h"}), f'metadata.annotations[{GROUP}]: Invalid value: "h": {IMMUTABLE}'),
    ("PW-065 label for annotation, another name", (G, THREE), (Q, {**A, GROUP: "h"}), f'metadata.annotations[{GROUP}]: Invalid value: "h": {IMMUTABLE}'),
    ("PW-066 annotation for label, another name", (Q, A), ({**Q, GROUP: "h"}, THREE), f'metadata.labels[{GROUP}]: Invalid value: "h": {IMMUTABLE}'),
    ("PW-067 label for annotation, the same name", (G, THREE), (Q, A), ""),
    ("PW-069 unretriable no more", (G, {**THREE, RETRIABLE: "false"}), (G, THREE), UNRETRIABLE),
    ("PW-070 unretriable becomes retriable", (G, {**THREE, RETRIABLE: "false"}), (G, {**THREE, RETRIABLE: "true"}), UNRETRIABLE),
    ("PW-071 a prebuilt name unlike the group's", (G, THREE), ({**G, PREBUILT: "w"}, THREE), f'metadata.labels[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
    ("PW-072 the prebuilt annotation as it was", (G, {PREBUILT: "g", **THREE}), (G, {PREBUILT: "g", **THREE}), ""),
    ("PW-073 a prebuilt annotation unlike the group's", (G, THREE), (G, {PREBUILT: "w", **THREE}), f'metadata.annotations[{PREBUILT}]: Invalid value: "w": {EQUAL}'),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "line"), [pytest.param(*row[1:], id=row[0]) for row in CHANGED])
def test_a_change_of_a_pod_is_judged(before: tuple[Json, Json], after: tuple[Json, Json], line: str) -> None:
    old, new = (a_pod(labels, notes, **GATED) for labels, notes in (before, after))
    assert told(kind_of(old).validate_update(old, new, FACTS)) == ([line] if line else [])


# --- what is read of a pod -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "notes", "name"),
    [
        pytest.param({}, {}, "", id="PU-024 no group"),
        pytest.param({GROUP: "l"}, {}, "l", id="PU-025 in the label"),
        pytest.param({}, {GROUP: "a"}, "a", id="PU-026 in the annotation"),
        pytest.param({GROUP: "l"}, {GROUP: "a"}, "a", id="PU-028 in both"),
        pytest.param({GROUP: "l"}, {GROUP: ""}, "l", id="PU-029 in the label, and an empty annotation"),
    ],
)
def test_the_groups_name_is(labels: dict[str, str], notes: dict[str, str], name: str) -> None:
    assert markers.group_name(labels, notes) == name


@pytest.mark.parametrize(
    ("labels", "index", "wrong"),
    [
        pytest.param({}, None, False, id="PU-008 no index"),
        pytest.param({INDEX: "2"}, 2, False, id="PU-009 one below the size"),
        pytest.param({INDEX: "x"}, None, True, id="PU-010 PC-080 no number"),
        pytest.param({INDEX: "-1"}, None, True, id="PU-011 PC-081 negative"),
        pytest.param({INDEX: "3"}, 3, True, id="PU-012 PC-080 the size itself"),
    ],
)
def test_the_rank_is(labels: dict[str, str], index: int | None, wrong: bool) -> None:
    assert marks.read({**G, **labels}, THREE).index == index
    assert bool(marks.problems({**G, **labels}, THREE)) is wrong


def typed(**more: Any) -> Pod:
    found = read_object(POD, json.dumps({"metadata": {"name": "p"}, **more}).encode())
    assert isinstance(found, Pod)
    return found


@pytest.mark.parametrize(
    ("gates", "held"),
    [
        pytest.param([f"{K}admission"], True, id="PU-001 the gate"),
        pytest.param(["mine"], False, id="PU-002 another gate"),
        pytest.param([], False, id="PU-003 PU-005 no gate"),
    ],
)
def test_a_pod_is_held_back_by_our_gate(gates: list[str], held: bool) -> None:
    assert POD_KIND.lifted(typed(spec={"schedulingGates": [{"name": one} for one in gates]})) is not held


@pytest.mark.parametrize(
    ("gates", "left"),
    [
        pytest.param([f"{K}admission"], [], id="PU-004 ours"),
        pytest.param([f"{K}topology", f"{K}admission"], [], id="with that of topology"),
    ],
)
def test_a_lift_takes_our_gates_off(gates: list[str], left: list[str]) -> None:
    pod = typed(spec={"schedulingGates": [{"name": one} for one in gates]})
    removed = [one["path"] for one in json.loads(POD_KIND.lift_patch(pod)) if one["op"] == "remove"]
    kept = [one for place, one in enumerate(gates) if f"/spec/schedulingGates/{place}" not in removed]
    assert kept == left


@pytest.mark.parametrize(
    ("phase", "over"),
    [
        pytest.param("Failed", True, id="PU-013"),
        pytest.param("Succeeded", True, id="PU-014"),
        pytest.param("Running", False, id="PU-015"),
    ],
)
def test_a_pod_is_over_by_its_phase(phase: str, over: bool) -> None:
    assert pods.over(typed(status={"phase": phase})) is over


def test_what_all_containers_share_is_in_the_shape_where_it_is_said_pu_016_pu_017_pu_018_pu_019() -> None:
    """PU-016 PU-017 PU-018 PU-019."""
    spec = a_pod()["spec"]
    one, other = ({**spec, "resources": {"requests": {"cpu": cpu}}} for cpu in "12")
    assert "resources" not in shape(spec)["spec"]
    assert shape(one)["spec"]["resources"] == {"requests": {"cpu": "1"}}
    assert role_hash(one) != role_hash(other)
    assert role_hash(spec) == "a9f06f3a"
