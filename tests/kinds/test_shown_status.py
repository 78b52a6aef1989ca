"""What of a worker's status a user's object shows (IS-21): what is on a list, of bounded length."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from gatelift.core.told import mirror
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from gatelift_kinds.shared import shown_status
from gatelift_kube.values.plain_text import plain
from support.manager.kind_objects import Json, a_job, a_pod, job, merged, pod, raw

ADDRESSES: Json = {
    "podIP": "10.96.0.1",
    "podIPs": [{"ip": "10.96.0.1"}],
    "hostIP": "10.0.0.1",
    "hostIPs": [{"ip": "10.0.0.1"}],
    "nominatedNodeName": "node-of-here",
    "resourceClaimStatuses": [{"name": "c"}],
}
READY = [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "True"}]


def test_is_21_a_pod_shows_no_address_of_another_cluster() -> None:
    """The symptom: Services of the management cluster sent traffic to whatever address a worker named."""
    user = a_pod()
    body = POD_KIND.mirror_patch(pod(user), raw(user), raw({"phase": "Running", "conditions": READY, **ADDRESSES}))
    assert body is not None
    status = merged(user, body)["status"]
    assert status["phase"] == "Running"
    assert {one["type"] for one in status["conditions"]} == {"PodScheduled", "Ready"}
    assert not ADDRESSES.keys() & status.keys()


@pytest.mark.parametrize("last", ["True", "False"])
def test_is_21_of_two_conditions_of_one_type_the_last_is_shown(last: str) -> None:
    """Readers look at the first: an autoscaler of the management cluster made nodes for a pod that no node is for."""
    first = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "scale me"}
    second = {"type": "PodScheduled", "status": last}
    user = a_pod()
    user["status"] |= {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]}
    body = POD_KIND.mirror_patch(pod(user), raw(user), raw({"phase": "Running", "conditions": [first, second]}))
    assert body is not None
    (shown,) = merged(user, body)["status"]["conditions"]
    assert shown.get("reason") == (None if last == "True" else "SchedulingGated")


@pytest.mark.parametrize("no_time", ["yesterday", "2026-13-01T00:00:00Z", "20261121T041500Z", "2026-11-21", ""])
def test_is_21_what_is_no_time_is_not_shown(no_time: str) -> None:
    """The API server would refuse the whole object for it."""
    reported = {"phase": "Running", "startTime": no_time, "conditions": [{**READY[1], "lastTransitionTime": no_time}]}
    shown = shown_status.of_pod(raw(reported))
    assert shown == {"phase": "Running", "conditions": [READY[1]]}
    assert shown_status.of_pod(raw({"startTime": "2026-11-21T04:15:00.5+01:00"})) != {}


def test_is_21_an_address_that_was_shown_before_is_taken_back() -> None:
    user = a_pod()
    user["status"] |= {**ADDRESSES, "phase": "Running", "conditions": READY}
    body = POD_KIND.mirror_patch(pod(user), raw(user), raw({"phase": "Running", "conditions": READY}))
    assert body is not None
    assert not ADDRESSES.keys() & merged(user, body)["status"].keys()


def test_is_21_what_people_look_at_is_shown() -> None:
    ended = {
        "exitCode": 1,
        "reason": "Error",
        "message": "line one\nline two\x1b[2J",
        "finishedAt": "2026-01-01T00:00:00Z",
    }
    container = {"name": "c", "ready": False, "restartCount": 2, "image": "i", "imageID": "", "state": {}}
    container["state"] = {"terminated": ended}
    shown = shown_status.of_pod(raw({"phase": "Failed", "reason": "Evicted", "containerStatuses": [container]}))
    ended["message"] = "line one\nline two\ufffd[2J"
    assert shown == {"phase": "Failed", "reason": "Evicted", "containerStatuses": [container]}


HUGE = "m" * 1_400_000
CONTAINERS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
ALWAYS: Json = {"ready": False, "restartCount": 0, "image": "", "imageID": ""}
"""What an API server stores of each container."""
CONTAINER = {"name": "c", **dict.fromkeys(("image", "imageID", "containerID"), "i" * 1000)}


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"message": HUGE}, id="a message"),
        pytest.param({"conditions": [{"type": f"t{n}", "message": HUGE[:9000]} for n in range(150)]}, id="conditions"),
        pytest.param(
            {"containerStatuses": [{"name": f"c{n}", "image": "i" * 900} for n in range(900)]}, id="containers"
        ),
        pytest.param({kind: [CONTAINER] * 64 for kind in CONTAINERS}, id="words of containers"),
        pytest.param({"reason": HUGE}, id="a reason"),
        pytest.param({"conditions": [{"type": HUGE, "status": "True"}]}, id="a type"),
        pytest.param({"completedIndexes": "1," * 700_000}, id="indexes"),
        pytest.param({"failed": 10**30, "uncountedTerminatedPods": {"failed": [HUGE]}}, id="bookkeeping"),
    ],
)
def test_is_21_texts_and_lists_are_bounded(status: Json) -> None:
    """The symptom: a message of 1.4 MB was stored."""
    most = 2 * shown_status.CHARS_MAX
    assert len(json.dumps(shown_status.of_pod(raw(status)))) < most
    assert len(json.dumps(shown_status.of_job(raw(status), completions=5))) < most


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        pytest.param({"phase": "Run\x1bning"}, {}, id="a word is shown whole or not at all"),
        pytest.param({"phase": 7, "message": ["a"]}, {}, id="another type"),
        pytest.param(
            {"conditions": ["x", {"status": "True"}, {"type": "Ready"}]},
            {"conditions": [{"type": "Ready", "status": ""}]},
            id="a part that is none",
        ),
        pytest.param({"conditions": "xyz"}, {}, id="no list"),
        pytest.param(
            {"containerStatuses": [{"name": "c", "restartCount": True, "ready": 1}, {"ready": True}]},
            {"containerStatuses": [{"name": "c", **ALWAYS}]},
            id="flags and counts, and who has no name",
        ),
        pytest.param(
            {"containerStatuses": [{"name": "c", "restartCount": 10**30}]},
            {"containerStatuses": [{"name": "c", **ALWAYS}]},
            id="a count beyond all",
        ),
    ],
)
def test_is_21_what_is_none_of_its_kind_is_left_out(said: Json, shown: Json) -> None:
    assert shown_status.of_pod(raw(said)) == shown


@pytest.mark.parametrize(
    ("spec", "indexes", "shown"),
    [
        ({"completionMode": "Indexed", "completions": 4}, "0-1,3", "0-1,3"),
        ({"completionMode": "Indexed", "completions": 4}, "0-1,\x1b", None),
        ({"completionMode": "Indexed", "completions": 1}, "1," * 500, None),
        ({"completions": 4}, "0-1,3", None),
    ],
)
def test_is_21_a_list_of_indexes_is_shown_whole_where_it_can_be_one(spec: Json, indexes: str, shown: Any) -> None:
    user = a_job(suspend=False, managedBy="kueue.x-k8s.io/multikueue", **spec)
    body = JOB_KIND.mirror_patch(job(user), raw(user), raw({"active": 1, "completedIndexes": indexes}))
    assert body is not None
    assert merged(user, body)["status"].get("completedIndexes") == shown


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(b'"a":1e999', id="a number that is none"),
        pytest.param(b'"a":' + b"9" * 5000, id="a number without an end"),
        pytest.param(b'"conditions":7,"containerStatuses":{"name":"c"}', id="parts of other kinds"),
    ],
)
def test_is_10_what_is_not_shown_is_not_read_and_keeps_nothing_from_being_shown(other: bytes) -> None:
    """The symptom: a status of 32,768 fractions held the loop of all clusters for 400 ms, one of lists for 80."""
    reported = b'{"phase":"Running",' + other + b"}"
    assert shown_status.of_pod(reported) == {"phase": "Running"}
    assert shown_status.of_job(reported, completions=1) == {}
    assert mirror.unreadable(b"{" + other.replace(b'"conditions":7,', b"") + b"}") == ""


def test_is_10_a_condition_or_container_beyond_all_length_is_left_out() -> None:
    long = {"name": "c", "state": {"waiting": {"message": "m" * shown_status.ITEM_BYTES_MAX}}}
    shown = shown_status.of_pod(raw({"containerStatuses": [long, CONTAINER]}))
    assert shown == {"containerStatuses": [{**ALWAYS, **CONTAINER}]}


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "as it is"])
@pytest.mark.parametrize("seed", range(30))
def test_is_21_of_a_long_text_the_beginning_is_shown_as_if_all_of_it_were_read(seed: int, ascii_only: bool) -> None:
    """Wherever it is cut in JSON: within an escape, a pair of them, a character of several bytes, among backslashes."""
    rng = random.Random(seed)  # noqa: S311 (a case by its number)
    characters = rng.sample(["a", "\\", '"', "é", "漢", "😀", "\n", "\x1b", "/"], rng.randint(1, 9))
    text = "".join(rng.choices(characters, k=rng.choice((4000, 4096, 4097, 9000, 50_000, 60_000))))
    shown = shown_status.of_pod(json.dumps({"message": text}, ensure_ascii=ascii_only).encode())
    assert shown == {"message": plain(text, shown_status.TEXT_CHARS_MAX, lines=True)}


def test_who_changes_what_is_shown_changes_nothing_for_who_asks_next() -> None:
    """Its reading is kept: it is asked for when it is written, and when the object shows it."""
    reported = raw({"phase": "Running", "conditions": READY, "containerStatuses": [CONTAINER]})
    first = shown_status.of_pod(reported)
    told = json.dumps(first)
    first["conditions"][0]["status"] = "False"
    del first["containerStatuses"][0]["image"], first["phase"]
    assert json.dumps(shown_status.of_pod(reported)) == told


@pytest.mark.parametrize("more", [0, 1], ids=["kept", "too long to be kept"])
def test_a_status_is_shown_alike_whether_its_reading_is_kept_or_not(more: int) -> None:
    fields = raw({"phase": "Failed", "unknown": ""})
    reported = fields.replace(b'""', b'"' + b"u" * (shown_status.KEPT_BYTES_MAX - len(fields) + more) + b'"')
    assert len(reported) == shown_status.KEPT_BYTES_MAX + more
    assert [shown_status.of_pod(reported) for _ in range(2)] == [{"phase": "Failed"}] * 2
