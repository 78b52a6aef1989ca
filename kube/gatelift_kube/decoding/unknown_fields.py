"""What a Workload's status has that our structs have no place for: set aside, and put back. Pure.

Its writes replace it whole, and merge patches replace lists. A field that only a newer API, or another controller,
knows would be lost by our next write; so it travels with the part that it is in (`StatusEntry.more`). `decoding` comes
here for objects that have such fields, which are few; `put_back` is for whoever writes the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gatelift_kube.objects.kueue import (
    Admission,
    AdmissionCheckState,
    EvictionCount,
    PodSetAssignment,
    PodSetResources,
    PodSetUpdate,
    ReclaimablePod,
    RequeueState,
    SchedulingStats,
    Workload,
    WorkloadStatus,
)
from gatelift_kube.objects.meta import Condition, StatusEntry

_MORE = "$more"
_Parts = tuple[tuple[tuple[str, ...], type[StatusEntry]], ...]
_OF_ALL: _Parts = ((("status", "conditions"), Condition),)
_OF_WORKLOADS: _Parts = (
    *_OF_ALL,
    (("status",), WorkloadStatus),
    (("status", "admissionChecks"), AdmissionCheckState),
    (("status", "admissionChecks", "podSetUpdates"), PodSetUpdate),
    (("status", "admission"), Admission),
    (("status", "admission", "podSetAssignments"), PodSetAssignment),
    (("status", "reclaimablePods"), ReclaimablePod),
    (("status", "requeueState"), RequeueState),
    (("status", "schedulingStats"), SchedulingStats),
    (("status", "schedulingStats", "evictions"), EvictionCount),
    (("status", "resourceRequests"), PodSetResources),
)
"""Where parts are, and which struct reads them."""


def set_aside(document: Any, struct: type) -> None:
    """Move the fields of all parts that have no place in their struct to where the struct finds them, in place.

    `struct` is what `document` is to be read as. What is not of the expected shape is left as it is, for the decoder to
    complain about.
    """
    for path, part in _OF_WORKLOADS if struct is Workload else _OF_ALL:
        known = set(part.__struct_encode_fields__)
        for entry in _at(document, path):
            unknown = {name: entry.pop(name) for name in list(entry) if name not in known}
            if unknown:
                entry[_MORE] = unknown


def put_back(entry: StatusEntry, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return `document`, made of a part's known fields, with the unknown ones beside them."""
    return {**(entry.more or {}), **document}


def known_part(admission: Admission) -> Admission:
    """Return an admission without what our structs have no place for."""
    assignments = tuple(msgspec.structs.replace(one, more=None) for one in admission.pod_set_assignments)
    return msgspec.structs.replace(admission, more=None, pod_set_assignments=assignments)


def _at(document: Any, path: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the objects at a path, through lists."""
    found = [document]
    for name in path:
        inner = [each.get(name) for each in found if isinstance(each, dict)]
        found = [one for each in inner for one in (each if isinstance(each, list) else [each])]
    return [each for each in found if isinstance(each, dict)]
