"""Rules of sizes that are taken out of dispatch are missed by drawn histories with users that resize (SL-83).

Each case takes one rule out of the manager's core that ships; some seed has to show that more may run than is charged,
or that one run is charged twice. Those of one chain, and of the agent, are taken out in
`tests/manager/test_chain_walks.py` and `tests/agent/test_agent_size_walks.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gatelift.core.dispatching import requests, resizing
from gatelift.core.records import record as records
from gatelift.core.records import size_writes
from gatelift.core.records.chain import Slice
from gatelift.core.records.size_states import PlacedSize
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift_admission.values.model import Reserve
from gatelift_kinds.shared.sizes import counts_of
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Message
from gatelift_wire.values.sizes import Resize
from support.sim.account import AccountError
from support.sim.objects import TruthError
from support.sim.world import PLANS, SIZES_FROM, SimWorld

TRIES = 12
"""Seeds that a removed rule may hide in; each was missed within four."""

Take = Callable[[pytest.MonkeyPatch], None]


def lowered_before_the_answer(patch: pytest.MonkeyPatch) -> None:
    """Lower a charge as soon as any size was answered in the session (without Size 2 and Size 5)."""

    def follows(size: PlacedSize, number: int, *, lowers: bool) -> None:
        del lowers
        size.number = max(size.number, number)

    patch.setattr(PlacedSize, "follows", follows)
    patch.setattr(PlacedSize, "counts_at", lambda *_: {})


def said_before_it_is_charged(patch: pytest.MonkeyPatch) -> None:
    """Say what a slice asks for that waits, and not what the record has (without Size 2)."""
    number_of, message = requests.number_of, resizing._message

    def waiting(core: Core, uid: str) -> Slice | None:
        chain = core.knowledge.slices.of(uid)
        return chain.target if chain is not None and chain.record is not None and chain.record.uid == uid else None

    def number(core: Core, uid: str) -> int:
        target, own = waiting(core, uid), number_of(core, uid)
        return target.number if target is not None and own else own

    def of_target(case: Case, owner: Owner, said: int) -> Message | None:
        target = waiting(case.core, case.attempt.uid)
        if target is None:
            return message(case, owner, said)
        asked = counts_of(case.core.knowledge.workloads[target.key])
        placed = requests.said(case.core, case.attempt, owner.kind)
        grown = tuple(requests.of_pods(one, asked.get(one.name, one.count)) for one in placed)
        return Resize(key=case.attempt.key, number=said, pod_sets=grown)

    patch.setattr(requests, "number_of", number)
    patch.setattr(resizing, "_message", of_target)


def charged_for_the_difference(patch: pytest.MonkeyPatch) -> None:
    """Write a growth with what it asks for beside what runs, and not with all (without *one record*, Size 1)."""
    growth_write = size_writes.growth_write

    def of_more(target: Workload, record: Workload, reserve: Reserve, *rest: Any) -> bytes:
        before = records.granted(record)
        more = {name: count - before.get(name, 0) for name, count in counts_of(target).items()}
        admission = size_writes.lowered(reserve.admission, more)
        return growth_write(target, record, reserve._replace(admission=admission), *rest)

    patch.setattr(size_writes, "growth_write", of_more)


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(lowered_before_the_answer, id="Size 2, a charge lowered before its answer"),
        pytest.param(said_before_it_is_charged, id="Size 2, a growth said before it is charged"),
        pytest.param(charged_for_the_difference, id="Size 1, a growth charged for the difference"),
    ],
)
def test_sl_83_a_rule_of_dispatch_that_is_removed_is_missed(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    take(monkeypatch)
    assert any(map(_breaks, range(TRIES)))


def _breaks(seed: int) -> bool:
    world = SimWorld(SIZES_FROM + seed, PLANS[seed % len(PLANS)])
    try:
        world.begin_trouble()
        world.pass_seconds(world.plan.trouble_seconds)
    except (AccountError, TruthError):
        return True
    return False
