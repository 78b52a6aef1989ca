"""Who waits for a predecessor (H21), and how far one worker's word about predecessors reaches. Decides nothing else.

What the own record says of a place (its Workloads, what vanished of them) holds that place whatever cluster it was on.
What a *worker* says is there holds others' work only as far as it could be true, by what persons have written down:

- what it names with the mark with which we gave it (`given`) holds that one object, whatever settings are now;
- what it names without holds that one object, where `spec.allowedNamespaces` lets work of its namespace go to that
  worker and some queue of the namespace dispatches to workers at all;
- what it only counts holds work whose own queue may dispatch to that very worker.

So no worker's own word reaches a namespace whose work runs at home, and a count reaches no other worker's work.
Decisions 30 and 36 say what that leaves open. Neighbours: `predecessors` (what is known), `targets.targets` (where a
queue leads).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from gatelift.core import texts
from gatelift.core.api.user_objects import UserObject, made_for, members_of
from gatelift.core.clusters.foreign_runs import ANY
from gatelift.core.records.attempt_states import AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import successor_texts, targets
from gatelift.core.state.core import Core
from gatelift.core.state.predecessors import Memory
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import LocalQueue, Workload
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import ANNOTATION_CLUSTER, PlacementKey


class Holder(NamedTuple):
    """Where what holds a place may run. `key`: its placement; None: it is another management cluster's."""

    place: UserObject
    cluster: str
    key: PlacementKey | None = None


def waits(core: Core, known: Workload) -> tuple[str, str] | None:
    """Return reason and message of a Workload that has to wait for a predecessor; None: there is none."""
    held = _holder(core, known)
    if held is None:
        return None
    if held.key is None:
        return texts.PREDECESSOR_FOREIGN, successor_texts.predecessor_foreign(*held.place, held.cluster)
    return _said(core, held.place, held.cluster, held.key)


def follow(core: Core, known: Workload) -> None:
    """Have a Workload that waits for a predecessor looked at again when that one's cluster comes or goes."""
    held = _holder(core, known)
    if held is not None:
        core.predecessors.wait(held.cluster, known.metadata.uid)


def _holder(core: Core, known: Workload) -> Holder | None:
    for place in made_for(known):
        beside = core.knowledge.by_place.get(place, ())
        live = _first_live(core, known, place, beside) if len(beside) > 1 else None
        if live is not None:
            return Holder(place, live.cluster, live.key)
        remembered = _remembered(core, known, place) if core.predecessors.by_place else None
        if remembered is not None:
            return remembered
        for cluster, taken in core.predecessors.foreign.items():
            named = place in taken and may_be_named(core, place.namespace, cluster)
            if named or (ANY in taken and _may_go(core, known, cluster)):
                return Holder(place, cluster)
    return _holder_of_member(core, known) if core.knowledge.contested or core.predecessors.by_place else None


def _holder_of_member(core: Core, known: Workload) -> Holder | None:
    """Return what holds the place of one of several objects, where any place is held at all: each is looked at."""
    for place in members_of(known):
        beside = core.knowledge.by_place.get(place, ()) if place in core.knowledge.contested else ()
        lost = _first_live(core, known, place, beside) if beside else None
        if lost is not None:
            return Holder(place, lost.cluster, lost.key)
        remembered = _remembered(core, known, place)
        if remembered is not None:
            return remembered
    return None


def _remembered(core: Core, known: Workload, place: UserObject) -> Holder | None:
    for cluster, placed in core.predecessors.at(place):
        if _holds(core, known, cluster, placed):
            return Holder(place, cluster, placed)
    return None


def _first_live(core: Core, known: Workload, place: UserObject, keys: Collection[ObjectKey]) -> Attempt | None:
    """Return what is placed of other Workloads of a place, of the first by its name: there may be thousands of them.

    By the place of one of several objects only what nobody hears of: who has gone of a work that runs is known there.
    """
    own = place in made_for(known)
    placed_uid = core.knowledge.placed_uid
    found: Attempt | None = None
    for key in keys:
        other = core.knowledge.workloads[key]
        attempt = core.attempts.get(other.metadata.uid)
        is_first = found is None or key < found.workload
        if other is known or attempt is None or not attempt.live or not is_first:
            continue
        if placed_uid(other.metadata.uid) == placed_uid(known.metadata.uid):
            continue  # it runs on, as a slice of which this is the next one
        if attempt.state is AttemptState.LOST or (own and place in made_for(other)):
            found = attempt
    return found


