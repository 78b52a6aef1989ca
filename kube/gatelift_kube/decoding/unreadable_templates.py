"""A Workload whose pod template cannot be read is read without it, and says so. Pure.

The schema keeps templates as they were written, so around the webhooks anything may stand there. What such a Workload
holds stands in its status and is charged all the same (decision 37): a leader that could not read it would not know
of it. The template in its place is empty and bears a mark; nobody queues what bears it: what it asks for is not known.
"""

from __future__ import annotations

from typing import Any

import msgspec

from gatelift_kube.objects.core import PodTemplate
from gatelift_kube.objects.kueue import PodSet, Workload
from gatelift_kube.values.unreadable import UNREADABLE

ANNOTATION_UNREADABLE = "gatelift.dev/unreadable"
"""On the empty template that stands for one that cannot be read: why. Who writes it keeps his own work waiting."""
REASON_CHARS_MAX = 200


def set_aside(document: Any) -> bool:
    """Put an empty, marked template in the place of each that cannot be read, in place; True if there was one."""
    spec = document.get("spec") if isinstance(document, dict) else None
    pod_sets = spec.get("podSets") if isinstance(spec, dict) else None
    found = False
    for pod_set in pod_sets if isinstance(pod_sets, list) else ():
        why = _why_not(pod_set.get("template")) if isinstance(pod_set, dict) and "template" in pod_set else ""
        if why:
            pod_set["template"] = {"metadata": {"annotations": {ANNOTATION_UNREADABLE: why[:REASON_CHARS_MAX]}}}
            found = True
    return found


def why_unreadable(workload: Workload) -> str:
    """Return which template of a Workload cannot be read, and why; "" where all can."""
    for index, pod_set in enumerate(workload.spec.pod_sets):
        if is_unreadable(pod_set):
            return f"spec.podSets[{index}].template: {pod_set.template.metadata.annotations[ANNOTATION_UNREADABLE]}"
    return ""


def is_unreadable(pod_set: PodSet) -> bool:
    """Say whether nobody knows what the pods of a pod set are to be."""
    return ANNOTATION_UNREADABLE in pod_set.template.metadata.annotations


def _why_not(template: Any) -> str:
    try:
        msgspec.json.decode(msgspec.json.encode(template), type=PodTemplate)
    except UNREADABLE as error:
        return str(error) or type(error).__name__
    return ""
