"""A pod at home loses its labels, its queue's name among them, around webhooks and policies.

It is stopped, charged until then, and nothing is left.
"""

from __future__ import annotations

import pytest

from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import POD
from gatelift_wire.values.keys import LABEL_EPOCH, LABEL_ORIGIN, LABEL_WORKLOAD_UID
from support.sim.history import History

MARK = (markers.MANAGED, markers.QUEUE_NAME)
ALL = (*MARK, LABEL_ORIGIN, LABEL_WORKLOAD_UID, LABEL_EPOCH)
EDITS = (pytest.param(MARK, id="Kueue's labels"), pytest.param(ALL, id="all"))


def pod_that_runs(stops_in: float) -> History:
    """Return a history in which a pod runs at home, and takes so long to stop."""
    history = History(shown=False)
    history.pod("one", queue="stays", stops_in=stops_in)
    history.until_runs("one")
    return history


def take_off(history: History, labels: tuple[str, ...]) -> None:
    """Let somebody take these labels off the pod."""
    history.edit("home", POD, "one", {"metadata": {"labels": dict.fromkeys(labels)}})


@pytest.mark.parametrize("labels", EDITS)
@pytest.mark.parametrize("stops_in", [0.0, 25.0])
def test_hd_127_a_pod_without_its_labels_is_stopped_and_charged_exactly_until_then(
    labels: tuple[str, ...], stops_in: float
) -> None:
    history = pod_that_runs(stops_in)
    take_off(history, labels)
    for _ in range(60):
        history.passes(1.0)
        assert history.containers("one") * 500 <= history.leader.charges("stays"), "runs uncharged"
    assert not history.containers("one")
    assert history.leader.charges("stays") == 0
    assert history.home.look(POD, "one") is None, "its finalizer is taken off"
    assert history.workload("one") is None


@pytest.mark.parametrize("labels", EDITS)
def test_hd_127_what_lost_its_labels_while_nobody_led_is_stopped_and_charged_until_then(
    labels: tuple[str, ...],
) -> None:
    history = pod_that_runs(20.0)
    history.kill_leader()
    take_off(history, labels)
    history.until("nothing of it runs", lambda: not history.runs("one"), 180.0)
    history.until("its Workload is gone", lambda: history.workload("one") is None, 60.0)
    assert history.home.look(POD, "one") is None
