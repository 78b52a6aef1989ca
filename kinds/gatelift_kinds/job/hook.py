"""What an API server is to show the webhook of Jobs. Pure."""

from __future__ import annotations

import msgspec

from gatelift_kinds.job import partial as job_partial
from gatelift_kinds.job import template_before
from gatelift_kinds.shared import markers, placed_mark
from gatelift_kinds.shared.hooks import CheckedMeta, CorrectedChange, Hook

CONTROLLERS = frozenset(
    {
        "system:serviceaccount:kube-system:job-controller",
        "system:serviceaccount:openshift-infra:job-controller",
        "system:kube-controller-manager",  # where its controllers have no accounts of their own
    }
)
"""Who makes the pods of Jobs, by username; the policies of `deploy/policies` name the same ones."""


class _JobSpec(msgspec.Struct, rename="camel"):
    suspend: bool | None = None
    managed_by: str | None = None
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None


class _Job(msgspec.Struct):
    metadata: CheckedMeta | None = None
    spec: _JobSpec | None = None


def _started_by_hand() -> str:
    """Return the condition of a Job that somebody unsuspends, or of one that runs and is to be otherwise than let go.

    That is to replace its pods beside those that stop, or on other nodes, or to run more of them at once. Other nodes
    are asked about also as an update suspends it, and until its template is put back. All other changes of Jobs pass
    without being asked about.
    """
    sooner = f"{_replaced_when_ended('oldObject')} && !({_replaced_when_ended('object')})"
    elsewhere = " || ".join(_differs(f"spec.template.spec.{place}") for place in template_before.PLACES)
    note = job_partial.ANNOTATION_BEFORE
    lowered = f"has(oldObject.metadata.annotations) && '{note}' in oldObject.metadata.annotations"
    larger = f"({lowered} && ({' || '.join(_differs(f'spec.{field}') for field in job_partial.FIELDS)}))"
    started = f"!({_suspended('object')}) && ({_suspended('oldObject')} || ({sooner}) || {larger})"
    let_go = f"!({_suspended('oldObject')}) || {_placed('oldObject')}"
    return f"({started}) || (({let_go}) && ({elsewhere}))"


def _suspended(one: str) -> str:
    return f"(has({one}.spec.suspend) && {one}.spec.suspend == true)"


def _placed(one: str) -> str:
    """Return whether a Job's template has a placement's mark, so that a run of it is not put back yet."""
    tolerations = f"{one}.spec.template.spec.tolerations"
    return f"(has({tolerations}) && {tolerations}.exists(t, has(t.key) && t.key.contains('{placed_mark.DOMAIN}/')))"


def _differs(field: str) -> str:
    new, old = f"object.{field}", f"oldObject.{field}"
    return f"has({new}) != has({old}) || (has({new}) && {new} != {old})"


def _replaced_when_ended(one: str) -> str:
    policy = f"{one}.spec.podReplacementPolicy"
    return f"(has({policy}) && {policy} == '{markers.REPLACED_WHEN_ENDED}')"


HOOK = Hook(
    shape=_Job,
    put_right=(
        CorrectedChange(name="unsuspend", title="unsuspended-or-otherwise-than-let-go", expression=_started_by_hand()),
    ),
    controllers=CONTROLLERS,
)
