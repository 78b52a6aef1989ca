"""Which words about a placement are none: what a cluster said before causes nothing (decision 79). Pure.

Neighbours: `reports` asks for each.
"""

from __future__ import annotations

from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift_wire.values.messages import CountsReport, GatesLifted, Message


def is_none(attempt: Attempt, message: Message) -> bool:
    """Say whether a word of progress says what is known already of the placement.

    What leaves is said in seconds from now, and of what a driver has made some is counted by the word: both are news
    each time.
    """
    if isinstance(message, CountsReport):
        timed = message.leaving is not None or attempt.leave is not None
        return message == attempt.counts and not (timed or message.made_here)
    return isinstance(message, GatesLifted) and attempt.state is AttemptState.RUNNING and not _waits_at_gates(attempt)


def _waits_at_gates(attempt: Attempt) -> bool:
    """Say whether its cluster has told of gates at which a pod waits, which it has passed then."""
    return attempt.counts is not None and not attempt.counts.pod_sets and bool(attempt.counts.troubles)
