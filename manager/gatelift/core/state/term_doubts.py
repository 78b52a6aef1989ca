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

    def leads_by(self, lease: ObjectRef | None, holder: str) -> None:
        """Take by which Lease we lead, and under which name."""
        self.lease, self.holder = lease, holder

    def question(self, why: str, found: WorkerCluster | None = None) -> None:
        """Take that a Workload, or the WorkerCluster that is given, shows a term above ours."""
        self.why = why
        if found is not None:
            self.clusters[found.metadata.name] = found

    def ask(self, read_id: int, asked: dict[str, str], now: float) -> None:
        """Take that the Lease is read now, on behalf of these Workloads: what comes later is asked about anew."""
        self.read_id, self.asked, self.asks_at = read_id, asked, now

    def is_answer(self, read_id: int) -> bool:
        """Say whether this is the read that is out, which then is no more."""
        if not self.read_id or read_id != self.read_id:
            return False
        self.read_id = 0
        return True

    def ask_again(self, at: float) -> None:
        """Take that there was no answer."""
        self.asks_at = at

    def settle(self) -> tuple[dict[str, str], list[WorkerCluster]]:
        """Take that the Lease is ours; return the Workloads and WorkerClusters whose term no leader has written."""
        asked, clusters = self.asked, list(self.clusters.values())
        self.why, self.asked, self.clusters = "", {}, {}
        return asked, clusters

    def forge(self, uid: str, version: str) -> None:
        """Take that no leader has written the term of a version of a Workload."""
        self.forged[uid] = version

    def is_forged(self, uid: str, version: str) -> bool:
        """Say whether no leader has written the term of a version of a Workload."""
        return self.forged.get(uid) == version

    def is_believed(self, uid: str) -> None:
        """Take that the term of a Workload is none above ours, or that it is gone."""
        self.forged.pop(uid, None)

    def unconfirm(self, found: WorkerCluster) -> None:
        """Have the links told that no leader has written the term of a WorkerCluster."""
        self.unconfirmed.append(found)

    def take_unconfirmed(self) -> list[WorkerCluster]:
        """Return, once, what the links are to be told."""
        found, self.unconfirmed = self.unconfirmed, []
        return found

    @property
    def asking(self) -> bool:
        """Say whether the question is open: until it is answered we may lead no more, and do nothing."""
        return bool(self.why)

    def next_deadline(self) -> float | None:
        """Return when it is to be asked again, None while an answer is awaited or no question is open."""
        return self.asks_at if self.asking and not self.read_id else None
