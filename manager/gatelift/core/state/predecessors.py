"""Who has to wait, since another run of an object of the same kind, namespace and name may still be under way (H21).

Such a predecessor is known in three ways. While its Workload is there, the Workload says so: our finalizer keeps it
until nothing of it runs. What a cluster lists and no Workload explains (`recovery`) holds its place, too. When the
Workload vanished all the same (somebody took the finalizer off), the placement is remembered in
`WorkerCluster.status.predecessors`, where users cannot take it away, until the cluster says that nothing of it runs
(R7), an inventory that proves it (R4) does not list it, or a person says fenced. Neighbours: `successors` says who
waits, `intake` tells of Workloads that vanish, `reports` and `inventories` bring the cluster's word.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from gatelift.core import texts
from gatelift.core.api import informing
from gatelift.core.api.user_objects import UserObject, made_for, members_of
from gatelift.core.clusters import foreign_runs
from gatelift.core.clusters.foreign_runs import ANY
from gatelift.core.records import given
from gatelift.core.records.gone import Evidence, Inventory, is_gone
from gatelift.core.state import few_lines
from gatelift_kube.objects.gatelift import Predecessor
from gatelift_kube.objects.gatelift_bounds import PREDECESSORS_MAX
from gatelift_kube.objects.kueue import Workload
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey, is_uid

if TYPE_CHECKING:
    from gatelift.core.records.attempts import Attempt
    from gatelift.core.state.core import Core

_Of = TypeVar("_Of", UserObject, str)

REMEMBERED_MAX = PREDECESSORS_MAX - 1
"""Vanished placements remembered per cluster, about 200 bytes each: a tenth of what one object may hold. Each means
that somebody went around a policy by hand; what comes above is remembered as one that stands for all objects."""

ENDED_MAX = 10_000
"""Ends that are remembered: a status that was written before them names them a little longer."""


@dataclass(slots=True)
class Memory:
    """One vanished placement. `session`: the last one in which its cluster is known to have had it."""

    place: UserObject
    key: PlacementKey
    session: int
    known: Evidence
    given: bool = False
    """Its cluster names it with our own mark: it was placed there, whatever settings say now (decision 36)."""
    queue: str = ""
    """In which ClusterQueue it is charged to its Workload, as long as that is there; "" where it is not."""
    members: tuple[UserObject, ...] = ()
    """Places of the objects of a work of several, which are held besides; the next leader knows of `place` alone."""


@dataclass(slots=True)
class Predecessors:
    """What is remembered, by cluster and by place."""

    by_cluster: dict[str, dict[PlacementKey, Memory]] = field(default_factory=dict)
    by_place: dict[UserObject, dict[tuple[str, PlacementKey], None]] = field(default_factory=dict)
    by_uid: dict[str, dict[tuple[str, PlacementKey], None]] = field(default_factory=dict)
    ended: dict[tuple[str, PlacementKey], None] = field(default_factory=dict)
    foreign: dict[str, frozenset[UserObject]] = field(default_factory=dict)
    """Cluster -> places that are taken by what another management cluster left there (`foreign_runs`)."""
    waiting: dict[str, dict[str, None]] = field(default_factory=dict)
    """Cluster -> UIDs of Workloads that say that they wait for what may run there, and how that cluster is reached."""
    unshown: set[str] = field(default_factory=set)
    """Clusters of which something else is remembered than is written down."""
    limits: dict[str, tuple[object, ...]] = field(default_factory=dict)
    """Cluster -> what a person says of where work may go there, as it was when those who wait were last looked at."""

    def put(self, cluster: str, memory: Memory) -> bool:
        """Remember; False when all of that is known."""
        memory = recordable(memory)
        of_cluster = self.by_cluster.setdefault(cluster, {})
        if len(of_cluster) >= REMEMBERED_MAX and memory.place != ANY:
            memory = _of_all(memory)
        known = of_cluster.get(memory.key)
        if known is not None:
            known.session, known.queue = max(known.session, memory.session), known.queue or memory.queue
            learnt, known.given = memory.given and not known.given, known.given or memory.given
            return learnt
        of_cluster[memory.key] = memory
        self.ended.pop((cluster, memory.key), None)
        for place in (memory.place, *memory.members):
            self.by_place.setdefault(place, {})[cluster, memory.key] = None
        self.by_uid.setdefault(memory.key.uid, {})[cluster, memory.key] = None
        return True

    def drop(self, cluster: str, key: PlacementKey) -> Memory | None:
        """Forget one that has ended; None when it was not known."""
        memory = self.by_cluster.get(cluster, {}).pop(key, None)
        if memory is None:
            return None
        if not self.by_cluster[cluster]:
            del self.by_cluster[cluster]
        for place in dict.fromkeys((memory.place, *memory.members)):
            _unindex(self.by_place, place, (cluster, key))
        _unindex(self.by_uid, memory.key.uid, (cluster, key))
        self.ended[cluster, key] = None
        if len(self.ended) > ENDED_MAX:
            del self.ended[next(iter(self.ended))]
        return memory

    def wait(self, cluster: str, uid: str) -> None:
        """Let a Workload wait for what may run at a cluster."""
        self.waiting.setdefault(cluster, {})[uid] = None

    def take_waiting(self, cluster: str) -> Iterable[str]:
        """Return, once, who waits for what may run at a cluster."""
        return self.waiting.pop(cluster, ())

    def wait_no_more(self, uid: str) -> None:
        """Forget who waited: its Workload is gone."""
        for cluster in [cluster for cluster, uids in self.waiting.items() if uid in uids]:
            del self.waiting[cluster][uid]
            if not self.waiting[cluster]:
                del self.waiting[cluster]

    def count(self, cluster: str) -> int:
        """Return how many placements of a cluster are remembered."""
        return len(self.by_cluster.get(cluster, ()))

    def unheard(self, cluster: str, through: int) -> int:
        """Return how many of them no session after `through` has shown."""
        return sum(memory.session <= through for memory in self.by_cluster.get(cluster, {}).values())

    def at(self, place: UserObject) -> tuple[tuple[str, PlacementKey], ...]:
        """Return (cluster, placement) of what may run in the place of an object."""
        if not self.by_place:
            return ()
        of_any_kind = _of_any_kind(place.namespace, place.name)
        return tuple(one for each in (place, of_any_kind, ANY) for one in self.by_place.get(each, ()))

    def limit(self, cluster: str, limits: tuple[object, ...] | None) -> bool:
        """Take what a person says of where work may go there, None: the cluster is gone; True when that is news."""
        before = self.limits.pop(cluster, None)
        if limits is None:
            return bool(before)
        self.limits[cluster] = limits
        return before is not None and before != limits

    def occupy(self, cluster: str, taken: frozenset[UserObject]) -> frozenset[UserObject]:
        """Take which places another management cluster's work has at a cluster; return those that it had before."""
        before = self.foreign.pop(cluster, frozenset())
        if taken:
            self.foreign[cluster] = taken
        return before

    def is_explained(self, cluster: str, key: PlacementKey) -> bool:
        """Say whether a placement is remembered as one whose Workload is known to have vanished."""
        memory = self.by_cluster.get(cluster, {}).get(key)
        return memory is not None and memory.place.kind != ANY.kind


