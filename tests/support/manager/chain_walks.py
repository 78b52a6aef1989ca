"""Random walks of one chain at the manager: its core, an API that is slow or doubtful, other leaders, lost watches.

Each step is drawn by the seed. The user changes the size of his Job, once or many times in a second, deletes slices,
stops and starts; administrators hold the queue; agents are cut off and come back; a leader goes while its writes are
under way, and these land when another one leads. Watches are lost: then each object is seen once, as it is, in any
order. After every write it is compared, from the objects alone, what is charged with what runs (SL-12, SL-14): a chain
that runs has a record, of which there is one, and never more than two slices that are not over. At rest there is one
charge, of just what its record says, and what the user wants is asked for.

Run: `python -m support.manager.chain_walks --first 0 --count 1000`.
"""

from __future__ import annotations

import random
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, Create, Delete, Patch, WriteDone, WriteError, WriteFailed
from gatelift_kube.values.resources import WORKLOAD, ObjectRef
from gatelift_wire.values.keys import ANNOTATION_EPOCH, PlacementKey
from gatelift_wire.values.messages import Commit
from support import walks_many
from support.manager.api import ApiError, Doc, seen
from support.manager.slice_world import (
    QUEUE,
    THE_JOB,
    a_running_chain,
    all_slices,
    chain_of,
    charged,
    count,
    number,
    ref_of,
    resize,
    used,
)
from support.manager.world import World

STEPS = 60
STEPS_TO_A_WRITE = 60
COUNT_MAX = 8
QUEUE_CPU = 10
CALM_SECONDS = 300.0
NOT_WRITTEN = (WriteError.NOT_DONE, WriteError.CONFLICT)


class ChainTruthError(AssertionError):
    """A promise of chains is broken."""


@dataclass(slots=True, kw_only=True)
class UnderWay:
    """A write that has not landed. `term`: of the leader that has asked for it; `answered`: he is still to hear."""

    command: Create | Patch | Delete
    term: int
    at: float
    answered: bool


@dataclass(slots=True, kw_only=True)
class Told:
    """What stands at the cluster on which the chain runs: the last size that was said there, and how many may run."""

    run: tuple[str, int, str] | None
    number: int
    counts: int
    may_run: int