def own_runs(core: Core, known: Workload) -> Iterator[tuple[str, PlacementKey]]:
    """Yield where each own run is that is remembered and holds a Workload, which does not explain it."""
    for each in tuple(core.predecessors.by_uid.get(known.metadata.uid, ())):
        if _holds(core, known, *each):
            yield each


def proved_runs(core: Core, known: Workload) -> Iterator[tuple[str, PlacementKey]]:
    """Yield those of its own runs of which not a cluster alone says that they are there."""
    for cluster, placed in own_runs(core, known):
        memory = core.predecessors.by_cluster[cluster][placed]
        if cluster == LOCAL_CLUSTER or memory.given or memory.queue or memory.place.kind != ANY.kind:
            yield cluster, placed


def _holds(core: Core, known: Workload, cluster: str, placed: PlacementKey) -> bool:
    if placed.uid == known.metadata.uid and _explains(core, known, placed):
        return False
    return _reaches(core, known, cluster, core.predecessors.by_cluster[cluster][placed])


def _explains(core: Core, known: Workload, placed: PlacementKey) -> bool:
    """Say whether a Workload is placed as its own run that was remembered: another backup has it, or knows of later."""
    attempt = core.attempts.get(known.metadata.uid)
    return attempt is not None and attempt.live and attempt.epoch >= placed.epoch


def _said(core: Core, place: UserObject, cluster: str, key: PlacementKey) -> tuple[str, str]:
    view = core.links.state(cluster)
    if view is not None and view.session:
        if key in core.caution.recovery.unexplained.get(cluster, {}):
            return texts.PREDECESSOR_NOT_STOPPED, successor_texts.predecessor_unexplained(*place, cluster)
        return texts.PREDECESSOR_NOT_STOPPED, successor_texts.predecessor_stopping(*place, cluster, key.epoch)
    return texts.PREDECESSOR_UNREACHABLE, successor_texts.predecessor_unreachable(*place, cluster, key.epoch)


# --- how far a worker's word reaches ------------------------------------------------------------------------------


def _reaches(core: Core, known: Workload, cluster: str, memory: Memory) -> bool:
    """Say whether what is remembered holds a Workload: the own record always, a worker's word as far as it reaches."""
    place = memory.place
    if memory.queue and memory.key.uid == known.metadata.uid:  # it was believed, whatever becomes of its queue
        return True
    if memory.given:  # the own record, which came back from the worker in our own hand
        return True
    if place == ANY:
        return cluster == LOCAL_CLUSTER or _may_go(core, known, cluster)
    if place.kind == ANY.kind:  # an inventory says no kind
        return cluster == LOCAL_CLUSTER or may_be_named(core, place.namespace, cluster)
    return True


def _allows(core: Core, namespace: str, cluster: str) -> bool:
    view = core.links.state(cluster)
    return view is None or not view.allowed_namespaces or namespace in view.allowed_namespaces


def may_be_named(core: Core, namespace: str, cluster: str) -> bool:
    """Say whether an object of this namespace may be what a worker names: its work goes to workers, and to this one."""
    if not _allows(core, namespace, cluster):
        return False
    queues = (queue for key, queue in core.knowledge.local_queues.items() if key.namespace == namespace)
    return any(targets.multikueue_check(core, _checks(core, queue)) for queue in queues)


def _may_go(core: Core, known: Workload, cluster: str) -> bool:
    """Say whether a Workload may be placed on this very worker, as its queue and its user say."""
    if not _allows(core, known.metadata.namespace, cluster):
        return False
    owner = core.knowledge.work_of(known).stands_for_all
    only = owner.object.metadata.annotations.get(ANNOTATION_CLUSTER, "") if owner is not None else ""
    if only not in {"", cluster}:
        return False
    queue = core.knowledge.local_queues.get(ObjectKey(known.metadata.namespace, known.spec.queue_name))
    return queue is not None and cluster in targets.targets(core, _checks(core, queue)).clusters


def _checks(core: Core, queue: LocalQueue) -> tuple[str, ...]:
    found = core.knowledge.cluster_queues.get(queue.spec.cluster_queue)
    strategy = found.spec.admission_checks_strategy if found is not None else None
    return tuple(rule.name for rule in strategy.admission_checks) if strategy is not None else ()
