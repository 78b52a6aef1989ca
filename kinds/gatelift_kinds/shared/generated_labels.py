"""Labels that an API server generates for one particular object: no other one is to have them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

GENERATED_LABELS = frozenset(
    {"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}
)
"""What the API server puts into the template of one particular Job, and wants to find there ever after."""


def own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels without those that the API server generates for one particular Job."""
    return {key: value for key, value in labels.items() if key not in GENERATED_LABELS}
