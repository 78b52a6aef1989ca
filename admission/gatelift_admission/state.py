"""All that the engine knows, and what follows when a part of it changes. No decision is taken here.

Objects come in through `engine`; here they become models, charges and places in queues. A change of structure marks
the tree as outdated; it is rebuilt once, before the next decision. A change of a workload names it for review; the
cycle reviews before it decides. Both keep intake cheap and make order of arrival irrelevant.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from gatelift_admission import texts
from gatelift_admission.entry import (
    RESERVING,
    Entry,
    Phase,
    effective_priority,
    has_failed_checks,
    out_of_queue_reason,
)
from gatelift_admission.equals import PendingClass
from gatelift_admission.flavors import Market, Pins
from gatelift_admission.holders import Holders
from gatelift_admission.keeping import Kept
from gatelift_admission.ledger import Ledger
from gatelift_admission.matching import selector_matches
from gatelift_admission.model import Cell, Settings, Usage
from gatelift_admission.patience import Patience
from gatelift_admission.plain import demand_of
from gatelift_admission.preemption.candidates import Scene
from gatelift_admission.preemption.oracle import Foreign, Oracle, Room, preempts
from gatelift_admission.queues import (
    LocalModel,
    QueueModel,
    cluster_queue_active,
    node_spec,
    readable_quotas,
    weight_of,
)
from gatelift_admission.reading import Reader
from gatelift_admission.requests import Defaults
from gatelift_admission.tree import Node, NodeSpec, Tree
from gatelift_admission.waking import Band, Wakes
from gatelift_kube.objects.core import LimitRange, RuntimeClass
from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, Cohort, ResourceFlavor
from gatelift_kube.resources import ObjectKey


@dataclass(slots=True)
class State:
    """Everything known. `engine` and `cycle` are its only users."""

    settings: Settings = field(default_factory=Settings)
    now: float = 0.0
    unix_offset: float = 0.0
    """Unix time less the engine's monotonic time, for timestamps of API objects."""
    flavors: dict[str, ResourceFlavor] = field(default_factory=dict)
    checks: dict[str, AdmissionCheck] = field(default_factory=dict)
    cohorts: dict[str, Cohort] = field(default_factory=dict)
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    limit_ranges: dict[ObjectKey, LimitRange] = field(default_factory=dict)
    runtime_classes: dict[str, RuntimeClass] = field(default_factory=dict)
    queues: dict[str, QueueModel] = field(default_factory=dict)
    local_queues: dict[ObjectKey, LocalModel] = field(default_factory=dict)
    entries: dict[str, Entry] = field(default_factory=dict)
    submitted: dict[ObjectKey, dict[str, Entry]] = field(default_factory=dict)
    ledger: Ledger = field(default_factory=Ledger)
    holders: Holders = field(default_factory=Holders)
    foreign: Foreign = field(default_factory=Foreign)
    generations: dict[str, int] = field(default_factory=dict)
    """Per ClusterQueue: how often somebody who held quota of it left or was replaced (not: came)."""
    rooms: dict[str, Room] = field(default_factory=dict)
    """Answers of `room`, as long as the tree stands."""
    closed: set[str] = field(default_factory=set)
    """ClusterQueues that do not admit; what they hold is not preempted either."""
    outdated: bool = True
    built: int = 0
    """How often the tree was built."""
    versions: dict[str, int] = field(default_factory=dict)
    """Per root: raised whenever something changed that may help a head that had lost."""
    releases: dict[str, int] = field(default_factory=dict)
    """Per root: how often quota was released."""
    ready: OrderedDict[str, dict[str, None]] = field(default_factory=OrderedDict)
    """Queues that may have a head worth evaluating, by root."""
    stalled: dict[str, dict[str, None]] = field(default_factory=dict)
    """Queues whose head lost to another entry in a round that changed nothing: ready again when the root changes."""
    review: OrderedDict[str, Entry] = field(default_factory=OrderedDict)
    untold: OrderedDict[str, Entry] = field(default_factory=OrderedDict)
    bypassed: dict[int, PendingClass] = field(default_factory=dict)
    backoffs: list[tuple[float, str]] = field(default_factory=list)
    peaceful: dict[str, bool] = field(default_factory=dict)
    """Roots of whose queues none may preempt, as far as asked; forgotten when the tree is rebuilt."""
    wakes: Wakes = field(default_factory=Wakes)
    """When those who wait for what came free are woken; forgotten when the tree is rebuilt."""
    patience: Patience = field(default_factory=Patience)
    """Who waits for others to end instead of preempting them."""
    unevaluated: list[tuple[float, str, int]] = field(default_factory=list)
    defaults: dict[str, Defaults] = field(default_factory=dict)
    reader: Reader = field(init=False)

    def __post_init__(self) -> None:
        """Read workloads by the settings."""
        self.reader = Reader(self.settings)

    # -- structure -----------------------------------------------------------------------------------------------

    def restructure(self) -> None:
        """Note that queues, cohorts, flavors or checks changed: all that waits is looked at again."""
        self.outdated = True

    def ensure(self) -> Tree:
        """Return the tree, rebuilt from specs and charges if anything in the structure changed."""
        tree = self.ledger.tree
        if tree is not None and not self.outdated:
            return tree
        tree = Tree(*self.tree_specs())
        self.ledger.rebuild(tree)
        self.outdated = False
        self.built += 1
        self.versions.clear()
        self.releases.clear()
        self.ready.clear()
        self.stalled.clear()
        self.wakes.clear()
        self.patience.clear()
        self.wakes.queues = {root: len(members) for root, members in tree.members.items()}
        self.rooms.clear()
        self.peaceful.clear()
        self.closed.clear()
        self.generations = {name: number for name, number in self.generations.items() if name in self.queues}
        for name in sorted(self.queues):
            queue = self.queues[name]
            was = queue.admits
            queue.cyclic = name in tree.cyclic
            queue.active = cluster_queue_active(queue.object, self.flavors, self.checks)
            if not queue.admits:
                self.closed.add(name)
            self.wake_queue(queue)
            if was != queue.admits:
                self.review_queue(name)
        return tree

    def tree_specs(self) -> tuple[list[NodeSpec], list[NodeSpec]]:
        """Return the nodes of the tree as configured: queues and cohorts."""
        queues = [node_spec(queue.object) for queue in self.queues.values()]
        cohorts = [
            NodeSpec(
                name=name,
                parent=cohort.spec.parent_name,
                quotas=readable_quotas(cohort.spec.resource_groups),
                weight=weight_of(cohort.spec.fair_sharing),
            )
            for name, cohort in self.cohorts.items()
        ]
        return queues, cohorts

    def wake_queue(self, queue: QueueModel) -> None:
        """Look at all again that waits in a queue."""
        for entry in queue.pending.wake_all():
            self.review[entry.uid] = entry
        self.offer(queue)

    def review_queue(self, name: str) -> None:
        """Review all workloads that were submitted to LocalQueues of a ClusterQueue."""
        for key, local in self.local_queues.items():
            if local.object.spec.cluster_queue == name:
                self.review.update(self.submitted.get(key, {}))

    def nominal(self, queue: ClusterQueue) -> Usage:
        """Return the nominal quota per cell of a ClusterQueue."""
        return {cell: quota.nominal for cell, quota in node_spec(queue).quotas.items()}

    def node(self, name: str) -> Node:
        """Return the node of an existing queue; the tree must be up to date."""
        tree = self.ledger.tree
        if tree is None:
            raise RuntimeError("the quota tree was not built: call ensure() first")
        return tree.queues[name]

    def market(self, queue: QueueModel, oracle: Oracle | None = None, pins: Pins | None = None) -> Market:
        """Return where the workloads of `queue` look for flavors; without `oracle`, nobody would have to leave."""
        tree = self.ensure()
        node = tree.queues[queue.name]
        ask = oracle.ask if oracle is not None else None
        return Market(tree, node, queue.catalogue, self.flavors, self.settings.ignore_undeclared, ask, pins)

    def oracle(self, entry: Entry, queue: QueueModel, claimed: frozenset[str] = frozenset()) -> Oracle | None:
        """Return who tells what preemption could do for `entry`; None in a queue that may not preempt."""
        policy = queue.spec.preemption
        if not preempts(policy):
            return None
        tree = self.ensure()
        scene = Scene(tree=tree, holders=self.holders, claimed=claimed, closed=self.closed)
        return Oracle(
            scene=scene,
            node=tree.queues[queue.name],
            policy=policy,
            priority=entry.priority,
            timestamp=entry.timestamp,
            strategies=self.settings.fair_sharing,
        )

    def room(self, queue: QueueModel) -> Room:
        """Return what a queue has and might get; the tree must be up to date."""
        found = self.rooms.get(queue.name)
        if found is None or found.tree is not self.ledger.tree:
            policy = queue.spec.preemption
            tree = self.ensure()
            fair = bool(self.settings.fair_sharing)
            node = tree.queues[queue.name]
            found = Room(tree, node, policy, self.holders, self.foreign, preempts(policy), fair)
            self.rooms[queue.name] = found
        return found

    def offer(self, queue: QueueModel) -> None:
        """Make a queue ready if it admits and has a head."""
        if self.outdated or not queue.admits or not queue.pending.stirs():
            return
        self.ready.setdefault(self.node(queue.name).root, {})[queue.name] = None

    def namespace_defaults(self, namespace: str) -> Defaults:
        """Return what a namespace adds to its pods."""
        found = self.defaults.get(namespace)
        if found is None:
            keys = sorted(key for key in self.limit_ranges if key.namespace == namespace)
            found = Defaults(
                limit_ranges=tuple(self.limit_ranges[key] for key in keys), runtime_classes=self.runtime_classes
            )
            self.defaults[namespace] = found
        return found

    # -- charges -------------------------------------------------------------------------------------------------

    def settle(self, entry: Entry) -> None:
        """Charge an entry what is due and wake what waits for the cells that came free."""
        before, root_of = entry.charged, entry.charged_queue
        if not root_of and entry.counted is None and entry.phase not in RESERVING and entry.held_counts is None:
            entry.evicted = False
            return  # it had nothing, and nothing is due to it
        if root_of:
            self.generations[root_of] = self.generations.get(root_of, 0) + 1
        asked = entry.evicted
        freed: Collection[Cell] = self.ledger.settle(entry)
        if entry.phase not in RESERVING:
            entry.evicted = False
        now = entry.charged_queue, entry.charged
        usage = self.wakes.keeping.recharged(self.ledger.tree, (root_of, before), now)
        if self.holders.note(entry):  # its priority or its being evicted: others may choose it now
            freed = entry.charged
        if freed and not asked and self.settings.preemption_patience > 0:
            self.patience.ended(self.ledger.tree, root_of, usage, self.now)
        if freed:
            boost = self.settings.priority_boost
            self.released(root_of, freed, effective_priority(entry.workload, boost=boost), usage)

    def released(self, name: str, cells: Collection[Cell], priority: int, usage: Usage) -> None:
        """Wake what waits in the tree of queue `name` for `cells`; `usage` came free by somebody of `priority`."""
        tree = self.ledger.tree
        if self.outdated or tree is None or name not in tree.queues:
            return
        root = tree.queues[name].root
        self.releases[root] = self.releases.get(root, 0) + 1
        self.touch(root)
        if self.period(root) <= 0:
            self.release_anything(root, cells)
            self.resettle(root, cells)
            return
        self.wakes.released(tree.queues[name], usage, cells, priority, self.now, self.settings)
        for node in tree.members.get(root, ()):
            queue = self.queues[node.name]
            blocked = queue.pending.blocked
            if blocked is None or self.patience.waits_on(blocked, tree, node, self.now):
                continue
            if queue.pending.wake_blocked(self.room(queue)):
                self.offer(queue)

    def kept(self, root: str) -> Kept:
        """Return what is kept in a tree now."""
        return Kept(self.wakes.keeping, root, self.wakes.since(root, self.now, self.settings))

    def period(self, root: str) -> float:
        """Return for how many seconds wake-ups in a tree are collected now; 0 where nobody could be preempted."""
        period = self.wakes.period(root, self.settings)
        if period <= 0:
            return 0.0
        peaceful = self.peaceful.get(root)
        if peaceful is None:
            members = self.ensure().members.get(root, ())
            peaceful = not any(preempts(self.queues[node.name].spec.preemption) for node in members)
            self.peaceful[root] = peaceful
        return 0.0 if peaceful else period

    def preempted(self, root: str, victim: Entry) -> None:
        """Note that `victim` has to leave for somebody; keep what comes free for longer if it was let in just now."""
        settings = self.settings
        if 0 < settings.wake_period_max >= self.now + self.unix_offset - victim.reserved_at:
            self.wakes.preempted_soon(root, settings)

    def next_turn(self) -> bool:
        """Wake whose turn it is in the trees that had a release; False if that was nobody and all had their turn."""
        waiting: dict[str, set[int]] = {}  # priorities; nobody comes or goes meanwhile
        while self.wakes.turns:
            for root in list(self.wakes.turns):
                if root not in waiting:
                    members = self.ensure().members.get(root, ())
                    waiting[root] = {one for node in members for one in self.queues[node.name].pending.priorities}
                turn = self.wakes.turn(root, waiting[root])
                if turn is not None:
                    band, cells = turn
                    self.release_anything(root, cells, band)
                    self.resettle(root, cells, band=band)
            if self.ready:
                return True
        return False

    def release_anything(self, root: str, cells: Collection[Cell] | None = None, band: Band | None = None) -> None:
        """Wake all in a tree (and `band`) for whom any release (in `cells` of their queue) may matter."""
        everything = bool(self.settings.fair_sharing)  # shares are of all flavors and resources together
        for node in self.ensure().members.get(root, ()):
            queue = self.queues[node.name]
            concerned = everything or not cells or not queue.cells.isdisjoint(cells)
            if concerned and queue.pending.release_anything(band):
                self.offer(queue)

    def resettle(self, root: str, cells: Collection[Cell], *, wake: bool = True, band: Band | None = None) -> None:
        """Wake what waits in the tree of `root` (and `band`) and lacks nothing any more, looking at `cells` only.

        Without `wake` it waits on, for any release.
        """
        tree, kept = self.ensure(), self.kept(root)
        for node in tree.members.get(root, ()):
            queue = self.queues[node.name]
            if queue.pending.release(cells, self.room(queue), kept, wake=wake, band=band):
                self.offer(queue)

    def touch(self, root: str) -> None:
        """Note that something in the tree of `root` changed: heads that had lost are tried again."""
        self.versions[root] = self.versions.get(root, 0) + 1
        for name in self.stalled.pop(root, {}):
            self.offer(self.queues[name])

    # -- places --------------------------------------------------------------------------------------------------

    def place(self, entry: Entry) -> None:
        """Put a workload where it belongs: into its queue, aside, or out; and note what has to be said."""
        if entry.phase is not Phase.PENDING:
            self.unqueue(entry)
            self.tell(entry, None)
            return
        target, said = self._target(entry)
        if entry.blocked:
            said = None  # who keeps it out says why
        if target is None:
            self.unqueue(entry)
            self.tell(entry, said)
            return
        reading = self.reader.read(entry.workload, self.namespace_defaults(entry.key.namespace))
        if reading.invalid:
            self.unqueue(entry)
            self.tell(entry, (texts.MISCONFIGURED, texts.invalid_resources(reading.invalid)))
            return
        if entry.queued_local not in (None, entry.local_queue):  # submitted to another one of the same ClusterQueue
            self.ledger.wait(entry.queue, entry.queued_local, -1)
            self.ledger.wait(entry.queue, entry.local_queue, 1)
            entry.queued_local = entry.local_queue
        out = entry.blocked or (entry.backoff_until is not None and entry.backoff_until > self.now)
        same = (entry.queue, entry.shape, entry.timestamp) == (target.name, reading.shape, reading.timestamp)
        same = same and entry.obstacle == reading.obstacle
        failed = target.pending.blocked is entry and has_failed_checks(entry.workload)  # it waits for no quota then
        failed = failed or target.pending.bars(entry)
        if not same or failed or out or entry.uid in target.pending.aside:
            sticky = target.pending.sticky is entry
            self.unqueue(entry)
            entry.priority, entry.timestamp = reading.priority, reading.timestamp
            entry.pod_sets, entry.shape = reading.pod_sets, reading.shape
            entry.search_anew()
            entry.obstacle = reading.obstacle
            self._queue(entry, target, out=out)
            if sticky:
                target.pending.sticky = entry
                self.offer(target)
        if said is not None or entry.blocked:
            self.tell(entry, said)
        elif texts.ends_when_queued(entry.want or entry.told):  # no longer true; who is not evaluated soon says so
            if (entry.want or entry.told or ("", ""))[0] == texts.ADMISSION_GATED:
                self.tell(entry, (texts.PENDING_EVALUATION, texts.GATE_CLEARED))
                return
            entry.want = entry.told = None
            self.untold.pop(entry.uid, None)
            target.pending.tell_again(entry)
            heapq.heappush(self.unevaluated, (self.now + self.settings.pending_text_after, entry.uid, entry.ticket))

    def _target(self, entry: Entry) -> tuple[QueueModel | None, tuple[str, str] | None]:
        """Return the queue that `entry` belongs into (None: none) and what its condition has to say about that."""
        own = out_of_queue_reason(entry.workload)
        if own is not None:
            return None, own if own[0] else None
        local = self.local_queues.get(entry.local_queue)
        if local is None:
            return None, (texts.MISCONFIGURED, texts.missing("LocalQueue", entry.workload.spec.queue_name))
        if local.stopped:
            return None, (texts.SUSPENDED, texts.inactive("LocalQueue", entry.workload.spec.queue_name))
        queue = self.queues.get(local.object.spec.cluster_queue)
        if queue is None:
            return None, (texts.MISCONFIGURED, texts.missing("ClusterQueue", local.object.spec.cluster_queue))
        if not queue.admits:
            return queue, (texts.SUSPENDED, texts.inactive("ClusterQueue", queue.name))
        return queue, None

    def _queue(self, entry: Entry, queue: QueueModel, *, out: bool) -> None:
        entry.queue, entry.queued_local = queue.name, entry.local_queue
        self.ledger.wait(queue.name, entry.local_queue, 1)
        if out:
            self.aside(entry, queue)
            return
        one = queue.pending.add(entry)
        root = "" if self.outdated else self.node(queue.name).root
        if one.parked:
            if one.bypass_reason:
                self.bypassed[id(one)] = one
        elif root and self._holds(root, queue, one, entry):
            pass
        elif root:
            self.touch(root)
            self.offer(queue)
        if entry.told is None and entry.want is None:
            heapq.heappush(self.unevaluated, (self.now + self.settings.pending_text_after, entry.uid, entry.ticket))

    def _holds(self, root: str, queue: QueueModel, one: PendingClass, entry: Entry) -> bool:
        """Let a workload that arrives wait where what it needs is kept from it, and others were let in too early."""
        if not self.wakes.careful(root, self.settings):
            return False
        demand = queue.pending.demand(entry, self.built, lambda: demand_of(self.market(queue), entry.pod_sets))
        if demand is None:  # it has a choice of flavors
            return self.wakes.keeping.above(root, entry.priority) and queue.pending.hold(one, ())
        needs = tuple(demand.usage.items())
        left = self.kept(root).leaves(needs, self.room(queue), entry.priority, within=False)
        return not left and queue.pending.hold(one, needs)

    def aside(self, entry: Entry, queue: QueueModel) -> None:
        """Keep a queued entry out of the order until its backoff ends, it is let in, or something about it changes."""
        queue.pending.set_aside(entry)
        if entry.backoff_until is not None and self.now < entry.backoff_until < float("inf"):
            heapq.heappush(self.backoffs, (entry.backoff_until, entry.uid))

    def unqueue(self, entry: Entry) -> None:
        """Take an entry out of its queue, if it is in one."""
        if not entry.queue:
            return
        queue = self.queues.get(entry.queue)
        if entry.queued_local is not None:
            self.ledger.wait(entry.queue, entry.queued_local, -1)
        entry.queue, entry.queued_local = "", None
        self.patience.waiting.pop(entry.uid, None)
        if queue is None:
            return
        kept_room = queue.pending.blocked is entry and queue.pending.blocked_reserves
        queue.pending.remove(entry)
        self.offer(queue)
        if self.outdated:
            return
        root = self.node(queue.name).root
        self.touch(root)
        if kept_room:  # who was parked beside it may be one to fit
            self.release_anything(root)

    def selects(self, queue: QueueModel, namespace: str) -> bool:
        """Return whether a ClusterQueue takes workloads of a namespace; one that is not known is never selected."""
        labels = self.namespaces.get(namespace)
        return labels is not None and selector_matches(queue.spec.namespace_selector, labels)

    # -- texts ---------------------------------------------------------------------------------------------------

    def tell(self, entry: Entry, said: tuple[str, str] | None) -> None:
        """Note what the condition QuotaReserved=False of `entry` has to say; nothing is sent if it says so already."""
        entry.want = said
        if said is not None and said != entry.told:
            self.untold[entry.uid] = entry
        else:
            self.untold.pop(entry.uid, None)
