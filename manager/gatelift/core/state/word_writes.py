"""What the reports of one cluster may have written: half of all writes, while others write as well. Pure.

A worker may say of each of its placements in turn that it runs and that it does not: each change is a write, in the one
budget of all. What it causes has a line of its own; first come first served, its thousands would be before everybody's
next one. Who alone writes has all. Neighbours: `status_budget` (the line), `inflight` (counts what is out).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.inflight import ClusterWord
from gatelift.core.api.purposes import Purpose
from gatelift.core.api.status_budget import StatusBudget
from gatelift.core.records.attempts import Attempt
from gatelift_kube.values.resources import ObjectKey, Resource

if TYPE_CHECKING:
    from gatelift.core.state.core import Core

OUT_MAX = 128
"""Writes under way that follow one cluster's reports: half of those at which nothing more is decided."""
OUT_SHARED_MAX = 8
"""The same while others write. What a worker says at once falls due at once, and an API server that is given it at once
works through it before everybody's next write; eight of 50 ms still are its share of the writes a second."""
AGAIN_SHARED_MAX = 1
"""The same of what it says again. First runs and first ends are as many as its placements."""
SHARED_SECONDS = 10.0
"""For so long after others have written anything a cluster has its share alone."""
_OF_WORKLOADS = (Purpose.RECLAIM, Purpose.PODS_READY)
"""What is written of a Workload by the word of its cluster; of users' objects only how they are."""
CALL_SECONDS = 0.02
"""Between two calls of those who wait, so that one call is for some of them."""


@dataclass(slots=True)
class WordWrites:
    """By cluster: a line of what is said for the first time, and one of what is said again."""

    _lines: dict[ClusterWord, StatusBudget] = field(default_factory=dict)
    _shared_until: dict[str, float] = field(default_factory=dict)

    def line(self, word: ClusterWord, per_second: float) -> StatusBudget:
        """Return the line for a word, of a cluster whose share is so much."""
        found = self._lines.get(word)
        if found is None:
            saved = max(1.0, per_second)
            found = StatusBudget(per_second=per_second, saved_max=saved, out_max=OUT_MAX, tokens=saved, of_cluster=True)
            self._lines[word] = found
        return found

    def shares(self, cluster: str, now: float, *, others: bool) -> bool:
        """Say whether a cluster has its share alone; `others`: others write now."""
        if others:
            self._shared_until[cluster] = now + SHARED_SECONDS
        return now < self._shared_until.get(cluster, 0.0)

    def leave(self, cluster: str, key: Key, purpose: Purpose = Purpose.MIRROR) -> None:
        """Take that there is nothing to write any more."""
        for word in _words(cluster):
            if word in self._lines:
                self._lines[word].leave(WriteAsk(key, purpose, cluster))

    def ended(self, attempt: Attempt, resources: Iterable[Resource]) -> None:
        """Keep nothing of an attempt that is over: nobody asks for a write any more, so nobody would leave the line."""
        space = attempt.workload.namespace
        for purpose in _OF_WORKLOADS:
            self.leave(attempt.cluster, attempt.look, purpose)
        for resource in resources:
            for name in attempt.reports:
                self.leave(attempt.cluster, Key(Look.OWNER, ObjectKey(space, name), resource))

    def forget(self, cluster: str) -> None:
        """Keep nothing of a cluster."""
        for word in _words(cluster):
            self._lines.pop(word, None)
        self._shared_until.pop(cluster, None)


def may_write(core: Core, word: ClusterWord, key: Key, now: float, purpose: Purpose = Purpose.MIRROR) -> bool:
    """Say whether a write may go out that follows a cluster's word; if not, `key` is looked at in its turn."""
    line, cluster = _line(core, word), word.cluster
    shares = _allow(core, cluster, now)
    if not shares and not line.waiting and line.out < line.out_max:
        return True
    if line.ask(WriteAsk(key, purpose, cluster), now):
        return True
    core.agenda.wake(_look(cluster), now + CALL_SECONDS)
    return False


def call(core: Core, key: ObjectKey, now: float) -> None:
    """Look at those whose turn it is."""
    _allow(core, key.name, now)
    said, again = (_line(core, word) for word in _words(key.name))
    for each in said.call(now, most=said.out_max - said.out):
        core.agenda.mark(each.key)
    for each in again.call(now, most=again.out_max - again.out):
        core.agenda.mark_late(each.key)
    if said.waiting or again.waiting:
        core.agenda.wake(_look(key.name), now + CALL_SECONDS)


def _allow(core: Core, cluster: str, now: float) -> bool:
    """Work out how many of both lines may be under way now; say whether the cluster has its share alone.

    At each call, not only as somebody asks: who waits for what was under way then asks nobody until he is called. First
    words have room of their own besides what is said again.
    """
    said, again = (_line(core, word) for word in _words(cluster))
    out = said.out + again.out
    shares = core.words.shares(cluster, now, others=len(core.inflight.by_id) > out)
    said.allow(OUT_SHARED_MAX if shares else OUT_MAX - again.out)
    again.allow(AGAIN_SHARED_MAX if shares else OUT_MAX - OUT_SHARED_MAX - said.out)
    return shares


def _words(cluster: str) -> tuple[ClusterWord, ClusterWord]:
    return ClusterWord(cluster), ClusterWord(cluster, again=True)


def _line(core: Core, word: ClusterWord) -> StatusBudget:
    line = core.words.line(word, core.settings.words_per_second)
    line.counts(core.inflight.by_word[word])
    return line


def _look(cluster: str) -> Key:
    return Key(Look.WORDS, ObjectKey("", cluster))
