"""What is added to the pods when they start: what checks of other controllers want, and who let them go. Pure.

What checks want are the podSetUpdates of their states (KEP-993). All of it travels with the commit and is merged where
the flavor's placement is: at the worker, or at `local`, so it costs no write. Marks of our own in what checks want are
the placement record and stay at home, and so do wishes of checks that nobody asked for. Neighbour: `placing`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from gatelift.core import texts
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.values import MergeConflictError
from gatelift_kube.objects.kueue import PodSetUpdate, Workload
from gatelift_wire.values.messages import PodSetRequest

OWN_DOMAIN = "gatelift.dev/"


Marks = Mapping[str, Mapping[str, str]]
"""Of pods: `labels` and `annotations`."""


def start_marks(workload: Workload) -> Marks:
    """Return what a pod says from its start on of who let it go: LocalQueue, ClusterQueue and Workload, as in Kueue.

    A label has no room for a longer name: it is left out (pods-and-slices 1.1).
    """
    admission = workload.status.admission
    queues = {
        markers.LOCAL_QUEUE_NAME: workload.spec.queue_name,
        markers.CLUSTER_QUEUE_NAME: admission.cluster_queue if admission is not None else "",
    }
    labels = {key: name for key, name in queues.items() if 0 < len(name) <= markers.LABEL_VALUE_LENGTH_MAX}
    return {"labels": labels, "annotations": {markers.WORKLOAD: workload.metadata.name}}


NO_MARKS: Marks = {}


def with_additions(
    pod_sets: tuple[PodSetRequest, ...], workload: Workload, demanded: Collection[str], marks: Marks = NO_MARKS
) -> tuple[PodSetRequest, ...]:
    """Return the pod sets with what all Ready checks among those `demanded` (names) want on their pods, and `marks`.

    MergeConflictError: two checks contradict each other; Kueue gives such a workload up as well.
    """
    updates = [
        update
        for check in workload.status.admission_checks
        if check.state == texts.READY and check.name in demanded
        for update in check.pod_set_updates
    ]
    if not updates and not marks:
        return pod_sets
    return tuple(
        replace(one, additions=_document(one.name, [update for update in updates if update.name == one.name], marks))
        for one in pod_sets
    )


def _document(pod_set: str, updates: Iterable[PodSetUpdate], marks: Marks) -> bytes:
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    selector: dict[str, str] = {}
    tolerations: list[Any] = []
    for update in updates:
        _merge(labels, update.labels, f"labels of pod set {pod_set}")
        _merge(annotations, update.annotations, f"annotations of pod set {pod_set}")
        _merge(selector, update.node_selector, f"nodeSelector of pod set {pod_set}")
        tolerations += [one for one in msgspec.to_builtins(update.tolerations) if one not in tolerations]
    labels.update(marks.get("labels", {}))  # nobody else says by which queue it was let go
    annotations.update(marks.get("annotations", {}))
    parts = {"labels": labels, "annotations": annotations, "nodeSelector": selector, "tolerations": tolerations}
    said = {name: value for name, value in parts.items() if value}
    return msgspec.json.encode(said) if said else b""


def _merge(into: dict[str, str], more: Mapping[str, str], what: str) -> None:
    for key, value in more.items():
        if key.startswith(OWN_DOMAIN):
            continue
        if into.setdefault(key, value) != value:
            raise MergeConflictError(f"{what}: admission checks want {into[key]!r} and {value!r} for {key}: drop one")
