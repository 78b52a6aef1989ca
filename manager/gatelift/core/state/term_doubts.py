"""What a leader holds of records that were written in a term above its own. Values; `higher_terms` acts on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import ObjectRef


@dataclass(slots=True)
class TermDoubts:
    """The question whose the Lease is, from the first record in a higher term until it is answered (R3)."""

    lease: ObjectRef | None = None
    """The Lease that we lead by, and under which name we hold it; None where nobody told."""
    holder: str = ""
    asked: dict[str, str] = field(default_factory=dict)
    """UID -> version of each Workload that showed a higher term when the question was asked."""
    clusters: dict[str, WorkerCluster] = field(default_factory=dict)
    """The WorkerClusters that show one, as they were seen before the question was asked."""
    unconfirmed: list[WorkerCluster] = field(default_factory=list)
    """Of those what no leader has written, by the answer: the links are to be told."""
    why: str = ""
    """Which Workload or cluster raised the question; "" when none is open."""
    read_id: int = 0
    """The read that is out, 0 for none."""
    asks_at: float = 0.0
    """When it is asked again, where no answer came."""
    forged: dict[str, str] = field(default_factory=dict)
    """UID -> version whose term no leader has written: the Lease was ours in our own term after we had seen it."""

    @property
    def asking(self) -> bool:
        """Say whether the question is open: until it is answered we may lead no more, and do nothing."""
        return bool(self.why)

    def next_deadline(self) -> float | None:
        """Return when it is to be asked again, None while an answer is awaited or no question is open."""
        return self.asks_at if self.asking and not self.read_id else None
