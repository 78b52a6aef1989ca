"""kueue.x-k8s.io/v1beta2: queues, flavors, checks, Workload, MultiKueue configuration."""

from __future__ import annotations

from gatelift_kube.objects.core import PodTemplate, Quantity, Taint, Toleration
from gatelift_kube.objects.meta import Condition, LabelSelector, ObjectMeta, StatusEntry, Struct


class FlavorResource(Struct, frozen=True, gc=False):
    """Quota of one resource in one flavor; None limits are unlimited borrowing, whole nominal lent."""

    name: str
    """The resource: cpu, memory, or an extended one."""
    nominal_quota: Quantity = 0
    """What the queue, or cohort, has by itself."""
    borrowing_limit: Quantity | None = None
    """What it may use beyond that of its cohort's; not set: without a limit."""
    lending_limit: Quantity | None = None
    """What others of its cohort may use of it; not set: all."""


class FlavorQuotas(Struct, frozen=True, gc=False):
    """Quotas of one flavor."""

    name: str
    """Name of a ResourceFlavor."""
    resources: tuple[FlavorResource, ...] = ()


class ResourceGroup(Struct, frozen=True, gc=False):
    """Resources that are taken from one flavor together; flavors are tried in order."""

    covered_resources: tuple[str, ...] = ()
    """Each in one group only; each flavor has a quota for each, in this order."""
    flavors: tuple[FlavorQuotas, ...] = ()


class FlavorFungibility(Struct, frozen=True, gc=False):
    """When the search goes on to the next flavor."""

    when_can_borrow: str = "MayStopSearch"
    """MayStopSearch takes a flavor that fits by borrowing; TryNextFlavor looks for one without."""
    when_can_preempt: str = "TryNextFlavor"
    """The same of a flavor that fits after preemption."""
    preference: str | None = None
    """Which of the two is better where both are tried to the end."""


class BorrowWithinCohort(Struct, frozen=True, gc=False):
    """Preemption of others while borrowing."""

    policy: str = "Never"
    """LowerPriority: who would borrow may preempt those of lower priority in other queues; Never."""
    max_priority_threshold: int | None = None
    """Only victims of at most this priority; not set: of any."""


class Preemption(Struct, frozen=True, gc=False):
    """Preemption policies of a ClusterQueue."""

    within_cluster_queue: str = "Never"
    """Whom a workload may preempt in its own queue."""
    reclaim_within_cohort: str = "Never"
    """From whom in its cohort a queue may take back what they borrowed of it."""
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


class AdmissionCheckRule(Struct, frozen=True, gc=False):
    """A check of a ClusterQueue; empty `on_flavors` means all flavors."""

    name: str
    """Name of an AdmissionCheck."""
    on_flavors: tuple[str, ...] = ()
    """Flavors of this queue for which it counts."""


class AdmissionChecksStrategy(Struct, frozen=True, gc=False):
    """The checks of a ClusterQueue."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class FairSharing(Struct, frozen=True, gc=False):
    """Weight in fair sharing."""

    weight: Quantity = 1
    """A share twice as heavy may be twice as large."""


class ClusterQueueSpec(Struct, frozen=True, gc=False):
    """ClusterQueue.spec."""

    cohort_name: str = ""
    """The cohort in which unused quota is lent and borrowed; none: the queue stands alone."""
    queueing_strategy: str = "BestEffortFIFO"
    """StrictFIFO: who waits first goes first; BestEffortFIFO: who does not fit keeps nobody else."""
    namespace_selector: LabelSelector | None = None
    """Namespaces whose LocalQueues may use it; not set selects none, {} all."""
    resource_groups: tuple[ResourceGroup, ...] = ()
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: Preemption = Preemption()
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    """Hold admits nothing more, HoldAndDrain evicts what is admitted, too."""
    fair_sharing: FairSharing | None = None


class ResourceUsage(Struct, frozen=True, gc=False):
    """Usage of one resource in one flavor, as shown in a queue's status."""

    name: str
    """The resource."""
    total: Quantity = 0
    """What is used in all."""
    borrowed: Quantity = 0
    """What of it is the cohort's."""


class FlavorUsage(Struct, frozen=True, gc=False):
    """Usage of one flavor, as shown in a queue's status."""

    name: str
    """The flavor."""
    resources: tuple[ResourceUsage, ...] = ()


class FairSharingStatus(Struct, frozen=True, gc=False):
    """What a ClusterQueue or Cohort borrows, weighed; shown where fair sharing is on."""

    weighted_share: int = 0
    """The largest share of a resource that is borrowed, in thousandths, divided by the weight."""


