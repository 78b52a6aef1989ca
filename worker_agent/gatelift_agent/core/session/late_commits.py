"""Commits of what may be here without being known: where its namespace is not listed yet, or something was not read.

A refusal says that nothing runs (R7), so none is said before that is known. Then such a commit is obeyed as if it came
then; until then its placement is told of by nothing but what is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from gatelift_agent.core.state import unknowns
from gatelift_agent.core.state.late import LateCommit
from gatelift_agent.core.state.world import World
from gatelift_wire.values.messages import Commit

LATE_COMMITS_MAX = 1_000
"""Commits that wait; of all others the next session speaks again."""


def waits(world: World, commit: Commit) -> bool:
    """Say whether what a commit names, of which nothing is known, may be here."""
    return commit.namespace in world.unlisted or unknowns.may_be_of(world, commit.key, all_of_it=True)


def keep(world: World, commit: Commit) -> None:
    """Let a commit wait until what it names is known, or is known not to be here."""
    if commit.key in world.late.commits or len(world.late.commits) < LATE_COMMITS_MAX:
        world.late.commits[commit.key] = LateCommit(session=world.standing.session, commit=commit)


def due(world: World) -> Iterator[LateCommit]:
    """Yield, and keep no longer, the commits of this session that can be answered now; forget those of others."""
    for key, late in tuple(world.late.commits.items()):
        if late.session != world.standing.session or not world.standing.open:
            del world.late.commits[key]
        elif key in world.placements or not waits(world, late.commit):
            del world.late.commits[key]
            yield late
