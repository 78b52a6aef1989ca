"""How long that of which an inventory lists nothing may run by its grace (P10). Neighbours: `inventories`.

What vanished while no agent watched is known to no agent, so it waits for the nodes by the grace of a pod that does not
say one. When each node was heard of after that and a margin, each kubelet knows what is no longer there; one that was
given longer than that to stop may use all of it. Only the record says how long that is.
"""

from __future__ import annotations

from gatelift.core.dispatching import placing
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.state.core import Core
from gatelift.core.told import telling
from gatelift_wire.values.limits import GRACE_SECONDS, GRACE_SECONDS_MAX, KUBELET_MARGIN_SECONDS


def is_over(core: Core, attempt: Attempt, now: float) -> bool:
    """Say whether nothing of a placement can run that an inventory leaves out with all nodes heard of; tell if not."""
    grace = _longest_grace(core, attempt)
    if grace <= GRACE_SECONDS:
        return True
    if attempt.absent_until is None:
        until = now + grace + KUBELET_MARGIN_SECONDS
        attempt.absent(until)
        text = _text(attempt.cluster, grace, core.wall.text(until))
        if attempt.state is AttemptState.LOST:
            telling.unreachable(core, attempt, text)  # it was said why until now, and goes on for another reason
        placing.lose(core, attempt, text)
        core.placements.note(attempt.cluster)
    return attempt.absent_until is not None and attempt.absent_until <= now


def _text(cluster: str, seconds: float, until: str) -> str:
    return (
        f'Cluster "{cluster}" does not list it: it was removed there by somebody, and was given {seconds:g} s to stop. '
        f"It may be running and its quota stays charged until {until}"
    )


def _longest_grace(core: Core, attempt: Attempt) -> float:
    """Return the longest grace of a pod of a placement, in seconds, a year at most."""
    known = core.knowledge.workloads.get(attempt.workload)
    sets = known.spec.pod_sets if known is not None else ()
    graces = [each.template.spec.termination_grace_period_seconds or 0 for each in sets]
    return min(float(max(graces, default=0)), GRACE_SECONDS_MAX)
