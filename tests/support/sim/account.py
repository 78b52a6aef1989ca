"""Books of its own: per queue and object, what is charged and what the pods that may run ask for, from objects alone.

After every write `charged + ghost >= requests of the pods that may run`: lifted, not terminal, terminating included,
made by us or by anybody for a managed object (QR-11). What a record says to be released early (KEP-6143) was asked for
by pods each of whose deletions had been accepted, and only these run on uncharged. *Ghost* is what nobody granted,
since a person went around everything: it begins with the write that shows it, falls with what runs of it, and must be
gone again within a bound. What runs and was granted only in a history that a restore has lost is charged to nobody
until it has ended. Of elastic work the same holds pod set by pod set, and a chain of Workloads is charged once, for its
record (SL-08): who finishes the one before has that charged no more, and no less. Charged is what the Workloads say
and, where somebody asks it, what the leading manager says it charges. Knows no core and no kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from support.sim.attribution import LOCAL, Attribution, Belongs, Doc, Work
from support.sim.objects import (
    ELASTIC_GATE,
    TruthError,
    admitted,
    admitted_pods,
    comes_gated,
    holds,
    is_patient,
    is_released,
    job_is_free,
    milli,
    pod_is_free,
)

GHOST_SECONDS_MAX = 180.0
"""While nothing is broken: a lost cluster is back, or told fenced, and an edit by hand is put back or ended in this."""


POD_SET = "kueue.x-k8s.io/podset"
ELASTIC = "kueue.x-k8s.io/elastic-job"


class AccountError(TruthError):
    """Something runs that nobody is charged for; the text says what."""


@dataclass(slots=True)
class Page:
    """What is known of one user's object."""

    queue: str = ""
    charges: dict[str, int] = field(default_factory=dict)
    """Milli-CPU by Workload; of the slices of a chain all that have quota are here."""
    records: dict[str, str] = field(default_factory=dict)
    """By Workload: the one by which its chain is charged."""
    granted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Pods by Workload and pod set; of elastic work alone."""
    sets: dict[tuple[str, str], str] = field(default_factory=dict)
    """The pod set of pods that come gated, by cluster and UID."""
    queues: dict[str, str] = field(default_factory=dict)
    """Where a Workload was charged last; `queue` is that of the one that is charged now, else of the last one."""
    pods: dict[tuple[str, str], int] = field(default_factory=dict)
    """Milli-CPU of pods that may run, by cluster and UID."""
    going: set[tuple[str, str]] = field(default_factory=set)
    """Those of them in whose place their Jobs make others at once: gone, taken off, or deleted where nobody waits."""
    leaving: set[tuple[str, str]] = field(default_factory=set)
    """Those of them whose deletion was accepted."""
    early: dict[str, int] = field(default_factory=dict)
    """What pods may ask for after a release, by the Workload that says so: what is left of those that ran then."""
    parted: set[tuple[str, str]] = field(default_factory=set)
    """Pods of elastic work that stopped when its charge was lowered: ghosts of a part, and no part of what is left."""
    patient: set[tuple[str, str]] = field(default_factory=set)
    """Jobs that replace a pod when it has ended, by cluster and UID: one that stops is one of those allowed."""
    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    """What Jobs that are not suspended may have running at once, by cluster and UID."""
    containers: set[tuple[str, str]] = field(default_factory=set)
    """Pods whose containers run, by cluster and UID: what they ask for counts until those have stopped."""
    outlived: set[tuple[str, str]] = field(default_factory=set)
    """Those of them whose pods are gone, or said to have ended."""
    unrecorded: dict[tuple[str, str], float] = field(default_factory=dict)
    """Since when those of both run that only a history has granted that a restore has lost: nobody is charged."""
    ghost: int = 0
    ghost_since: float = 0.0
    ghost_before: int = 0
    """What was ghost before the last write of its Workload: whoever wrote it goes by that until he is answered."""

    @property
    def runs(self) -> int:
        """Return what the pods that may run ask for, of what a record knows."""
        return sum(amount for key, amount in self.pods.items() if key not in self.unrecorded)

    @property
    def lent(self) -> int:
        """Return what of it runs on although its quota was freed, by a release of all or of a part."""
        parted = self.parted & self.pods.keys() - self.unrecorded.keys()
        return sum(self.early.values()) + sum(self.pods[key] for key in parted)

    @property
    def excess(self) -> int:
        """Return what runs, or is let go to run beside what is going, beyond the charge."""
        going = sum(self.pods[key] for key in self.going - self.unrecorded.keys())
        jobs = [amount for key, amount in self.jobs.items() if key not in self.unrecorded]
        may = sum(jobs) + going if jobs else 0
        return max(self.runs, may) - self.charged - self.lent

    @property
    def charged(self) -> int:
        """Return what is charged: of each chain what its record is."""
        return sum(amount for uid, amount in self.charges.items() if self.records.get(uid, uid) == uid)

    @property
    def room(self) -> Counter[str]:
        """Return the pods that are granted to elastic work, by pod set: of each chain what its record is."""
        found: Counter[str] = Counter()
        for uid, counts in self.granted.items():
            if self.records.get(uid, uid) == uid:
                found.update(counts)
        return found

    def crowded(self) -> list[str]:
        """Return the pod sets of elastic work in which more may run than is granted, but for what a person let go."""
        granted, there = self.room, Counter(self.sets[key] for key in self._slots())
        return [
            f"{name or 'none'}: {count} of {granted[name]}" for name, count in there.items() if count > granted[name]
        ]

    def _slots(self) -> set[tuple[str, str]]:
        """Return the pods that take a slot of elastic work."""
        return (self.pods.keys() & self.sets.keys()) - self.unrecorded.keys() - self.parted

    def part(self, name: str, count: int) -> None:
        """Take that a pod set has so few slots from now on: those above them that stop, as all see, take none."""
        there = [key for key in sorted(self._slots()) if self.sets[key] == name]
        stop = [key for key in there if key in self.leaving and key not in self.outlived]
        self.parted.update(stop[: max(0, len(there) - count)])

    def sort(self, key: tuple[str, str], now: float, *, unrecorded: bool) -> None:
        """Take whether something that may run is granted by a lost history alone."""
        if unrecorded and (key in self.pods or key in self.jobs):
            self.unrecorded.setdefault(key, now)
        else:
            self.unrecorded.pop(key, None)


class Account:
    """Takes each write of each cluster, in order. `bears` seconds of a shortfall are borne (0: none at all).

    `is_by_hand`: whether a pod, by UID, is one of an object that its user let go: nobody grants it.
    `is_brought_back`: whether a backup of its own cluster runs again what that cluster may have said to be over.
    """

    def __init__(
        self,
        whose: Attribution | None = None,
        *,
        bears: float = 0.0,
        is_unrecorded: Callable[[Belongs], bool] = lambda _: False,
        is_by_hand: Callable[[str], bool] = lambda _: False,
        is_brought_back: Callable[[Belongs], bool] = lambda _: False,
    ) -> None:
        self.pages: dict[Work, Page] = {}
        self.checks = 0
        self._whose = whose or Attribution()
        self._bears = bears
        self._is_unrecorded = is_unrecorded
        self._is_by_hand = is_by_hand
        self._is_brought_back = is_brought_back
        self.on_terminal = False
        """Whether nothing of elastic work is free before it has stopped, by the rule of all queues."""
        self._short_since: dict[Work, float] = {}

    # --- what is written ----------------------------------------------------------------------------------------

    def workload(self, document: Doc, now: float, *, removed: bool = False, by_hand: bool = False) -> None:
        """Take a version of a Workload."""
        self._whose.workload(document)
        uid = document["metadata"]["uid"]
        owner = self._whose.owner_of(uid)
        if owner is None:
            return
        page = self._page(owner[0])
        if removed:
            self._whose.gone(uid)
        queue, amount = charge_of(document)
        before = page.room
        page.charges.pop(uid, None)
        page.granted.pop(uid, None)
        if queue and not removed and is_elastic(document):
            page.granted[uid] = admitted_pods(document)
        if amount and not removed and is_released(document):
            self._release(owner[0], page, uid, by_hand=by_hand)
        elif amount and not removed:
            page.early.pop(uid, None)
            page.charges[uid] = amount
            if not by_hand or uid not in page.queues:  # a person's word takes nothing from one queue to another
                page.queues[uid] = queue
        else:
            page.early.pop(uid, None)
        holding = {**page.charges, **page.granted}
        page.records = {each: self._whose.record_of(self._whose.chain_of(each)) for each in holding}
        if page.granted and not (by_hand or removed or self.on_terminal):
            after = page.room
            for name in [name for name, count in before.items() if after[name] < count]:
                page.part(name, after[name])
        page.queue = next((page.queues[each] for each in reversed(page.charges)), page.queue)
        page.queue = page.queue or document["spec"].get("queueName", "")
        page.ghost_before = page.ghost
        self._settle(owner[0], page, now, by_hand=by_hand or removed)  # a record that goes too soon `truth` judges

    def object(
        self, cluster: str, kind: str, document: Doc, now: float, *, removed: bool = False, by_hand: bool = False
    ) -> None:
        """Take a version of a pod or Job; `cluster` is `local` in the management cluster."""
        belongs = self._whose.seen(cluster, kind, document)
        if belongs is None or not self._managed(belongs):
            return
        page = self._page(belongs.work)
        known = page.pods if kind == "Pod" else page.jobs
        may_run = pod_is_free(document) if kind == "Pod" else job_is_free(document)
        key = cluster, document["metadata"]["uid"]
        if kind == "Job" and comes_gated(document):
            return  # its pods tell what may run
        if kind == "Pod" and key not in page.sets and waits_for_a_slot(document):
            page.sets[key] = document["metadata"].get("labels", {}).get(POD_SET, "")
        page.going.discard(key)
        (page.leaving.add if document["metadata"].get("deletionTimestamp") else page.leaving.discard)(key)
        page.outlived.discard(key)  # a backup may bring back what was gone
        if removed or not may_run:
            if key in page.containers:
                known.setdefault(key, asked_by(document["spec"]))  # let go by hand, before it had a Workload
                page.going.add(key)
                page.outlived.add(key)
            else:
                known.pop(key, None)
        else:
            if kind == "Pod" and is_replaced(document, belongs, waits=(cluster, belongs.root) in page.patient):
                page.going.add(key)
            if kind == "Job":
                (page.patient.add if is_patient(document) else page.patient.discard)(key)
            known[key] = asked_by(document["spec"]) if kind == "Pod" else allowed_by(document)
        page.sort(key, now, unrecorded=self._is_unrecorded(belongs))
        self._settle(belongs.work, page, now, by_hand=by_hand)

    def container(self, cluster: str, uid: str, now: float, *, runs: bool) -> None:
        """Take from a node that a pod's containers have started or stopped, whatever became of the pod."""
        belongs = self._whose.of(cluster, uid)
        if belongs is None:
            return
        page, key = self._page(belongs.work), (cluster, uid)
        if runs:
            page.containers.add(key)
            return
        page.containers.discard(key)
        if key in page.outlived:
            page.outlived.discard(key)
            page.going.discard(key)
            page.pods.pop(key, None)
            page.unrecorded.pop(key, None)
            self._settle(belongs.work, page, now, by_hand=False)

    def destroyed(self, cluster: str) -> None:
        """Take that nothing is left of a cluster: nothing asks for anything there."""
        for page in self.pages.values():
            page.going = {key for key in page.going if key[0] != cluster}
            page.containers = {key for key in page.containers if key[0] != cluster}
            page.outlived &= page.containers
            for known in (page.pods, page.jobs):
                for key in [key for key in known if key[0] == cluster]:
                    del known[key]
                    page.unrecorded.pop(key, None)

    def restored(self, now: float) -> None:
        """Take that the records were put back: of what runs some may be granted by a lost history alone."""
        for work, page in self.pages.items():
            for key in {*page.pods, *page.jobs}:
                belongs = self._whose.of(*key)
                page.sort(key, now, unrecorded=belongs is not None and self._is_unrecorded(belongs))
            self._settle(work, page, now, by_hand=True)

    def _release(self, work: Work, page: Page, uid: str, *, by_hand: bool) -> None:
        """Take that a record says that its quota is free although it has not stopped."""
        if uid in page.early:
            return
        page.early[uid] = page.runs
        stay = page.pods.keys() - page.leaving - page.containers
        if not by_hand and (stay or page.jobs.keys() - page.unrecorded.keys()):
            raise AccountError(f"{work}: released, and nobody has asked these to leave: {sorted(stay)} {page.jobs}")

    def _managed(self, belongs: Belongs) -> bool:
        """Say whether it is a managed object's run: at home nobody's pod is, until it has a Workload."""
        return belongs.cluster != LOCAL or bool(self._whose.workload_of(belongs.root))

    def _page(self, work: Work) -> Page:
        return self.pages.setdefault(work, Page())

    # --- what must hold --------------------------------------------------------------------------------------------

    def _settle(self, work: Work, page: Page, now: float, *, by_hand: bool) -> None:
        self.checks += 1
        excess = max(0, page.excess)
        shown = excess if by_hand else min(excess, self._granted_by_nobody(page))  # a charge of before may end first
        if shown > page.ghost:
            page.ghost_since = page.ghost_since if page.ghost else now
            page.ghost = shown
        page.ghost = min(page.ghost, excess)
        page.parted &= page.pods.keys()
        page.early = {uid: min(amount, page.runs) for uid, amount in page.early.items()}
        crowded = [] if page.ghost or page.early else page.crowded()
        if page.runs > page.charged + page.ghost + page.lent or crowded:
            since = self._short_since.setdefault(work, now)
            if now - since >= self._bears:
                raise AccountError(self._told(work, page))
        else:
            self._short_since.pop(work, None)

    def _granted_by_nobody(self, page: Page) -> int:
        """Return what pods ask for that their users let go, or that a backup runs again after their end."""
        return sum(amount for key, amount in page.pods.items() if self._is_by_hand(key[1]) or self._comes_back(*key))

    def _comes_back(self, cluster: str, uid: str) -> bool:
        belongs = self._whose.of(cluster, uid)
        return belongs is not None and self._is_brought_back(belongs)

    def _told(self, work: Work, page: Page) -> str:
        pods = [f"{cluster}/{uid} {amount}m" for (cluster, uid), amount in sorted(page.pods.items())]
        return (
            f"{work} in {page.queue}: pods that may run ask for {page.runs}m ({', '.join(pods)}), charged is "
            f"{page.charges}, ghost {page.ghost}m; pods above their sets: {page.crowded()}"
        )

    def look(self, now: float) -> None:
        """Raise AccountError for a shortfall that is borne no longer."""
        for work, since in self._short_since.items():
            if now - since >= self._bears:
                raise AccountError(self._told(work, self.pages[work]))

    def compare(self, charged: Callable[[str], int], is_out: Callable[[str], bool] = lambda _: False) -> None:
        """Raise AccountError where a queue's manager, by its own word, charges less than what runs, without ghosts.

        `is_out`: whether he has yet to hear what became of his write to a Workload, by its UID.
        """
        for queue, (runs, ghost) in self.totals(is_out).items():
            if runs > charged(queue) + ghost:
                told = [self._told(work, page) for work, page in self._of(queue)]
                raise AccountError(
                    f"queue {queue}: pods that may run ask for {runs}m, the manager charges {charged(queue)}m, ghost "
                    f"{ghost}m: {'; '.join(told)}"
                )

    def totals(self, is_out: Callable[[str], bool] = lambda _: False) -> Mapping[str, tuple[int, int]]:
        """Return what the pods of each queue ask for, and how much of it is ghost."""
        found: dict[str, tuple[int, int]] = {}
        for page in self.pages.values():
            if page.pods:
                runs, ghost = found.get(page.queue, (0, 0))
                before = page.ghost_before if any(map(is_out, page.charges)) else 0
                most = max(page.ghost, before, self._granted_by_nobody(page))
                found[page.queue] = runs + page.runs, ghost + most + page.lent
        return found

    def ghosts(self) -> dict[Work, float]:
        """Return since when something runs of an object that nobody granted, or nobody knows of any more."""
        found = {work: min(page.unrecorded.values()) for work, page in self.pages.items() if page.unrecorded}
        return found | {work: page.ghost_since for work, page in self.pages.items() if page.ghost}

    def overdue(self, now: float) -> list[str]:
        """Return what runs for longer than the bound and nobody granted; for a time in which nothing is broken."""
        return [
            self._told(work, page)
            for work, page in self.pages.items()
            if page.ghost and now - page.ghost_since > GHOST_SECONDS_MAX
        ]

    def _of(self, queue: str) -> Iterator[tuple[Work, Page]]:
        return ((work, page) for work, page in self.pages.items() if page.queue == queue and page.pods)


