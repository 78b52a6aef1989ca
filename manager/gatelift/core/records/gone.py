"""Rule R4: when absence of a placement from an inventory means that it is gone. Neighbours: `inventories`, `links`.

Absence is a conclusion from silence, and three things can make it a lie: the record was written after the inventory
was asked for (the agent could not know of it), a commit was still on its way (counterexample H1), or the inventory
belongs to a session that is over (H8).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift.core.records.attempts import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the manager knows of a placement that an inventory does not list."""

    written_revision: int
    commit_session: int = 0
    commit_sequence: int = 0
    heard_session: int = 0
    """The last session in which its cluster was chosen for it, told of it, or listed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The facts of an inventory. `applied`: the last command sequence that the agent had applied when it answered.

    `unproven`: the worker was restored, or is another cluster than before: it cannot be expected to know of what was
    placed in a session up to `unproven_through`. `unheard`: not all of its nodes were heard of since its agent watches.
    """

    session: int
    latest_session: int
    record_revision: int
    applied: int
    unproven: bool = False
    unproven_through: int = 0
    unheard: bool = False


def known_session(attempt: Attempt) -> int:
    """Return the last session in which who served its cluster was chosen for it, was told of it, or listed it."""
    return max(attempt.placed_session, attempt.heard_session, attempt.listed_session)


def is_unexplained(known: Evidence, inventory: Inventory) -> bool:
    """Say whether nothing that this cluster does not list of the placement proves anything: only a person can say."""
    return inventory.unproven and known.heard_session <= inventory.unproven_through


def is_gone(known: Evidence, inventory: Inventory) -> bool:
    """Say whether absence from `inventory` proves that nothing of the placement exists or can still start.

    A commit of an earlier session cannot be accepted any more (R6), unless the session was resumed; sequences go on
    over resumed sessions, so a commit of another session counts as applied only if its number says so or the session
    number is lower and the inventory belongs to the latest one.
    """
    if is_unexplained(known, inventory) or inventory.session != inventory.latest_session:
        return False
    if inventory.unheard:
        return False  # it was perhaps removed by force while no agent watched, and its containers run on (P10)
    if known.written_revision > inventory.record_revision:
        return False
    if known.commit_session == inventory.session:
        return known.commit_sequence <= inventory.applied
    return known.commit_session < inventory.session
