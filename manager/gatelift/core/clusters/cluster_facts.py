"""What is true of a worker cluster, as far as its WorkerCluster's status is to say it. Pure.

Neighbours: `cluster_record` (keeps them, and decides when they are written), `cluster_status` (the document that says
them), `cluster_conditions` (what people are shown of them).
"""

from __future__ import annotations

from dataclasses import dataclass

from gatelift.core.api.events import AgentStreamOpened
from gatelift.core.api.informing import StatedCapacity
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import ForeignRunStatus, Predecessor, WorkerCluster
from gatelift_kube.values import timestamps
from gatelift_wire.values.keys import PlacementKey

CONNECTED = "Connected"
FENCED = "Fenced"
LOST = "Lost"
NO_NEW_WORK = "NoNewWork"
REPLACED = "Replaced"
RESTORED = "Restored"
SECOND_AGENT = "SecondAgent"
TAKEN_OVER = "TakenOver"


Cordon = tuple[str, str] | None
"""Reason and message why dispatch places nothing there for what it has said, ("", "") of others; None: unheard."""


@dataclass(slots=True, kw_only=True)
class Facts:
    """What is true of a cluster now; written when it differs from the status."""

    term: int = 0
    session: int = 0
    opened_session: int = 0
    connected: bool = False
    session_open: bool = False
    lost: bool = False
    restored_session: int = 0
    replaced_session: int = 0
    taken_over_session: int = 0
    settled_session: int = 0
    cluster_uid: str = ""
    agent_lease: str = ""
    second_agent: str = ""
    """What people are told of another agent that greets beside the one that is served, "" when there is none."""
    no_new_work: tuple[str, str] = ("", "")
    """Reason and message why nothing is placed there for what it has said; empty where that is not so."""
    mark: int = 0
    unexplained: int | None = None
    """Charged here and not listed by the present session's inventory, while that proves nothing; None: not compared."""
    lease_seconds: int = 0
    fenced_through: int = 0
    fenced_by: str = ""
    fenced_after: str = ""
    fenced_after_through: int = 0
    agent_version: str = ""
    agent_instance: str = ""
    replicas: int = 0
    api_reachable: bool = True
    placements: int = 0
    offers: int = 0
    last_seen: str = ""
    """When it was last heard of by this process, "" for never: of silence itself nothing is written here."""
    certificate_key: str = ""
    """The key of which `certificate_issued_at` speaks: another one that is approved has used no certificate yet."""
    certificate_issued_at: str = ""
    foreign: tuple[ForeignRunStatus, ...] = ()
    predecessors: tuple[Predecessor, ...] = ()
    predecessors_over: frozenset[PlacementKey] = frozenset()
    capacity: StatedCapacity | None = None
    written_capacity: StatedCapacity | None = None
    informs: bool = True
    """What only people read of it is written, too: not for a while after the API server has refused it."""
    refused: str = ""
    """What it said then, "" when nothing was refused."""

    def adopt(self, found: WorkerCluster) -> None:
        """Take over what an earlier process wrote; grants of leases are counted by `long_grants`."""
        status = found.status
        self.term, self.session, self.opened_session = status.term, status.session, status.opened_session
        self.restored_session, self.replaced_session = status.restored_session, status.replaced_session
        self.taken_over_session, self.settled_session = status.taken_over_session, status.settled_session
        self.cluster_uid, self.agent_lease, self.mark = status.cluster_uid, status.agent_lease, status.mark
        self.fenced_through, self.fenced_by = status.fenced_through_session, status.fenced_by
        self.fenced_after, self.fenced_after_through = status.fenced_after, status.fenced_after_through
        self.agent_version, self.agent_instance = status.agent_version, status.agent_instance
        self.replicas, self.connected = status.agent_replicas, status.connected
        self.api_reachable, self.foreign = status.api_reachable is not False, status.foreign
        self.lost = shown_lost(found)
        beside = conditions.find(status.conditions, SECOND_AGENT)
        self.second_agent = beside.message if beside is not None and beside.status == "True" else ""
        cordoned = conditions.find(found.status.conditions, NO_NEW_WORK)
        told = cordoned is not None and cordoned.status == "True"
        self.no_new_work = (cordoned.reason, cordoned.message) if cordoned is not None and told else ("", "")

    def place(self, placements: int, offers: int, cordon: Cordon) -> None:
        """Take how much is placed and offered, and why nothing more is; None: what was shown of that stays."""
        self.placements, self.offers, self.no_new_work = placements, offers, cordon or self.no_new_work

    def counted(self) -> tuple[object, ...]:
        """Return what is counted of it: other numbers are news."""
        return self.placements, self.offers, self.unexplained, self.opened_session, self.no_new_work

    def doubted_by(self) -> tuple[object, ...]:
        """Return of what `identity` says who serves the cluster, and who can tell what was placed there before."""
        sessions = self.restored_session, self.replaced_session, self.taken_over_session, self.settled_session
        return sessions, self.cluster_uid, self.agent_lease, self.fenced_after, self.fenced_after_through

    @property
    def left_out(self) -> str:
        """What people are told of what cannot be written, as of the last write."""
        return self.refused or (self.written_capacity.shown.left_out if self.written_capacity is not None else "")

    def adopt_doubts(self, found: WorkerCluster) -> None:
        """Take over doubts and their ends, which are never taken back, and the latest word after a restore.

        Also of a write of which nobody could tell.
        """
        status = found.status
        self.restored_session = max(self.restored_session, status.restored_session)
        self.replaced_session = max(self.replaced_session, status.replaced_session)
        self.taken_over_session = max(self.taken_over_session, status.taken_over_session)
        self.settled_session = max(self.settled_session, status.settled_session)
        self.fenced_after, self.fenced_after_through = status.fenced_after, status.fenced_after_through

    def adopt_certificate(self, found: WorkerCluster) -> None:
        """Take over when the newest certificate was issued that the approved key has used (texts sort by time)."""
        known = self.certificate_issued_at if self.certificate_key == found.status.key_digest else ""
        self.certificate_key = found.status.key_digest
        self.certificate_issued_at = max(known, found.status.certificate_issued_at or "")

    def uses_certificate(self, opened: AgentStreamOpened) -> None:
        """Take that an agent greets with a certificate: who replays its signing request has one made, and uses none."""
        if opened.issued_at and opened.key_digest == self.certificate_key:
            self.certificate_issued_at = max(self.certificate_issued_at, timestamps.to_text(opened.issued_at))


def shown_lost(found: WorkerCluster) -> bool:
    """Say whether the status shows the cluster as lost."""
    connected = conditions.find(found.status.conditions, CONNECTED)
    return connected is not None and connected.reason == LOST
