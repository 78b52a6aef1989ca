"""An elastic Job (KEP-77): who is one, its slices, its size where it runs, and its pods at the gate."""

from __future__ import annotations

import json

import pytest

from gatelift_kinds.job.elastic_kind import ElasticJobKind
from gatelift_kinds.registry import ELASTIC_JOB_KIND as KIND
from gatelift_kinds.registry import JOB_KIND, SERVED
from gatelift_kinds.shared import markers, sizes, slices
from gatelift_kinds.shared.names import workload_name
from gatelift_kinds.shared.sizes import Size, SizeError, SizeMark
from gatelift_kinds.shared.values import MergeConflictError, PatchStep, Placing, PodSetStart, Priority, UserChange
from gatelift_kube.values.resources import JOB, ObjectKey
from gatelift_wire.values.keys import ANNOTATION_CHAIN, ANNOTATION_EPOCH, ANNOTATION_SIZE
from support.kinds.elastic_jobs import (
    ELASTIC,
    GATE,
    MULTIKUEUE,
    a_placing,
    an_elastic,
    as_workload,
    at_worker,
    first_slice,
    stored,
)
from support.manager.kind_objects import KEY, Json, a_job, condition, job, merged, patched, raw

OFF = ElasticJobKind(on=False)


# --- who is elastic ---------------------------------------------------------------------------------------------------

ASKED: list[tuple[str, Json | None, bool]] = [
    ("WS-001 nothing at all", None, False),
    ("WS-002 no annotations", {}, False),
    ("WS-003 an empty map", {"annotations": {}}, False),
    ("WS-004 true", {"annotations": {ELASTIC: "true"}}, True),
    ("WS-005 another value", {"annotations": {ELASTIC: "yes"}}, False),
]


@pytest.mark.parametrize(("metadata", "elastic_"), [pytest.param(*row[1:], id=row[0]) for row in ASKED])
def test_sl_02_who_asks_by_the_one_value_is_elastic(metadata: Json | None, elastic_: bool) -> None:
    """WS-001, WS-002, WS-003, WS-004, WS-005."""
    document = an_elastic()
    document["metadata"].pop("annotations")
    document["metadata"] |= metadata or {}
    assert KIND.resizes(job(document)) is elastic_
    assert slices.asks(job(document).metadata.annotations) is elastic_
    assert KIND.gated(job(document)) is elastic_


def test_sl_01_a_job_that_was_made_without_the_gate_is_one_as_any_other() -> None:
    """Made while the feature was off: its pods start at once, so its size is what any Job's is."""
    document = a_job(suspend=False, parallelism=4)
    document["metadata"]["annotations"] = {ELASTIC: "true"}
    assert not KIND.resizes(job(document))
    assert KIND.workload_name(job(document)) == JOB_KIND.workload_name(job(document))
    admitted = as_workload(stored(first_slice({**document, "spec": {**document["spec"], "parallelism": 3}})))
    assert KIND.user_change(job(document), admitted, KEY, {"main": 3}) is UserChange.RESIZED


def test_sl_01_switched_off_it_keeps_its_gate_and_a_change_of_size_ends_its_run_as_any_jobs() -> None:
    """SL-09: nothing else of it is otherwise than of a Job that never asked."""
    admitted = as_workload(stored(first_slice(an_elastic())))
    larger = job(an_elastic(suspend=False, parallelism=5))
    assert OFF.gated(larger), "its pods still come gated, and are let go by count"
    assert not OFF.resizes(larger)
    assert OFF.user_change(larger, admitted, KEY, {"main": 3}) is UserChange.RESIZED
    assert OFF.user_change(job(an_elastic(suspend=False)), admitted, KEY, {"main": 3}) is None
    assert KIND.user_change(larger, admitted, KEY, {"main": 3}) is None, "switched on again it goes on"


