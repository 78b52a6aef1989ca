"""Who was let in before somebody of the same queue who is worth more and would have fitted, over random instances.

With a period of 0 the engine wakes all at once, as Kueue. Once two ways have parted, what one does says little of the
other: so each moment that has an inversion is played again, the same way up to it, and then as Kueue would go on.
Neighbour: `settling` plays with the shipped turns.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

from gatelift_admission.entries.entry import Entry, Phase
from gatelift_admission.flavors.assignment import Mode
from gatelift_admission.rounds.nomination import nominate
from gatelift_admission.values.model import Decision, Reserve
from support.twin.admission_cases import Case
from support.twin.instances import instance
from support.twin.settling import Settling

ENDS_MAX = 4
"""Workloads that end at a time."""
MOMENTS = 6


def crowded(seed: int) -> Case:
    """Return an instance of one cohort in which all come at one time, and some end at a time.

    Nobody preempts within his queue: who is let in too early stays, and is seen.
    """
    case = instance(seed, lambda _: {"preempt": {"reclaim": "Any"}})
    rng = Random(f"turns {seed}")  # noqa: S311 - reproducible, not secret
    case.pop("fair", None)
    for one in case["workloads"].values():
        one.update(created=0, priority=rng.randint(0, 4))
    for one in case["queues"].values():
        one.pop("weight", None)
        one["cohort"] = "top"
    names = list(case["workloads"])
    case["steps"] = [*({"submit": name} for name in names), "cycle"]
    for _ in range(MOMENTS):
        ends = rng.sample(names, min(len(names), rng.randint(1, ENDS_MAX)))
        case["steps"] += [*({"finish": name} for name in ends), "cycle"]
    return case


@dataclass(slots=True)
class Turns(Settling):
    """One instance; notes inversions each time that everything is at rest."""

    at_once_from: int | None = None
    """From which coming to rest on all are woken at once, as in Kueue; the first is 1."""
    rests: int = 0
    recent: list[str] = field(default_factory=list)
    """Who was let in since everything was at rest last."""
    inversions: set[tuple[int, str, str]] = field(default_factory=set)
    """At which coming to rest, who waits, and who was let in before it."""

    def rest(self) -> None:
        """Let everything come to rest, and look who was let in."""
        self.rests += 1
        if self.rests == self.at_once_from:
            state = self.fast.state
            state.settings = replace(state.settings, wake_period=0.0, preemption_patience=0.0)
            state.restructure()  # all that waits is looked at, as in Kueue in a tree where something ended
        Settling.rest(self)
        entries = self.fast.state.entries
        held = [entries[uid] for uid in self.recent if uid in entries and entries[uid].charged]
        self.recent.clear()
        for one in entries.values():
            if one.phase is Phase.PENDING and one.queue and not self._is_aside(one):
                self.inversions.update((self.rests, one.uid, low.uid) for low in held if self._inverted(one, low))

    def _take(self, decisions: tuple[Decision, ...]) -> None:
        Settling._take(self, decisions)
        self.recent += [one.uid for one in decisions if isinstance(one, Reserve)]

    def _is_aside(self, entry: Entry) -> bool:
        queue = self.fast.state.queues[entry.queue]
        return entry.uid in queue.pending.aside or not queue.admits or bool(entry.obstacle)

    def _inverted(self, high: Entry, low: Entry) -> bool:
        """Say whether one waits who is worth more, came no later and fits in the place of the other."""
        state = self.fast.state
        if low.charged_queue != high.queue or low.priority >= high.priority or high.timestamp > low.timestamp:
            return False
        queue, tree = state.queues[high.queue], state.ensure()
        if not state.selects(queue, high.key.namespace):
            return False
        mark = tree.mark()
        tree.remove_usage(tree.queues[queue.name], low.charged)
        found = nominate(state, high, queue).assignment.mode is Mode.FIT
        tree.undo(mark)
        return found


def inversions(case: Case) -> set[tuple[int, str, str]]:
    """Return the inversions of an instance that Kueue would not have made in the same place."""
    ours = Turns(case)
    ours.play()
    found = ours.inversions
    for number in {rest for rest, _, _ in found}:
        theirs = Turns(case, at_once_from=number)
        theirs.play()
        found = found - theirs.inversions
    return found
