"""HD-142: a Workload is read whatever stands in its templates, and says which of them nobody can read."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.unreadable_templates import why_unreadable
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.nesting import DEPTH_MAX
from gatelift_kube.values.resources import JOB, WORKLOAD

ADMISSION = {
    "clusterQueue": "main",
    "podSetAssignments": [{"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "2"}, "count": 1}],
}
READABLE = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}


def workload(template: Any) -> dict[str, Any]:
    """Return one that holds quota."""
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "template": template}]}
    return {"metadata": {"name": "one", "uid": "u"}, "spec": spec, "status": {"admission": ADMISSION}}


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    "template",
    [{"spec": {"containers": "none"}}, {"metadata": 5}, {"spec": {"tolerations": [7]}}, "text", 5, [READABLE]],
    ids=repr,
)
def test_hd_142_what_it_holds_is_read_where_its_template_is_not(template: Any) -> None:
    body = msgspec.json.encode({"metadata": {}, "items": [workload(template)]})
    for with_raw in (False, True):
        page = decoding.read_page(WORKLOAD, body, with_raw=with_raw)
        assert page.unread == ()
        [served] = page.items
        assert isinstance(served.object, Workload)
        assert served.object.status.admission is not None
        assert served.object.status.admission.pod_set_assignments[0].resource_usage["cpu"] == "2"
        assert served.object.spec.pod_sets[0].count == 1
        assert why_unreadable(served.object).startswith("spec.podSets[0].template: ")


def test_hd_142_a_template_nested_too_deep_hides_no_workload_from_a_list() -> None:
    found = workload({**READABLE, "more": deep(DEPTH_MAX + 5)})
    page = decoding.read_page(WORKLOAD, msgspec.json.encode({"metadata": {}, "items": [found]}), with_raw=True)
    assert page.unread == ()
    assert len(page.items) == 1


def test_a_readable_template_bears_no_mark() -> None:
    found = decoding.read_object(WORKLOAD, msgspec.json.encode(workload(READABLE)))
    assert isinstance(found, Workload)
    assert why_unreadable(found) == ""


def test_other_kinds_and_other_fields_are_refused_as_before() -> None:
    with pytest.raises(UndecodableError):
        decoding.read_object(WORKLOAD, msgspec.json.encode({**workload(READABLE), "status": {"admission": 5}}))
    with pytest.raises(UndecodableError):
        decoding.read_object(JOB, b'{"spec":{"template":5}}')
