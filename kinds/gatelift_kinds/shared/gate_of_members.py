"""The gate of pods that a driver makes at a worker by itself, as the agent's webhook puts it on. Pure.

A pod that names a group and a role comes held back and bears a mark that nobody else may set (`LABEL_MADE_HERE`): by
that the agent knows that it never could run without it. What bears the labels of a run already is somebody's. Where an
annotation names the group it counts before the label, as at home, and is written there: the policy keeps labels.
"""

from __future__ import annotations

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.json_parts import Json, objects
from gatelift_kinds.shared.patches import Operation, add_to_map
from gatelift_wire.values.keys import LABEL_MADE_HERE, LABEL_ORIGIN

GATE = {"name": markers.ADMISSION_GATE}


def operations(pod: Json) -> tuple[Operation, ...]:
    """Return the JSON patch of a pod that is being made, as a user sent it; nothing for one that names no role."""
    meta, spec = _inner(pod, "metadata"), _inner(pod, "spec")
    labels = _inner(meta, "labels")
    noted, role = _inner(meta, "annotations").get(markers.POD_GROUP_NAME), labels.get(markers.POD_GROUP_ROLE)
    group = noted if isinstance(noted, str) and noted else labels.get(markers.POD_GROUP_NAME)
    if not (isinstance(group, str) and isinstance(role, str) and group and role) or LABEL_ORIGIN in labels:
        return ()
    gates = objects(spec, "schedulingGates")
    gate: list[Operation] = []
    if markers.ADMISSION_GATE not in [each.get("name") for each in gates]:
        gate.append({"op": "add", "path": "/spec/schedulingGates", "value": [*gates, GATE]})
    named = {markers.POD_GROUP_NAME: group, LABEL_MADE_HERE: group}
    return (*add_to_map(("metadata", "labels"), labels, named), *gate)


def _inner(document: Json, key: str) -> Json:
    """Return what is inside, whatever a user has written there."""
    found = document.get(key)
    return found if isinstance(found, dict) else {}
