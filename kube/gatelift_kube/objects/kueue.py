"""kueue.x-k8s.io/v1beta2: queues, flavors, checks, Workload, MultiKueue configuration."""

from __future__ import annotations

from gatelift_kube.objects.core import PodTemplate, Quantity, Taint, Toleration
from gatelift_kube.objects.meta import Condition, Entry, LabelSelector, ObjectMeta, Struct


class FlavorResource(Struct, frozen=True, gc=False):
    """Quota of one resource in one flavor; None limits are unlimited borrowing, whole nominal lent."""

    name: str
    nominal_quota: Quantity = 0
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Struct, frozen=True, gc=False):
    """Quotas of one flavor."""

    name: str
    resources: tuple[FlavorResource, ...] = ()


class ResourceGroup(Struct, frozen=True, gc=False):
    """Resources that are taken from one flavor together; flavors are tried in order."""

    covered_resources: tuple[str, ...] = ()
    flavors: tuple[FlavorQuotas, ...] = ()


class FlavorFungibility(Struct, frozen=True, gc=False):
    """When the search goes on to the next flavor."""

    when_can_borrow: str = "MayStopSearch"
    when_can_preempt: str = "TryNextFlavor"
    preference: str | None = None


class BorrowWithinCohort(Struct, frozen=True, gc=False):
    """Preemption of others while borrowing."""

    policy: str = "Never"
    max_priority_threshold: int | None = None


class Preemption(Struct, frozen=True, gc=False):
    """Preemption policies of a ClusterQueue."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()


class AdmissionCheckRule(Struct, frozen=True, gc=False):
    """A check of a ClusterQueue; empty `on_flavors` means all flavors."""

    name: str
    on_flavors: tuple[str, ...] = ()


class AdmissionChecksStrategy(Struct, frozen=True, gc=False):
    """The checks of a ClusterQueue."""

    admission_checks: tuple[AdmissionCheckRule, ...] = ()


class FairSharing(Struct, frozen=True, gc=False):
    """Weight in fair sharing."""

    weight: Quantity = 1


class ClusterQueueSpec(Struct, frozen=True, gc=False):
    """ClusterQueue.spec."""

    cohort_name: str = ""
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    preemption: Preemption = Preemption()
    admission_checks_strategy: AdmissionChecksStrategy | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class ResourceUsage(Struct, frozen=True, gc=False):
    """Usage of one resource in one flavor, as shown in a queue's status."""

    name: str
    total: Quantity = 0
    borrowed: Quantity = 0


class FlavorUsage(Struct, frozen=True, gc=False):
    """Usage of one flavor, as shown in a queue's status."""

    name: str
    resources: tuple[ResourceUsage, ...] = ()


class FairSharingStatus(Struct, frozen=True, gc=False):
    """What a ClusterQueue or Cohort borrows, weighed; shown where fair sharing is on."""

    weighted_share: int = 0


class QueueStatus(Struct, frozen=True, gc=False):
    """Status of ClusterQueue and LocalQueue."""

    conditions: tuple[Condition, ...] = ()
    pending_workloads: int = 0
    reserving_workloads: int = 0
    admitted_workloads: int = 0
    flavors_reservation: tuple[FlavorUsage, ...] = ()
    flavors_usage: tuple[FlavorUsage, ...] = ()
    fair_sharing: FairSharingStatus | None = None  # of a ClusterQueue


class ClusterQueue(Struct, frozen=True, gc=False):
    """ClusterQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: QueueStatus = QueueStatus()


class LocalQueueSpec(Struct, frozen=True, gc=False):
    """LocalQueue.spec."""

    cluster_queue: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None


class LocalQueue(Struct, frozen=True, gc=False):
    """LocalQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: QueueStatus = QueueStatus()


class CohortSpec(Struct, frozen=True, gc=False):
    """Cohort.spec."""

    parent_name: str = ""
    resource_groups: tuple[ResourceGroup, ...] = ()
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
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology_name: str | None = None


