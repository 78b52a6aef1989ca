"""What else is done to a simulated world: by hand around everything, by disasters, and by those who mean well.

`ATTACKS` is the table: a seed draws some of those that are on, and lives with them. One that is off says why: a promise
that only an admission policy stands for is not asked of cores, and what a simulation cannot say is not judged by it.
Each returns whether it was done; the world counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.sim import by_hand as hand
from support.sim import disasters, ownership, stalls, words

if TYPE_CHECKING:
    from support.sim.world import SimWorld


@dataclass(frozen=True, slots=True)
class Attack:
    """One of them. `off`: why no seed draws it."""

    act: Callable[[SimWorld], bool]
    off: str = ""

    @property
    def name(self) -> str:
        return self.act.__name__


ATTACKS = {
    each.name: each
    for each in (
        Attack(disasters.worker_cluster_made_anew),
        Attack(disasters.gone_for_good),
        Attack(disasters.another_cluster_under_a_name),
        Attack(disasters.worker_restored),
        Attack(disasters.home_restored),
        Attack(disasters.namespace_deleted),
        Attack(disasters.agents_lease_deleted),
        Attack(disasters.agents_state_deleted),
        Attack(disasters.second_lease),
        Attack(hand.workers_finalizer_edited),
        Attack(hand.homes_finalizer_edited),
        Attack(hand.workloads_finalizer_edited),
        Attack(hand.workers_label_edited),
        Attack(hand.homes_label_edited),
        Attack(hand.epoch_edited),
        Attack(hand.workers_job_suspended),
        Attack(hand.workers_job_resized),
        Attack(hand.homes_job_suspended),
        Attack(hand.homes_job_unsuspended),
        Attack(hand.homes_job_resized),
        Attack(hand.counts_lowered),
        Attack(hand.force_deleted),
        Attack(hand.jobs_pods_deleted),
        Attack(disasters.node_lost),
        Attack(words.word_at_any_time),
        Attack(words.word_as_it_greets),
        Attack(words.leader_dies_after_a_write),
        Attack(words.agent_dies_after_a_write),
        Attack(hand.again_while_it_runs),
        Attack(ownership.homes_deleted_orphaning),
        Attack(ownership.homes_deleted_in_the_foreground),
        Attack(ownership.workers_deleted_orphaning),
        Attack(ownership.workers_deleted_in_the_foreground),
        Attack(ownership.queue_label_edited),
        Attack(ownership.managed_label_edited),
        Attack(ownership.workloads_owner_edited),
        Attack(ownership.pods_owner_edited),
        Attack(stalls.standbys_watch_stalls),
        Attack(stalls.leaders_watch_stalls),
    )
}
DRAWN = tuple(name for name, each in ATTACKS.items() if not each.off)
DRAWN_AT_ONCE_MAX = 4
"""Kinds of attack in one history: with more of them nothing has time to come to an end between two."""


def drawn_attacks(rng: random.Random) -> tuple[str, ...]:
    """Return which attacks one seed lives with: none, or a few kinds of them."""
    return tuple(rng.sample(DRAWN, min(len(DRAWN), rng.randrange(DRAWN_AT_ONCE_MAX + 1))))


def begin(world: SimWorld, names: tuple[str, ...], every: float) -> None:
    """Go on with these attacks until the calm, one each `every` seconds or so."""
    if not names:
        return

    def act() -> None:
        if not world.troubled:
            return
        name = world.time.rng.choice(names)
        world.time.say("attack", name)
        if ATTACKS[name].act(world):
            world.counts[name] += 1
        world.time.after(world.time.between(0.1, 2 * every), act)

    world.time.after(world.time.between(0.1, 2 * every), act)
