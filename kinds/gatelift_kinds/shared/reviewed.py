"""What the webhook asks of a kind: a part of `gatelift_kinds.kind`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from gatelift_kinds.shared.review import NO_CORRECTION, Correction, HeldChange, Verdict, WebhookFacts


class Reviewed(Protocol):
    """What the webhook asks; objects come as JSON mappings, since they are not stored yet."""

    def defaults(self, obj: Mapping[str, Any], facts: WebhookFacts) -> tuple[dict[str, Any], ...]:
        """Return the JSON patch operations that take the object over; empty when it is none of ours."""
        return ()

    def corrected(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Correction:
        """Return what of a change is put back, where a refusal would break for ever whoever applies the same again."""
        return NO_CORRECTION

    def validate_create(self, obj: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a new object, after defaulting."""
        return Verdict()

    def held_changes(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[HeldChange, ...]:
        """Return what is changed of an object that is held back, and taken no notice of by a run that has begun."""
        return ()

    def depends_on_quota(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
        """Return whether a change besides is right only while its Workload holds no quota."""
        return False

    def validate_update(self, old: Mapping[str, Any], new: Mapping[str, Any], facts: WebhookFacts) -> Verdict:
        """Return what is wrong with a change."""
        return Verdict()
