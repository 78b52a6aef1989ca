"""HD-114: a pod that asks for more than can be counted is told so: its status is one that the API server takes."""

from __future__ import annotations

import pytest

from gatelift_admission.values import amounts
from support.manager.builders import a_pod, a_setting
from support.manager.world import a_world


@pytest.mark.parametrize("resource", ["cpu", "memory", "example.com/gpu"])
def test_hd_114_the_largest_amount_is_written_as_a_quantity_and_read_as_the_same(resource: str) -> None:
    text = amounts.to_quantity(amounts.UNLIMITED, resource)
    assert amounts.parse(text, resource) == amounts.UNLIMITED
    assert amounts.to_quantity(1500, "cpu") == "1500m"


def test_hd_114_a_pod_that_asks_for_more_than_can_be_counted_says_why_it_waits() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().asking(cpu="9223372036854775807").document())
    world.settle()
    world.advance(5.0)
    workload = world.find("Workload")
    assert world.condition(workload, "QuotaReserved")["status"] == "False"
    (requests,) = workload["status"]["resourceRequests"]
    assert amounts.parse(requests["resources"]["cpu"], "cpu") == amounts.UNLIMITED
