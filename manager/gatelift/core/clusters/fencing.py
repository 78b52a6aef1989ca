"""A person's word that nothing runs any more on a worker cluster: when it counts, and how it is answered. Pure.

It comes as an annotation (`gatelift cluster fenced`, or by hand). It counts for one session: the one that the status
names while the cluster is shown as lost in it; or, where who serves the cluster is in doubt, the last one of before.
Every other word is refused at once and taken away, with the reason, so that none lies there until a loss months later
makes it count. Neighbour: `cluster_record` (writes it, rule R2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from gatelift.core.clusters import identity
from gatelift_kube.deciding.writes import Patch
from gatelift_kube.objects import gatelift_bounds as bounds
from gatelift_kube.objects.gatelift import WorkerCluster, WorkerClusterStatus
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectKey, ObjectRef

ANNOTATION_FENCED_THROUGH = "gatelift.dev/fenced-through-session"
"""A person's word, written by `gatelift cluster fenced`: nothing of a session up to this number runs any more."""

ANNOTATION_FENCED_BY = "gatelift.dev/fenced-by"
"""Who said so, in the words of whoever wrote it; the API server's audit log has the proof."""

ANNOTATION_FENCED_AFTER = "gatelift.dev/fenced-after"
"""Which restore was known to who said so, by the `since` of the finding on `local`; none where none was."""

ANNOTATION_FENCE_REFUSED = "gatelift.dev/fence-refused"
"""Why a person's word was not taken: left by the manager in place of the word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedWord:
    """Nothing of a session up to `through` runs any more, says `who`; 0 is no session, or no number.

    `after`: the finding of a restore that was known to them, "" for none. What such a word says is said anew, whatever
    was said before: the restored record may hold a word of before what it has lost.
    """

    through: int
    who: str
    after: str = ""


def fence_wanted(found: WorkerCluster) -> int:
    """Return the session number of a person's *fenced*, 0 when there is none or it is no number."""
    return identity.number_in(found, ANNOTATION_FENCED_THROUGH)


def fence_author(found: WorkerCluster) -> str:
    """Return who said *fenced*, as the status can hold it."""
    who = found.metadata.annotations.get(ANNOTATION_FENCED_BY, "unknown")
    return plain(who, bounds.longest(WorkerClusterStatus, "fencedBy"))


def fence_finding(found: WorkerCluster) -> str:
    """Return which finding of a restore was known to who said *fenced*, as the status can hold it; "" for none."""
    return plain(
        found.metadata.annotations.get(ANNOTATION_FENCED_AFTER, ""), bounds.longest(WorkerClusterStatus, "fencedAfter")
    )


def said(found: WorkerCluster) -> FencedWord | None:
    """Return the word that waits for an answer."""
    if ANNOTATION_FENCED_THROUGH not in found.metadata.annotations:
        return None
    return FencedWord(through=fence_wanted(found), who=fence_author(found), after=fence_finding(found))


def counts(found: WorkerCluster, word: FencedWord, *, shown_lost: bool) -> bool:
    """Say whether a word is to be written: about the session that the status names, lost, and not said before."""
    return not _is_written(found, word) and not refusal(found, word, shown_lost=shown_lost)


def _is_written(found: WorkerCluster, word: FencedWord) -> bool:
    """Say whether the status says that already, and after the same finding: of a later one it is said anew."""
    status = found.status
    anew = word.after and (word.after != status.fenced_after or word.through > status.fenced_after_through)
    return 0 < word.through <= status.fenced_through_session and not anew


def refusal(found: WorkerCluster, word: FencedWord, *, shown_lost: bool) -> str:
    """Return why a word does not count, "" if it does or did."""
    name, session = found.metadata.name, found.status.session
    again = f"look at what runs there, then say it again: gatelift cluster fenced {name}"
    if _is_written(found, word):
        return ""
    if not word.through:
        return f"{ANNOTATION_FENCED_THROUGH}: is no session number of at most 18 digits; {again}"
    if word.through == identity.latest_doubt(found.status) - 1:
        # About the former cluster, or what this one has forgotten, while it is connected or lost. Where nothing was
        # missing it ends nothing, and answers a recovery for what the record has lost.
        return ""
    if not shown_lost:
        return f"Through session {word.through}: {name} is not lost, so nobody can know that; wait until it is"
    if word.through != session:
        return f"Through session {word.through}: {name} is lost in session {session}; {again}"
    return ""


def answer(write_id: int, found: WorkerCluster, *, shown_lost: bool) -> Patch:
    """Return the write that takes the word away, conditional on resourceVersion; a refused one leaves the reason."""
    word = said(found)
    text = refusal(found, word, shown_lost=shown_lost) if word is not None else ""
    annotations: dict[str, Any] = {ANNOTATION_FENCED_THROUGH: None, ANNOTATION_FENCED_BY: None}
    annotations |= {ANNOTATION_FENCED_AFTER: None, ANNOTATION_FENCE_REFUSED: text or None}
    metadata = {"uid": found.metadata.uid, "resourceVersion": found.metadata.resource_version}
    return Patch(
        write_id=write_id,
        ref=ObjectRef(WORKER_CLUSTER, ObjectKey("", found.metadata.name)),
        body=msgspec.json.encode({"metadata": {**metadata, "annotations": annotations}}),
    )
