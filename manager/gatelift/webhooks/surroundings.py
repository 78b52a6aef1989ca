"""What the rules have to know of an object's surroundings, from watches: namespaces, queues, checks, classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.review import WebhookFacts
from gatelift_kube.api.client import Client
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.cache import Cache
from gatelift_kube.deciding.writes import ApiEvent, KubeObject
from gatelift_kube.objects import selectors
from gatelift_kube.objects.core import Namespace
from gatelift_kube.objects.kueue import AdmissionCheck, ClusterQueue, LocalQueue
from gatelift_kube.objects.meta import LabelSelector
from gatelift_kube.values.resources import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NAMESPACE,
    WORKLOAD_PRIORITY_CLASS,
    ObjectKey,
    Resource,
)

WATCHED: tuple[Resource, ...] = (NAMESPACE, LOCAL_QUEUE, CLUSTER_QUEUE, ADMISSION_CHECK, WORKLOAD_PRIORITY_CLASS)
_BY_NAMESPACE = "namespace"


def _namespace_of(object_: KubeObject) -> tuple[str, ...]:
    return (object_.metadata.namespace,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsTaken:
    """Which pods are queued besides what holds for all kinds: none (`on` False), or those that both selectors match."""

    on: bool = True
    namespaces: LabelSelector = field(default_factory=LabelSelector)
    labels: LabelSelector = field(default_factory=LabelSelector)


class Surroundings:
    """Caches of the few kinds on which defaulting depends. `changed` is called when the default queues may differ."""

    def __init__(
        self,
        *,
        namespace_selector: LabelSelector,
        manage_without_queue: bool,
        default_priority_class: bool,
        pods: PodsTaken | None = None,
        topology_gate: bool = False,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._selector = namespace_selector
        self._manage_without_queue = manage_without_queue
        self._default_priority_class = default_priority_class
        self._pods = pods or PodsTaken()
        self._topology_gate = topology_gate
        self._changed = changed
        self.caches = {
            resource: Cache({_BY_NAMESPACE: _namespace_of} if resource is LOCAL_QUEUE else None) for resource in WATCHED
        }
        self._reflectors: tuple[Reflector, ...] = ()

    def reflectors(self, client: Client, on_problem: Callable[[str], None]) -> tuple[Reflector, ...]:
        """Return the watches to run, one a kind."""
        self._reflectors = tuple(
            Reflector(client, resource, self._seen, cache=self.caches[resource], with_raw=False, on_problem=on_problem)
            for resource in WATCHED
        )
        return self._reflectors

    def missing(self) -> str:
        """Return which kinds have not been read yet, in one line; "" when all have."""
        late = [one.resource.plural for one in self._reflectors if not one.synced.is_set()]
        return f"not read yet: {', '.join(late)}" if late else ""

    def facts(self, namespace: str, *, by_agent: bool) -> WebhookFacts:
        """Return what is known for an object of this namespace."""
        labels = self._labels_of(namespace)
        default_class = ObjectKey("", markers.DEFAULT_PRIORITY_CLASS) in self.caches[WORKLOAD_PRIORITY_CLASS]
        return WebhookFacts(
            namespace_selected=selectors.matches(self._selector, labels),
            manage_without_queue=self._manage_without_queue,
            local_queues=self._local_queues(namespace),
            topology_gate=self._topology_gate,
            default_priority_class=self._default_priority_class and default_class,
            by_agent=by_agent,
        )

    def takes_pod(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Return whether a pod with these labels may be queued there, as `integrations` says."""
        pods = self._pods
        in_namespace = selectors.matches(pods.namespaces, self._labels_of(namespace))
        return pods.on and in_namespace and selectors.matches(pods.labels, dict(labels))

    def _labels_of(self, namespace: str) -> dict[str, str]:
        known = self.caches[NAMESPACE].get(ObjectKey("", namespace))
        labels = dict(known.metadata.labels) if isinstance(known, Namespace) else {}
        labels.setdefault(selectors.NAMESPACE_LABEL, namespace)
        return labels

    def default_queue_namespaces(self) -> tuple[str, ...]:
        """Return the namespaces with a LocalQueue `default`, sorted."""
        keys = self.caches[LOCAL_QUEUE].keys()
        return tuple(sorted(key.namespace for key in keys if key.name == markers.DEFAULT_LOCAL_QUEUE))

    def _local_queues(self, namespace: str) -> dict[str, bool]:
        queues = self.caches[LOCAL_QUEUE].by_index(_BY_NAMESPACE, namespace)
        return {
            queue.metadata.name: self._elsewhere(queue.spec.cluster_queue)
            for queue in queues
            if isinstance(queue, LocalQueue)
        }

    def _elsewhere(self, name: str) -> bool:
        """Return whether a ClusterQueue has a MultiKueue check."""
        queue = self.caches[CLUSTER_QUEUE].get(ObjectKey("", name))
        if not isinstance(queue, ClusterQueue) or queue.spec.admission_checks_strategy is None:
            return False
        for rule in queue.spec.admission_checks_strategy.admission_checks:
            check = self.caches[ADMISSION_CHECK].get(ObjectKey("", rule.name))
            if isinstance(check, AdmissionCheck) and check.spec.controller_name == markers.MULTIKUEUE_MANAGER:
                return True
        return False

    def _seen(self, _event: ApiEvent) -> None:
        self._changed()
