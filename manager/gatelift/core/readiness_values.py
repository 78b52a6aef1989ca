"""Settings of waiting for pods to be ready. Neighbours: `readiness` decides by them."""

from __future__ import annotations

from dataclasses import dataclass


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
