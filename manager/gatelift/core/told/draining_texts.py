"""What people read of a Workload that drains. Pure. Neighbour: `releasing` writes it."""

from __future__ import annotations

from gatelift_wire.values.release import ReleaseRule

AGAIN = ". It runs again after that"
_WHY = {
    ReleaseRule.ON_TERMINATING: "all its pods are on their way out (OnTerminating)",
    ReleaseRule.AFTER_GRACE: "the time that its pods were given to stop is over",
    ReleaseRule.ON_TERMINAL: "its pods have not stopped by the deadline (OnTerminal)",
}


def released(cluster: str, rule: ReleaseRule, occupied: str, *, again: bool) -> str:
    """Return what is said of quota that is free although pods have not stopped; `occupied`: what they ask for.

    `again`: it comes back into its queue.
    """
    what = f', and may occupy nodes of cluster "{cluster}": {occupied}' if occupied else ""
    after = AGAIN if again else ""
    return f"Its quota is free, since {_WHY[rule]}. They are still being stopped{what}{after}"


def held(cluster: str, rule: ReleaseRule, until: str) -> str:
    """Return what is said of quota that is held while pods stop; `until`: when it is free at the latest."""
    return (
        f'All its pods are being stopped in cluster "{cluster}". Its quota is held until they have, by the rule '
        f"{rule.value}, and at the latest until {until}"
    )


def held_back(cluster: str, queue: str) -> str:
    """Return what is said of quota that is held since much of its queue is occupied that is free already."""
    return (
        f'All its pods are being stopped in cluster "{cluster}". Its quota is held until they have, or less is '
        f"occupied of ClusterQueue {queue} by pods whose quota is free already (gatelift.release.ghostLimit)"
    )
