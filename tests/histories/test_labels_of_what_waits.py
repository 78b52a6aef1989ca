"""A gated pod loses a label that its Workload was made by, around webhooks and policies: one write follows it."""

from __future__ import annotations

import pytest

from gatelift_kube.values.resources import POD
from support.sim.history import History

LIMIT = "kueue.x-k8s.io/max-exec-time-seconds"
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(("label", "field"), [(QUEUE, "queueName"), (LIMIT, "maximumExecutionTimeSeconds")])
def test_hd_128_what_a_waiting_pod_asks_for_no_more_is_taken_off_its_workload_at_once(label: str, field: str) -> None:
    history = History(shown=False)
    history.pod("big", queue="stays", cpu="100")
    history.passes(5.0)
    history.edit("home", POD, "big", {"metadata": {"labels": {LIMIT: "60"}}})
    history.passes(5.0)
    before = history.workload("big")
    assert before is not None
    assert field in before["spec"]
    history.edit("home", POD, "big", {"metadata": {"labels": {label: None}}})
    history.passes(30.0)
    after = history.workload("big")
    assert after is not None
    assert after["spec"].get(field) is None
    assert int(after["metadata"]["generation"]) == int(before["metadata"]["generation"]) + 1, "one write of its spec"
