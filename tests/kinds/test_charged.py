"""What the charge of a worker's object follows from: told apart, and put back where the API server lets us."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gatelift_kinds.any_pod import charged as pod_charged
from gatelift_kinds.registry import JOB_KIND, POD_KIND
from support.manager.builders import a_job
from support.manager.kind_objects import Json, a_pod, job, patched, pod, raw


def _job(**spec: Any) -> Json:
    document = a_job("j", parallelism=2, completions=4)
    document["metadata"] |= {"uid": "uid-j", "resourceVersion": "7"}
    document["spec"] |= spec
    return document


def _charged(document: Json) -> dict[str, Any]:
    return dict(JOB_KIND.charged(job(document), raw(document)))


def test_a_jobs_charge_follows_from_its_numbers_and_its_template() -> None:
    assert _charged(_job()).items() >= {"parallelism": 2, "completions": 4}.items()
    assert _charged(_job(backoffLimit=9)) == _charged(_job())
    other = _job()
    other["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    assert _charged(other)["template"] != _charged(_job())["template"]


def test_the_order_of_keys_in_a_template_is_no_edit() -> None:
    document = _job()
    turned = json.loads(json.dumps(document), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert _charged(turned) == _charged(document)


@pytest.mark.parametrize("change", [{"parallelism": 6}, {"parallelism": 5, "completions": 5}], ids=["one", "both"])
def test_numbers_of_a_job_are_put_back_and_nothing_else_is_touched(change: Json) -> None:
    edited = _job(**change, backoffLimit=9)
    body = JOB_KIND.put_back(job(edited), raw(edited), _charged(_job()))
    assert body is not None
    assert patched(edited, body)["spec"] == _job(backoffLimit=9)["spec"]


@pytest.mark.parametrize("wanted", [{}, {"parallelism": None}, {"parallelism": "2"}], ids=["none", "null", "text"])
def test_what_is_not_known_is_not_put_back(wanted: Json) -> None:
    edited = _job(parallelism=6)
    right = {key: value for key, value in _charged(_job()).items() if key != "parallelism"}
    assert JOB_KIND.put_back(job(edited), raw(edited), {**right, **wanted}) is None


def test_a_template_is_not_put_back() -> None:
    edited = _job(parallelism=6)
    edited["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "a"}
    assert JOB_KIND.put_back(job(edited), raw(edited), _charged(_job())) is None


def test_a_pods_charge_follows_from_its_requests() -> None:
    small, large = a_pod(), a_pod()
    small["spec"]["containers"] = [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]
    large["spec"]["containers"] = [{"name": "c", "image": "other", "resources": {"requests": {"cpu": "2"}}}]
    charges = [dict(POD_KIND.charged(pod(each), raw(each))) for each in (small, large)]
    assert charges[0] != charges[1]
    large["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "4"}}
    assert dict(POD_KIND.charged(pod(large), raw(large))) == charges[0], "an image or a limit charges nothing"
    assert POD_KIND.put_back(pod(small), raw(small), charges[1]) is None


def _child(**changes: Any) -> Json:
    document = a_pod()
    document["spec"]["nodeName"] = "n"
    document["metadata"] |= changes
    return document


STOPPING = {"deletionTimestamp": "2026-11-21T00:00:00Z"}


@pytest.mark.parametrize(
    ("status", "children", "settled"),
    [
        ({"active": 1}, [{}], True),
        ({"active": 2}, [{}], False),
        ({"active": 1, "terminating": 1}, [{}], False),
        ({"active": 1}, [{}, {}], False),
        ({"active": 1}, [{}, STOPPING], False),
        ({"active": 0}, [], False),
    ],
    ids=["done", "not seen", "its status", "by the watch", "one stops", "before it has any"],
)
def test_hd_104_a_lowered_job_is_put_back_when_what_the_edit_ended_has_stopped(
    status: Json, children: list[Json], settled: bool
) -> None:
    edited = job({**_job(parallelism=1, suspend=False), "status": status})
    pods = [pod(_child(**each)) for each in children]
    assert JOB_KIND.may_put_back(edited, _charged(_job()), pods) is settled


def test_hd_104_a_raised_job_is_put_back_at_once_and_a_suspended_one_when_nothing_of_it_is_left() -> None:
    raised = job({**_job(parallelism=6, suspend=False), "status": {"active": 6, "terminating": 3}})
    assert JOB_KIND.may_put_back(raised, _charged(_job()), [pod(_child(**STOPPING))])
    held = _job(parallelism=1, suspend=True)
    assert JOB_KIND.may_put_back(job(held), _charged(_job()), [])
    assert not JOB_KIND.may_put_back(job({**held, "status": {"active": 1}}), _charged(_job()), [])


@pytest.mark.parametrize(
    ("spec", "starts"),
    [
        ({"parallelism": 1}, True),
        ({"parallelism": 0}, True),
        ({"completions": 2}, True),
        ({"parallelism": 6, "completions": 2}, True),
        ({"parallelism": 6}, False),
        ({"parallelism": 6, "completions": 6}, False),
        ({"parallelism": 0, "suspend": True}, False),
    ],
)
def test_hd_134_what_is_put_back_starts_pods_where_any_number_grows_and_it_is_let_go(spec: Json, starts: bool) -> None:
    wanted = _charged(_job(parallelism=2, completions=4))
    edited = job(_job(**{"parallelism": 2, "completions": 4, "suspend": False, **spec}))
    assert JOB_KIND.put_back_starts(edited, wanted) is starts


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("activeDeadlineSeconds", 9),
        ("tolerations", [{"key": "a", "operator": "Exists"}]),
        ("ephemeralContainers", [{"name": "debugger", "image": "tools"}]),
    ],
)
def test_hd_213_what_is_changed_in_place_and_charged_for_by_nobody_is_told_apart(field: str, value: Any) -> None:
    plain = {"spec": {"containers": [{"name": "c", "image": "a"}]}}
    before = pod_charged.uncharged(json.dumps(plain).encode())
    empty = json.dumps({"spec": {**plain["spec"], "tolerations": [], "ephemeralContainers": None}}).encode()
    assert pod_charged.uncharged(empty) == before
    after = pod_charged.uncharged(json.dumps({"spec": {**plain["spec"], field: value}}).encode())
    assert [name for name in before if before[name] != after[name]] == [field]
    assert len(json.dumps(dict(before))) < 256, "a mark has room for it"


def test_an_image_that_is_no_text_is_compared_as_it_is() -> None:
    """No API server serves one; whoever reads what one served has an answer all the same."""
    documents = [{"spec": {"initContainers": [{"name": "first", "image": image}]}} for image in (1, 2)]
    one, other = (pod_charged.uncharged(json.dumps(each).encode()) for each in documents)
    assert one["containers[*].image"] != other["containers[*].image"]
