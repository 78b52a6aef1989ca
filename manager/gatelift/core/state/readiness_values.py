"""Settings of waiting for pods to be ready, and of keeping what is over. `readiness`, `retention` decide by them."""

from __future__ import annotations

from dataclasses import dataclass

SLICE_HISTORY = 10
"""Of a Job that is resized each minute these tell of its last ten minutes, and fit a screen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadinessSettings:
    """Kueue's waitForPodsReady, in seconds. `recovery_timeout` 0: what has once been ready is not evicted.

    `backoff_limit`: time-outs after which the workload is deactivated, None for never. `block_admission`: nobody is
    admitted while somebody who has quota is not ready.
    """

    timeout: float = 1800.0
    recovery_timeout: float = 1800.0
    backoff_base: float = 60.0
    backoff_max: float = 3600.0
    backoff_limit: int | None = None
    block_admission: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """Kueue's objectRetentionPolicies.workloads, in seconds; None keeps for ever. Ours is `slice_history`.

    `after_finished`: of finished Workloads. `after_deactivated`: of users' objects whose Workload we deactivated.
    `slice_history`: so many past slices of one elastic object are kept, the latest.
    """

    after_finished: float | None = None
    after_deactivated: float | None = None
    slice_history: int = SLICE_HISTORY
