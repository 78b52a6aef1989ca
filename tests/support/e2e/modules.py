"""Which modules of end-to-end scenarios belong to which provider."""

from __future__ import annotations

ANY_PROVIDER = (
    "test_demo_verb.py",
    "test_forged_cluster_numbers.py",
    "test_home_jobs.py",
    "test_kept_objects.py",
    "test_sample_wishes.py",
    "test_worker_rules.py",
)
PLAIN_PROCESSES = (
    "test_road.py",
    "test_admission.py",
    "test_crashes.py",
    "test_refusals.py",
    "test_leadership.py",
    "test_kueue_crds.py",
)
"""Their pods run by the sandbox's kubelet, which records when each ran."""
MODULES_OF = {
    "local": (
        *ANY_PROVIDER,
        *PLAIN_PROCESSES,
        "test_local_provider.py",
        "test_condemned_namespaces.py",
        "test_demo_kept.py",
        "test_deploy_rules.py",
        "test_elastic_jobs.py",
        "test_elastic_jobs_policies.py",
        "test_elastic_jobs_webhook.py",
        "test_filled_objects.py",
        "test_groups_driven.py",
        "test_groups_driven_there.py",
        "test_groups_ended.py",
        "test_groups_evicted.py",
        "test_groups_listed.py",
        "test_groups_marks.py",
        "test_groups_replaced.py",
        "test_groups_run.py",
        "test_image.py",
        "test_kinds_on_real_servers.py",
        "test_manager_marks.py",
        "test_orphans.py",
        "test_pod_troubles.py",
        "test_pods_at_home.py",
        "test_reclaim.py",
        "test_recovery.py",
        "test_release.py",
        "test_upgrade.py",
        "test_validation_rules.py",
        "test_workload_status_rules.py",
        "test_worker_defaults.py",
    ),
    "embedded": (*ANY_PROVIDER, *PLAIN_PROCESSES),
    "kind": (
        *ANY_PROVIDER,
        "test_elastic_jobs_on_kubelets.py",
        "test_groups_on_kubelets.py",
        "test_kind_provider.py",
        "test_k3s_engine.py",
        "test_kind_road.py",
        "test_own_image.py",
    ),
}


def left_out(provider: str) -> list[str]:
    """Return the modules that this provider does not run, sorted."""
    return sorted({module for modules in MODULES_OF.values() for module in modules} - set(MODULES_OF.get(provider, ())))