def _unindex(index: dict[_Of, dict[tuple[str, PlacementKey], None]], of: _Of, one: tuple[str, PlacementKey]) -> None:
    index[of].pop(one)
    if not index[of]:
        del index[of]


def recordable(memory: Memory) -> Memory:
    """Return a memory as the record can hold it. A key that no Workload has says not whose place it takes: anybody's.

    Also where it were the record that is narrower than the wire: what may run is not dropped for what it is called.
    """
    if memory.place != ANY and not is_uid(memory.key.uid):
        return _of_all(memory)
    place = informing.recordable(memory.place)
    return memory if place == memory.place else replace(memory, place=place)


def _of_all(memory: Memory) -> Memory:
    return Memory(ANY, PlacementKey(ANY.name, 1), memory.session, memory.known)


def _of_any_kind(namespace: str, name: str) -> UserObject:
    """Return the place of what an inventory names, which says no kind."""
    return UserObject(ANY.kind, namespace, name)


# --- who is looked at again ---------------------------------------------------------------------------------------


def wake(core: Core, places: Iterable[UserObject]) -> None:
    """Look at those that may have waited for what has ended."""
    for place in places:
        kinds = [each.kind for each in core.kinds.resources] if place.kind == ANY.kind else [place.kind]
        for kind in kinds:
            for key in sorted(core.knowledge.by_place.get(UserObject(kind, place.namespace, place.name), ())):
                core.mark_workload(key)


