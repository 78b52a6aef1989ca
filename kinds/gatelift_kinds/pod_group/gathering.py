"""All pods of one group as the core asks for them: each change of one pod is counted, nothing walks all. Pure.

Neighbours: `reading` makes a member of a pod, `members` counts it, `composition`, `slots` and `document` say what
follows, `elsewhere` keeps what is known of each pod's run at a worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice

from gatelift_kinds.pod_group import composition, document, marks, member, places, slots, told
from gatelift_kinds.pod_group.adopting import GatheredPrebuilt
from gatelift_kinds.pod_group.asked import AskedOfPods
from gatelift_kinds.pod_group.at_worker import GatheredAtWorker
from gatelift_kinds.pod_group.composition import TEXT_CHARS_MAX, GroupPlan, NotYet, PlannedSet
from gatelift_kinds.pod_group.declaring import Declaring
from gatelift_kinds.pod_group.elsewhere import RunsElsewhere
from gatelift_kinds.pod_group.ends import (
    EVICTED,
    WAITING,
    Over,
    all_ready,
    end,
    is_abandoned,
    lacking,
    waiting_condition,
)
from gatelift_kinds.pod_group.let_go import LetGo
from gatelift_kinds.pod_group.member import MemberState
from gatelift_kinds.pod_group.members import OVER, PRESENT, RUNNING, Agreement, GroupMembers
from gatelift_kinds.pod_group.named import NamedMembers
from gatelift_kinds.pod_group.planned_specs import PlannedSpecs
from gatelift_kinds.pod_group.reading import member_of
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.pod_group.shapes import Template, quota_digest, shape_of
from gatelift_kinds.pod_group.unlike import unlike
from gatelift_kinds.shared import markers, pods
from gatelift_kinds.shared.gathered import Called, NothingToAsk, PlacedPart, ToldOfAll
from gatelift_kinds.shared.json_parts import Json
from gatelift_kinds.shared.patches import decode
from gatelift_kinds.shared.values import KindError, ObjectEnd, Priority, PriorityNames
from gatelift_kube.objects.conditions import find, is_true
from gatelift_kube.objects.core import Pod, PodSpec
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.objects.meta import Condition
from gatelift_kube.values.plain_text import plain

AT_ONCE = 64
"""Pods that are told to be too many in one answer: as many as are written at a time."""


class GatheredPods(GatheredAtWorker, GatheredPrebuilt):
    """See `gatelift_kinds.shared.gathered.Gathered`. Only this class writes what it holds.

    `_asked`: whether who waits is like what there is quota for.
    `_copied`: keys of labels that go on to the Workload. `_members`: the pods that are counted, and `_uncounted`: of
    whom something is known that is not in it yet. `_pods`: each as it was last seen; `_taken_out`: those that left
    their queue, counted or not. `_declaring`: who declares the sets of all. `_prebuilt`: UIDs of those that name a
    Workload which their user made; `_unfit`: why one has no role. `_unnamed`: pods of which it is not known that the
    Workload names them.
    `_specs`: what the pods of a planned set need. `_judged`: what the Workload of the group's name that was looked at
    last says of whose it is, and why it is not the group's; `_let_go`: as what pods were let go here; `_names`: whom
    the one names, or has named. `_stopping`: the epoch that is stopped, and where the pods of each role were
    as that began.
    """

    __slots__ = (
        "_asked",
        "_copied",
        "_declaring",
        "_group",
        "_is_ours",
        "_judged",
        "_let_go",
        "_members",
        "_names",
        "_namespace",
        "_pods",
        "_prebuilt",
        "_specs",
        "_stopping",
        "_taken_out",
        "_travels",
        "_uncounted",
        "_unfit",
        "_unnamed",
        "_where",
    )

    def __init__(self, namespace: str, group: str, is_ours: Callable[[Pod], bool], copied: Sequence[str] = ()) -> None:
        self._asked = AskedOfPods()
        self._copied = copied
        self._namespace, self._group, self._is_ours = namespace, group, is_ours
        self._members = GroupMembers()
        self._uncounted: dict[str, None] = {}
        self._pods: dict[str, tuple[Pod, bytes]] = {}
        self._taken_out: dict[str, tuple[Pod, bytes]] = {}
        self._travels: dict[str, Template] = {}
        self._prebuilt: set[str] = set()
        self._unfit: dict[str, str] = {}
        self._declaring = Declaring()
        self._unnamed: set[str] = set()
        self._specs = PlannedSpecs()
        self._judged: tuple[tuple[object, ...], str] | None = None
        self._let_go = LetGo()
        self._where = RunsElsewhere()
        self._names = NamedMembers()
        self._stopping: tuple[int, places.Begun] = (0, {})

    def __len__(self) -> int:
        """Return how many pods are ours, whatever became of them: not those that count on though they are not."""
        return len(self.members) - sum(uid in self._pods for uid in self._taken_out)

    def put(self, obj: Pod, raw: bytes) -> None:
        """Take in a pod, or another version of it."""
        meta, gated = obj.metadata, member.facts_of(obj).gated
        self._let_go.put(obj, lifted=not gated)
        self._travels.pop(meta.uid, None)
        if not self._is_counted(obj, raw):
            self._uncount(meta.uid)
            return
        said, spec = marks.read(meta.labels, meta.annotations), decode(raw)["spec"]
        was_read = meta.uid not in self._declaring.unread
        named = (meta.creation_timestamp or "", meta.name, meta.uid)
        self._declaring.put(named, said, spec, self._pods, lifted=not gated)
        where, shape = self._where.of(meta.uid), shape_of(spec) if gated else ""
        fit = self._declaring.fit(meta.uid, said, spec, lifted=not gated)
        waits = gated and where is member.Elsewhere.NOWHERE and not pods.over(obj)
        fit = self._as_let_go(meta.uid, said, fit, spec, runs=was_read and not waits, there=gated and not waits)
        if gated and where is member.Elsewhere.NOWHERE:
            other = self._declaring.refusal(meta.uid)
            fit = self._asked.put(meta.uid, RoleFit("", other) if other else fit, spec, shape)
        else:
            self._asked.drop(meta.uid)  # it may run, as what it was let go
        if meta.uid not in self._pods:
            self._unnamed.add(meta.uid)
        self._pods[meta.uid] = (obj, raw)
        self._members.whole().put(member_of(obj, fit, shape, where, copied=self._copied))
        if markers.prebuilt_name(meta.labels, meta.annotations):
            self._prebuilt.add(meta.uid)
        else:
            self._prebuilt.discard(meta.uid)
        if fit.role:
            self._unfit.pop(meta.uid, None)
        else:
            self._unfit[meta.uid] = plain(fit.text, TEXT_CHARS_MAX)

    def _as_let_go(
        self, uid: str, said: marks.GroupMarks, fit: RoleFit, spec: Json, *, runs: bool, there: bool
    ) -> RoleFit:
        """Return the role that a pod was let go as, whatever it says since; else the one that it says (HD-421).

        `runs`: it was read before, and runs, or may, or is over. Who was told of at a worker (`there`) has no mark at
        home: of that the role is known that it had as this began.
        """
        role = self._let_go.pod_set(uid, (fit.role, said.pod_set, said.role, said.role_hash))
        before = self._members.get(uid)
        if not role and runs and before is not None and before.state in {*RUNNING, *OVER}:
            role = before.role
        if not role and there:
            role = self._let_go.likely((shape_of(spec), fit.role), spec)
        return RoleFit(role) if role else fit

    def drop(self, uid: str) -> None:
        """Let go of a pod that is gone."""
        self._taken_out.pop(uid, None)
        self._where.forget(uid)
        self._uncount(uid)

    def _uncount(self, uid: str) -> None:
        self._let_go.drop(uid)
        self._travels.pop(uid, None)
        self._members.whole().drop(uid)
        self._pods.pop(uid, None)
        self._prebuilt.discard(uid)
        self._unfit.pop(uid, None)
        self._unnamed.discard(uid)
        self._names.drop(uid)
        self._declaring.drop(uid, self._pods)
        self._asked.drop(uid)

    @property
    def unread(self) -> tuple[str, ...]:
        """The UIDs of the pods that are to be read anew, the first ones: their group was declared, or got quota."""
        return tuple(islice(chain(self._declaring.unread, self._asked.unread), AT_ONCE))

    def asks(self, workload: Workload | None) -> None:
        """Take what there is quota for: who waits has to be like that; None while there is none."""
        if workload is not None:
            self._learn(workload)
        self._declaring.ask(workload.spec.pod_sets if workload is not None else (), self._pods.keys())
        self._asked.ask(workload, lambda uid: decode(self._pods[uid][1])["spec"], fast=self._is_fast)

    def is_unread(self, uid: str) -> bool:
        """Return whether a pod is to be read anew before it is let go; none of another shape is named until then."""
        return uid in self._asked.unread or uid in self._declaring.unread

    def read_anew(self, uids: Iterable[str]) -> tuple[Called, ...]:
        """Read pods anew, by what is declared now, and return them."""
        found = [each for each in map(self._pods.get, uids) if each is not None]
        for pod, raw in found:
            self.put(pod, raw)
        return tuple(Called(pod.metadata.name, pod.metadata.uid) for pod, _ in found)

    def misfit(self, uid: str) -> str:
        """Return why a pod has no role, and is not let go; "" where it has one."""
        return self._unfit.get(uid, "")

    def unlike(self, workload: Workload, uid: str) -> str:
        """Return in what a pod that has a role differs from what there is quota for, see `unlike`."""
        found = self.members.get(uid)
        return unlike(found, workload) if found is not None and found.role else ""

    @property
    def speaker(self) -> Called | None:
        """The oldest pod that is present."""
        oldest = self.members.oldest
        return Called(oldest[1], oldest[2]) if oldest is not None else None

    @property
    def queue_name(self) -> str:
        """The queue that all name."""
        return self.members.tally(Agreement.QUEUE).agreed or ""

    @property
    def priority_names(self) -> PriorityNames:
        """The class that one of them names, or else what the oldest pod's spec says."""
        spec = self._oldest.spec if self._oldest is not None else PodSpec()
        return PriorityNames(
            workload_class=self.members.tally(Agreement.CLASS).agreed or "",
            pod_class=spec.priority_class_name,
            pod_priority=spec.priority,
        )

    @property
    def is_abandoned(self) -> bool:
        """Say whether all were deleted by their users, and nothing of them runs or may."""
        return is_abandoned(self.members)

    @property
    def is_over(self) -> bool:
        """Say whether as many as the group has have succeeded, or nobody goes on and is to be replaced."""
        total = marks.total_count(self.members.tally(Agreement.COUNT).agreed) or 0
        found = end(self.members, total)
        return found is not None and found.over is Over.FINISHED

    def is_left(self, uid: str) -> bool:
        """Return whether a pod failed, or is over with its group: without a Workload nobody's place is kept."""
        found = self.members.get(uid)
        if found is None or found.state not in OVER:
            return False
        return found.state is MemberState.FAILED or self.is_over

    def lacks(self) -> NothingToAsk | None:
        """Return why no Workload can be made: who lacks, who disagrees and how, or who is too many."""
        found = self._plan()
        if self._unfit and not self.members.present:
            return NothingToAsk(text=next(iter(self._unfit.values())))
        if isinstance(found, NotYet):
            return NothingToAsk(
                text=found.text, surplus=self._called([uid for uid in found.surplus if not self._stays(uid)][:AT_ONCE])
            )
        if self._declaring.driver is not None:
            beyond_roles = places.beyond(self.members, found.counts, AT_ONCE, self._stays)
            return NothingToAsk(surplus=self._called(beyond_roles)) if beyond_roles else None
        total = sum(found.counts.values())
        beyond = [uid for uid in slots.surplus_of_all(self.members, total, AT_ONCE) if not self._stays(uid)]
        return NothingToAsk(surplus=self._called(beyond)) if beyond else None

    def workload_document(self, priority: Priority) -> bytes:
        """Return the Workload, which each pod that is present owns. KindError: something lacks, or it is too large."""
        plan = self._plan()
        if isinstance(plan, NotYet):
            raise KindError(plan.text)
        about = document.GroupWorkload(
            namespace=self._namespace,
            group=self._group,
            queue=self.queue_name,
            priority=priority,
            limit=self._limit,
            labels={key: self.members.tally(key).agreed or "" for key in self.members.labels},
        )
        owners = [self._pods[uid][0].metadata for _, _, uid in self.members.ages]
        raws = {each.like: self._pods[each.like][1] for each in plan.pod_sets if each.like}
        written = document.document(plan, about, owners, raws)
        problem = document.too_large(written)
        if problem:
            raise KindError(problem)
        return written

    def conflict(self, workload: Workload) -> str:
        """Return why a Workload of the group's name is somebody else's: by its mark, and by whose it says it is.

        Judged once for all versions that say the same of that, since all that it names as owners are looked at.
        """
        meta = workload.metadata
        says = (meta.labels, meta.annotations, meta.owner_references)
        if self._judged is None or self._judged[0] != says:
            self._judged = says, document.conflict(workload, self._namespace, self._group)
        elif self._judged[0][2] is not says[2]:
            self._judged = says, self._judged[1]  # the same list is alike at a glance, another one owner by owner
        return "" if self._judged[1] and self._runs_for(workload) else self._judged[1]

    def own_marks(self, workload: Workload) -> Mapping[str, str]:
        """Return the annotations that say that a Workload is the group's, of which it lacks one; none where it is not.

        Of one that our annotation says to be the group's, or that runs for it.
        """
        wanted = document.own_marks(self._namespace, self._group)
        said = workload.metadata.annotations
        lacks = any(said.get(key) != value for key, value in wanted.items())
        return wanted if lacks and not self.conflict(workload) else {}

    def _runs_for(self, workload: Workload) -> bool:
        """Say whether pods of the group run for a Workload that does not say any more whose it is (HD-420).

        At home by their marks, at a worker by its record, which none has that was made for nobody: who made it the
        group's has let it go.
        """
        if not document.may_be_of(workload) or not self.names_any(workload):
            return False
        return bool(workload.status.cluster_name) or self._let_go.runs_for(workload.metadata.uid)

    def matches(self, workload: Workload) -> bool:
        """Return whether a Workload has the pods' queue, limit and class, and their roles with counts and needs."""
        spec = workload.spec
        if not self.asks_for(workload):
            return False
        if (spec.queue_name, spec.maximum_execution_time_seconds) != (self.queue_name, self._limit):
            return False
        named = self.members.tally(Agreement.CLASS).agreed
        return not named or (spec.priority_class_ref is not None and spec.priority_class_ref.name == named)

    def asks_for(self, workload: Workload) -> bool:
        """Return whether a Workload has the pods' roles with counts and needs."""
        plan = self._plan()
        if isinstance(plan, NotYet) or composition.differs(workload, plan):
            return False
        return not self._unlike(plan, workload)

    def surplus(self, workload: Workload) -> tuple[Called, ...]:
        """Return the pods beyond the count of their role, and those of a role that the Workload does not have."""
        self._learn(workload)
        counts = {each.name: each.count for each in workload.spec.pod_sets}
        found = places.beyond(self.members, counts, AT_ONCE, self._stays)
        if not self._is_fast:
            found += places.of_other_roles(self.members, counts, AT_ONCE, self._stays)
        return self._called(found[:AT_ONCE])

    def waiting_condition(self, workload: Workload) -> Condition | None:
        """Return WaitingForReplacementPods to put, see `ends`; None where it is to stay."""
        said, evicted = (find(workload.status.conditions, each) for each in (WAITING, EVICTED))
        several = len(workload.spec.pod_sets) > 1
        return waiting_condition(self._lacking(workload), said, evicted, of_roles=several)

    def waits(self, workload: Workload) -> bool:
        """Return whether pods have to be replaced, or the Workload says so still."""
        return bool(self._lacking(workload)) or is_true(workload.status.conditions, WAITING)

    @property
    def waiting(self) -> int:
        """How many wait at their gate."""
        return self.members.counts[MemberState.WAITING]

    def replaced(self, workload: Workload) -> tuple[Called, ...]:
        """Return the failed pods whose slot another one has, once each that is present is named."""
        if self.owners_patch(workload) is not None:
            return ()
        return self._called(places.replaced(self.members, workload)[:AT_ONCE])

    def parts(self, workload: Workload, granted: Mapping[str, int]) -> tuple[PlacedPart, ...]:
        """Return the pods that run and those that a slot is free for, role by role (the room rule).

        Nobody is let go before the Workload names it: who leads next knows by that who is of it (HD-433).
        """
        named = self._named_by(workload)
        every = places.of_all(self.members, workload, granted)
        return self._parts(each for each in every if each[0] in named or self.is_told_of(each[0]))

    def over(self, workload: Workload, granted: Mapping[str, int]) -> dict[str, int]:
        """Return how many succeeded, by role; none of a group that serves."""
        return {} if self._is_serving else places.over(self.members, workload, granted, self._made)

    def left(self, workload: Workload, granted: Mapping[str, int], epoch: int) -> dict[str, int]:
        """Return how many are over since an epoch began to be stopped, or succeeded, by role."""
        if self._stopping[0] != epoch:
            self._stopping = (epoch, places.begun(self.members))
        return places.left(self.members, workload, granted, self._stopping[1], self._made)

    def needs(self, spec: PodSpec) -> str:
        """Return the digest of what quota is counted by."""
        return quota_digest(spec)

    def outcome(self, workload: Workload) -> ObjectEnd | None:
        """Return how the group ended by its pods, see `ends`."""
        found = end(self.members, _total(workload), serving=self._is_serving, made=self._made)
        return found.outcome if found is not None else None

    def pods_ready(self, workload: Workload) -> bool:
        """Return whether as many as the group has are ready, or have succeeded."""
        declares = self._declaring.driver is not None  # who has not come yet is not waited for
        return all_ready(self.members, self.members.present if declares else _total(workload))

    def owners_patch(self, workload: Workload) -> bytes | None:
        """Return the patch that adds the present pods which the Workload does not name, or not any more, as owners."""
        meta, named = workload.metadata, self._named_by(workload)
        if self._unnamed:
            self._unnamed -= named
        kept = (uid for uid in self._unnamed if not self._is_let_be(workload, uid))
        added = sorted(filter(None, map(self._present, kept)))
        if not added:
            return None
        late = workload.status.admission is not None or bool(workload.status.cluster_name)
        return document.owners_patch(meta, [self._pods[uid][0].metadata for _, _, uid in added], late=late)

    def _is_let_be(self, workload: Workload, uid: str) -> bool:
        """Say whether a pod is named no more since it goes: a garbage collector took it off, and would once more."""
        goes = self._pods[uid][0].metadata.deletion_timestamp is not None
        return goes and self._names.has_named(workload, uid)

    def told(self, workload: Workload | None) -> ToldOfAll:
        """Return where the pods stand, whose place is whose, and what lacks."""
        seen = {uid: pod for uid, (pod, _) in self._pods.items()}
        counts = {each.name: each.count for each in workload.spec.pod_sets} if workload is not None else {}
        here = self.members.present or self._unfit  # where nobody is, the slots say it
        lacks = self.lacks() if workload is None or (workload.status.admission is None and here) else None
        later = {each.name for each in self._later()}
        return told.told(self.members, seen, counts, lacks.text if lacks is not None else "", later)

    def releases(self, uid: str) -> bool:
        """Return whether a deleted pod may go: nothing of it is left, or of all of them; see the table in `member`."""
        found = self._pods.get(uid)
        if found is None or self.is_abandoned:
            return True
        where = member.standing(member.facts_of(found[0], self._where.of(uid)))
        at_last = where.finalizer is member.FinalizerGoes.WHEN_STOPPED and not where.running
        return at_last or where.finalizer is member.FinalizerGoes.AT_ONCE

    def _stays(self, uid: str) -> bool:
        """Say whether a pod is never one too many: it was let go by us, so it has a slot, whatever it says now."""
        return self._let_go.is_marked(uid) or self._where.is_let_go(uid)

    @property
    def _oldest(self) -> Pod | None:
        speaker = self.speaker
        return self._pods[speaker.uid][0] if speaker is not None else None

    @property
    def _is_fast(self) -> bool:
        """Whether the oldest pod says that the group is admitted with the first one."""
        return self._oldest is not None and marks.is_fast(self._oldest.metadata.annotations)

    @property
    def _is_serving(self) -> bool:
        """Whether the oldest pod says that the group never finishes by itself."""
        return self._oldest is not None and marks.is_serving(self._oldest.metadata.annotations)

    @property
    def _limit(self) -> int | None:
        agreed = self.members.tally(Agreement.LIMIT).agreed
        return markers.max_execution_seconds({markers.MAX_EXECUTION_SECONDS: agreed or ""})

    def _plan(self) -> GroupPlan | NotYet:
        driver = self._declaring.driver
        if driver is None:
            return composition.compose(self.members, fast=self._is_fast)
        return composition.declared(self.members, driver.declaration, driver.uid, driver.role)

    def _lacking(self, workload: Workload) -> dict[str, int]:
        """Return how many pods of each role have to be replaced; not those that a driver has yet to make."""
        plan = self._plan()
        later = (
            {each.name for each in plan.pod_sets if each.comes_later} if isinstance(plan, GroupPlan) else frozenset()
        )
        asked = GroupPlan(
            pod_sets=tuple(
                PlannedSet(name=each.name, count=each.count, comes_later=each.name in later)
                for each in workload.spec.pod_sets
            )
        )
        evicted = is_true(workload.status.conditions, EVICTED)
        return lacking(self.members, asked, fast=self._is_fast, evicted=evicted)

    def _called(self, uids: Iterable[str]) -> tuple[Called, ...]:
        return tuple(Called(self._pods[uid][0].metadata.name, uid) for uid in uids)

    def _present(self, uid: str) -> tuple[str, str, str] | None:
        found = self.members.get(uid)
        return found.named if found is not None and found.role and found.state in PRESENT else None


def _total(workload: Workload) -> int:
    return sum(each.count for each in workload.spec.pod_sets)
