"""Builds the deciding machine from the configuration: values only, so that tests and benches build the same one."""

from __future__ import annotations

from gatelift import admission_settings
from gatelift.config import FAST_RELEASE_GATES, Configuration, WaitForPodsReady
from gatelift.core.api.wall import Wall
from gatelift.core.clusters.enrolment import Enrolments, EnrolmentSettings
from gatelift.core.clusters.link_values import WriteIds
from gatelift.core.clusters.links import Links
from gatelift.core.machine import Machine
from gatelift.core.state.dispatch_values import DispatchSettings
from gatelift.core.state.readiness_values import ReadinessSettings, RetentionSettings
from gatelift.core.state.release_values import ReleaseSettings
from gatelift.core.state.settings import CoreSettings
from gatelift.selector_settings import managed_namespaces
from gatelift_kinds.registry import SERVED
from gatelift_wire.sessions.leases import longest_right
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values.limits import CATCH_UP_SECONDS
from gatelift_wire.values.release import ReleaseRule

REQUEUE_BASE_SECONDS = 1.0
"""First pause after a failed placement, doubling. Kueue's MultiKueue comes back at once; its 60 s are for pods that do
not get ready, which is another matter."""
REQUEUE_MAX_SECONDS = 3600.0
"""Longest pause: Kueue's."""


def new_machine(config: Configuration, origin: str, instance: str) -> Machine:
    """Return the manager's machine. `origin`: UID of the namespace kube-system; `instance` names this process."""
    ids, wall = WriteIds(), Wall()
    gatelift, admission = config.gatelift, admission_settings.of(config)
    enrolments = Enrolments(
        ids,
        EnrolmentSettings(
            certificate_seconds=gatelift.certificates.lifetime,
            renew_by_key_seconds=gatelift.certificates.renew_by_key_for,
        ),
    )
    links = Links(
        lambda: ManagerSession(
            instance=instance,
            lease_seconds=longest_right(gatelift.leases.lost_after),
            renew_seconds=gatelift.leases.renew,
            suspect_seconds=gatelift.leases.suspect_after,
            lost_seconds=gatelift.leases.lost_after,
            keeps_quota=not admission.reclaimable_pods,
        ),
        ids,
        wall,
        enrolments=enrolments,
    )
    links.set_origin(origin)
    settings = CoreSettings(
        origin=origin,
        kinds=SERVED,
        dispatch=DispatchSettings(
            best=gatelift.dispatch.offers_at_once,
            bid_seconds=gatelift.dispatch.bid_seconds,
            hold_seconds=gatelift.dispatch.hold_seconds,
        ),
        requeue_base=REQUEUE_BASE_SECONDS,
        requeue_max=REQUEUE_MAX_SECONDS,
        words_per_second=config.client_connection.qps / 2,
        unheard_after=gatelift.leases.lost_after + CATCH_UP_SECONDS,
        admission=admission,
        readiness=_readiness(config.wait_for_pods_ready),
        retention=RetentionSettings(
            after_finished=config.object_retention_policies.workloads.after_finished,
            after_deactivated=config.object_retention_policies.workloads.after_deactivated_by_kueue,
            slice_history=gatelift.admission.slice_history_limit,
        ),
        release=_release(config),
        manages_unnamed=config.manage_jobs_without_queue_name,
        copied_labels=config.integrations.label_keys_to_copy,
        managed_namespaces=managed_namespaces(config.managed_jobs_namespace_selector, besides=config.namespace),
        debug_invariants=gatelift.debug_invariants,
    )
    machine = Machine(settings, links, ids)
    machine.core.wall = wall  # the machine reads the clock, the links write texts by it
    return machine


def _release(config: Configuration) -> ReleaseSettings:
    """Return when quota of what is evicted is free again."""
    section, gates = config.gatelift.release, config.feature_gates
    return ReleaseSettings(
        by_kind={kind: ReleaseRule(said) for kind, said in section.strategies.items()},
        fast_pods=all(gates.get(name, True) for name in FAST_RELEASE_GATES),
        deadline=section.deadline,
        ghost_limit=None if section.ghost_limit == "none" else section.ghost_limit,
    )


def _readiness(section: WaitForPodsReady | None) -> ReadinessSettings | None:
    """Return how long pods are waited for; None: not at all."""
    if section is None or section.enable is False:
        return None
    strategy = section.requeuing_strategy
    return ReadinessSettings(
        timeout=section.timeout,
        recovery_timeout=section.timeout if section.recovery_timeout is None else section.recovery_timeout,
        backoff_base=float(strategy.backoff_base_seconds),
        backoff_max=float(strategy.backoff_max_seconds),
        backoff_limit=strategy.backoff_limit_count,
        block_admission=section.block_admission,
    )
