"""The Commit of a work of several objects, and what the user's own objects at `local` need by what was admitted. Pure.

And what a report of one that is over is answered. Neighbours: `placing` sends it, `membership` says who joins and
leaves later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from gatelift.core import texts
from gatelift.core.dispatching import additions, fit
from gatelift.core.dispatching.uncounted import with_uncounted
from gatelift.core.records import given, record
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.records.knowledge import key_of
from gatelift.core.records.work import Owner, Work
from gatelift.core.rules import release
from gatelift.core.state.blobs import blob_hash
from gatelift.core.state.core import Core
from gatelift_kinds.shared.gathered import OVER_AT_HOME, Gathered, PlacedPart
from gatelift_kinds.shared.workload_document import needs_digest
from gatelift_kube.objects.core import PodSpec
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, ObjectTemplate, PodSetRequest


def order_of_all(core: Core, attempt: Attempt, work: Work, gathered: Gathered) -> tuple[Commit, tuple[bytes, ...]]:
    """Return the Commit of several objects, those that run and those that may be let go, and what it names by a digest.

    It may be that none is: all are over, or gone, and others are to come in their place, which then join (HD-410).
    """
    known = core.knowledge.workloads[attempt.workload]
    again = attempt.cluster != LOCAL_CLUSTER and attempt.state is not AttemptState.CHOSEN
    granted = record.granted(known)
    parts = gathered.there(granted) if again else _compared(gathered, gathered.parts(known, granted))
    checks = attempt.reserve.checks if attempt.reserve is not None else ()
    local = attempt.cluster == LOCAL_CLUSTER
    asked = fit.pod_set_requests(attempt, known)
    asked = additions.with_additions(asked if local else with_uncounted(core, asked, known), known, checks)
    objects, contents = templates(core, attempt, gathered, parts)
    if not local:
        asked, shapes = _with_shapes(core, attempt, asked, gathered)
        contents += shapes
    commit = Commit(
        key=attempt.key,
        kind=work.objects[0].kind.name,
        namespace=work.key.namespace,
        name=work.key.name,
        queue=known.spec.queue_name,
        objects=objects,
        pod_sets=with_needs(asked, known, gathered.needs) if local else asked,
        policy=attempt.policy,
        release=release.rule_of(core, known, attempt).value,
    )
    return commit, contents


def _with_shapes(
    core: Core, attempt: Attempt, pod_sets: tuple[PodSetRequest, ...], gathered: Gathered
) -> tuple[tuple[PodSetRequest, ...], tuple[bytes, ...]]:
    """Return the pod sets with what is declared of those whose pods a driver makes there, and that by its digest.

    For agents that take such pods in; to others it says nothing.
    """
    view = core.view(attempt.cluster)
    later = gathered.declared_later if view is not None and view.adopts else {}
    named = tuple(replace(one, shape=blob_hash(later[one.name])) if one.name in later else one for one in pod_sets)
    return named, tuple(later[one.name] for one in pod_sets if one.name in later)


def _compared(gathered: Gathered, parts: Sequence[PlacedPart]) -> tuple[PlacedPart, ...]:
    """Return who was compared with what there is quota for; the others join later, if they are like that."""
    return tuple(each for each in parts if not gathered.is_unread(each.called.uid))


def templates(
    core: Core, attempt: Attempt, gathered: Gathered, parts: Sequence[PlacedPart]
) -> tuple[tuple[ObjectTemplate, ...], tuple[bytes, ...]]:
    """Return objects as their cluster is told of them, and what they name by a digest; at `local` each by its UID.

    All of a placement bear one mark (`given`), over the place of its Workload: who is of it comes and goes.
    """
    if attempt.cluster == LOCAL_CLUSTER:
        known = core.knowledge.workloads[attempt.workload]
        mine = (
            ObjectTemplate(
                name=each.called.name,
                pod_set=each.pod_set,
                template=each.called.uid,
                joined=gathered.came_late(known, each.called.uid),
            )
            for each in parts
        )
        return tuple(mine), ()
    mark = core.links.given(attempt.cluster, attempt.key, attempt.workload.namespace, attempt.workload.name)
    objects: list[ObjectTemplate] = []
    marked: dict[bytes, bytes] = {}  # a thousand equal pods are marked once
    digests: dict[bytes, str] = {}
    for each in parts:
        part = gathered.travels_as(each.called.uid)
        if part is None:
            continue
        if part.metadata not in marked:
            marked[part.metadata] = given.with_mark(part.metadata, mark)
        for content in (part.spec, marked[part.metadata]):
            if content not in digests:
                digests[content] = blob_hash(content)
        objects.append(
            ObjectTemplate(
                name=part.name,
                pod_set=each.pod_set,
                template=digests[part.spec],
                marks=digests[marked[part.metadata]],
                uid=each.called.uid,
            )
        )
    return tuple(objects), tuple(digests)


def named(core: Core, work: Work, name: str, uid: str) -> Owner | None:
    """Return one of the objects by name and UID."""
    found = core.knowledge.owners.get(ObjectRef(work.id[0], ObjectKey(work.id[1], name)))
    return found if found is not None and found.object.metadata.uid == uid else None


def with_needs(
    pod_sets: tuple[PodSetRequest, ...], known: Workload, digest: Callable[[PodSpec], str] = needs_digest
) -> tuple[PodSetRequest, ...]:
    """Return the pod sets with what their pods need by what was admitted: the user's own object may have changed."""
    needs = {one.name: digest(one.template.spec) for one in known.spec.pod_sets}
    return tuple(replace(one, needs=needs.get(one.name, "")) for one in pod_sets)


def why_not_live(core: Core, cluster: str, key: PlacementKey) -> str:
    """Return the reason of a stop that answers a report: of what is over at home by several objects, that it is.

    Its agent may be behind, and would end objects that have come to their end.
    """
    known = core.knowledge.placed_workload(key.uid) if cluster == LOCAL_CLUSTER else None
    if known is None:
        return texts.NOT_LIVE
    kind, rec = core.knowledge.readings[key_of(known.metadata)]
    over = kind is not None and kind.gathers and rec.finished and rec.epoch == key.epoch
    return OVER_AT_HOME if over else texts.NOT_LIVE


def grace_of(owner: Owner | None) -> float | None:
    """Return how long an object's pod has for its end by what its user says, None where that is not known."""
    specs = owner.kind.specs(owner.object) if owner is not None else ()
    return next((float(each.termination_grace_period_seconds or 0) for each in specs), None)
