"""What `gatelift explain` tells of a workload that waits for quota: its place, what it lacks, whom it would preempt."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift.cli.replica import Replica
from gatelift_admission import texts
from gatelift_admission.told.explain import FlavorVerdict
from gatelift_admission.told.outlook import Outlook

VICTIMS_MAX = 20
"""Victims that are named; a person wants to know who, and how many more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingExplanation:
    """What is told of a waiting workload; the fields are keys of `-o json`."""

    place: str
    ahead: tuple[str, ...]
    lacks: tuple[str, ...]
    outlook: str
    would_preempt: tuple[str, ...]
    not_seen: tuple[str, ...]


def waiting_of(replica: Replica, uid: str) -> WaitingExplanation | None:
    """Return what is told of a workload that waits; None of one that does not."""
    found = replica.outlook(uid)
    if found is None:
        if not replica.blind:
            return None
        return WaitingExplanation(place="", ahead=(), lacks=(), outlook="", would_preempt=(), not_seen=replica.unseen)
    return WaitingExplanation(
        place=_place(found),
        ahead=tuple(str(key) for key in found.ahead),
        lacks=tuple(_lack(one) for one in found.verdicts if not one.fits),
        outlook=_outlook(found),
        would_preempt=_victims(found),
        not_seen=replica.unseen,
    )


def _place(found: Outlook) -> str:
    return (
        f"{found.place} of {found.waiting} in ClusterQueue {found.cluster_queue}, {found.local_place} of"
        f" {found.local_waiting} in its LocalQueue, priority {found.priority}"
    )


def _lack(verdict: FlavorVerdict) -> str:
    why = "; ".join(verdict.reasons) or "does not fit"
    return f"pod set {verdict.pod_set}{f', flavor {verdict.flavor}' if verdict.flavor else ''}: {why}"


def _outlook(found: Outlook) -> str:
    fewer = "".join(f", with {count} pods in pod set {name}" for name, count in found.counts)
    if found.hindrance:
        return f"no quota can help: {found.hindrance}"
    if found.fits:
        borrowing = ", borrowing from its cohort" if found.borrows else ""
        turn = "its turn comes next" if found.place == 1 else "those before it go first"
        return f"fits now{borrowing}{fewer}; {turn}"
    if found.victims:
        others = "1 other has" if len(found.victims) == 1 else f"{len(found.victims)} others have"
        return f"would fit after {others} been preempted{fewer}"
    if found.why == texts.NO_MATCHING_FLAVOR:
        return "no quota can help: no flavor of the queue suits it"
    if found.why == texts.EXCEEDS_MAX_QUOTA:
        return "no quota that comes free can help: it asks for more than the queue and its cohort have"
    return "waits until quota comes free; nobody may be preempted for it"


def _victims(found: Outlook) -> tuple[str, ...]:
    said = [
        f"{one.key} (priority {one.priority}, ClusterQueue {one.cluster_queue}): {one.reason}"
        for one in found.victims[:VICTIMS_MAX]
    ]
    more = len(found.victims) - len(said)
    return tuple(said) if more <= 0 else (*said, f"and {more} more")