def test_sl_09_what_is_served_knows_of_no_sizes() -> None:
    larger = job(an_elastic(suspend=False, parallelism=5))
    assert SERVED.of(JOB, larger) is JOB_KIND
    assert not JOB_KIND.resizes(larger)
    assert not JOB_KIND.gated(larger)
    admitted = as_workload(stored(first_slice(an_elastic())))
    assert JOB_KIND.user_change(larger, admitted, KEY, {"main": 3}) is UserChange.RESIZED


def test_sl_03_without_the_annotation_all_that_is_written_is_as_before() -> None:
    user, elsewhere = a_job(), a_job(**MULTIKUEUE)
    (part,), (same,) = KIND.parts(job(elsewhere), raw(elsewhere)), JOB_KIND.parts(job(elsewhere), raw(elsewhere))
    assert part == same
    plain = a_placing(size=None)
    assert KIND.document(part, plain) == JOB_KIND.document(part, plain)
    assert KIND.workload_document(job(user), raw(user), Priority()) == JOB_KIND.workload_document(
        job(user), raw(user), Priority()
    )
    assert KIND.local_lift_patch(job(user), raw(user), plain) == JOB_KIND.local_lift_patch(job(user), raw(user), plain)


def test_sl_02_a_change_of_shape_or_a_suspension_ends_the_run_of_an_elastic_job_too() -> None:
    admitted = as_workload(stored(first_slice(an_elastic())))
    other = an_elastic(suspend=True)
    other["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert KIND.user_change(job(other), admitted, KEY, {"main": 3}) is UserChange.RESIZED
    shown = an_elastic(**MULTIKUEUE)
    shown["metadata"]["annotations"]["gatelift.dev/shown"] = str(KEY)
    assert KIND.user_change(job(shown), admitted, KEY, {"main": 3}) is UserChange.SUSPENDED


# --- names and slices -------------------------------------------------------------------------------------------------

NAMES = [
    ("EJ-066 off, not asked for", OFF, a_job(), "job-j-"),
    ("EJ-067 off, asked for", OFF, an_elastic(), "job-j-"),
    ("EJ-068 on, not asked for", KIND, a_job(), "job-j-"),
]


@pytest.mark.parametrize(("kind", "document", "begins"), [pytest.param(*row[1:], id=row[0]) for row in NAMES])
def test_sl_04_the_workload_has_the_plain_name(kind: ElasticJobKind, document: Json, begins: str) -> None:
    """EJ-066, EJ-067, EJ-068."""
    made = first_slice(document, kind)
    assert made["metadata"]["name"] == workload_name("Job", "batch", "j", "uid-j")
    assert made["metadata"]["name"].startswith(begins)
    assert not {ELASTIC, markers.SLICE_NAME} & made["metadata"]["annotations"].keys()


def test_sl_04_an_elastic_one_has_the_name_of_its_generation_and_is_its_own_origin() -> None:
    """EJ-069."""
    made = first_slice(an_elastic(generation=1))
    name = made["metadata"]["name"]
    assert name == workload_name("Job", "batch", "j", "uid-j", "1")
    notes = made["metadata"]["annotations"]
    assert (notes[ELASTIC], notes[markers.SLICE_NAME]) == ("true", name)
    assert ANNOTATION_SIZE not in notes, "the first size is not said"
    assert slices.size_of(as_workload(stored(made))) == Size(number=1, counts={"main": 3})


@pytest.mark.parametrize(("generation", "name"), [(1, "job-demo-slice-e7080"), (3, "job-demo-slice-75e0c")])
def test_sl_04_the_names_of_the_document_are_those_of_generations_1_and_3(generation: int, name: str) -> None:
    """It says 2 and 1."""
    document = an_elastic("demo-slice", generation=generation)
    document["metadata"]["uid"] = "78d1e61a-c399-4c09-800f-a0bbfb5fe71e"
    assert KIND.slice_name(job(document)) == name
    assert KIND.slice_name(job(document), "2") != name, "another one where that name is taken"


def test_ws_006_a_workload_that_names_no_other_one_replaces_none() -> None:
    """WS-007, WS-008."""
    made = stored(first_slice(an_elastic()))
    assert slices.replaced_by(as_workload({**made, "metadata": {"name": "w", "namespace": "ns"}})) is None
    assert slices.replaced_by(as_workload({**made, "metadata": {"name": "w", "annotations": {}}})) is None
    for said, found in (("ns/a", ObjectKey("ns", "a")), ("a", None), ("/a", None), ("ns/", None), ("ns/a/b", None)):
        notes = {markers.SLICE_REPLACEMENT: said}
        assert slices.replaced_by(as_workload({**made, "metadata": {"name": "w", "annotations": notes}})) == found


def following(current: Json, number: int = 2, count: int = 10, name: str = "next", epoch: int = 4) -> Json:
    new = slices.NextSlice(name=name, size=Size(number=number, counts={"main": count}), epoch=epoch)
    made: Json = json.loads(slices.following(as_workload(current), raw(current), new))
    return made


def test_sl_04_the_next_slice_has_the_template_owner_and_queue_of_the_one_that_it_replaces() -> None:
    current = stored(first_slice(an_elastic()))
    current["metadata"]["annotations"] |= {"gatelift.dev/term": "9", "gatelift.dev/owner": "o", "x/y": "z"}
    current["status"] = {"conditions": []}
    made = following(current)
    before, meta = current["metadata"], made["metadata"]
    assert made["spec"] == {**current["spec"], "podSets": [{**current["spec"]["podSets"][0], "count": 10}]}
    assert (meta["ownerReferences"], meta["labels"]) == (before["ownerReferences"], before["labels"])
    assert meta["labels"] == {markers.JOB_UID: "uid-j"}
    assert meta["finalizers"] == [markers.RESOURCE_IN_USE]
    assert meta["annotations"] == {
        ELASTIC: "true",
        markers.SLICE_NAME: before["name"],
        markers.SLICE_REPLACEMENT: f"ns/{before['name']}",
        ANNOTATION_CHAIN: "uid-1",
        ANNOTATION_SIZE: "2",
        ANNOTATION_EPOCH: "4",
        "gatelift.dev/owner": "o",
    }
    assert "status" not in made
    third = following(stored(made, "uid-2"), number=3, name="third")["metadata"]["annotations"]
    assert third[markers.SLICE_NAME] == before["name"], "the origin is the first one's name, whichever is replaced"
    assert third[markers.SLICE_REPLACEMENT] == "ns/next"
    assert third[ANNOTATION_CHAIN] == "uid-1"


FORGED = [
    ("of another namespace", {"namespace": "other"}, {}),
    ("of another chain", {}, {ANNOTATION_CHAIN: "uid-x"}),
    ("of a slice in another namespace", {}, {markers.SLICE_REPLACEMENT: "other/w"}),
    ("of itself", {}, {markers.SLICE_REPLACEMENT: "ns/next"}),
    ("of the same size", {}, {ANNOTATION_SIZE: "1"}),
    ("of a size that cannot be read", {}, {ANNOTATION_SIZE: "x"}),
    ("of what is not elastic", {}, {ELASTIC: "no"}),
]


@pytest.mark.parametrize(("meta", "notes"), [pytest.param(*row[1:], id=row[0]) for row in FORGED])
def test_ws_008_a_later_slice_replaces_the_one_it_names_and_a_forged_mark_none(meta: Json, notes: Json) -> None:
    current = stored(first_slice(an_elastic()))
    made = stored(following(current), "uid-2")
    assert KIND.replaces(as_workload(made), as_workload(current))
    assert not KIND.replaces(as_workload(current), as_workload(made)), "and not in a ring"
    assert not JOB_KIND.replaces(as_workload(made), as_workload(current)), "what is served knows of no slices"
    before = made["metadata"]
    forged = {**made, "metadata": {**before, **meta, "annotations": {**before["annotations"], **notes}}}
    assert not KIND.replaces(as_workload(forged), as_workload(current))


def test_sl_04_a_slice_is_resized_in_place_with_its_number_for_the_version_that_was_seen() -> None:
    current = stored(first_slice(an_elastic()))
    body = slices.resized(as_workload(current), raw(current), Size(number=2, counts={"main": 1}))
    assert json.loads(body)["metadata"] == {
        "uid": "uid-1",
        "resourceVersion": "5",
        "annotations": {ANNOTATION_SIZE: "2"},
    }
    after = merged(current, body)
    assert slices.size_of(as_workload(after)) == Size(number=2, counts={"main": 1})
    assert after["spec"]["podSets"][0]["template"] == current["spec"]["podSets"][0]["template"]


@pytest.mark.parametrize("said", ["0", "-1", "x", "", "1.0", "01", "9" * 30])
def test_sl_04_a_number_that_cannot_be_read_is_no_first_size(said: str) -> None:
    with pytest.raises(SizeError, match=r"^metadata.annotations\[gatelift.dev/size\]: is no number of a size"):
        sizes.number_of({ANNOTATION_SIZE: said})


def test_sl_04_a_slice_of_another_count_has_the_shape_of_its_job() -> None:
    current = as_workload(stored(first_slice(an_elastic())))
    assert KIND.same_shape(current, job(an_elastic(parallelism=5)))
    assert not KIND.equivalent(current, job(an_elastic(parallelism=5)))
    other = an_elastic()
    other["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    assert not KIND.same_shape(current, job(other))


SCALED = [
    ("WS-017 nothing", {}, {}, False),
    ("WS-018 one smaller, one equal", {"a": 2, "b": 1}, {"a": 1, "b": 1}, True),
    ("WS-019 all smaller", {"a": 2, "b": 2}, {"a": 1, "b": 1}, True),
    ("WS-020 one smaller, one larger", {"a": 2, "b": 1}, {"a": 1, "b": 2}, False),
    ("WS-021 one smaller, one unknown and large", {"a": 2}, {"a": 1, "b": 9}, True),
    ("WS-022 one smaller, one unknown and small", {"a": 2}, {"a": 1, "b": 0}, True),
    ("all equal", {"a": 2}, {"a": 2}, False),
]


@pytest.mark.parametrize(("before", "after", "down"), [pytest.param(*row[1:], id=row[0]) for row in SCALED])
def test_it_is_scaled_down_if_some_are_fewer_and_none_more(before: Json, after: Json, down: bool) -> None:
    """WS-017, WS-018, WS-019, WS-020, WS-021, WS-022."""
    assert sizes.is_scaled_down(before, after) is down


def test_ws_020_of_a_wish_that_is_both_the_smaller_part_is_lowered_and_the_larger_one_raised() -> None:
    current, wanted = {"a": 4, "b": 2, "c": 1}, {"a": 3, "b": 5, "c": 1}
    lowered = sizes.lowered(current, wanted)
    assert lowered == {"a": 3, "b": 2, "c": 1}
    assert sizes.is_raised(lowered, wanted)
    assert not sizes.is_raised(current, lowered)
    assert all(wanted[name] >= count for name, count in lowered.items()), "target is nowhere below current"


# --- its size where it runs -------------------------------------------------------------------------------------------


def test_sl_25_a_worker_gets_as_many_pods_as_are_granted_whatever_is_wanted_by_now() -> None:
    tied = an_elastic(parallelism=10, completions=10, completionMode="Indexed", **MULTIKUEUE)
    for user, spec in (
        (an_elastic(parallelism=10, completions=20, **MULTIKUEUE), {"parallelism": 3, "completions": 20}),
        (an_elastic(parallelism=10, completions=None, **MULTIKUEUE), {"parallelism": 3, "completions": None}),
        (tied, {"parallelism": 3, "completions": 3}),
    ):
        made = at_worker(user)
        assert {key: made["spec"].get(key) for key in spec} == spec
        assert made["spec"]["template"]["spec"]["schedulingGates"] == [GATE], "its pods come gated"
        assert made["spec"]["suspend"] is True


def test_sl_05_a_workers_job_is_marked_with_the_size_at_which_it_is_made() -> None:
    made = at_worker(an_elastic(**MULTIKUEUE), size=4)
    assert KIND.mark(job(made)) == SizeMark(number=4, counts={"main": 3})
    assert ELASTIC not in made["metadata"]["annotations"], "a Kueue that runs there is not asked"
    assert KIND.gated(job(made)), "and still its agent knows it for elastic"
    assert not KIND.resizes(job(made)), "its user is at home"


def test_sl_05_without_the_gate_or_a_count_nothing_elastic_is_made() -> None:
    user = an_elastic(**MULTIKUEUE)
    (part,) = KIND.parts(job(user), raw(user))
    with pytest.raises(SizeError, match="is not known"):
        KIND.document(part, a_placing(None))
    user["spec"]["template"]["spec"].pop("schedulingGates")
    (part,) = KIND.parts(job(user), raw(user))
    with pytest.raises(MergeConflictError, match="elastic-job is missing"):
        KIND.document(part, a_placing())


def test_sl_25_a_resize_sets_parallelism_completions_and_the_mark_in_one_patch_for_this_version() -> None:
    for user, fields in (
        (an_elastic(parallelism=3, completions=20), {"parallelism": 7, "completions": 20}),
        (
            an_elastic(parallelism=3, completions=3, completionMode="Indexed"),
            {"parallelism": 7, "completions": 7},
        ),
    ):
        made = at_worker({**user, "spec": {**user["spec"], **MULTIKUEUE}})
        body = KIND.size_patch(job(made), Size(number=2, counts={"main": 7}))
        assert body is not None
        assert [one["path"] for one in json.loads(body)[:2]] == ["/metadata/uid", "/metadata/resourceVersion"]
        after = patched(made, body)
        assert {key: after["spec"][key] for key in fields} == fields
        assert KIND.mark(job(after)) is not None
        assert KIND.size_patch(job(after), Size(number=2, counts={"main": 7})) is None, "it is set to it"


def test_sl_25_a_parallelism_that_has_come_to_the_completions_takes_them_not_along() -> None:
    """Indexed, 20 completions, 3 pods at once: grown to 20 and shrunk to 5 it still has 20 to do."""
    made = at_worker(an_elastic(parallelism=3, completions=20, completionMode="Indexed", **MULTIKUEUE))
    for number, count in ((2, 20), (3, 5)):
        body = KIND.size_patch(job(made), Size(number=number, counts={"main": count}))
        assert body is not None
        made = patched(made, body)
    assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (5, 20)


def test_sl_25_the_mark_is_written_also_where_no_pod_changes() -> None:
    made = at_worker(an_elastic(**MULTIKUEUE))
    body = KIND.size_patch(job(made), Size(number=2, counts={"main": 3}))
    assert body is not None
    assert [one["op"] for one in json.loads(body)] == ["test", "test", "add"]
    assert KIND.mark(job(patched(made, body))) == SizeMark(number=2, counts={"main": 3})


def test_sl_25_to_zero_and_up_again() -> None:
    made = at_worker(an_elastic(parallelism=3, completions=3, completionMode="Indexed", **MULTIKUEUE))
    for number, count in ((2, 0), (3, 4)):
        body = KIND.size_patch(job(made), Size(number=number, counts={"main": count}))
        assert body is not None
        made = patched(made, body)
        assert (made["spec"]["parallelism"], made["spec"]["completions"]) == (count, count)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "x",
        "[]",
        '{"number":0,"counts":{}}',
        '{"number":1,"counts":{"main":-1}}',
        '{"number":1,"counts":{"main":3000000000}}',
        '{"number":1}',
        '{"number":1,"counts":{"main":1},"pad":"' + "x" * 1024 + '"}',
    ],
)
def test_sl_05_a_mark_that_cannot_be_read_is_not_taken_for_none(said: str) -> None:
    made = at_worker(an_elastic(**MULTIKUEUE))
    made["metadata"]["annotations"][ANNOTATION_SIZE] = said
    with pytest.raises(SizeError, match=r"gatelift.dev/size\]: is no size that Gatelift wrote"):
        KIND.mark(job(made))
    with pytest.raises(SizeError):
        KIND.size_patch(job(made), Size(number=2, counts={"main": 3}))


