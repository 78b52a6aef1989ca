"""What a cluster says of pods that a driver has made there by itself: they count for the end of their group. Pure.

Each of these that was ended beyond the count is counted as rejected. Neighbours: `reports` brings the counts,
`membership` has the group take them, `told.made_there` shows them.
"""

from __future__ import annotations

from dataclasses import replace

from gatelift.core.dispatching import membership
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import NOBODYS
from gatelift.core.state.core import Core
from gatelift.core.told import pod_moments
from gatelift_wire.values.messages import CountsReport


def count(core: Core, attempt: Attempt, said: CountsReport) -> None:
    """Take how many there are, before `attempt` notes what was said."""
    known = core.knowledge.workloads.get(attempt.workload)
    work = core.knowledge.work_of(known) if known is not None else NOBODYS
    if known is None or not said.made_here or not membership.is_elsewhere(work, attempt):
        return
    membership.made_there(core, attempt, work, tuple(replace(one, rejected=0) for one in said.made_here))
    pod_moments.rejected_elsewhere(core, known, attempt, said, attempt.counts)
