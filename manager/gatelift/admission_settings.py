"""The admission engine's settings as the configuration has them: for the manager, and for `gatelift explain`."""

from __future__ import annotations

from gatelift.config import Configuration
from gatelift_admission.values.model import TEXT_REFRESH, EngineSettings
from gatelift_admission.values.transformations import Transformation

PRIORITY_BOOST_GATE = "PriorityBoost"
"""Off unless the file says otherwise, as in Kueue."""
RECLAIM_GATE = "ReclaimablePods"
"""On unless the file says otherwise, as in Kueue (KEP-78)."""


def of(config: Configuration) -> EngineSettings:
    """Return the engine's settings."""
    admission, wait, resources = config.gatelift.admission, config.wait_for_pods_ready, config.resources
    return EngineSettings(
        fair_sharing=config.fair_sharing.strategies() if config.fair_sharing is not None else (),
        excluded_prefixes=resources.exclude_resource_prefixes,
        transformations=tuple(
            Transformation(input=one.input, outputs=one.outputs, strategy=one.strategy, multiply_by=one.multiply_by)
            for one in resources.transformations
        ),
        by_creation=wait is not None and wait.requeuing_strategy.timestamp == "Creation",
        wake_period=admission.wake_period,
        wake_period_max=admission.wake_period_max,
        preemption_patience=admission.preemption_patience,
        text_refresh=TEXT_REFRESH,
        ignore_undeclared=resources.quota_check_strategy == "IgnoreUndeclared",
        priority_boost=config.feature_gates.get(PRIORITY_BOOST_GATE, False),
        reclaimable_pods=config.feature_gates.get(RECLAIM_GATE, True),
    )
