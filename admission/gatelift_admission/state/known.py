"""All that the engine knows, and the quota tree as it stands: built anew once what it follows from has changed.

Objects come in through `engine`, and `places` puts workloads into queues. A change of structure marks the tree as
outdated; it is rebuilt once, before the next decision. A change of a workload names it for review; the cycle reviews
before it decides. Both keep intake cheap and make order of arrival irrelevant. Neighbours: `charging` charges a
Workload, `wakeups` looks again at what waits.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from gatelift_admission.charges.chains import Chains
from gatelift_admission.charges.debts import Debts
from gatelift_admission.charges.holders import Holders
from gatelift_admission.charges.ledger import Ledger
from gatelift_admission.charges.loans import Loans
from gatelift_admission.demand.growth import Held
from gatelift_admission.demand.requests import Defaults
from gatelift_admission.entries.entry import Entry
from gatelift_admission.entries.reading import WorkloadReader
from gatelift_admission.entries.standings import FAULTY
from gatelift_admission.flavors.assignment import Pins
from gatelift_admission.flavors.matching import selector_matches
from gatelift_admission.flavors.search import Market
from gatelift_admission.preemption.candidates import Scene
from gatelift_admission.preemption.oracle import Foreign, Oracle, QueueRoom, preempts
from gatelift_admission.preemption.postponed import PostponedPreemptions
from gatelift_admission.queues.models import (
    LocalModel,
    QueueModel,
    cluster_queue_active,
    node_spec,
    readable_quotas,
    weight_of,
)
from gatelift_admission.queues.stale import Stale, grows_old
from gatelift_admission.quota import adrift
from gatelift_admission.quota.nodes import TreeNode, TreeNodeSpec
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.model import Amounts, EngineSettings, Fault, Usage
from gatelift_admission.waking.equals import PendingClass
from gatelift_admission.waking.timing import Wakes
from gatelift_kube.objects.core import LimitRange, RuntimeClass
from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, Cohort, ResourceFlavor
from gatelift_kube.values.resources import ObjectKey


class Member(NamedTuple):
    """A ClusterQueue in the tree as it is built now."""

    queue: QueueModel
    node: TreeNode
    room: QueueRoom


@dataclass(slots=True)
class State:
    """Everything known. Each room above is given it."""

    settings: EngineSettings = field(default_factory=EngineSettings)
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
    chains: Chains = field(default_factory=Chains)
    debts: Debts = field(default_factory=Debts)
    loans: Loans = field(default_factory=Loans)
    adrift: dict[str, Amounts] = field(default_factory=dict)
    """UIDs of workloads that run and were charged in a queue that is not known -> what they request (`ghosts`)."""
    foreign: Foreign = field(default_factory=Foreign)
    generations: dict[str, int] = field(default_factory=dict)
    """Per ClusterQueue: how often a charge in it ended or was replaced (not: began)."""
    members: dict[str, list[Member]] = field(default_factory=dict)
    """The queues of each tree, by root, as long as it stands; those in a cycle of cohorts are in none."""
    rooms: dict[str, QueueRoom] = field(default_factory=dict)
    """Answers of `room`, as long as the tree stands."""
    closed: set[str] = field(default_factory=set)
    """ClusterQueues that do not admit; what they hold is not preempted either."""
    outdated: bool = True
    doubtful: bool = False
    """Counts, the index of holders and the queues may be half changed: made anew before the tree is."""
    built: int = 0
    """How often the tree was built."""
    versions: dict[str, int] = field(default_factory=dict)
    """Per root: raised whenever something changed that may help a head that had lost."""
    releases: dict[str, int] = field(default_factory=dict)
    """Per root: how often quota was released."""
    outside: dict[str, int] = field(default_factory=dict)
    """Per root: how often a workload arrived, changed or released quota, other than by a preemption."""
    ready: OrderedDict[str, dict[str, None]] = field(default_factory=OrderedDict)
    """Queues that may have a head worth evaluating, by root."""
    stalled: dict[str, dict[str, None]] = field(default_factory=dict)
    """Queues whose head lost to another entry in a round that changed nothing: ready again when the root changes."""
    review: OrderedDict[str, Entry] = field(default_factory=OrderedDict)
    untold: OrderedDict[str, Entry] = field(default_factory=OrderedDict)
    faults: list[Fault] = field(default_factory=list)
    """Workloads that were set aside since the last call."""
    bypassed: dict[int, PendingClass] = field(default_factory=dict)
    backoffs: list[tuple[float, str]] = field(default_factory=list)
    peaceful: dict[str, bool] = field(default_factory=dict)
    """Roots of whose queues none may preempt, as far as asked; forgotten when the tree is rebuilt."""
    wakes: Wakes = field(default_factory=Wakes)
    """When pending classes are woken after a release; forgotten when the tree is rebuilt."""
    postponed: PostponedPreemptions = field(default_factory=PostponedPreemptions)
    """Preemptions that are postponed, since victims may end without them."""
    unevaluated: deque[tuple[float, str]] = field(default_factory=deque)
    """UIDs of workloads whose condition has to say by when that they wait, unless evaluated before; earliest first."""
    stale: Stale = field(default_factory=Stale)
    """Whose texts may have grown old."""
    unreachable: set[str] = field(default_factory=set)
    """UIDs of workloads that cannot be stopped now: they are not preempted."""
    defaults: dict[str, Defaults] = field(default_factory=dict)
    reader: WorkloadReader = field(init=False)

    def __post_init__(self) -> None:
        """Read workloads by the settings."""
        self.reader = WorkloadReader(self.settings)

    # -- structure -----------------------------------------------------------------------------------------------

    def restructure(self) -> None:
        """Note that queues, cohorts, flavors or checks changed: all that waits is looked at again."""
        self.outdated = True

    def distrust(self) -> None:
        """Note that an exception has cut a change: what follows from the entries is made anew before it is used."""
        self.doubtful = self.outdated = True

    def ensure(self) -> Tree:
        """Return the tree, rebuilt from specs and charges if anything in the structure changed."""
        tree = self.ledger.tree
        if tree is not None and not self.outdated:
            return tree
        try:
            if self.doubtful:
                self._make_anew()
            return self._build()
        except Exception:
            self.distrust()
            raise

    def _make_anew(self) -> None:
        """Make counts, the index of holders and the queues anew from the entries."""
        self.chains.recharge()
        for entry, error in self.holders.recount(self.entries.values()):
            self._leaves_out(entry, error)
        waiting: dict[str, list[Entry]] = {}
        for entry in self.entries.values():
            if entry.queue:
                waiting.setdefault(entry.queue, []).append(entry)
        self.ledger.recount(self.entries.values())
        for name, queue in self.queues.items():
            queue.pending = queue.pending.anew(waiting.get(name, []))
        self.bypassed.clear()
        self.doubtful = False

    def _leaves_out(self, entry: Entry, error: Exception) -> None:
        """Tell, once, of a workload that is charged and of which not even what it holds can be listed: it is aside."""
        if entry.standing is not FAULTY:
            entry.stand_aside()
            self.faults.append(Fault(uid=entry.uid, key=entry.key, error=error))

    def _build(self) -> Tree:
        """Build the tree, and look at all again that waits."""
        self.debts.forget_left()
        old, tree = self.ledger.tree, Tree(*self.tree_specs())
        if old is not None:
            self.debts.note(old, tree, self.holders)
            self.loans.note(old, tree)
        self.ledger.rebuild(tree)
        self.debts.charge(tree, self.holders, [name for name, one in self.ledger.queues.items() if one.reserved_usage])
        self.loans.charge(tree)
        adrift.charge(tree, self.adrift.values())
        self.outdated = False
        self.built += 1
        self.versions.clear()
        self.releases.clear()
        self.outside.clear()
        self.ready.clear()
        self.stalled.clear()
        self.wakes.clear()
        self.postponed.clear()
        self.wakes.queues = {root: len(members) for root, members in tree.members.items()}
        self.rooms = {name: self._room(tree, queue) for name, queue in self.queues.items()}
        self.members = {
            root: [Member(self.queues[node.name], node, self.rooms[node.name]) for node in nodes]
            for root, nodes in tree.members.items()
        }
        self.peaceful.clear()
        self.closed.clear()
        self.generations = {name: number for name, number in self.generations.items() if name in self.queues}
        for name in sorted(self.queues):
            queue = self.queues[name]
            was = queue.admits
            queue.cyclic, queue.root = name in tree.cyclic, tree.queues[name].root
            queue.active = cluster_queue_active(queue.object, self.flavors, self.checks)
            if not queue.admits:
                self.closed.add(name)
            self.wake_queue(queue)
            if was != queue.admits:
                self.review_queue(name)
        self.stale.regroup([(entry, self._root_of(entry)) for entry in self.stale.noted()], self.now)
        return tree

    def tree_specs(self) -> tuple[list[TreeNodeSpec], list[TreeNodeSpec]]:
        """Return the nodes of the tree as configured: queues and cohorts."""
        queues = [node_spec(queue.object) for queue in self.queues.values()]
        cohorts = [
            TreeNodeSpec(
                name=name,
                parent=cohort.spec.parent_name,
                quotas=readable_quotas(cohort.spec.resource_groups),
                weight=weight_of(cohort.spec.fair_sharing),
            )
            for name, cohort in self.cohorts.items()
        ]
        cohorts += [TreeNodeSpec(name=name) for name in self.debts.lenders() if name not in self.cohorts]
        return queues, cohorts

    def wake_queue(self, queue: QueueModel) -> None:
        """Evaluate all again that is pending in a queue."""
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

    def node(self, name: str) -> TreeNode:
        """Return the node of an existing queue; the tree must be up to date."""
        tree = self.ledger.tree
        if tree is None:
            raise RuntimeError("the quota tree was not built: call ensure() first")
        return tree.queues[name]

    def market(
        self, queue: QueueModel, oracle: Oracle | None = None, pins: Pins | None = None, held: Held | None = None
    ) -> Market:
        """Return where the workloads of `queue` look for flavors; without `oracle`, nothing is preempted."""
        tree = self.ensure()
        node = tree.queues[queue.name]
        ask = oracle.ask if oracle is not None else None
        return Market(tree, node, queue.catalogue, self.flavors, self.settings.ignore_undeclared, ask, pins, held)

    def oracle(self, entry: Entry, queue: QueueModel, claimed: frozenset[str] = frozenset()) -> Oracle | None:
        """Return the oracle of what preemption could do for `entry`; None in a queue that may not preempt."""
        policy = queue.spec.preemption
        if not preempts(policy):
            return None
        tree, outside = self.ensure(), self.outside_of(queue.root)
        scene = Scene(
            tree=tree,
            holders=self.holders,
            claimed=claimed,
            closed=self.closed,
            unreachable=self.unreachable,
            spared=entry.spares if entry.spares and entry.spares_of == outside else (),
            outside=outside,
            chain=entry.of_chain.chain if entry.of_chain is not None else "",
        )
        return Oracle(
            scene=scene,
            node=tree.queues[queue.name],
            policy=policy,
            priority=entry.priority,
            timestamp=entry.timestamp,
            strategies=self.settings.fair_sharing,
        )

    def outside_of(self, root: str) -> tuple[int, int]:
        """Return a version of a tree that changes with all that happens to it but admissions and preemptions."""
        return self.built, self.outside.get(root, 0)

    def happened(self, root: str) -> None:
        """Note a change of a tree that is neither an admission nor a preemption."""
        self.outside[root] = self.outside.get(root, 0) + 1

    def room(self, queue: QueueModel) -> QueueRoom:
        """Return what a queue has and might get; the tree must be up to date."""
        return self.rooms[queue.name]

    def _room(self, tree: Tree, queue: QueueModel) -> QueueRoom:
        policy, fair = queue.spec.preemption, bool(self.settings.fair_sharing)
        return QueueRoom(tree, tree.queues[queue.name], policy, self.holders, self.foreign, preempts(policy), fair)

    def offer(self, queue: QueueModel) -> None:
        """Make a queue ready if it admits and has a head."""
        if self.outdated or not queue.admits or not queue.pending.stirs():
            return
        self.ready.setdefault(queue.root, {})[queue.name] = None

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
        self.note_said(entry)

    def note_said(self, entry: Entry) -> None:
        """Note whether what is said of an entry may grow old."""
        said = entry.want or entry.told
        if said is None and not entry.said_in:
            return  # nearly all
        if said is not None and grows_old(said):
            self.stale.note(entry, self._root_of(entry))
        elif entry.said_in:
            self.stale.note(entry, "")

    def _root_of(self, entry: Entry) -> str:
        """Return the tree in which an entry waits, "" where it waits in none."""
        queue = self.queues.get(entry.queue)
        return queue.root if queue is not None else ""
