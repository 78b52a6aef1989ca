"""Which role a pod of a group has: by its hash, or by name and shape where a driver declared the sets. Pure."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from gatelift_kinds.pod_group.declaration import Declaration, undeclared
from gatelift_kinds.pod_group.marks import GroupMarks
from gatelift_kinds.pod_group.shapes import mismatch, role_of
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.json_parts import Json
from gatelift_kinds.shared.rules import label


class RoleFit(NamedTuple):
    """A role, or why there is none: "" for what is not so. Who fits none is never let go, and told why."""

    role: str
    text: str = ""


def fit(
    marks: GroupMarks,
    spec: Json,
    declaration: Declaration | None = None,
    driver: Json | None = None,
    *,
    lifted: bool = False,
    driver_lifted: bool = False,
) -> RoleFit:
    """Return the role of a pod by what it says and its spec as served.

    `declaration`: of its group, where there is one; `driver`: the spec of the pod that says it, None for that pod
    itself, which fits whatever it declares of the others. `lifted`: it was let go, and with that its spec has what the
    flavor adds, so it keeps the role that it was let go as. `driver_lifted`: the same of the driver.
    """
    if lifted and marks.pod_set:
        return RoleFit(marks.pod_set)
    if declaration is None:
        return _by_hash(marks, spec)
    role = declaration.own(marks.role) if driver is None or marks.sets else marks.role
    if not role:
        text = "is missing: the sets of the group are declared, and the pod says of which it is in this label"
        return RoleFit("", f"{label(markers.POD_GROUP_ROLE)}: {text}")
    unknown = undeclared(role, declaration)
    if unknown:
        return RoleFit("", f"{label(markers.POD_GROUP_ROLE)}: {role} {unknown}")
    if lifted or driver is None:
        return RoleFit(role)
    return _shaped(role, spec, declaration, driver, lifted=driver_lifted)


def _by_hash(marks: GroupMarks, spec: Json) -> RoleFit:
    if marks.role and not marks.sets:
        text = f"{label(markers.POD_GROUP_ROLE)}: no pod of the group declares its sets ({markers.POD_GROUP_SETS})"
        return RoleFit("", f"{text} yet: make the one that does, or leave the role out")
    return RoleFit(role_of(spec, marks.role_hash))


def _shaped(role: str, spec: Json, declaration: Declaration, driver: Json, *, lifted: bool) -> RoleFit:
    found = declaration.named(role)
    template = found.template if found is not None else None
    wanted = driver if template is None else msgspec.json.decode(template)["spec"]
    placed = template is None and lifted
    text = mismatch(wanted, spec, driver.get("priorityClassName") or "", placed=placed)
    if not text:
        return RoleFit(role)
    return RoleFit("", f"spec.{text}: make the pod as set {role} says, or mend {markers.POD_GROUP_SETS} of the driver")