def charge_of(workload: Doc) -> tuple[str, int]:
    """Return the queue and the milli-CPU that a Workload is shown as charged with, without what is reclaimable."""
    status = workload.get("status", {})
    admission = status.get("admission")
    if admission is None or not holds(workload, "QuotaReserved") or holds(workload, "Finished"):
        return "", 0
    return admission["clusterQueue"], admitted(workload)


def is_elastic(workload: Doc) -> bool:
    """Say whether a Workload is a slice of elastic work."""
    return bool(workload["metadata"].get("annotations", {}).get(ELASTIC) == "true")


def waits_for_a_slot(pod: Doc) -> bool:
    """Say whether a pod has the gate of elastic work."""
    return any(gate["name"] == ELASTIC_GATE for gate in pod["spec"].get("schedulingGates") or ())


def is_replaced(pod: Doc, belongs: Belongs, *, waits: bool) -> bool:
    """Say whether its Job makes another pod although this one may run; `waits`: not in the place of one that stops."""
    leaves = bool(pod["metadata"].get("deletionTimestamp")) and not waits
    return leaves or taken_off(pod, belongs)


def taken_off(pod: Doc, belongs: Belongs) -> bool:
    """Say whether a Job's pod has lost the Job as its controller."""
    meta = pod["metadata"]
    return belongs.root not in {meta["uid"], *(one["uid"] for one in meta.get("ownerReferences", []))}


def asked_by(spec: Doc) -> int:
    """Return the milli-CPU that a pod asks for: those of simulation and scenarios have plain containers only."""
    return sum(
        milli(each.get("resources", {}).get("requests", {}).get("cpu", "0")) for each in spec.get("containers", [])
    )


def allowed_by(job: Doc) -> int:
    """Return the milli-CPU that a Job's pods may ask for at once."""
    spec, status = job["spec"], job.get("status", {})
    parallel = spec.get("parallelism", 1)
    completions = spec.get("completions")
    left = parallel if completions is None else max(0, completions - status.get("succeeded", 0))
    return int(min(parallel, left)) * asked_by(spec["template"]["spec"])
