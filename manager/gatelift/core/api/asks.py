"""Who asks for a write that may have to wait: for what, and in which share of all such writes. Pure.

Neighbours: `status_budget` (for all that only informs) and `state.word_writes` (for what a cluster says) keep those
that wait.
"""

from __future__ import annotations

from typing import NamedTuple

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift_kube.deciding.fair_line import Share

_OF_WORK = frozenset({Look.WORKLOAD, Look.OWNER})


class WriteAsk(NamedTuple):
    """A key that is looked at when its turn comes, for one purpose: what else is written of it neither helps nor hurts.

    `cluster`: whose words about a placement it tells, "" for what none has said.
    """

    key: Key
    purpose: Purpose
    cluster: str = ""

    @property
    def share(self) -> Share:
        """Of what only informs: queues, what waits and what was placed take turns; what was placed by its clusters."""
        look, namespace = self.key.look, self.key.object.namespace
        if look not in _OF_WORK:
            return "queues", look.value, namespace
        return ("placed", self.cluster, namespace) if self.cluster else ("waiting", namespace)

    @property
    def share_of_cluster(self) -> Share:
        """Of what one cluster says: namespaces take turns, and in each of them objects and Workloads."""
        return self.key.object.namespace, self.key.look.value


_OF_WORKLOADS = (
    Purpose.WHY_WAITING,
    Purpose.WHY_HELD,
    Purpose.POD_TROUBLE,
    Purpose.MADE_THERE,
    Purpose.REPLACEMENTS,
)


def about_workload(key: Key, cluster: str) -> tuple[WriteAsk, ...]:
    """Return all that may be asked for of a Workload that only informs, at a cluster and as it waits."""
    return tuple(WriteAsk(key, purpose, where) for where in {"", cluster} for purpose in _OF_WORKLOADS)