def test_sl_05_a_size_without_the_pod_set_of_a_job_sets_it_to_nothing() -> None:
    with pytest.raises(SizeError, match="pod set main"):
        KIND.size_patch(job(at_worker(an_elastic(**MULTIKUEUE))), Size(number=2, counts={"other": 3}))


def test_sl_25_what_is_edited_behind_our_back_is_put_back_to_the_size_of_the_mark() -> None:
    made = at_worker(an_elastic(parallelism=3, completions=3, completionMode="Indexed", **MULTIKUEUE))
    mark = KIND.mark(job(made))
    assert mark is not None
    edited = {**made, "spec": {**made["spec"], "parallelism": 9, "completions": 9}}
    wanted = KIND.charged_at(job(edited), raw(edited), mark)
    body = KIND.put_back(job(edited), raw(edited), wanted)
    assert body is not None
    assert patched(edited, body)["spec"] == made["spec"]


def test_sl_05_at_local_more_pods_may_be_wanted_than_are_granted_and_wait() -> None:
    user = an_elastic(parallelism=10)
    with pytest.raises(MergeConflictError):
        JOB_KIND.local_lift_patch(job(user), raw(user), a_placing(3))
    after = patched(user, KIND.local_lift_patch(job(user), raw(user), a_placing(3)))
    assert (after["spec"]["suspend"], after["spec"]["parallelism"]) == (False, 10)
    assert KIND.mark(job(after)) == SizeMark(number=1, counts={"main": 3})
    body = KIND.local_size_patch(job(after), Size(number=2, counts={"main": 10}))
    assert body is not None
    resized = patched(after, body)
    assert KIND.mark(job(resized)) == SizeMark(number=2, counts={"main": 10})
    assert resized["spec"] == after["spec"], "its size is what its user wants"


