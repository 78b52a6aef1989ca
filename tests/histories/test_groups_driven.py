"""HD-399, DW-1: a driver that was let go is of the set that it declares, and its workers are let go beside it."""

from __future__ import annotations

import pytest

from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import POD
from support.manager.group_world import K
from support.sim import groups
from support.sim.agent import SimAgent
from support.sim.groups_at_home import make, names, until_all_run
from support.sim.history import History
from support.sim.manager import SimManager

SETS = (
    '[{"name":"driver","count":1},{"name":"workers","count":2,'
    '"template":{"spec":{"containers":[{"name":"w","resources":{"requests":{"cpu":"500m"}}}]}}}]'
)


def test_hd_399_dw_1_a_driver_runs_on_as_its_workers_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """It bore the hash of its shape as its role once it was let go, and was deleted as one too many."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    history = History(shown=False)
    make(history, "a", notes={f"{K}pod-group-sets": SETS})
    until_all_run(history, "a")
    for name in "bc":
        make(history, name, labels={f"{K}pod-group-role": "workers"})
    until_all_run(history, "a", "b", "c")
    history.kill_leader()
    history.passes(60.0)
    assert names(history) == ["a", "b", "c"]


def test_hd_436_a_worker_of_another_set_by_its_role_keeps_its_slot_at_its_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HD-436: while nobody leads it says that it is of the driver's set; who comes then waits for a slot of its own."""
    monkeypatch.setattr(SimManager, "kinds", WITH_GROUPS)
    monkeypatch.setattr(SimAgent, "registry", WITH_GROUPS)
    history = History(shown=False)
    groups.make(history, "a", notes={f"{K}pod-group-sets": SETS})
    for name in "bc":
        groups.make(history, name, labels={f"{K}pod-group-role": "workers"})
    history.until("all run", lambda: groups.run_there(history) == ["a", "b", "c"], 60.0)
    history.kill_leader()
    history.edit("home", POD, "b", {"metadata": {"labels": {f"{K}pod-group-role": "driver"}}})
    history.until("another leads", history.leads)
    history.passes(30.0)
    groups.make(history, "d", labels={f"{K}pod-group-role": "workers"})
    history.passes(60.0)
    assert groups.run_there(history) == ["a", "b", "c"]
