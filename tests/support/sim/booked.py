"""What a leader has taken as given back before it stands in the record: others may be granted that by then (KEP-78).

The record is written later, and a leader that dies may leave others' grants there without it. So what an epoch was
charged at the least for what is granted to it, by the books of whoever had heard its cluster, is remembered: fewer may
be said to be over later, and what others were granted meanwhile stays theirs (decision 84). The account compares that
with what runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gatelift.core.records import record
from gatelift.core.records.attempt_states import LIVE, AttemptState
from gatelift.core.state.core import Core

_CHARGED = LIVE | {AttemptState.ENDED}
"""What has ended is charged until that is written."""


class Booked:
    """The lowest word of the books, by workload and epoch."""

    def __init__(self) -> None:
        self._charged: dict[tuple[str, int], int] = {}
        self._of: dict[tuple[str, int], dict[str, int]] = {}
        """What was granted then, by pod set: of another size it says nothing."""

    def look(self, cores: Iterable[Core]) -> Mapping[tuple[str, int], int]:
        """Take what is charged now; return that of each epoch, by (workload, epoch), that has given something back."""
        for core in cores:
            for attempt in core.attempts.values():
                of = attempt.uid, attempt.epoch
                known = core.knowledge.workloads.get(attempt.workload)
                gathers = known is not None and core.knowledge.work_of(known).gathered is not None
                heard = attempt.state in _CHARGED and attempt.counts is not None
                if heard and known is not None and (attempt.given_back or of in self._charged):
                    now, granted = sum(core.ledger.usage(attempt.uid).values()), record.granted(known)
                    before = self._charged.get(of, now) if self._of.get(of) == granted else now
                    self._charged[of], self._of[of] = min(before, now), granted
                elif gathers and attempt.given_back:  # by what its pods show, until this leader has heard their worker
                    now = sum(core.ledger.usage(attempt.uid).values())
                    self._charged[of] = min(self._charged.get(of, now), now)
        return self._charged
