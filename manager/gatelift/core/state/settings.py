"""Choices of a deployment, as the manager's core takes them. Neighbour: `assembly` makes them of the file."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift.core.state.dispatch_values import DispatchSettings
from gatelift.core.state.readiness_values import ReadinessSettings, RetentionSettings
from gatelift.core.state.release_values import ReleaseSettings
from gatelift_admission.values.model import EngineSettings
from gatelift_kinds.registry import Registry
from gatelift_kube.objects.meta import LabelSelector
from gatelift_wire.values.limits import CATCH_UP_SECONDS, LOST_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreSettings:
    """Choices of a deployment. `origin`: UID of the management cluster's namespace kube-system.

    `write_reservation_after`: seconds after which a reservation without winner is written alone.
    `requeue_base`, `requeue_max`: backoff after a placement failed, doubling. Kueue queues again at once after a
    check's Retry; one second keeps a cluster that refuses everything from turning that into a loop.
    """

    origin: str
    kinds: Registry
    dispatch: DispatchSettings = field(default_factory=DispatchSettings)
    write_reservation_after: float = 1.0
    requeue_base: float = 1.0
    requeue_max: float = 3600.0
    status_every: float = 1.0
    unheard_after: float = LOST_SECONDS + CATCH_UP_SECONDS
    """Seconds from its first greeting on in which a cluster has to say what it has, or no lead waits for it longer."""
    words_per_second: float = 250.0
    """Writes a second that the reports of one cluster may cause while others write: half of the budget."""
    admission: EngineSettings = field(default_factory=EngineSettings)
    readiness: ReadinessSettings | None = None
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    release: ReleaseSettings = field(default_factory=ReleaseSettings)
    manages_unnamed: bool = False
    copied_labels: tuple[str, ...] = ()
    """`integrations.labelKeysToCopy`: labels that go on to the Workload which is made."""
    managed_namespaces: LabelSelector = field(default_factory=LabelSelector)
    """`managedJobsNamespaceSelector`: what runs elsewhere without an admission is none of ours."""
    debug_invariants: bool = False