def _wake_at(core: Core, place: UserObject) -> None:
    """Look at those whose place that is; `ANY`: at all, some in each call."""
    if place == ANY:
        core.mark_later(tuple(core.knowledge.workload_by_uid))
    else:
        wake(core, (place,))


def reach_changed(core: Core) -> None:
    """Look at all that may wait for a worker's word, since where work may go has changed (`successors`)."""
    if core.predecessors.foreign or any(place.kind == ANY.kind for place in core.predecessors.by_place):
        core.mark_later(tuple(core.knowledge.workload_by_uid))


def ended_for(core: Core, attempt: Attempt) -> None:
    """Look at those that waited for an attempt that is over, or whose Workload goes."""
    known = core.knowledge.workloads.get(attempt.workload)
    if known is not None:
        wake(core, places_of(core, known))


def places_of(core: Core, known: Workload) -> tuple[UserObject, ...]:
    """Return the places that a Workload's objects have: those of several where any is held by two."""
    return (*made_for(known), *(members_of(known) if core.knowledge.contested else ()))


# --- what is remembered -------------------------------------------------------------------------------------------


def vanished(core: Core, known: Workload, cluster: str, attempt: Attempt | None, key: PlacementKey) -> None:
    """Remember a placement whose Workload is gone though nobody said that nothing of it runs."""
    view = core.links.state(cluster)
    session = max(view.session if view is not None else 0, attempt.heard_session if attempt is not None else 0)
    facts = Evidence(written_revision=core.record_revision)
    if attempt is not None:
        facts = Evidence(
            written_revision=attempt.written_revision,
            commit_session=attempt.commit_session,
            commit_sequence=attempt.commit_sequence,
        )
    for place in made_for(known)[:1]:
        core.predecessors.put(cluster, Memory(place, key, session, facts, members=members_of(known)))
    text = f"its Workload is gone while it may run on cluster {cluster}; it is remembered until that is over"
    core.note(text, attempt, warning=True, cluster=cluster, fields=(("uid", key.uid),))
    show(core, cluster)


def left_alone(core: Core, cluster: str, entry: InventoryEntry) -> None:
    """Remember what runs and no Workload explains: who takes its place waits, whoever leads then.

    With the mark with which we gave it to that cluster it is not only the cluster's word (decision 36).
    """
    view = core.links.state(cluster)
    facts = Evidence(written_revision=core.record_revision)
    ours = given.is_ours(core.links.given(cluster, entry.key, entry.namespace, entry.name), entry.given)
    place = _of_any_kind(entry.namespace, entry.name)
    memory = Memory(place, entry.key, view.session if view is not None else 0, facts, ours)
    if core.predecessors.put(cluster, memory):
        core.mark_later((entry.key.uid,))
        kept = core.predecessors.by_cluster[cluster].get(memory.key)
        _wake_at(core, kept.place if kept is not None else ANY)  # who waits says so, also while all is halted (HD-246)
        if recordable(memory) is not memory:
            few_lines.note(core, cluster, texts.not_recordable(cluster, entry.key, f"{entry.namespace}/{entry.name}"))
        show(core, cluster)


def adopt(core: Core, cluster: str) -> None:
    """Take over what an earlier leader remembered of a cluster, and what its agent found there of other origins."""
    view = core.links.state(cluster)
    _adopt_foreign(core, cluster, foreign_runs.places(view.foreign) if view is not None else frozenset())
    if core.predecessors.limit(cluster, (view.allowed_namespaces, view.labels) if view is not None else None):
        reach_changed(core)
    for said in view.predecessors if view is not None else ():
        key = PlacementKey(said.workload_uid, said.epoch)
        if (cluster, key) not in core.predecessors.ended:
            place = UserObject(said.kind, said.namespace, said.name)
            facts = Evidence(written_revision=core.record_revision)
            memory = Memory(place, key, said.session, facts, said.given, said.cluster_queue)
            if core.predecessors.put(cluster, memory):
                core.placements.note(cluster)
                core.mark_later((said.workload_uid,))  # it is charged from now on


