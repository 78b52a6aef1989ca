"""What a driver has made at a worker by itself, shown at home: an annotation on the Workload of its group. Pure.

It informs and moves nothing, at the pace of what only informs. Of the last placement it stays until the next one, so
that people see how that went, without those that ran or stopped as it was last heard of. Neighbours:
`conclusions.made_there` brings what was heard, `reconcile` calls.
"""

from __future__ import annotations

from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.purposes import Purpose
from gatelift.core.records import metadata_patches
from gatelift.core.state import api_requests
from gatelift.core.state.case import Case
from gatelift_kinds.shared import made_there


def show(case: Case) -> None:
    """Write on the Workload where they are, when that has changed."""
    core, known, rec, attempt, now = case.core, case.known, case.rec, case.attempt, case.now
    said, text = made_there.said(known), ""
    if attempt.live and attempt.counts is not None and not rec.finished:
        text = made_there.text(attempt.counts.made_here) or said
    elif said and not attempt.live and (rec.finished or not rec.reserved):
        text = made_there.at_rest(said)
    else:
        return
    if text == said or core.inflight.busy(rec.ref):
        return  # the answer marks it again
    asks = WriteAsk(attempt.look, Purpose.MADE_THERE, attempt.cluster)
    if core.resting.rests(rec.ref, asks.purpose, core.agenda, asks.key, now) or not core.may_inform(asks, now):
        return
    body = metadata_patches.noted(known.metadata, made_there.ANNOTATION, text or None)
    api_requests.patch_workload(core, known, body, Purpose.MADE_THERE, status=False)