class QueueStatus(Struct, frozen=True, gc=False):
    """Status of ClusterQueue and LocalQueue."""

    conditions: tuple[Condition, ...] = ()
    pending_workloads: int = 0
    """How many wait."""
    reserving_workloads: int = 0
    """How many hold quota."""
    admitted_workloads: int = 0
    """How many are admitted and not finished."""
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    """What all that hold quota use."""
    flavors_usage: tuple[FlavorUsage, ...] = ()
    """What those that are admitted use."""
    fair_sharing: FairSharingStatus | None = None  # of a ClusterQueue


class ClusterQueue(Struct, frozen=True, gc=False):
    """ClusterQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: QueueStatus = QueueStatus()


class LocalQueueSpec(Struct, frozen=True, gc=False):
    """LocalQueue.spec."""

    cluster_queue: str = ""
    """The ClusterQueue whose quota is used; immutable."""
    stop_policy: str | None = None
    """Hold admits nothing more, HoldAndDrain evicts what is admitted, too."""
    fair_sharing: FairSharing | None = None


class LocalQueue(Struct, frozen=True, gc=False):
    """LocalQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: QueueStatus = QueueStatus()


class CohortSpec(Struct, frozen=True, gc=False):
    """Cohort.spec."""

    parent_name: str = ""
    """The cohort above it; none: it is a root."""
    resource_groups: tuple[ResourceGroup, ...] = ()
    """Quota that all below it share, besides their own."""
    fair_sharing: FairSharing | None = None


class CohortStatus(Struct, frozen=True, gc=False):
    """Cohort.status."""

    fair_sharing: FairSharingStatus | None = None


class Cohort(Struct, frozen=True, gc=False):
    """Cohort."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CohortSpec = CohortSpec()
    status: CohortStatus = CohortStatus()


class ResourceFlavorSpec(Struct, frozen=True, gc=False):
    """ResourceFlavor.spec."""

    node_labels: dict[str, str] = {}
    """Labels of its nodes; added to the node selector of what is admitted to it."""
    node_taints: tuple[Taint, ...] = ()
    """Taints of its nodes, which a workload has to tolerate."""
    tolerations: tuple[Toleration, ...] = ()
    """Added to the pods that are admitted to it."""
    topology_name: str | None = None
    """Not served: nodes are chosen by the scheduler of the cluster."""


class ResourceFlavor(Struct, frozen=True, gc=False):
    """ResourceFlavor."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadPriorityClass(Struct, frozen=True, gc=False):
    """WorkloadPriorityClass."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    """The priority; higher goes first."""
    description: str = ""
    """Words for people."""


class AdmissionCheckParameters(Struct, frozen=True, gc=False):
    """What an AdmissionCheck's controller is configured by."""

    api_group: str = ""
    """Group of the object; kueue.x-k8s.io for a MultiKueueConfig."""
    kind: str = ""
    """Kind of the object."""
    name: str = ""
    """Name of the object."""


class AdmissionCheckSpec(Struct, frozen=True, gc=False):
    """AdmissionCheck.spec."""

    controller_name: str = ""
    """Who decides it: kueue.x-k8s.io/multikueue is the dispatch to worker clusters; immutable."""
    parameters: AdmissionCheckParameters | None = None


class ConditionsStatus(Struct, frozen=True, gc=False):
    """A status that is only conditions."""

    conditions: tuple[Condition, ...] = ()


class AdmissionCheck(Struct, frozen=True, gc=False):
    """AdmissionCheck."""

    metadata: ObjectMeta = ObjectMeta()
    spec: AdmissionCheckSpec = AdmissionCheckSpec()
    status: ConditionsStatus = ConditionsStatus()


class MultiKueueConfigSpec(Struct, frozen=True, gc=False):
    """MultiKueueConfig.spec; the order of `clusters` matters to the incremental dispatcher."""

    clusters: tuple[str, ...] = ()
    """Names of WorkerClusters that may run the work."""


class MultiKueueConfig(Struct, frozen=True, gc=False):
    """MultiKueueConfig."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MultiKueueConfigSpec = MultiKueueConfigSpec()


class KubeConfigSource(Struct, frozen=True, gc=False):
    """A kubeconfig in a Secret of the manager's namespace, or in a file."""

    location: str = ""
    """Name of the Secret, or path of the file."""
    location_type: str = "Secret"
    """Secret or Path."""


class ClusterProfileReference(Struct, frozen=True, gc=False):
    """A ClusterProfile by name."""

    name: str = ""
    """Name of the ClusterProfile."""


class ClusterSource(Struct, frozen=True, gc=False):
    """Where a MultiKueueCluster's credentials are; exactly one of the two."""

    kube_config: KubeConfigSource | None = None
    cluster_profile_ref: ClusterProfileReference | None = None


class MultiKueueClusterSpec(Struct, frozen=True, gc=False):
    """MultiKueueCluster.spec."""

    cluster_source: ClusterSource = ClusterSource()