class ResourceFlavor(Struct, frozen=True, gc=False):
    """ResourceFlavor."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadPriorityClass(Struct, frozen=True, gc=False):
    """WorkloadPriorityClass."""

    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    description: str = ""


class AdmissionCheckParameters(Struct, frozen=True, gc=False):
    """What an AdmissionCheck's controller is configured by."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class AdmissionCheckSpec(Struct, frozen=True, gc=False):
    """AdmissionCheck.spec."""

    controller_name: str = ""
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


class MultiKueueConfig(Struct, frozen=True, gc=False):
    """MultiKueueConfig."""

    metadata: ObjectMeta = ObjectMeta()
    spec: MultiKueueConfigSpec = MultiKueueConfigSpec()


class KubeConfigSource(Struct, frozen=True, gc=False):
    """A kubeconfig in a Secret of the manager's namespace, or in a file."""

    location: str = ""
    location_type: str = "Secret"


class ClusterProfileReference(Struct, frozen=True, gc=False):
    """A ClusterProfile by name."""

    name: str = ""


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


class PodSet(Struct, frozen=True, gc=False):
    """Pods of one shape."""

    name: str = "main"
    count: int = 1
    min_count: int | None = None
    template: PodTemplate = PodTemplate()


class PriorityClassRef(Struct, frozen=True, gc=False):
    """Where a Workload's priority comes from."""

    group: str = ""
    kind: str = ""
    name: str = ""


class WorkloadSpec(Struct, frozen=True, gc=False):
    """Workload.spec."""

    pod_sets: tuple[PodSet, ...] = ()
    queue_name: str = ""
    priority_class_ref: PriorityClassRef | None = None
    priority: int | None = None
    active: bool = True
    maximum_execution_time_seconds: int | None = None


class PodSetAssignment(Entry, frozen=True, gc=False):
    """What one pod set was granted: flavor per resource, usage in total, count."""

    name: str = "main"
    flavors: dict[str, str] = {}
    resource_usage: dict[str, Quantity] = {}
    count: int | None = None


class Admission(Entry, frozen=True, gc=False):
    """Workload.status.admission: the reservation."""

    cluster_queue: str
    pod_set_assignments: tuple[PodSetAssignment, ...] = ()


class PodSetUpdate(Entry, frozen=True, gc=False):
    """Changes to a pod set that a check asks for. Gatelift keeps its placement record in the annotations."""

    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()


class AdmissionCheckState(Entry, frozen=True, gc=False):
    """State of one check: Pending, Ready, Retry, Rejected."""

    name: str
    state: str = "Pending"
    message: str = ""
    last_transition_time: str | None = None
    requeue_after_seconds: int | None = None
    retry_count: int | None = None
    pod_set_updates: tuple[PodSetUpdate, ...] = ()


class ReclaimablePod(Entry, frozen=True, gc=False):
    """Pods of a pod set that no longer need quota."""

    name: str
    count: int = 0


class RequeueState(Entry, frozen=True, gc=False):
    """Backoff after an eviction."""

    count: int = 0
    requeue_at: str | None = None


class EvictionCount(Entry, frozen=True, gc=False):
    """How often a workload was evicted for one reason."""

    reason: str
    underlying_cause: str = ""
    count: int = 0


class SchedulingStats(Entry, frozen=True, gc=False):
    """Workload.status.schedulingStats."""

    evictions: tuple[EvictionCount, ...] = ()


class PodSetResources(Entry, frozen=True, gc=False):
    """What all counted pods of one pod set ask for, as the queue counts it."""

    name: str
    resources: dict[str, Quantity] = {}


class WorkloadStatus(Entry, frozen=True, gc=False):
    """Workload.status."""

    conditions: tuple[Condition, ...] = ()
    admission: Admission | None = None
    admission_checks: tuple[AdmissionCheckState, ...] = ()
    cluster_name: str | None = None
    nominated_cluster_names: tuple[str, ...] = ()
    reclaimable_pods: tuple[ReclaimablePod, ...] = ()
    requeue_state: RequeueState | None = None
    scheduling_stats: SchedulingStats | None = None
    resource_requests: tuple[PodSetResources, ...] = ()
    """Of a workload that was considered and has no admission, whose usage says more."""
    accumulated_past_execution_time_seconds: int | None = None


class Workload(Struct, frozen=True, gc=False):
    """Workload."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()
