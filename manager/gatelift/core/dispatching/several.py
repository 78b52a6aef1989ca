"""The Commit of a work of several objects, and what the user's own objects at `local` need by what was admitted. Pure.

Neighbour: `placing` sends it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gatelift.core.dispatching import additions, fit
from gatelift.core.records import record
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.work import Work
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import Gathered
from gatelift_kinds.shared.values import KindError
from gatelift_kinds.shared.workload_document import needs_digest
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.messages import Commit, ObjectTemplate, PodSetRequest


def order_of_all(core: Core, attempt: Attempt, work: Work, gathered: Gathered) -> Commit:
    """Return the Commit of several objects at `local`: those that run, and those that may be let go.

    KindError: none of them is there to be let go.
    """
    known = core.knowledge.workloads[attempt.workload]
    parts = gathered.parts(record.granted(known))
    if not parts:
        raise KindError("none of the objects is there to be started: make them anew")
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    asked = additions.with_additions(fit.pod_set_requests(attempt, known), known, checks)
    return Commit(
        key=attempt.key,
        kind=work.objects[0].kind.name,
        namespace=work.key.namespace,
        name=work.key.name,
        queue=known.spec.queue_name,
        objects=tuple(
            ObjectTemplate(name=one.called.name, pod_set=one.pod_set, template=one.called.uid, metadata=b"{}")
            for one in parts
        ),
        pod_sets=with_needs(asked, known, gathered.needs),
        policy=attempt.policy,
    )


def with_needs(
    pod_sets: tuple[PodSetRequest, ...], known: Workload, digest: Callable[[PodSpec], str] = needs_digest
) -> tuple[PodSetRequest, ...]:
    """Return the pod sets with what their pods need by what was admitted: the user's own object may have changed."""
    needs = {one.name: digest(one.template.spec) for one in known.spec.pod_sets}
    return tuple(replace(one, needs=needs.get(one.name, "")) for one in pod_sets)
