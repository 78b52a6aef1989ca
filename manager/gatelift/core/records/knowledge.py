"""What the machine knows of the management cluster's objects: caches with the indexes that reconciling needs.

Kept up by watch events and by the answers to our own writes, whichever is newer. Holds no decisions. Neighbours:
`intake` feeds it; `owners`, `reconcile`, `checks` read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gatelift.core.api.user_objects import Name, UserObject, is_of_members, made_for, members_of, names_of
from gatelift.core.records.chains import SliceIndex
from gatelift.core.records.record import Record
from gatelift.core.records.work import Owner, Work, Works
from gatelift_kinds.kind import Kind
from gatelift_kinds.registry import Registry
from gatelift_kube.deciding.writes import KubeObject
from gatelift_kube.objects.core import Namespace, PriorityClass
from gatelift_kube.objects.kueue import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    MultiKueueConfig,
    ResourceFlavor,
    Workload,
    WorkloadPriorityClass,
)
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.objects.versions import newer
from gatelift_kube.values import resources
from gatelift_kube.values.resources import MULTIKUEUE_CONFIG, WORKLOAD, ObjectKey, ObjectRef

Reading = tuple[Kind[Any] | None, Record]
Names = tuple[Name, ...]

Surrounding = (
    ClusterQueue
    | LocalQueue
    | Cohort
    | ResourceFlavor
    | AdmissionCheck
    | MultiKueueConfig
    | Namespace
    | WorkloadPriorityClass
    | PriorityClass
)
"""What Workloads depend on, and is kept as it was last seen."""


def key_of(metadata: ObjectMeta) -> ObjectKey:
    """Return where the object lives."""
    return ObjectKey(metadata.namespace, metadata.name)


def ref_of(workload: Workload) -> ObjectRef:
    """Return where a Workload lives."""
    return ObjectRef(WORKLOAD, key_of(workload.metadata))


@dataclass(slots=True)
class Knowledge:
    """Caches by key. Only this module writes it.

    `workload_by_uid`, `by_place`, `by_queue`, `by_class` are indexes over `workloads`; `works` joins them and `owners`.

    `readings`: the kind of a Workload's owner (None: of none that travels), and the record, read once for each version.
    `names`: by a Workload's UID whose it says it is, of what travels. `departed`: UIDs of Workloads that are gone, and
    `departed_objects`: users' objects, by all that names them: a word about an object silences no Workload.
    """

    kinds: Registry = field(default_factory=Registry)
    workloads: dict[ObjectKey, Workload] = field(default_factory=dict)
    readings: dict[ObjectKey, Reading] = field(default_factory=dict)
    workload_by_uid: dict[str, ObjectKey] = field(default_factory=dict)
    by_place: dict[UserObject, set[ObjectKey]] = field(default_factory=dict)
    contested: set[UserObject] = field(default_factory=set)
    """Places of more than one Workload, those of the objects of works of several included."""
    by_queue: dict[ObjectKey, set[ObjectKey]] = field(default_factory=dict)
    by_class: dict[str, set[ObjectKey]] = field(default_factory=dict)
    owners: dict[ObjectRef, Owner] = field(default_factory=dict)
    works: Works = field(default_factory=Works)
    slices: SliceIndex = field(default_factory=SliceIndex)
    local_queues: dict[ObjectKey, LocalQueue] = field(default_factory=dict)
    cluster_queues: dict[str, ClusterQueue] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    checks: dict[str, AdmissionCheck] = field(default_factory=dict)
    configs: dict[str, MultiKueueConfig] = field(default_factory=dict)
    namespaces: dict[str, Namespace] = field(default_factory=dict)
    workload_classes: dict[str, WorkloadPriorityClass] = field(default_factory=dict)
    pod_classes: dict[str, PriorityClass] = field(default_factory=dict)
    names: dict[str, Names] = field(default_factory=dict)
    moved: list[Owner] = field(default_factory=list)
    """Objects that came to another work, or back to the one that they say, by a Workload: they are to be looked at."""
    departed: dict[str, None] = field(default_factory=dict)
    departed_objects: dict[Name, None] = field(default_factory=dict)

    def at(self, ref: ObjectRef) -> KubeObject | None:
        """Return what is known to be there, of the resources that are written."""
        match ref.resource:
            case resources.WORKLOAD:
                return self.workloads.get(ref.key)
            case resources.CLUSTER_QUEUE:
                return self.cluster_queues.get(ref.key.name)
            case resources.LOCAL_QUEUE:
                return self.local_queues.get(ref.key)
            case resources.COHORT:
                return self.cohorts.get(ref.key.name)
            case resources.ADMISSION_CHECK:
                return self.checks.get(ref.key.name)
            case resources.RESOURCE_FLAVOR:
                return self.flavors.get(ref.key.name)
        owner = self.owners.get(ref)
        return owner.object if owner is not None else None

    def config_of(self, check: AdmissionCheck) -> MultiKueueConfig | None:
        """Return the MultiKueueConfig that a check names, None if it names none, or an object of another kind."""
        named = check.spec.parameters
        wanted = (MULTIKUEUE_CONFIG.group, MULTIKUEUE_CONFIG.kind)
        if named is None or (named.api_group, named.kind) != wanted:
            return None
        return self.configs.get(named.name)

    def put(self, seen: Surrounding) -> None:
        """Keep what Workloads depend on, as it is now."""
        self._cache_of(seen)[_cached_as(seen)] = seen

    def drop(self, last: Surrounding) -> None:
        """Forget what Workloads depended on, and is gone."""
        self._cache_of(last).pop(_cached_as(last), None)

    def _cache_of(self, seen: Surrounding) -> dict[Any, Any]:
        caches: dict[type[Surrounding], dict[Any, Any]] = {
            ClusterQueue: self.cluster_queues,
            LocalQueue: self.local_queues,
            Cohort: self.cohorts,
            ResourceFlavor: self.flavors,
            AdmissionCheck: self.checks,
            MultiKueueConfig: self.configs,
            Namespace: self.namespaces,
            WorkloadPriorityClass: self.workload_classes,
            PriorityClass: self.pod_classes,
        }
        return caches[type(seen)]

    def put_workload(self, workload: Workload, reading: Reading, names: Names = (), *, again: bool = False) -> bool:
        """Keep a Workload with its reading; False when what is known is as new or newer, also that it is gone.

        `names`: whose it says it is. `again`: also when it is known, of a try that came to no end.
        """
        rec = reading[1]
        key = rec.ref.key
        if workload.metadata.uid in self.departed:
            return False
        known = self.workloads.get(key)
        before = (known.metadata, self._work_placed(key)) if known is not None and not again else None
        if known is not None:
            if not (again or newer(workload.metadata, known.metadata)):
                return False
            if not again and self._stands_alike(known, workload, rec, names):
                self.workloads[key] = workload
                self.readings[key] = reading
                return True
            self._unindex(key, known)
        self.workloads[key] = workload
        self.readings[key] = reading
        self._index(key, workload, names, placed=bool(rec.cluster))
        self._settle(key, before)
        return True

    def _stands_alike(self, known: Workload, workload: Workload, rec: Record, names: Names) -> bool:
        """Say whether all indexes have a version of a Workload as they have the one before it: as nearly always."""
        meta, spec, before = known.metadata, known.spec, self.readings[rec.ref.key][1]
        return (
            meta.uid == rec.uid
            and spec.queue_name == workload.spec.queue_name
            and spec.priority_class_ref == workload.spec.priority_class_ref
            and (not before.cluster, before.finished) == (not rec.cluster, rec.finished)
            and meta.owner_references == workload.metadata.owner_references
            and self.names.get(rec.uid) == names
        )

    def _index(self, key: ObjectKey, workload: Workload, names: Names, *, placed: bool) -> None:
        self.workload_by_uid[workload.metadata.uid] = key
        self.names[workload.metadata.uid] = names
        self.works.put_workload(key, names, placed=placed)
        for place in (*made_for(workload), *members_of(workload)):
            there = self.by_place.setdefault(place, set())
            there.add(key)
            if len(there) > 1:
                self.contested.add(place)
        queue = ObjectKey(key.namespace, workload.spec.queue_name)
        self.by_queue.setdefault(queue, set()).add(key)
        if workload.spec.priority_class_ref is not None:
            self.by_class.setdefault(workload.spec.priority_class_ref.name, set()).add(key)

    def drop_workload(self, key: ObjectKey) -> Workload | None:
        """Forget a Workload; remember for a while that it was here and went (see `saw_go`)."""
        known = self.workloads.get(key)
        if known is None:
            return None
        self._unindex(key, known)
        self.has_gone(known.metadata.uid)
        self.slices.drop(known.metadata.uid)
        # Last, and nothing here raises: until then it can be dropped again.
        self.readings.pop(key, None)
        self.names.pop(known.metadata.uid, None)
        del self.workloads[key]
        return known

    def has_gone(self, uid: str) -> None:
        """Remember that no Workload of this UID is there: it was seen to go."""
        self.departed[uid] = None
        if len(self.departed) > DEPARTED_MAX:
            del self.departed[next(iter(self.departed))]

    def object_has_gone(self, name: Name) -> None:
        """Remember that no such object of a user is there: it was seen to go, or read and not found.

        It may also say that it is none of ours any more.
        """
        self.departed_objects[name] = None
        if len(self.departed_objects) > DEPARTED_MAX:
            del self.departed_objects[next(iter(self.departed_objects))]

    def saw_go(self, uid: str) -> bool:
        """Say whether a Workload of this UID is gone: its absence is a fact, not a lag."""
        return uid in self.departed

    def saw_object_go(self, name: Name) -> bool:
        """Say whether such an object of a user is gone: its absence is a fact, not a lag."""
        return name in self.departed_objects

    def workload_of(self, uid: str) -> Workload | None:
        """Return the Workload of a UID."""
        key = self.workload_by_uid.get(uid)
        return self.workloads.get(key) if key is not None else None

    def placed_workload(self, uid: str) -> Workload | None:
        """Return the Workload on which a placement of this UID stands: of a chain, its record."""
        return self.workload_of(self.slices.holder(uid))

    def placed_uid(self, uid: str) -> str:
        """Return the UID by which what a Workload stands for is placed: of the first slice of its chain, or its own."""
        return self.slices.chain_uid(uid)

    def _unindex(self, key: ObjectKey, known: Workload) -> None:
        self.workload_by_uid.pop(known.metadata.uid, None)
        self.works.drop_workload(key, self.names.get(known.metadata.uid, ()))
        for place in (*made_for(known), *members_of(known)):
            _discard(self.by_place, place, key)
            if len(self.by_place.get(place, ())) < 2:
                self.contested.discard(place)
        _discard(self.by_queue, ObjectKey(key.namespace, known.spec.queue_name), key)
        if known.spec.priority_class_ref is not None:
            _discard(self.by_class, known.spec.priority_class_ref.name, key)

    def put_owner(self, owner: Owner, *, again: bool = False) -> bool:
        """Keep a user's object; False when what is known is as new or newer. `again`: see `put_workload`."""
        known = self.owners.get(owner.ref)
        if known is not None and not again and not newer(owner.object.metadata, known.object.metadata):
            return False
        self._hold(owner, known)
        self.works.put_object(owner, known)
        self.owners[owner.ref] = owner
        return True

    def _hold(self, owner: Owner, known: Owner | None) -> None:
        """Keep an object in the work of several that it runs for, or may, whatever it says since (HD-422).

        Else it would run once more, for the work that it names now. Who leads when it says so knows it from before; the
        next one by the Workload that has a winner and names it as an owner, by its UID.
        """
        held = self._works_on(owner, known)
        kind = next((each for each in self.kinds if each.resource == owner.ref.resource and each.gathers), None)
        if held is not None and held != owner.work and kind is not None:
            owner.hold(held, kind)

    def _works_on(self, owner: Owner, known: Owner | None) -> Name | None:
        meta = owner.object.metadata
        if known is not None and known.object.metadata.uid == meta.uid and known.work != owner.work:
            whole = self.works.of_object(known.name)
            if whole is not None and whole.gathered is not None and whole.gathered.has_run(meta.uid):
                return whole.id
        place = UserObject(owner.ref.resource.kind, meta.namespace, meta.name)
        for key in sorted(self.by_place.get(place, ())):
            work = self._work_placed(key)
            if work is None or work == owner.work:
                continue
            if any(one.uid == meta.uid for one in self.workloads[key].metadata.owner_references):
                return work
        return None

    def _work_placed(self, key: ObjectKey) -> Name | None:
        """Return the work of several of a Workload that has a winner."""
        rec = self.readings[key][1]
        names = self.names.get(rec.uid, ())
        placed = rec.cluster and not rec.finished and len(names) == 1 and "/" in names[0][3]
        return names[0] if placed else None

    def _settle(self, key: ObjectKey, before: tuple[ObjectMeta, Name | None] | None) -> None:
        """Put objects that a Workload names where they belong, now that it has a winner, or has none any more.

        `before`: as it was, and whose with a winner. Where that is the same only who is named since is looked at.
        """
        names, meta = self.names.get(self.readings[key][1].uid, ()), self.workloads[key].metadata
        if len(names) != 1 or not is_of_members(self.workloads[key]):
            return
        work, named = self._work_placed(key), set(meta.owner_references)
        if before is not None and (before[0].uid, before[1]) == (meta.uid, work):
            named -= set(before[0].owner_references)
        for one in sorted(named, key=lambda each: each.uid):
            known = self.owners.get(ObjectRef(names[0][0], ObjectKey(key.namespace, one.name)))
            if known is None or known.object.metadata.uid != one.uid:
                continue
            if known.held if work is None else known.work != work:
                self._put_anew(known)

    def take_moved(self) -> list[Owner]:
        """Return the objects that came to another work since this was asked last."""
        there, self.moved = self.moved, []
        return there

    def _put_anew(self, known: Owner) -> None:
        kind = self.kinds.of(known.ref.resource, known.object)
        owner = Owner(kind if kind is not None else known.kind, known.object, known.raw)
        self._hold(owner, known)
        if owner.work != known.work:
            self.works.put_object(owner, known)
            self.owners[owner.ref] = owner
            self.moved.append(owner)

    def is_alone(self, before: Owner, owner: Owner, workload: ObjectKey) -> None:
        """Keep a user's object as one of another kind, of which there is one in a work, and its Workload as of that."""
        self.works.drop_object(before)
        self.works.put_object(owner, None)
        self.owners[owner.ref] = owner
        self.readings[workload] = owner.kind, self.readings[workload][1]

    def drop_owner(self, ref: ObjectRef, uid: str) -> Owner | None:
        """Forget a user's object, if it is still the one with this UID."""
        known = self.owners.get(ref)
        if known is None or known.object.metadata.uid != uid:
            return None
        self.works.drop_object(known)
        return self.owners.pop(ref)

    def work_of(self, workload: Workload) -> Work:
        """Return the work of a Workload: it has no objects where those are gone, or where it was made for none."""
        return self.works.of_names(self.names_of(workload))

    def names_of(self, workload: Workload) -> Names:
        """Return whose a Workload says it is: as it was taken in, or as it says itself where it never could be."""
        names = self.names.get(workload.metadata.uid)
        return names if names is not None else names_of(self.kinds, workload)

    def workloads_of(self, name: Name) -> list[ObjectKey]:
        """Return, in order, where the Workloads are that name the work of a user's object."""
        work = self.works.of_object(name)
        return work.in_order() if work is not None else []

    def cohorts_above(self, cohort: str) -> Iterator[str]:
        """Yield the name of a cohort and of those above it; each once, even in a cycle."""
        seen: set[str] = set()
        while cohort and cohort not in seen:
            seen.add(cohort)
            yield cohort
            known = self.cohorts.get(cohort)
            cohort = known.spec.parent_name if known is not None else ""

    def cluster_queue_of(self, workload: Workload) -> str:
        """Return the ClusterQueue that the Workload's LocalQueue names, "" when there is no such LocalQueue."""
        queue = self.local_queues.get(ObjectKey(workload.metadata.namespace, workload.spec.queue_name))
        return queue.spec.cluster_queue if queue is not None else ""


DEPARTED_MAX = 20_000
"""Gone Workloads, and gone objects of users, that are remembered: 2 MB of UIDs, 20 MB of names as long as they may be.
One that is forgotten costs one list when it is reported, or one read before its Workload ends."""


def _cached_as(seen: Surrounding) -> ObjectKey | str:
    return key_of(seen.metadata) if isinstance(seen, LocalQueue) else seen.metadata.name


def _discard(index: dict[Any, set[ObjectKey]], at: Any, key: ObjectKey) -> None:
    found = index.get(at)
    if found is not None:
        found.discard(key)
        if not found:
            del index[at]
