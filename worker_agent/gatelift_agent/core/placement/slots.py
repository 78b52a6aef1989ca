"""The core of the room rule: who takes a slot of a pod set, and how many are left. Pure.

One rule for what is let go as a whole (a group's pods, `advancing.room`) and by count (pods of elastic work,
`seeing.let_go`). They differ in one thing: who has succeeded keeps a slot in a group, and frees one for its controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class SlotFacts(NamedTuple):
    """What is known of one pod. `let_go`: it is seen so. `in_doubt`: a lift of it was asked for, whatever came of that.

    `over`: it was seen to have stopped. `may_run`: it vanished, and its node may run it. `keeps`: over, and its slot is
    its own for good.
    """

    let_go: bool = False
    in_doubt: bool = False
    over: bool = False
    may_run: bool = False
    keeps: bool = False


def takes_slot(facts: SlotFacts) -> bool:
    """Say whether a pod takes a slot; one that stops does until it has."""
    return facts.keeps or facts.may_run or ((facts.let_go or facts.in_doubt) and not facts.over)


def left(granted: Mapping[str, int], taken: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return of each pod set how many pods more may be let go; below zero where more run than were granted."""
    free = dict(granted)
    for pod_set, count in taken:
        free[pod_set] = free.get(pod_set, 0) - count
    return free