class ChainWalk:
    """One walk."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        self.seed, self.steps = seed, steps
        self.rng = random.Random(seed)  # noqa: S311 (a history that is told by its seed)
        self.at_home = self.rng.random() < 0.3
        self.world = a_running_chain(
            parallelism=self.rng.randint(1, 4), cpu=QUEUE_CPU, clusters=() if self.at_home else ("a", "b")
        )
        self.trouble = True
        self.under_way: list[UnderWay] = []
        self.told: list[str] = []
        self.checks = 0
        self.strays: set[str] = set()
        """Slices that were made by who leads no more, or did not know it: whoever leads finds and ends them."""
        self._order: dict[ObjectRef, float] = {}
        self._write, self._step = self.world._write, self.world.step
        self.world._write = self._take_write  # type: ignore[method-assign]
        self.world.step = self._one_step  # type: ignore[method-assign]
        self.agent = Told(run=None, number=0, counts=0, may_run=0)
        self._follow()
        self._acts: tuple[tuple[int, Callable[[], None]], ...] = (
            (14, self._resizes),
            (3, self._resizes_quickly),
            (10, self._goes_some_steps),
            (10, self._waits),
            (8, self._says_size),
            (5, self._answers),
            (4, self._another_leads),
            (2, self._another_leads_and_ends),
            (3, self._loses_watches),
            (2, self._deletes_a_past_one),
            (1, self._deletes_the_target),
            (1, self._deletes_the_record),
            (2, self._holds_queue),
            (1, self._deactivates),
            (2, self._cuts),
            (1, self._touches),
        )

    def live(self) -> ChainWalk:
        """Live through it. Raises ChainTruthError, with the seed, where a promise is broken."""
        try:
            for _ in range(self.steps):
                (act,) = self.rng.choices([act for _, act in self._acts], [weight for weight, _ in self._acts])
                self.told.append(act.__name__)
                act()
                self._check()
            self._comes_to_rest()
        except AssertionError as error:
            last = ", ".join(self.told[-8:])
            raise ChainTruthError(f"seed {self.seed}, after {len(self.told)} steps ({last}): {error}") from error
        return self

    # --- the API --------------------------------------------------------------------------------------------------

    def _take_write(self, command: Create | Patch | Delete) -> None:
        """Let a write land now or later, answered or not, or never."""
        drawn = self.rng.random() if self.trouble and command.ref.resource == WORKLOAD else 1.0
        after = max(self._order.get(command.ref, 0.0), self.world.now)
        if drawn < 0.05:
            error = self.rng.choice(NOT_WRITTEN)
            self.world.put(WriteFailed(write_id=command.write_id, error=error, message="told to fail"))
            return
        late = self.rng.uniform(0.0, WRITE_SECONDS_MAX) if drawn < 0.35 else 0.0
        one = UnderWay(command=command, term=self.world.term, at=max(after, self.world.now + late), answered=True)
        if drawn < 0.15:
            one.answered = False
            unknown = WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="timeout")
            self.world.put(unknown)
        if one.at <= self.world.now:
            self._land(one)
            return
        self._order[command.ref] = one.at
        self.under_way.append(one)

    def _land(self, one: UnderWay) -> None:
        answered = one.answered and one.term == self.world.term
        try:
            document = self.world.api.carry_out(one.command)
        except ApiError as failure:
            error = WriteFailed(write_id=one.command.write_id, error=failure.error, message=str(failure))
            outcome: WriteDone | WriteFailed = error
        else:
            found = seen(one.command.ref, document) if document is not None else None
            outcome = WriteDone(
                write_id=one.command.write_id,
                object=found.object if found else None,
                raw=found.raw if found else b"",
            )
            if document is not None and isinstance(one.command, Create) and not answered:
                self.strays.add(document["metadata"]["uid"])
        if answered:
            self.world.put(outcome)
        self._check()

    def _land_due(self) -> None:
        due = sorted((one for one in self.under_way if one.at <= self.world.now), key=lambda each: each.at)
        self.under_way = [one for one in self.under_way if one.at > self.world.now]
        for one in due:
            self._land(one)

    def _one_step(self) -> bool:
        self._land_due()
        went = self._step()
        self._follow()
        return went

    # --- the user, and administrators -------------------------------------------------------------------------------

    def _resizes(self) -> None:
        resize(self.world, self.rng.randint(0, COUNT_MAX))

    def _resizes_quickly(self) -> None:
        for _ in range(10):
            self._resizes()
            for _ in range(self.rng.randint(0, 3)):
                self.world.step()

    def _some(self, role: str) -> Doc | None:
        """Draw a slice: the record, one that waits behind it, or one that is past."""
        open_ones = [one for one in slices_of(self.world) if not is_over(self.world, one)]
        holding = [one for one in open_ones if has_winner(self.world, one)]
        found = {
            "record": holding[-1:],
            "target": [one for one in open_ones if one not in holding and holding],
            "past": [one for one in slices_of(self.world) if one not in open_ones],
        }[role]
        return self.rng.choice(found) if found else None

    def _deletes(self, role: str) -> None:
        chosen = self._some(role)
        if chosen is not None:
            self.world.api.delete(ref_of(chosen))

    def _deletes_a_past_one(self) -> None:
        self._deletes("past")

    def _deletes_the_target(self) -> None:
        self._deletes("target")

    def _deletes_the_record(self) -> None:
        self._deletes("record")

    def _holds_queue(self) -> None:
        policy = self.rng.choice(("Hold", "HoldAndDrain", "None", "None"))
        self.world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy=policy))

    def _deactivates(self) -> None:
        chosen, active = self._some("record"), self.rng.random() < 0.5
        if chosen is not None:
            self.world.api.edit(ref_of(chosen), lambda one: one["spec"].update(active=active))

    def _touches(self) -> None:
        """Let somebody annotate a slice, so that versions move on."""
        chosen = self.rng.choice([*slices_of(self.world), None])
        if chosen is not None:
            notes = {"example.com/touched": str(self.world.now)}
            self.world.api.edit(ref_of(chosen), lambda one: one["metadata"]["annotations"].update(notes))

    # --- both ends --------------------------------------------------------------------------------------------------

    def _goes_some_steps(self) -> None:
        for _ in range(self.rng.randint(1, 12)):
            self.world.step()

    def _waits(self) -> None:
        self._pass(self.rng.choice((0.1, 1.0, 5.0, 30.0)))

    def _pass(self, seconds: float) -> None:
        end = self.world.now + seconds
        while self.world.now < end:
            at = min([end, *(one.at for one in self.under_way if one.at > self.world.now)])
            self.world.advance(at - self.world.now)
        self.world.settle()

    def _another_leads(self) -> None:
        """Let another manager lead: what this one has asked for lands all the same, and nobody hears of it."""
        self.world.restart()

    def _another_leads_and_ends(self) -> None:
        """Let another manager lead while a growth is being written, and have to end all of it at once."""
        resize(self.world, COUNT_MAX)
        for _ in range(STEPS_TO_A_WRITE):
            if any(b"admission" in getattr(one.command, "body", b"") for one in self.under_way):
                break
            self.world.step()
        self.world.restart()
        self.world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="HoldAndDrain"))
        self._pass(self.rng.uniform(0.0, 3.0))
        self.world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="None"))

    def _loses_watches(self) -> None:
        """Show each object once, as it is now, in any order: what was between nobody sees."""
        last = {ref: (kind, ref, document) for kind, ref, document in self.world.api.changes}
        shown = list(last.values())
        self.rng.shuffle(shown)
        self.world.api.changes = deque(shown)

    def _cuts(self) -> None:
        if self.at_home:
            return
        name = self.rng.choice(sorted(self.world.agents))
        if self.world.links.views[name].open:
            self.world.cut(name)
        else:
            self.world.connect(name)

    # --- sizes at the cluster -----------------------------------------------------------------------------------------

    def _placed(self) -> tuple[int, int, int] | None:
        """Return number and count of the record as the leader knows it, and the session of its cluster, if that is on.

        None while nothing runs, or its end is under way.
        """
        core = self.world.machine.core
        live = [each for each in core.attempts.values() if each.live]
        if self.agent.run is None or len(live) != 1 or live[0].ending is not None or not core.rebuilt:
            return None
        (attempt,) = live
        known = core.knowledge.workloads.get(attempt.workload)
        view = core.view(attempt.cluster)
        if known is None or view is None or not view.open or attempt.epoch != self.agent.run[1]:
            return None
        chain = core.knowledge.slices.of(known.metadata.uid)
        if chain is None or chain.record is None or chain.record.uid != known.metadata.uid:
            return None
        return chain.record.number, known.spec.pod_sets[0].count, view.session

    def _says_size(self) -> None:
        """Say to the cluster what the record has: it takes what is above the number that it knows (Size 4)."""
        placed = self._placed()
        if placed is None:
            return
        said, counts, _ = placed
        if said == self.agent.number and counts != self.agent.counts:
            raise ChainTruthError(f"size {said} is said with {counts} pods, and was with {self.agent.counts}")
        if said > self.agent.number:
            self.agent.number, self.agent.counts = said, counts
            self.agent.may_run = max(self.agent.may_run, counts)
        self._check()

    def _answers(self) -> None:
        """Let the cluster answer the size that it has."""
        placed, core = self._placed(), self.world.machine.core
        if placed is None or placed[0] != self.agent.number:
            return
        (attempt,) = [each for each in core.attempts.values() if each.live]
        self.agent.may_run = self.agent.counts
        attempt.size.answer(self.agent.number, placed[2])
        core.mark_attempt(attempt)

    def _follow(self) -> None:
        """Take what runs: another run begins with as many pods as stand in its commit."""
        others = {one["metadata"]["uid"] for one in all_slices(self.world)} - {
            chain_of(one) for one in slices_of(self.world)
        }
        runs = [one for one in self.world.running if one[0] not in others]
        if len(runs) > 1:
            raise ChainTruthError(f"it runs more than once: {runs}")
        if not runs:
            self.agent = Told(run=None, number=0, counts=0, may_run=0)
        elif runs[0] != self.agent.run:
            key = PlacementKey(runs[0][0], runs[0][1])
            said = [one for _, one in self.world.messages(Commit) if one.key == key]
            self.agent = Told(run=runs[0], number=0, counts=-1, may_run=said[-1].pod_sets[0].count if said else 0)

    # --- what must hold ---------------------------------------------------------------------------------------------

    def _check(self) -> None:
        """Compare what stands in the API with what runs."""
        self.checks += 1
        there = [one for one in slices_of(self.world) if not one["metadata"].get("deletionTimestamp")]
        active = [one for one in there if not is_over(self.world, one)]
        if sum(one["metadata"]["uid"] not in self.strays for one in active) > ACTIVE_MAX:
            raise ChainTruthError(f"there are {len(active)} slices that are not over: {told(self.world)}")
        if self.agent.run is None:
            return
        of_it = [one for one in slices_of(self.world) if chain_of(one) == self.agent.run[0]]
        reserved = [one for one in of_it if has_winner(self.world, one) and not is_over(self.world, one)]
        holding = [one for one in reserved if _epoch(one) == self.agent.run[1]]  # of another one is a late write
        if not holding:
            raise ChainTruthError(f"{self.agent.run} runs, and no slice of it is charged: {told(self.world)}")
        charge = charged(max(holding, key=number)) or 0
        if charge < self.agent.may_run:
            raise ChainTruthError(f"{self.agent.may_run} may run, charged are {charge}: {told(self.world)}")

    def _comes_to_rest(self) -> None:
        """With all trouble over there is one charge, that of its record, and what is wanted is asked for."""
        self.trouble = False
        self._pass(WRITE_SECONDS_MAX)
        world = self.world
        world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="None"))
        for one in slices_of(world):
            if not one["spec"].get("active", True):
                world.api.edit(ref_of(one), lambda each: each["spec"].update(active=True))
        for name in sorted(world.agents) if not self.at_home else ():
            if not world.links.views[name].open:
                world.connect(name)
        for _ in range(int(CALM_SECONDS / 10)):
            self._pass(10.0)
            self._says_size()
            self._answers()
        self._check()
        self._check_rest()

    def _check_rest(self) -> None:
        world, wanted = self.world, self.world.api.objects[THE_JOB]["spec"]["parallelism"]
        active = [one for one in slices_of(world) if not is_over(world, one)]
        holding = [one for one in active if has_winner(world, one)]
        if len(active) != 1 or holding != active:
            raise ChainTruthError(f"at rest there is not one slice that has quota: {told(world)}")
        shown = charged(holding[0]), count(holding[0]), used(world)
        if shown != (wanted, wanted, wanted):
            raise ChainTruthError(f"at rest {wanted} are wanted; charged, asked for and booked: {shown}: {told(world)}")


ACTIVE_MAX = 2
"""Of a Job: the record, and what waits to grow it."""


def slices_of(world: World) -> list[Doc]:
    """Return all slices of the Job that is walked with."""
    return [one for one in all_slices(world) if one["metadata"]["name"].startswith("job-work-")]


def is_over(world: World, document: Doc) -> bool:
    return world.condition(document, "Finished").get("status") == "True"


def has_winner(world: World, document: Doc) -> bool:
    """Say whether a slice has quota, and a winner: without one it is asked about, and is no record (SL-33)."""
    has_quota = world.condition(document, "QuotaReserved").get("status") == "True"
    admitted = world.condition(document, "Admitted").get("status") == "True"
    return has_quota and (admitted or bool(document.get("status", {}).get("clusterName")))


def _epoch(document: Doc) -> int:
    return int(document["metadata"]["annotations"].get(ANNOTATION_EPOCH, "1"))


def told(world: World) -> str:
    """Return number, count, charge and standing of each slice, for messages."""
    lines = []
    for one in slices_of(world):
        reason = world.condition(one, "Finished").get("reason", "")
        leaves = " deleted" if one["metadata"].get("deletionTimestamp") else ""
        held = " reserved" if has_winner(world, one) else ""
        lines.append(
            f"{chain_of(one)}@{_epoch(one)}/{number(one)}: {count(one)} charged {charged(one)}{held} {reason}{leaves}"
        )
    return "; ".join(lines)


if __name__ == "__main__":
    sys.exit(walks_many.main(__doc__, lambda seed: ChainWalk(seed).live(), ChainTruthError))
