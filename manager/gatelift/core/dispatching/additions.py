"""What checks of other controllers want on the pods when they start: podSetUpdates of their states (KEP-993). Pure.

They travel with the commit and are merged where the flavor's placement is: at the worker, or at `local`. Marks of our
own in them are the placement record and stay at home, and so do wishes of checks that nobody asked for. Neighbour:
`placing`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift_kinds.shared.values import MergeConflictError
from gatelift_kube.objects.kueue import PodSetUpdate, Workload
from gatelift_wire.values.messages import PodSetRequest

OWN_DOMAIN = "gatelift.dev/"


def with_additions(
    pod_sets: tuple[PodSetRequest, ...], workload: Workload, demanded: Collection[str]
) -> tuple[PodSetRequest, ...]:
    """Return the pod sets with what all Ready checks among those `demanded` (names) want on their pods.

    MergeConflictError: two checks contradict each other; Kueue gives such a workload up as well.
    """
    updates = [
        update
        for check in workload.status.admission_checks
        if check.state == texts.READY and check.name in demanded
        for update in check.pod_set_updates
    ]
    if not updates:
        return pod_sets
    return tuple(
        replace(one, additions=_document(one.name, [update for update in updates if update.name == one.name]))
        for one in pod_sets
    )


def _document(pod_set: str, updates: Iterable[PodSetUpdate]) -> bytes:
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    selector: dict[str, str] = {}
    tolerations: list[Any] = []
    for update in updates:
        _merge(labels, update.labels, f"labels of pod set {pod_set}")
        _merge(annotations, update.annotations, f"annotations of pod set {pod_set}")
        _merge(selector, update.node_selector, f"nodeSelector of pod set {pod_set}")
        tolerations += [one for one in msgspec.to_builtins(update.tolerations) if one not in tolerations]
    parts = {"labels": labels, "annotations": annotations, "nodeSelector": selector, "tolerations": tolerations}
    said = {name: value for name, value in parts.items() if value}
    return msgspec.json.encode(said) if said else b""


def _merge(into: dict[str, str], more: Mapping[str, str], what: str) -> None:
    for key, value in more.items():
        if key.startswith(OWN_DOMAIN):
            continue
        if into.setdefault(key, value) != value:
            raise MergeConflictError(f"{what}: admission checks want {into[key]!r} and {value!r} for {key}: drop one")