@pytest.mark.parametrize("stale", [markers.SLICE_NAME, markers.WORKLOAD])
def test_sl_05_what_an_earlier_slice_put_into_the_template_is_written_over(stale: str) -> None:
    """EJ-062, EJ-064: at `local` and where a worker's Job is made."""
    user = an_elastic()
    user["spec"]["template"]["metadata"]["annotations"] = {stale: "before"}
    start = PodSetStart(pod_set="main", count=3, annotations={stale: "now"})
    placing = Placing(key=KEY, origin="home", namespace="ns", starts=(start,), size=1)
    after = patched(user, KIND.local_lift_patch(job(user), raw(user), placing))
    assert after["spec"]["template"]["metadata"]["annotations"][stale] == "now"
    (part,) = KIND.parts(job(user), raw(user))
    made = json.loads(KIND.document(part, placing))
    assert made["spec"]["template"]["metadata"]["annotations"][stale] == "now"


def test_sl_05_what_takes_the_additions_back_takes_the_mark_off() -> None:
    user = an_elastic()
    after = patched(user, KIND.local_lift_patch(job(user), raw(user), a_placing(3)))
    after["metadata"]["generation"] = 2
    for _ in range(4):
        step = KIND.local_stop_step(job(after), raw(after), KEY)
        if not isinstance(step, PatchStep):
            break
        after = patched(after, step.body) if step.restores else merged(after, step.body)
        if step.subresource:  # as its controller answers
            after["status"]["conditions"].append(condition("Suspended"))
    assert ANNOTATION_SIZE not in after["metadata"]["annotations"]
    assert after["spec"]["template"]["spec"] == user["spec"]["template"]["spec"], "gate included"
