"""The offers of one attempt that are out, and what came back. Only this module writes it. Neighbour: `dispatch`."""

from __future__ import annotations

from dataclasses import dataclass, field

from gatelift_wire.values.messages import Bid


@dataclass(slots=True, kw_only=True)
class OfferRound:
    """Offers that are out, and what came back. `asked` are all clusters asked in this reservation."""

    offered: dict[str, int] = field(default_factory=dict)  # cluster -> session in which the offer went
    bids: dict[str, Bid] = field(default_factory=dict)
    bid_at: dict[str, float] = field(default_factory=dict)
    sent_at: dict[str, float] = field(default_factory=dict)
    alone: bool = False  # the first asked was asked alone, though there are others
    looks: int = 0  # how often the time limit for answers was set
    looked_at: float = 0.0
    asked: set[str] = field(default_factory=set)
    since: float = 0.0
    deadline: float = 0.0
    patient_until: float = 0.0
    size: int = 0  # of a growth: to which size; 0: of a whole placement

    def sent(self, cluster: str, session: int, now: float) -> None:
        """Take that a cluster was asked; with no session, that the offer could not be sent."""
        self.asked.add(cluster)
        if session:
            self.offered[cluster] = session
            self.sent_at[cluster] = now

    def answered(self, cluster: str, bid: Bid, now: float) -> None:
        """Take the answer of a cluster."""
        self.bids[cluster] = bid
        self.bid_at[cluster] = now

    def wait(self, seconds: float, now: float) -> None:
        """Wait for answers, for so long from now."""
        self.looks += 1
        self.looked_at, self.deadline = now, now + seconds

    def strike(self, cluster: str) -> None:
        """Take that an offer or a bid counts no more."""
        del self.offered[cluster]
        self.bids.pop(cluster, None)
