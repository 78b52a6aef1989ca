"""What stands on the WorkerCluster `local` about a restored management cluster: the manager's finding, a person's word.

Both are annotations, so that they outlive every leader: the finding halts all dispatch, and only the word that names
that very finding goes on. Pure. Neighbours: `recovery` decides; the CLI's `recover` reads the one and writes the other.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from gatelift_kube.deciding.election import FLOOR_MAX, TERM_BELIEVED_MAX
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER, WorkerCluster
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.plain_text import plain
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION_RECOVERY = "gatelift.dev/recovery"
"""On `local`, the manager's: what it found, and how far the recovery has come (`Told`)."""
ANNOTATION_RECOVER = "gatelift.dev/recover"
"""On `local`, a person's: go on after the finding that it names (`RecoverWord`)."""
ANNOTATION_STOP_UNEXPLAINED = "gatelift.dev/stop-unexplained"
"""On any WorkerCluster, a person's: the session in which it listed what no record explains, and what is to stop."""
ANNOTATION_RESTORED = "gatelift.dev/restored"
"""On `local`, a person's: the management cluster was restored, though no cluster that could prove it is heard. Any text
that was not said there before; it is taken off as soon as the finding that follows from it is written."""
SAID_CHARACTERS_MAX = 120
"""Of that text, by which it is known, and which people are shown: who said it, and when."""

EPOCHS_MAX = 10**15 - 1
"""What people may raise epochs to (15 digits); ours have three more."""
COUNTER_JUMP = 10**9
"""How far a recovery moves the counter above the highest that was shown: sixty years of renewals, so that whatever the
clusters hold that could not be asked is below it."""
TEXT_BYTES_MAX = 256 * 1024
"""Annotations of one object may have so much in all."""


COUNTER_FOUND_MAX = FLOOR_MAX - COUNTER_JUMP
"""What was found is never above this: what a recovery raises from there can be read, and so is above what was found."""
COUNTED_SINCE = COUNTER_JUMP // 2
"""A number so far above what a restore was found by was counted after a recovery from it: what was lost then is at most
thirty years of renewals above, and what came after begins at the jump."""


class RecoveryStage(enum.StrEnum):
    """How far a recovery has come."""

    HALTED = "halted"
    """Found; nothing is placed until a person says so."""
    WAITING = "waiting"
    """A person has said so; each cluster has to list what it has, or be declared fenced."""
    RAISING = "raising"
    """All are heard; the epochs of all Workloads are being raised."""
    DONE = "done"


class Finding(msgspec.Struct, frozen=True):
    """That the record is not the newest. `counter` and `term`: the highest that was proven. `since`: wall time.

    `said`: the person's text from which it follows, "" where a cluster has proven it.
    """

    why: str
    since: str
    counter: int
    term: int
    said: str = ""


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a cluster has, by its inventory of this term. `heard` false: that is not, or not all, known yet."""

    heard: bool = False
    listed: int = 0
    ahead: int = 0
    unexplained: int = 0
    unproven: bool = False
    """Its list proves nothing of what it does not name, by its agent's own word: another one is awaited."""
    gone: bool = False
    """Its WorkerCluster was deleted, or made anew, and what ran by way of that is not answered for."""
    uid: str = ""
    """Of the WorkerCluster that is asked about, while a finding stands; and by whom it was served (`Asked`)."""
    served: str = ""


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """The manager's annotation."""

    stage: RecoveryStage = RecoveryStage.DONE
    finding: Finding | None = None
    clusters: dict[str, Found] = {}
    waits: str = ""
    """Why nothing is placed, where that is no finding: for whom a leader waits that found an old Lease."""


class RecoverWord(msgspec.Struct, frozen=True):
    """A person's annotation: go on after the finding of `since`, with all epochs at `epochs` or above."""

    since: str
    epochs: int
    who: str = ""


def told(found: WorkerCluster) -> Told | None:
    """Return what a manager wrote; None for nothing, or for what is none of it."""
    text = found.metadata.annotations.get(ANNOTATION_RECOVERY, "")
    if not text or len(text) > TEXT_BYTES_MAX:
        return None
    try:
        read = msgspec.json.decode(text, type=Told)
    except UNREADABLE:
        return None
    finding = read.finding
    if finding is None:
        return read
    if finding.counter < 0 or finding.term < 0:
        return None
    counter, term = min(finding.counter, COUNTER_FOUND_MAX), believed(finding.term)
    return msgspec.structs.replace(read, finding=msgspec.structs.replace(finding, counter=counter, term=term))


def believed(term: int) -> int:
    """Return a term that stands somewhere, or is said; 0 for one that nobody can have come to."""
    return term if 0 < term <= TERM_BELIEVED_MAX else 0


def word(found: WorkerCluster) -> RecoverWord | None:
    """Return what a person wrote; None for nothing, or for what is no such word."""
    text = found.metadata.annotations.get(ANNOTATION_RECOVER, "")
    if not text or len(text) > TEXT_BYTES_MAX:
        return None
    try:
        read = msgspec.json.decode(text, type=RecoverWord)
    except UNREADABLE:
        return None
    return read if 0 < read.epochs <= EPOCHS_MAX else None


def said_restored(found: WorkerCluster) -> str:
    """Return what a person says of a restore that no cluster may have proven; "" for nothing."""
    return plain(found.metadata.annotations.get(ANNOTATION_RESTORED, ""), SAID_CHARACTERS_MAX).strip()


def is_told_to_stop(found: WorkerCluster) -> bool:
    """Say whether a person has said, of what it listed in its last session, that what nothing explains is to stop."""
    text = found.metadata.annotations.get(ANNOTATION_STOP_UNEXPLAINED, "")
    return 0 < (whole(text) or 0) == found.status.session


def floors(clusters: Iterable[WorkerCluster]) -> tuple[int, int]:
    """Return the term that the next one must exceed, and the counter from which it counts on, by what stands here."""
    terms, counter = [0], 0
    for found in clusters:
        terms.append(believed(found.status.term))
        if found.metadata.name == LOCAL_CLUSTER:
            read, said = told(found), word(found)
            finding = read.finding if read is not None else None
            if finding is not None and said is not None and said.since == finding.since:
                terms.append(finding.term)
                counter = finding.counter + COUNTER_JUMP
    return max(terms), counter


def is_fenced(found: WorkerCluster, finding: Finding) -> bool:
    """Say whether a person's word covers all that was ever placed there, said since that restore was found.

    One of before may be of before the backup, too: the cluster may have come back after it, in what was lost. The word
    names the finding that was known to who said it, so no clock decides.
    """
    said = found.status
    return said.fenced_after == finding.since and said.fenced_after_through >= said.session