def charged_queue(core: Core, uid: str) -> str:
    """Return in which ClusterQueue a run of a Workload is remembered as charged, "" for none."""
    remembered = core.predecessors.by_uid.get(uid, {})
    queues = (core.predecessors.by_cluster[cluster][key].queue for cluster, key in remembered)
    return next(filter(None, queues), "")


def is_charged(core: Core, cluster: str, key: PlacementKey, queue: str) -> None:
    """Remember in which ClusterQueue a run is charged to its Workload: the next leader charges it there as well."""
    memory = core.predecessors.by_cluster[cluster][key]
    if queue and memory.queue != queue:
        memory.queue = queue
        show(core, cluster)


def _adopt_foreign(core: Core, cluster: str, taken: frozenset[UserObject]) -> None:
    free = core.predecessors.occupy(cluster, taken) - taken
    if ANY in free:
        core.mark_later(sorted(core.predecessors.take_waiting(cluster)))
    else:
        wake(core, sorted(free))


def ended(core: Core, cluster: str, key: PlacementKey) -> None:
    """Take the word that nothing of a placement runs."""
    memory = core.predecessors.drop(cluster, key)
    if memory is None:
        return
    if core.caution.lines.may(cluster):
        core.note("nothing of it runs any more; its successor may go on", cluster=cluster, fields=(("uid", key.uid),))
    if memory.place == ANY:
        core.mark_later(sorted(core.predecessors.take_waiting(cluster)))
    else:
        wake(core, (memory.place, *memory.members))
    show(core, cluster)


def compared(
    core: Core, cluster: str, listed: Collection[PlacementKey], facts: Inventory, *, unexplained: bool
) -> None:
    """Take what a complete inventory says: what it lists was there in its session, absence means gone under R4.

    `unexplained`: something is listed of which no Workload is known.
    """
    for memory in tuple(core.predecessors.by_cluster.get(cluster, {}).values()):
        if memory.key in listed or (memory.place == ANY and unexplained):
            memory.session = max(memory.session, facts.session)
        elif is_gone(replace(memory.known, heard_session=memory.session), facts):
            ended(core, cluster, memory.key)
    show(core, cluster)
    adopt(core, cluster)


def fenced(core: Core, cluster: str) -> None:
    """Take a person's word about the sessions through which nothing runs there any more."""
    view = core.view(cluster)
    through = view.fenced_through if view is not None else 0
    for memory in tuple(core.predecessors.by_cluster.get(cluster, {}).values()):
        if 0 < through >= memory.session:
            ended(core, cluster, memory.key)


def all_written(core: Core) -> bool:
    """Say whether all that is remembered of clusters stands in their status, where the next leader finds it."""
    for cluster, remembered in core.predecessors.by_cluster.items():
        view = core.links.state(cluster)
        if view is None:
            continue  # it has no WorkerCluster, and so no place for that
        if not remembered.keys() <= {PlacementKey(each.workload_uid, each.epoch) for each in view.predecessors}:
            return False
    return True


def show(core: Core, cluster: str) -> None:
    """Have what is remembered of a cluster written down as the call ends: one inventory may change hundreds."""
    core.predecessors.unshown.add(cluster)


def show_changed(core: Core) -> None:
    """Have it written to the WorkerClusters, where it outlives this process."""
    while core.predecessors.unshown:
        _show(core, core.predecessors.unshown.pop())


def _show(core: Core, cluster: str) -> None:
    remembered = core.predecessors.by_cluster.get(cluster, {})
    entries = tuple(
        Predecessor(
            kind=each.place.kind,
            namespace=each.place.namespace,
            name=each.place.name,
            workload_uid=each.key.uid,
            epoch=each.key.epoch,
            session=each.session,
            given=each.given,
            cluster_queue=each.queue,
        )
        for each in sorted(remembered.values(), key=lambda each: each.key)
    )
    over = frozenset(key for of, key in core.predecessors.ended if of == cluster)
    core.links.remember(cluster, entries, over)
    core.placements.note(cluster)
