"""What of a Job stays as it was when its run began (`fixed`). Pure. Neighbour: `rules`.

With how few pods a Job may do was asked when its quota was given, wherever it runs.
"""

from __future__ import annotations

from gatelift_kinds.shared import fixed, markers, rules
from gatelift_kinds.shared.review import HeldChange
from gatelift_kinds.shared.rules import Object, annotation

FIELDS = ("activeDeadlineSeconds", "backoffLimit", "maxFailedIndexes")
"""Of the spec: what an API server lets anybody change while a Job runs, and only the worker's Job controller reads."""
RUNS_ELSEWHERE = fixed.RUNS_ELSEWHERE.format(
    kind="Job", way_out="suspend it first, and it is queued again as it is then; or make a new Job"
)
RUNS = "is immutable while the Job runs: suspend it first"


def changes(old: Object, new: Object) -> tuple[HeldChange, ...]:
    """Return what is changed that a run takes no notice of; of the spec, where no controller of this cluster acts."""
    elsewhere = fixed.spec_of(new).get("managedBy") == markers.MULTIKUEUE_MANAGER
    found = fixed.changed_fields(old, new, FIELDS if elsewhere else (), RUNS_ELSEWHERE)
    name = markers.JOB_MIN_PARALLELISM
    before, after = rules.notes(old).get(name), rules.notes(new).get(name)
    if before == after:
        return found
    return (*found, HeldChange(path=annotation(name), value=fixed.shown(after), text=RUNS))
