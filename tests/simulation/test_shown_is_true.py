"""What people are shown in the end is what the engine has (`support.sim.shown`): the check notices when it is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core import texts
from gatelift.core.conclusions import held
from gatelift.core.state import showing
from gatelift.core.state.caution import Ahead
from gatelift.core.state.core import Core
from gatelift.core.works import requeueing
from gatelift_admission.entries.entry import Phase
from gatelift_admission.feed import intake as engine_intake
from gatelift_kube.values.resources import CLUSTER_QUEUE, WORKLOAD
from gatelift_wire.values.keys import PlacementKey
from support.manager.slice_world import a_running_chain, all_slices, resize
from support.manager.world import World
from support.sim import shown
from support.sim.faults import Faults
from support.sim.truth import TruthError
from support.sim.world import PLANS, Plan, SimWorld

TRIES = 120
"""Seeds that a defect may hide in; most are noticed in the first five, one of what comes late in every twentieth."""
GENTLE = Plan(faults=Faults(), break_every=0.0)


def changes_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    """Show queues only when their own objects change."""
    patch.setattr(showing, "changed", lambda core: core.ledger.engine.take_changed())


def reasons_are_taken_for_said(patch: pytest.MonkeyPatch) -> None:
    """Take why a workload waits for said whatever its object says."""
    patch.setattr(requeueing, "_says", lambda *_: True)


def late_reasons_stay(patch: pytest.MonkeyPatch) -> None:
    """Do not look at what objects say after they were seen first."""
    patch.setattr(engine_intake, "_hear", lambda *_: None)


Take = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.parametrize(
    "take",
    [
        changes_are_not_looked_at,
        reasons_are_taken_for_said,
        pytest.param(late_reasons_stay, marks=pytest.mark.interpreted),
    ],
)
def test_what_is_shown_for_ever_and_not_true_is_noticed(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch)
    assert any(_shows_what_is_not(seed) for seed in range(TRIES))


def _shows_what_is_not(seed: int) -> bool:
    try:
        SimWorld(seed, PLANS[seed % len(PLANS)]).run()
    except TruthError as error:
        return "shown for ever" in str(error)
    return False


def at_rest() -> SimWorld:
    """Return a world in which some work runs, and all that is shown is what is."""
    world = SimWorld(0, GENTLE)
    for _ in range(5):
        world.make()
    world.pass_seconds(10.0)
    world.rest()
    return world


def test_a_workload_that_shows_another_phase_or_charge_than_the_engine_has_is_noticed() -> None:
    world = at_rest()
    entries = world.managers[0].machine.core.ledger.engine.state.entries
    entry = next(one for one in entries.values() if one.phase is Phase.ADMITTED)
    entry.phase = Phase.RESERVED
    world.shown.forget()
    with pytest.raises(TruthError, match="shows admitted; the engine has quota reserved"):
        world.pass_seconds(1.0)
    entry.phase, entry.charged = Phase.ADMITTED, {}
    world.shown.forget()
    with pytest.raises(TruthError, match="the engine charges"):
        world.pass_seconds(1.0)


def test_a_status_that_somebody_else_writes_is_put_right() -> None:
    world = at_rest()
    assert world.home.all(WORKLOAD)
    before = world.home.look(CLUSTER_QUEUE, "travels")
    world.home.change(CLUSTER_QUEUE, "travels", {"status": {"pendingWorkloads": 7, "flavorsUsage": []}}, "status")
    world.pass_seconds(5.0)
    world.rest()
    after = world.home.look(CLUSTER_QUEUE, "travels")
    assert before is not None
    assert after is not None
    assert after["status"] == before["status"]


def waiting_behind_a_head() -> tuple[SimWorld, Core, str]:
    """Return a world in which a Workload waits behind the head of a queue that looks at nobody else, and its UID."""
    world = SimWorld(0, GENTLE)
    world.home.change(CLUSTER_QUEUE, "travels", {"spec": {"queueingStrategy": "StrictFIFO"}})
    world.pass_seconds(10.0)
    for name in ("runs", "runs-too", "heads", "waits"):
        world.make_pod(name, "travels", "1500m", {})
        world.pass_seconds(5.0)
    world.rest()
    meta = next(each["metadata"] for each in world.home.all(WORKLOAD) if "pod-waits" in each["metadata"]["name"])
    return world, world.managers[0].machine.core, meta["uid"]


def looked_at_again(world: SimWorld, uid: str) -> None:
    """Have the manager look at a Workload, and let time pass."""
    meta = next(each["metadata"] for each in world.home.all(WORKLOAD) if each["metadata"]["uid"] == uid)
    world.home.change(
        WORKLOAD, meta["name"], {"metadata": {"labels": {"example.com/looked-at": f"{world.time.now:g}"}}}
    )
    world.pass_seconds(10.0)


def test_a_workload_that_shows_another_reason_than_the_manager_keeps_it_out_for_is_noticed() -> None:
    world, core, uid = waiting_behind_a_head()
    core.caution.name("b", Ahead(PlacementKey(uid, 9), over=False))
    core.ledger.block(uid)
    world.shown.forget()
    with pytest.raises(TruthError, match=r"says \('PendingEvaluation'.*the manager \('EpochAhead'"):
        world.pass_seconds(1.0)
    looked_at_again(world, uid)
    world.rest()


def test_a_reason_that_outlives_what_kept_a_workload_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "KEPT_OUT", ())
    world, core, uid = waiting_behind_a_head()
    core.caution.name("b", Ahead(PlacementKey(uid, 9), over=False))
    looked_at_again(world, uid)
    core.caution.settle("b", uid)
    with pytest.raises(TruthError, match=r"says \('EpochAhead'.*nothing keeps it out"):
        looked_at_again(world, uid)


def test_hd_181_a_hold_beside_a_reservation_that_nobody_is_told_of_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "show", lambda *_: None)
    world, core, _ = waiting_behind_a_head()
    meta = next(each["metadata"] for each in world.home.all(WORKLOAD) if "pod-runs-too" in each["metadata"]["name"])
    core.caution.name("b", Ahead(PlacementKey(meta["uid"], 9), over=False))
    with pytest.raises(TruthError, match=r"says that it is held for None; the manager \('EpochAhead'"):
        looked_at_again(world, meta["uid"])


def test_hd_181_a_cluster_that_gets_no_new_work_without_a_word_is_noticed() -> None:
    world, core, uid = waiting_behind_a_head()
    core.caution.name("b", Ahead(PlacementKey(uid, 9), over=False))
    core.caution.to_tell.clear()
    with pytest.raises(TruthError, match=r"WorkerCluster b says \('', ''\); the manager \('EpochAhead'"):
        looked_at_again(world, uid)


def test_a_growth_that_is_granted_and_not_written_covers_its_record_and_nothing_besides() -> None:
    """SL-08: of its own chain alone, and for no less than the record is charged."""
    world = a_running_chain(cpu=10)
    core, engine = world.machine.core, world.machine.core.ledger.engine
    resize(world, 5)
    while not (len(all_slices(world)) > 1 and engine.phase(uid_of(world, 1)) is Phase.ASSUMED):
        assert world.step()
    due = shown._granted(all_slices(world)[0])
    assert (sum(due.values()), engine.charged(uid_of(world, 0)), sum(engine.charged(uid_of(world, 1)).values())) == (
        3000,
        {},
        5000,
    )

    def covers(place: int, due: shown.Charge, charged: shown.Charge | None = None) -> bool:
        return shown._is_covered_by_growth(core, uid_of(world, place), charged or {}, due)

    assert covers(0, due)
    assert not covers(1, due), "it is no record"
    assert not covers(0, dict.fromkeys(due, 6000)), "the growth is charged for less"
    assert not covers(0, due, due), "both are charged"


def uid_of(world: World, place: int) -> str:
    return str(all_slices(world)[place]["metadata"]["uid"])
