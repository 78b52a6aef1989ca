"""Why an agent says no. Shown to the user as they are. Pure."""

from __future__ import annotations

import enum


class Refusal(enum.Enum):
    """Typed reasons of refusals; the value is the text of the enum on the wire and in conditions."""

    NAMESPACE_MISSING = "NamespaceMissing"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    LOCAL_QUEUE_MISSING = "LocalQueueMissing"
    CLUSTER_QUEUE_STOPPED = "ClusterQueueStopped"
    KIND_NOT_SERVED = "KindNotServed"
    TEMPLATE_MISSING = "TemplateMissing"
    NAME_CONFLICT = "NameConflict"
    DENIED = "Denied"
    QUOTA_NEVER_FITS = "QuotaNeverFits"
    QUOTA_BUSY = "QuotaBusy"
    CORDONED = "Cordoned"
    EPOCH_STALE = "EpochStale"
    TOO_LARGE = "TooLarge"
    HOLD_EXPIRED = "HoldExpired"
    LEASE_NOT_VALID = "LeaseNotValid"
    NOT_RESYNCED = "NotResynced"
    TERM_STALE = "TermStale"
    POLICY = "Policy"
    API_UNREACHABLE = "ApiUnreachable"
    INVALID = "Invalid"
    REQUESTS_RAISED = "RequestsRaised"

    @property
    def permanent(self) -> bool:
        """True when the same offer to the same cluster cannot succeed until somebody changes something there."""
        return self not in _PASSING


_PASSING = frozenset(
    {
        Refusal.QUOTA_BUSY,
        Refusal.CORDONED,
        Refusal.HOLD_EXPIRED,
        Refusal.LEASE_NOT_VALID,
        Refusal.NOT_RESYNCED,
        Refusal.API_UNREACHABLE,
        Refusal.TERM_STALE,
    }
)


class CloseReason(enum.Enum):
    """Why one end closes a stream. The peer decides by it whether and when to dial again."""

    NOT_LEADER = "NotLeader"
    FENCED_BY_NEWER_SESSION = "FencedByNewerSession"
    LOST = "Lost"
    VERSION_UNSUPPORTED = "VersionUnsupported"
    PROTOCOL_VIOLATION = "ProtocolViolation"
    TOO_LARGE = "TooLarge"
    UNKNOWN_CLUSTER = "UnknownCluster"
    REVOKED = "Revoked"
    TERM_STALE = "TermStale"
    SHUTTING_DOWN = "ShuttingDown"
    RESTORED = "Restored"
    OUTBOX_FULL = "OutboxFull"
    SESSION_TOO_HIGH = "SessionTooHigh"
    ANOTHER_AGENT = "AnotherAgent"
