"""The Workload of a group as Kueue makes it, and whose a Workload of that name is."""
# ruff: noqa: E501 - a row of a table is one line

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kinds.pod_group import document
from gatelift_kinds.pod_group.composition import GroupPlan, PlannedSet
from gatelift_kinds.pod_group.document import GroupWorkload, conflict, missing_owners, work_id
from gatelift_kinds.pod_group.prebuilt import problem as prebuilt_problem
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, names_too_many
from gatelift_kinds.shared.values import Priority
from gatelift_kube.objects.kueue import Workload
from support.kinds.groups import K, a_pod, typed

Json = dict[str, Any]
ABOUT = GroupWorkload(namespace="ns", group="g", queue="q", priority=Priority(value=5), limit=60, labels={"team": "a"})


def pods(*names: str, **notes: str) -> list[Json]:
    return [a_pod(name, notes=notes) for name in names]


def made(plan: GroupPlan, found: list[Json]) -> Json:
    raws = {each["metadata"]["uid"]: json.dumps(each).encode() for each in found}
    written: Json = json.loads(document.document(plan, ABOUT, [typed(each).metadata for each in found], raws))
    return written


def typed_workload(written: Json) -> Workload:
    return msgspec.json.decode(json.dumps(written).encode(), type=Workload)


TWO = GroupPlan(pod_sets=(PlannedSet(name="r", count=2, like="uid-a"),))


def test_pg_1_it_is_named_after_the_group_marked_and_owned_by_each_pod_without_controller() -> None:
    written = made(TWO, pods("a", "b"))
    meta, spec = written["metadata"], written["spec"]
    assert (meta["name"], meta["namespace"], meta["labels"]) == ("g", "ns", {"team": "a"})
    assert meta["annotations"][f"{K}is-group-workload"] == "true"
    assert meta["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"uid-{name}"} for name in ("a", "b")
    ]
    assert meta["finalizers"] == [f"{K}resource-in-use"]
    assert (spec["queueName"], spec["priority"], spec["maximumExecutionTimeSeconds"]) == ("q", 5, 60)
    (pod_set,) = spec["podSets"]
    assert (pod_set["name"], pod_set["count"]) == ("r", 2)
    assert pod_set["template"]["spec"] == {"containers": [{"name": "c"}]}


def test_it_says_whose_it_is_by_name_and_work() -> None:
    said = json.loads(made(TWO, pods("a"))["metadata"]["annotations"][ANNOTATION_OWNER])
    assert said == {"apiVersion": "v1", "kind": "Pod", "name": "g", "uid": work_id("ns", "g")}


def test_what_kueue_copies_of_annotations_is_the_oldest_pods() -> None:
    a, b = "provreq.kueue.x-k8s.io/a", "provreq.kueue.x-k8s.io/b"
    found = [a_pod("a", notes={a: "1"}), a_pod("b", notes={a: "2", b: "3", "other": "4"})]
    notes = made(TWO, found)["metadata"]["annotations"]
    assert (notes[a], notes[b], "other" in notes) == ("1", "3", False)


def test_dw_1_a_declared_set_has_the_declared_template() -> None:
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "w"}]}}
    plan = GroupPlan(pod_sets=(PlannedSet(name="w", count=3, template=json.dumps(template).encode()),))
    (pod_set,) = made(plan, pods("a"))["spec"]["podSets"]
    assert pod_set == {"name": "w", "count": 3, "template": template}


def test_a_group_of_4096_names_each_pod_and_can_be_stored_and_read() -> None:
    found = [a_pod(f"a-group-of-many-{n:04}") for n in range(4096)]
    plan = GroupPlan(pod_sets=(PlannedSet(name="r", count=4096, like=found[0]["metadata"]["uid"]),))
    written = made(plan, found)
    assert document.too_large(json.dumps(written).encode()) == ""
    assert not names_too_many(typed_workload(written))


def test_what_cannot_be_stored_is_told_with_the_way_out() -> None:
    text = document.too_large(b"x" * (document.WORKLOAD_BYTES_MAX + 1))
    assert "1200001 bytes" in text
    assert "give its pods shorter names" in text


CONTROLLER = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
POD_OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "uid-a"}
MARK = {f"{K}is-group-workload": "true"}
WHOSE = [
    ("PG-28 Kueue's own, with its mark and owned by pods", MARK, [POD_OWNER], ""),
    ("PG-23 without the mark", {}, [POD_OWNER], f"it does not say {K}is-group-workload: true"),
    ("PG-23 controlled by somebody", MARK, [CONTROLLER], "it is owned by something else"),
    ("PG-23 controlled by a pod", MARK, [{**POD_OWNER, "controller": True}], "it is owned by something else"),
    ("PG-23 owned by a pod and by something else", MARK, [POD_OWNER, {**CONTROLLER, "controller": False}], "it is owned by something else"),
    ("PG-23 marked and of nobody", MARK, [], "it is owned by something else"),
    ("BG-19 of another group by its annotation", {**MARK, ANNOTATION_OWNER: '{"apiVersion":"v1","kind":"Pod","name":"h","uid":"group/ns/h"}'}, [POD_OWNER], "it is owned by something else"),
]  # fmt: skip


@pytest.mark.parametrize(("notes", "owners", "why"), [pytest.param(*row[1:], id=row[0]) for row in WHOSE])
def test_whose_a_workload_of_the_groups_name_is(notes: Json, owners: list[Json], why: str) -> None:
    written = {"metadata": {"name": "g", "namespace": "ns", "annotations": notes, "ownerReferences": owners}}
    found = conflict(typed_workload(written), "ns", "g")
    assert found == (
        f"Workload g is not this group's, {why}: give the group another name, or delete that Workload" if why else ""
    )


def test_one_of_our_own_is_the_groups_also_once_its_owners_are_gone() -> None:
    written = made(TWO, pods("a"))
    assert conflict(typed_workload(written), "ns", "g") == ""
    written["metadata"]["ownerReferences"] = []
    assert conflict(typed_workload(written), "ns", "g") == ""
    assert conflict(typed_workload(written), "ns", "h") != ""


def test_bg_18_a_prebuilt_workload_that_is_missing_or_somebody_elses_is_told() -> None:
    assert prebuilt_problem(None, "g").startswith("Workload g, which the pods name as prebuilt, is not there: make it")
    owned = typed_workload({"metadata": {"name": "g", "ownerReferences": [CONTROLLER]}})
    assert "is owned by something else" in prebuilt_problem(owned, "g")
    assert prebuilt_problem(typed_workload({"metadata": {"name": "g"}}), "g") == ""


def test_a_replacement_becomes_an_owner_once() -> None:
    workload = typed_workload(made(TWO, pods("a")))
    (added,) = missing_owners(workload, [typed(each).metadata for each in pods("a", "b")])
    assert (added.name, added.uid, added.controller) == ("b", "uid-b", None)
