"""The pure values of the Kubernetes layer: conditions, selectors, times, queue, bucket, cache."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gatelift_kube.deciding.backoff import Backoff
from gatelift_kube.deciding.budget import Share, TokenBucket
from gatelift_kube.deciding.cache import Cache
from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.decoding import decoding
from gatelift_kube.objects import conditions, selectors
from gatelift_kube.objects.core import Pod
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition, LabelSelector, LabelSelectorRequirement
from gatelift_kube.values import timestamps
from gatelift_kube.values.nesting import CUT, cut_deep
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey

NOW = "2026-11-21T04:15:00Z"
LATER = "2026-11-21T05:00:00Z"


# Conditions


def test_the_time_of_a_condition_changes_only_when_its_status_flips() -> None:
    first = conditions.put((), Condition(type="Admitted", status="False", reason="Pending"), NOW)
    same = conditions.put(first, Condition(type="Admitted", status="False", reason="Waiting", message="m"), LATER)
    flipped = conditions.put(same, Condition(type="Admitted", status="True", reason="Admitted"), LATER)
    assert [each[0].last_transition_time for each in (first, same, flipped)] == [NOW, NOW, LATER]
    assert same[0].reason == "Waiting"


def test_a_condition_that_does_not_change_leaves_the_same_tuple() -> None:
    first = conditions.put((), Condition(type="A", status="True", reason="R"), NOW)
    assert conditions.put(first, Condition(type="A", status="True", reason="R"), LATER) is first


def test_a_condition_keeps_its_place_among_others() -> None:
    first: tuple[Condition, ...] = ()
    for name in ("A", "B", "C"):
        first = conditions.put(first, Condition(type=name, status="False"), NOW)
    changed = conditions.put(first, Condition(type="B", status="True"), NOW)
    assert [each.type for each in changed] == ["A", "B", "C"]
    assert conditions.is_true(changed, "B")
    assert conditions.is_false(changed, "A")
    assert not conditions.is_true(changed, "D")
    assert not conditions.is_false(changed, "D")
    assert conditions.without(changed, "D") is changed
    assert [each.type for each in conditions.without(changed, "B")] == ["A", "C"]


def test_a_long_message_is_cut_to_what_the_server_takes_and_says_so() -> None:
    whole = "x" * conditions.MESSAGE_CHARS_MAX
    assert conditions.truncated(whole) == whole
    cut = conditions.put((), Condition(type="A", status="True", message=whole + "y"), NOW)[0].message
    assert len(cut) == conditions.MESSAGE_CHARS_MAX
    assert cut.endswith("x ...")


# Selectors


def _selector(operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement("k", operator, values),))


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (None, {"a": "b"}, False),
        (LabelSelector(), {}, True),
        (LabelSelector(match_labels={"a": "b"}), {"a": "b", "c": "d"}, True),
        (LabelSelector(match_labels={"a": "b"}), {"a": "c"}, False),
        (LabelSelector(match_labels={"a": "b"}), {}, False),
        (_selector("In", "x", "y"), {"k": "y"}, True),
        (_selector("In", "x", "y"), {"k": "z"}, False),
        (_selector("In", "x"), {}, False),
        (_selector("NotIn", "x"), {"k": "y"}, True),
        (_selector("NotIn", "x"), {"k": "x"}, False),
        (_selector("NotIn", "x"), {}, True),
        (_selector("Exists"), {"k": ""}, True),
        (_selector("Exists"), {}, False),
        (_selector("DoesNotExist"), {}, True),
        (_selector("DoesNotExist"), {"k": "x"}, False),
    ],
)
def test_labels_match_as_kubernetes_says(
    selector: LabelSelector | None, labels: dict[str, str], expected: bool
) -> None:
    assert selectors.matches(selector, labels) is expected


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        (_selector("Near", "x"), r"matchExpressions\[key=k\]\.operator: 'Near' is not one of In, NotIn"),
        (_selector("In"), "must not be empty with operator In"),
        (_selector("Exists", "x"), "must be empty with operator Exists"),
    ],
)
def test_a_selector_that_is_not_understood_selects_nothing_by_accident(selector: LabelSelector, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        selectors.matches(selector, {"k": "x"})
    with pytest.raises(ValueError, match=problem):
        selectors.to_text(selector)


def test_a_selector_has_the_text_of_a_query() -> None:
    parts = [("k", "In", ("x", "y")), ("l", "NotIn", ("z",)), ("m", "Exists", ()), ("n", "DoesNotExist", ())]
    requirements = tuple(LabelSelectorRequirement(*part) for part in parts)
    selector = LabelSelector(match_labels={"b": "2", "a": "1"}, match_expressions=requirements)
    assert selectors.to_text(selector) == "a=1,b=2,k in (x,y),l notin (z),m,!n"


# Times


def test_times_survive_the_way_to_text_and_back() -> None:
    assert timestamps.to_text(1795234500.9) == "2026-11-21T04:15:00Z"
    assert timestamps.to_micro_text(1795234500.25) == "2026-11-21T04:15:00.250000Z"
    assert timestamps.to_seconds("2026-11-21T04:15:00.250000Z") == 1795234500.25
    assert timestamps.to_seconds("2026-11-21T05:15:00+01:00") == timestamps.to_seconds(NOW)


@pytest.mark.parametrize("text", ["yesterday", "2026-11-21T04:15:00", ""])
def test_a_time_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)):
        timestamps.to_seconds(text)


# Backoff


def test_a_backoff_doubles_up_to_its_maximum() -> None:
    backoff = Backoff(first_seconds=1.0, max_seconds=5.0)
    assert [backoff.seconds(failures) for failures in (1, 2, 3, 4, 5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.seconds(2, 0.0) == 1.0, "the half, so that those who failed at once do not come back at once"


def test_a_backoff_of_very_many_failures_is_its_maximum() -> None:
    assert Backoff(max_seconds=60.0).seconds(10**9) == 60.0


# Token bucket


def test_a_bucket_lets_a_burst_through_and_then_its_rate() -> None:
    bucket = TokenBucket(Share(in_flight=1, per_second=10.0, burst=2), 0.0)
    assert [bucket.take(0.0) for _ in range(4)] == pytest.approx([0.0, 0.0, 0.1, 0.2])
    assert bucket.take(10.0) == 0.0


def test_a_token_that_was_not_used_goes_to_the_next() -> None:
    bucket = TokenBucket(Share(in_flight=1, per_second=1.0, burst=1), 0.0)
    assert bucket.take(0.0) == 0.0
    assert bucket.take(0.0) == 1.0
    bucket.give_back()
    assert bucket.take(0.0) == 1.0


# Cache


def _pod(name: str, version: str, node: str = "", uid: str = "u") -> Pod:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version},
            "spec": {"nodeName": node},
        },
        Pod,
    )


def _node(object_: KubeObject) -> list[str]:
    assert isinstance(object_, Pod)
    return [object_.spec.node_name]


def test_a_cache_finds_by_index_and_forgets_what_moved() -> None:
    cache = Cache({"node": _node})
    cache.put(_pod("a", "1", "n1"))
    cache.put(_pod("b", "2", "n1"))
    cache.put(_pod("a", "3", "n2"))
    assert [each.metadata.name for each in cache.by_index("node", "n1")] == ["b"]
    assert [each.metadata.name for each in cache.by_index("node", "n2")] == ["a"]
    cache.drop(ObjectKey("ns", "b"))
    assert cache.by_index("node", "n1") == ()
    assert len(cache) == 1
    assert ObjectKey("ns", "a") in cache
    assert [each.metadata.resource_version for each in cache] == ["3"]


def test_a_cache_tells_a_repeat_and_a_successor_of_the_same_name() -> None:
    cache = Cache()
    assert cache.put(_pod("a", "1")).fresh
    assert not cache.put(_pod("a", "1")).fresh
    change = cache.put(_pod("a", "2", uid="v"))
    assert change.fresh
    assert change.gone is not None
    assert change.gone.metadata.uid == "u"


# Decoding


def test_json_without_managed_fields_is_left_as_it_is() -> None:
    raw = b'{"metadata": {"name":"a"},  "spec":1}'
    assert decoding.without_managed_fields(raw) == raw
    assert decoding.without_managed_fields(b'{"spec":1}') == b'{"spec":1}'


def test_managed_fields_are_taken_out_and_nothing_else() -> None:
    raw = b'{"metadata":{"name":"a","managedFields":[{"a":{}}],"x":"managedFields"},"spec":{"managedFields":[1]}}'
    assert json.loads(decoding.without_managed_fields(raw)) == {
        "metadata": {"name": "a", "x": "managedFields"},
        "spec": {"managedFields": [1]},
    }


def test_bytes_that_are_no_text_are_an_object_that_cannot_be_read() -> None:
    raw = b'{"metadata":{"name":"\xff"}}'
    with pytest.raises(UndecodableError, match="Pod"):
        decoding.read_object(POD, raw)
    assert decoding.key_in(raw).name == "?"


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"items":[]}'])
def test_what_is_no_list_is_an_error_that_names_the_kind(body: bytes) -> None:
    with pytest.raises(UndecodableError, match="list of pods"):
        decoding.read_page(POD, body, with_raw=True)


def test_an_empty_list_may_have_null_for_its_items() -> None:
    page = decoding.read_page(POD, b'{"metadata":{"resourceVersion":"5"},"items":null}', with_raw=False)
    assert page.items == []
    assert page.resource_version == "5"


def test_metadata_that_is_not_even_metadata_has_no_name() -> None:
    assert decoding.key_in(b'{"metadata":3}') == ObjectKey("", "?")
    assert decoding.key_in(b'{"metadata":{"name":"a"},"spec":3}') == ObjectKey("", "a")


@pytest.mark.parametrize(
    "metadata",
    [
        '{"name":"p","managedFields":[{"a":[1,{}]}]}',
        '{"managedFields":[{"a":"]}"}],"name":"p"}',
        '{"name":"p","managedFields":[{"a":1}],"uid":"u"}',
        '{"managedFields":[]}',
        '{"name":"p", "managedFields" : [1], "uid":"u"}',
        '{"name":"p","managedFields":[1] ,"uid":"u"}',
        '{"name":"p","managedFields":null}',
        '{"annotations":{"managedFields":"[1]","b":"\\"managedFields\\":[1]"},"managedFields":[1],"name":"p"}',
    ],
)
def test_managed_fields_are_cut_out_of_the_metadata_and_of_nothing_else(metadata: str) -> None:
    raw = f'{{"spec":{{"template":{{"metadata":{{"managedFields":[1]}}}},"x":1.0}},"metadata":{metadata}}}'
    for text in (raw, f'{{"kind":"P","metadata":{metadata},"spec":{{"a":"x"}}}}'):
        expected = json.loads(text)
        del expected["metadata"]["managedFields"]
        assert json.loads(decoding.without_managed_fields(text.encode())) == expected


def test_a_list_with_a_condition_of_unknown_fields_is_read_whole_and_keeps_them() -> None:
    said = {"type": "Finished", "status": "True", "severity": "Warning"}
    items = [{"metadata": {"name": name}, "status": {"conditions": more}} for name, more in (("a", [said]), ("b", []))]
    page = decoding.read_page(WORKLOAD, json.dumps({"metadata": {}, "items": items}).encode(), with_raw=False)
    assert page.unread == ()
    assert [each.object.metadata.name for each in page.items] == ["a", "b"]
    first = page.items[0].object
    assert isinstance(first, Workload)
    assert first.status.conditions[0].more == {"severity": "Warning"}


@pytest.mark.parametrize(
    "status", [{"conditions": 7}, {"conditions": [7]}, {"admissionChecks": [{"podSetUpdates": {}}]}]
)
def test_a_status_of_another_shape_is_an_error_that_names_the_field(status: dict[str, Any]) -> None:
    with pytest.raises(UndecodableError, match=r"Workload: .*status"):
        decoding.read_object(WORKLOAD, json.dumps({"metadata": {}, "status": status}).encode())


@pytest.mark.parametrize("depth", [3000, 200_000])
def test_hd_87_managed_fields_of_any_depth_are_left_out(depth: int) -> None:
    deep = b'{"f:a":' * depth + b"{}" + b"}" * depth
    bad = b'{"metadata":{"name":"a","managedFields":[{"fieldsV1":' + deep + b'}],"uid":"u"},"spec":{"containers":[]}}'
    good = b'{"metadata":{"name":"b"},"spec":{"containers":[]}}'
    body = b'{"metadata":{"resourceVersion":"7"},"items":[' + bad + b"," + good + b"]}"
    for with_raw in (True, False):
        page = decoding.read_page(POD, body, with_raw=with_raw)
        assert [each.object.metadata.name for each in page.items] == ["a", "b"]
        assert not page.unread
    assert decoding.read_object(POD, bad).metadata.uid == "u"
    assert json.loads(decoding.without_managed_fields(bad))["metadata"] == {"name": "a", "uid": "u"}
    line = decoding.read_line(b'{"type":"MODIFIED","object":' + bad + b"}")
    assert decoding.read_object(POD, line.raw).metadata.name == "a"
    assert decoding.bookmark_version(bad) == ""


def test_hd_87_an_object_that_is_nested_too_deep_elsewhere_is_unread_and_no_other() -> None:
    bad = b'{"metadata":{"name":"a"},"spec":{"containers":[],"x":' + b"[" * 5000 + b"]" * 5000 + b"}}"
    good = b'{"metadata":{"name":"b"},"spec":{"containers":[]}}'
    body = b'{"metadata":{"resourceVersion":"7"},"items":[' + bad + b"," + good + b"]}"
    page = decoding.read_page(POD, body, with_raw=True)
    assert [each.object.metadata.name for each in page.items] == ["b"]
    assert [each.key.name for each in page.unread] == ["a"]


@pytest.mark.parametrize("text", [b"", b"[" * 500, b'{"a":"' + b"[" * 900 + b'"}', b'"\\"]]"', b"]]]]"])
def test_hd_87_what_is_no_json_or_not_deep_is_not_made_worse(text: bytes) -> None:
    cut = cut_deep(text)
    assert cut == text or CUT in cut