class MultiKueueCluster(Struct, frozen=True, gc=False):
    """MultiKueueCluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MultiKueueClusterSpec = MultiKueueClusterSpec()
    status: ConditionsStatus = ConditionsStatus()


class TopologyRequest(Struct, frozen=True, gc=False):
    """What a pod set asks of the topology. Acted on is the group alone, which counts without a topology, too."""

    pod_set_group_name: str = ""
    """Pod sets of one group get the same flavors: together, as one."""


class PodSet(Struct, frozen=True, gc=False):
    """Pods of one shape."""

    name: str = "main"
    """Its name in the Workload."""
    count: int = 1
    """How many pods."""
    min_count: int | None = None
    template: PodTemplate = PodTemplate()
    topology_request: TopologyRequest | None = None


class PriorityClassRef(Struct, frozen=True, gc=False):
    """Where a Workload's priority comes from."""

    group: str = ""
    """kueue.x-k8s.io or scheduling.k8s.io."""
    kind: str = ""
    """WorkloadPriorityClass or PriorityClass."""
    name: str = ""
    """Name of the class."""


class WorkloadSpec(Struct, frozen=True, gc=False):
    """Workload.spec."""

    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    """The LocalQueue in which it waits."""
    priority_class_ref: PriorityClassRef | None = None
    priority: int | None = None
    """The priority; higher goes first."""
    active: bool = True
    """False takes it out of the queue, and stops what runs."""
    maximum_execution_time_seconds: int | None = None
    """It is deactivated when it has run as long in all."""


class PodSetAssignment(StatusEntry, frozen=True, gc=False):
    """What one pod set was granted: flavor per resource, usage in total, count."""

    name: str = "main"
    """The pod set."""
    flavors: dict[str, str] = {}
    """The flavor that was given, by resource."""
    resource_usage: dict[str, Quantity] = {}
    """What all its pods use, by resource."""
    count: int | None = None
    """How many pods were granted; fewer than asked for after partial admission."""


class Admission(StatusEntry, frozen=True, gc=False):
    """Workload.status.admission: the reservation."""

    cluster_queue: str
    """The ClusterQueue whose quota it holds."""
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class PodSetUpdate(StatusEntry, frozen=True, gc=False):
    """Changes to a pod set that a check asks for. Gatelift keeps its placement record in the annotations."""

    name: str
    """The pod set."""
    labels: dict[str, str] = {}
    """Labels that its pods get."""
    annotations: dict[str, str] = {}
    """Annotations that its pods get."""
    node_selector: dict[str, str] = {}
    """Node selectors that its pods get."""
    tolerations: tuple[Toleration, ...] = ()
    """Tolerations that its pods get."""


class AdmissionCheckState(StatusEntry, frozen=True, gc=False):
    """State of one check: Pending, Ready, Retry, Rejected."""

    name: str
    """The AdmissionCheck."""
    state: str = "Pending"
    """Pending, Ready, Retry (tried again later) or Rejected (deactivated)."""
    message: str = ""
    """Why, for people."""
    last_transition_time: str | None = None
    """When the state last changed."""
    requeue_after_seconds: int | None = None
    """How long a Retry waits at least."""
    retry_count: int | None = None
    """How often it was Retry."""
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class ReclaimablePod(StatusEntry, frozen=True, gc=False):
    """Pods of a pod set that no longer need quota."""

    name: str
    """The pod set."""
    count: int = 0
    """How many of its pods."""


class RequeueState(StatusEntry, frozen=True, gc=False):
    """Backoff after an eviction."""

    count: int = 0
    """How often it was put back."""
    requeue_at: str | None = None
    """When it queues again."""


class EvictionCount(StatusEntry, frozen=True, gc=False):
    """How often a workload was evicted for one reason."""

    reason: str
    """The reason of the condition Evicted."""
    underlying_cause: str = ""
    """What led to it."""
    count: int = 0
    """How often."""


class SchedulingStats(StatusEntry, frozen=True, gc=False):
    """Workload.status.schedulingStats."""

    evictions: tuple[EvictionCount, ...] = ()


class PodSetResources(StatusEntry, frozen=True, gc=False):
    """What all counted pods of one pod set ask for, as the queue counts it."""

    name: str
    """The pod set."""
    resources: dict[str, Quantity] = {}
    """The requests, by resource."""


class WorkloadStatus(StatusEntry, frozen=True, gc=False):
    """Workload.status."""

    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    cluster_name: str | None = None
    """The worker cluster that runs it; empty while none was chosen, and at home."""
    nominated_cluster_names: tuple[str, ...] = ()
    """Clusters that are asked."""
    reclaimable_pods: tuple[ReclaimablePod, ...] = ()
    requeue_state: RequeueState | None = None
    scheduling_stats: SchedulingStats | None = None
    resource_requests: tuple[PodSetResources, ...] = ()
    """Of a workload that was considered and has no admission, whose usage says more."""
    accumulated_past_execution_time_seconds: int | None = None
    """How long it ran in earlier admissions."""


class Workload(Struct, frozen=True, gc=False):
    """Workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
