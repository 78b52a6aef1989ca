"""IS-47: at home the annotation that says where an object runs comes with the lift and goes with what is put back."""

from __future__ import annotations

from gatelift_kinds.job import template_before
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared import placed_on
from gatelift_kinds.shared.placed_on import ANNOTATIONS_BYTES_MAX, PLACED_ON
from gatelift_kinds.shared.values import Placing
from support.manager.kind_objects import KEY, Json, a_job, a_pod, job, merged, patched, pod, raw

PLACING = Placing(key=KEY, origin="home", namespace="ns")
FULL = {"example.com/x": "y" * (ANNOTATIONS_BYTES_MAX - len("example.com/x") - len(PLACED_ON) - len("local") + 1)}


def lifted_pod(document: Json) -> Json:
    return patched(document, POD_KIND.local_lift_patch(pod(document), raw(document), PLACING))


def lifted_job(document: Json) -> Json:
    return patched(document, JOB_KIND.local_lift_patch(job(document), raw(document), PLACING))


def test_is_47_what_is_let_go_at_home_says_so_in_the_same_write() -> None:
    for after in (lifted_pod(a_pod()), lifted_job(a_job())):
        assert after["metadata"]["annotations"][PLACED_ON] == "local"


def test_is_47_a_job_that_is_put_back_says_it_no_more() -> None:
    runs = lifted_job(a_job())
    after = patched(runs, template_before.restore_patch(job(runs), raw(runs)))
    assert PLACED_ON not in after["metadata"]["annotations"]


def test_is_47_who_has_used_up_all_annotations_is_let_go_without_it() -> None:
    annotated = a_pod(annotations=FULL)
    assert lifted_pod(annotated)["metadata"]["annotations"] == FULL
    document = a_job()
    document["metadata"]["annotations"] = FULL
    assert PLACED_ON not in lifted_job(document)["metadata"]["annotations"]


def test_is_47_the_room_is_counted_in_bytes_and_to_the_last_one() -> None:
    just = {"example.com/x": FULL["example.com/x"][:-1]}
    assert placed_on.added("local", just) == {PLACED_ON: "local"}
    assert placed_on.added("local", FULL) == {}
    assert placed_on.added("local", {"x": "\u00e4" * (ANNOTATIONS_BYTES_MAX // 2)}) == {}


def test_is_47_a_write_keeps_what_else_it_says() -> None:
    document = a_pod(annotations={"kept": "yes"})
    body = b'{"metadata":{"uid":"u","annotations":{"a":"b"}},"status":{"phase":"Running"}}'
    after = merged(document, placed_on.noted(body, pod(document).metadata, "one"))
    assert after["metadata"]["annotations"] == {"kept": "yes", "a": "b", PLACED_ON: "one"}
    assert placed_on.noted(body, pod(after).metadata, "one") == body, "said already"
    assert placed_on.noted(body, pod(document).metadata, "") == body, "there is nothing to take off"
    gone = merged(after, placed_on.noted(body, pod(after).metadata, ""))
    assert PLACED_ON not in gone["metadata"]["annotations"]
