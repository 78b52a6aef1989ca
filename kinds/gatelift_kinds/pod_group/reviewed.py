"""What the webhook asks of a group's pods, as a kind answers it (`shared.reviewed`). Pure. Neighbour: `rules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gatelift_kinds.pod_group import rules
from gatelift_kinds.shared import pod_review
from gatelift_kinds.shared.review import HeldChange, Verdict, WebhookFacts
from gatelift_kinds.shared.reviewed import Reviewed


class ReviewedMember(Reviewed):
    """See `gatelift_kinds.shared.reviewed.Reviewed`."""

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return label, finalizer, gate, role hash, default queue and priority class, and the rank in the group."""
        return rules.defaults(obj, facts)

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a new pod."""
        return rules.validate_create(obj, facts)

    def held_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[HeldChange, ...]:
        """Return what a run elsewhere takes no notice of, while the gate is there."""
        return pod_review.held_changes(old, new)

    def depends_on_quota(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether something is said of its group that counts while that waits alone."""
        return rules.depends_on_quota(old, new)

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a change of a pod."""
        return rules.validate_update(old, new, facts)
