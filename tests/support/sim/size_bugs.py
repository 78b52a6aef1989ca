"""Deliberate bugs in rules of sizes, and the first drawn history that finds each (SL-83).

Each takes one rule out of the cores that ship: of the manager or of the agent. A history finds it where more may run
than is charged, one run is charged twice, or what people are shown is not so. `FOUND` pins a seed for each: searching
is what `python -m support.sim.size_bugs --first 0 --count 2000` does (`--only NAME`), which prints that table anew.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gatelift.core.clusters.link_values import Reported
from gatelift.core.conclusions import sized
from gatelift.core.dispatching import chain_ends, requests, resizing
from gatelift.core.records import record as records
from gatelift.core.records import size_writes
from gatelift.core.records.chain import Slice
from gatelift.core.records.size_states import PlacedSize
from gatelift.core.records.work import Owner
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.state.sessions import Sessions
from gatelift.core.works import shrinking
from gatelift_admission.values.model import Reserve
from gatelift_agent.core.advancing import gates
from gatelift_kinds.shared import slices
from gatelift_kinds.shared.sizes import COUNT_MAX, counts_of
from gatelift_kube.deciding.writes import ApiWrite, Patch, WriteDone, WriteFailed
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Message
from gatelift_wire.values.sizes import Drained, Resize, SliceFinished
from support.agent import size_rules
from support.manager import chain_rules
from support.sim import agent
from support.sim.cluster import SimCluster
from support.sim.history import ON_TERMINAL
from support.sim.objects import TruthError
from support.sim.world import PLANS, SIZES_FROM, SimWorld

Take = Callable[[pytest.MonkeyPatch], None]
DEADLINE_SECONDS = 5.0
MOST = 2000
"""Histories within which each is to be found."""


def lowered_before_the_answer(patch: pytest.MonkeyPatch) -> None:
    """Lower a charge as soon as any size was answered in the session (without Size 2 and Size 5)."""

    def follows(size: PlacedSize, number: int, *, lowers: bool) -> None:
        del lowers
        size.number = max(size.number, number)

    patch.setattr(PlacedSize, "follows", follows)
    patch.setattr(PlacedSize, "counts_at", lambda *_: {})


def released_at_the_change_of_a_count(patch: pytest.MonkeyPatch) -> None:
    """Lower the charge with the count (without Size 2)."""
    chain_rules.released_at_the_change_of_a_count(patch)
    patch.setattr(PlacedSize, "counts_at", lambda *_: {})


def released_at_a_deadline(patch: pytest.MonkeyPatch) -> None:
    """Lower the charge some seconds after the count, answered or not (without Size 3)."""
    since: dict[tuple[str, int], float] = {}
    give_back, is_answered = shrinking.give_back, PlacedSize.is_answered
    counts_at, keeps = PlacedSize.counts_at, Sessions.keeps
    due: list[bool] = [False]

    def at_a_deadline(case: Case) -> bool:
        first = since.setdefault((case.rec.uid, slices.size_of(case.known).number), case.now)
        due[0] = case.now - first >= DEADLINE_SECONDS
        if not due[0]:
            case.core.agenda.wake(case.attempt.look, first + DEADLINE_SECONDS)
        try:
            return give_back(case)
        finally:
            due[0] = False

    patch.setattr(shrinking, "give_back", at_a_deadline)
    patch.setattr(PlacedSize, "is_answered", lambda *of: due[0] or is_answered(*of))
    patch.setattr(PlacedSize, "counts_at", lambda *of: {} if due[0] else counts_at(*of))
    patch.setattr(Sessions, "keeps", lambda *of: due[0] or keeps(*of))


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


def a_late_write_of_a_growth_lands(patch: pytest.MonkeyPatch) -> None:
    """Let the write of a growth land on whatever its slice is by then (without what conflicts, Size 1)."""
    growth_write, carry_out = size_writes.growth_write, SimCluster.carry_out
    written: set[bytes] = set()

    def noted(*of: Any) -> bytes:
        body = growth_write(*of)
        written.add(body)
        return body

    def landed(cluster: SimCluster, command: ApiWrite) -> WriteDone | WriteFailed:
        found = cluster.find(command.ref)
        if isinstance(command, Patch) and command.body in written and found is not None:
            body = msgspec.json.decode(command.body)
            body["metadata"]["resourceVersion"] = found.view()["metadata"]["resourceVersion"]
            command = replace(command, body=msgspec.json.encode(body))
        return carry_out(cluster, command)

    patch.setattr(size_writes, "growth_write", noted)
    patch.setattr(SimCluster, "carry_out", landed)


def what_waits_is_not_touched(patch: pytest.MonkeyPatch) -> None:
    """End a record without a write to what waits behind it (without the touch of Size 1)."""
    patch.setattr(chain_ends, "touches_target", lambda *_: False)


def progress_counts_as_an_answer(patch: pytest.MonkeyPatch) -> None:
    """Take the word that some are still in the way for the word that none is (without Size 6, at the manager)."""
    take = sized.take

    def said(core: Core, upcall: Reported, message: sized.SizeWord, now: float) -> None:
        if isinstance(message, Drained):
            message = SliceFinished(key=message.key, number=message.number)
        take(core, upcall, message, now)

    patch.setattr(sized, "take", said)


def gates_are_lifted_by_no_count(patch: pytest.MonkeyPatch) -> None:
    """Let each pod go that waits (without Size 7)."""
    patch.setattr(gates, "_limit", lambda _world, _placement, sizing, _now: dict.fromkeys(sizing.counts, COUNT_MAX))


def a_new_replica_starts_at_once(patch: pytest.MonkeyPatch) -> None:
    """List while writes of the one before may land (without Size 8)."""
    patch.setattr(agent, "settle_seconds", lambda *_: 0.0)


BUGS: dict[str, Take] = {
    "Size 1, two records": chain_rules.the_lower_one_counts,
    "Size 1, a growth charged for the difference": charged_for_the_difference,
    "Size 1, a late write of target lands": a_late_write_of_a_growth_lands,
    "Size 1, what waits is not touched": what_waits_is_not_touched,
    "Size 2, released at the change of a count": released_at_the_change_of_a_count,
    "Size 2, a charge lowered before its answer": lowered_before_the_answer,
    "Size 2, a growth said before it is charged": said_before_it_is_charged,
    "Size 3, released at a deadline": released_at_a_deadline,
    "Size 4, sizes are not compared": size_rules.numbers_are_not_compared,
    "Size 4, a number twice": chain_rules.a_number_twice,
    "Size 5, an answer to any size": chain_rules.an_answer_to_any_size,
    "Size 6, progress counts as an answer": progress_counts_as_an_answer,
    "Size 6, answered while the surplus runs": size_rules.answered_at_once,
    "Size 6, answered with lifts in doubt": size_rules.answered_with_lifts_in_doubt,
    "Size 6, answered before the mark": size_rules.answered_before_the_mark,
    "Size 7, gates are lifted by no count": gates_are_lifted_by_no_count,
    "Size 7, lifts in flight do not count": size_rules.lifts_in_flight_do_not_count,
    "Size 7, who stops has no slot": size_rules.who_stops_has_no_slot,
    "Size 8, a new replica starts at once": a_new_replica_starts_at_once,
    "Size 9, slots are opened without a word": size_rules.slots_are_opened_without_a_word,
    "SL-13, a past slice stops the run": chain_rules.a_past_slice_ends_the_run,
}
FOUND: dict[str, int] = {
    "Size 1, a growth charged for the difference": 3,
    "Size 2, released at the change of a count": 3,
    "Size 2, a charge lowered before its answer": 3,
    "Size 2, a growth said before it is charged": 3,
    "Size 3, released at a deadline": 7,
    "Size 5, an answer to any size": 3,
    "Size 6, progress counts as an answer": 7,
    "Size 6, answered while the surplus runs": 7,
    "Size 7, gates are lifted by no count": 7,
    "Size 7, lifts in flight do not count": 139,
    "SL-13, a past slice stops the run": 3,
}
"""Seeds above `SIZES_FROM` that find them."""


def a_world(name: str, seed: int) -> SimWorld:
    """Return the world of a seed; where an answer may come too early, by the rule of release that waits longest."""
    plan = PLANS[seed % len(PLANS)]
    if not name.startswith("Size 6"):
        return SimWorld(SIZES_FROM + seed, plan)
    world = SimWorld(SIZES_FROM + seed, replace(plan, manager_file=ON_TERMINAL))
    world.account.on_terminal = True
    return world


def what_breaks(name: str, seed: int, *, whole: bool = False) -> str:
    """Return how a history breaks a promise with this bug, "" where it does not. `whole`: lived to its end."""
    with pytest.MonkeyPatch.context() as patch:
        BUGS[name](patch)
        world = a_world(name, seed)
        try:
            if whole:
                world.run()
            else:
                world.begin_trouble()
                world.pass_seconds(world.plan.trouble_seconds)
        except TruthError as error:
            return str(error)
    return ""


def main() -> int:
    """Search for the first seed of each; return 1 where one is not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=MOST)
    parser.add_argument("--only", default="", help="part of the name of a bug")
    parser.add_argument("--whole", action="store_true", help="live each history to its end")
    asked, missed = parser.parse_args(), 0
    for name in [each for each in BUGS if asked.only in each]:
        for seed in range(asked.first, asked.first + asked.count):
            began = time.monotonic()
            broken = what_breaks(name, seed, whole=asked.whole)
            if broken:
                took = time.monotonic() - began
                sys.stdout.write(f'    "{name}": {seed},  # {took:.1f} s: {broken[:140]}\n')
                break
        else:
            missed += 1
            sys.stdout.write(f"{name}: not found in {asked.count}\n")
        sys.stdout.flush()
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
