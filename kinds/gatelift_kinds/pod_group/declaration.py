"""The sets of pods that a driver declares before they are there (KEP-976, story 3), and what is wrong with them. Pure.

`kueue.x-k8s.io/pod-group-sets` is a list, as YAML or JSON, of `name`, `count` and `template`. One template may be left
empty and is then the pod that says all this.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec

from gatelift_kinds.pod_group.marks import MEMBERS_MAX, SHOWN_CHARS_MAX, GroupMarks
from gatelift_kinds.pod_group.yaml_text import UnreadableTextError, read
from gatelift_kinds.shared import markers
from gatelift_kinds.shared.digests import digest
from gatelift_kinds.shared.json_parts import Json, objects
from gatelift_kinds.shared.review import FieldError
from gatelift_kinds.shared.rules import annotation, invalid, is_label, label, required
from gatelift_kinds.shared.server_additions import CONTAINER_LISTS
from gatelift_kube.objects.core import PodTemplate
from gatelift_kube.values.plain_text import plain

PATH = annotation(markers.POD_GROUP_SETS)
SETS_MAX = 18
"""Pod sets of a Workload."""
TEMPLATES_BYTES_MAX = 128 * 1024
"""Of the templates of a declaration: a Workload names up to 4,096 owners besides, and is stored as one object."""
ERRORS_MAX = 5
"""Told at once: the next ones are told when these are mended."""
SCHEDULED_BY = (
    "requests and ports of containers, nodeSelector, affinity, tolerations, runtimeClassName, priorityClassName, "
    "topologySpreadConstraints"
)
"""What of a template is looked at before its pods are there."""
_FIELDS = frozenset({"name", "count", "template"})
_REQUESTS = ("requests", "limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSet:
    """One set: `template` is a pod template as JSON, None for that of the pod which declares."""

    name: str
    count: int
    template: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """The sets in the order in which they were declared. `digest`: the same for two that say the same."""

    sets: tuple[DeclaredSet, ...]
    digest: str = field(default="", compare=False)

    @property
    def total(self) -> int:
        """Return how many pods the group has in all."""
        return sum(each.count for each in self.sets)

    def named(self, role: str) -> DeclaredSet | None:
        """Return the set of a role, None where there is none."""
        return next((each for each in self.sets if each.name == role), None)

    def own(self, role: str) -> str:
        """Return which set the declaring pod is of: its own role's, else the one without a template; "" for none."""
        return role or next((each.name for each in self.sets if each.template is None), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDeclaration:
    """What came of reading: a declaration, or what is wrong."""

    declaration: Declaration | None
    errors: tuple[FieldError, ...] = ()


@lru_cache(maxsize=16)
def declared(text: str) -> ReadDeclaration:
    """Return the declaration that a text stands for. Total: any text."""
    try:
        found = read(text)
    except UnreadableTextError as error:
        return ReadDeclaration(declaration=None, errors=(invalid(PATH, None, str(error)),))
    if not isinstance(found, list) or not found:
        way_out = "must be a list of sets, each with name, count and template: write one set on each item '- name: ...'"
        return ReadDeclaration(declaration=None, errors=(invalid(PATH, None, way_out),))
    if len(found) > SETS_MAX:
        text = f"declares {len(found)} sets, a Workload has at most {SETS_MAX}: join those that ask for the same"
        return ReadDeclaration(declaration=None, errors=(invalid(PATH, None, text),))
    wrong = (error for place, each in enumerate(found) for error in _of_set(f"{PATH}[{place}]", each))
    errors = list(islice(wrong, ERRORS_MAX)) or list(_of_all(found))
    if errors:
        return ReadDeclaration(declaration=None, errors=tuple(errors))
    sets = tuple(_set(each) for each in found)
    return ReadDeclaration(declaration=Declaration(sets=sets, digest=digest(msgspec.to_builtins(sets))))


def problems(marks: GroupMarks, total: str | None) -> list[FieldError]:
    """Return what is wrong with the declaration of a pod, also beside its role and the `total` that it writes."""
    if not marks.sets:
        return []
    read_sets = declared(marks.sets)
    if read_sets.declaration is None:
        return list(read_sets.errors)
    return [*_beside_role(marks, read_sets.declaration), *_beside_total(marks, read_sets.declaration, total)]


def undeclared(role: str, sets: Declaration) -> str:
    """Return that no set has the name of a role, and which are near it; "" where one has."""
    if sets.named(role) is not None:
        return ""
    names = [each.name for each in sets.sets]
    near = [name for name in names if name.rstrip("s") == role.rstrip("s")]
    way_out = f"did you mean {near[0]}?" if near else f"use one of {plain(', '.join(names), SHOWN_CHARS_MAX)}"
    return f"is declared by no set of {markers.POD_GROUP_SETS}: {way_out}"


def _beside_role(marks: GroupMarks, sets: Declaration) -> Iterator[FieldError]:
    path = label(markers.POD_GROUP_ROLE)
    text = undeclared(marks.role, sets) if marks.role else ""
    if text:
        yield invalid(path, plain(marks.role, SHOWN_CHARS_MAX), text)
    elif not sets.own(marks.role):
        yield required(path, "each declared set has a template, and none says which is this pod's: name its set")


def _beside_total(marks: GroupMarks, sets: Declaration, total: str | None) -> Iterator[FieldError]:
    if total is not None and marks.total is not None and marks.total != sets.total:
        text = f"must be the sum {sets.total} of the counts in {markers.POD_GROUP_SETS}: write that, or leave it out"
        yield invalid(annotation(markers.POD_GROUP_TOTAL_COUNT), plain(total, SHOWN_CHARS_MAX), text)


def _of_set(path: str, found: Any) -> Iterator[FieldError]:
    if not isinstance(found, dict):
        yield invalid(path, None, "must be a mapping with name, count and template: write `name: workers` under it")
        return
    for unknown in sorted(found.keys() - _FIELDS)[:1]:
        yield invalid(f"{path}.{_shown(unknown)}", None, "is no field of a set: use name, count and template")
    name, count = found.get("name"), found.get("count")
    if name is None:
        yield required(f"{path}.name", "each set needs a name, by which later pods say their role")
    elif not isinstance(name, str) or not is_label(name):
        yield invalid(f"{path}.name", _shown(name), "must be a DNS label: at most 63 lower-case letters, digits, '-'")
    if count is None:
        yield required(f"{path}.count", "each set needs the number of its pods")
    elif not isinstance(count, int) or isinstance(count, bool) or not 0 < count <= MEMBERS_MAX:
        yield invalid(f"{path}.count", _shown(count), f"must be a whole number from 1 to {MEMBERS_MAX}, without quotes")
    if not _is_empty(found.get("template")):
        yield from _of_template(f"{path}.template", found["template"])


def _of_template(path: str, template: Any) -> Iterator[FieldError]:
    if not isinstance(template, dict) or not isinstance(template.get("spec"), dict):
        yield invalid(path, None, "must be a pod template: write `spec:` with its containers under it")
        return
    for field_name in CONTAINER_LISTS[:2]:
        for place, container in enumerate(objects(template["spec"], field_name)):
            for beside in _REQUESTS:
                if beside in container:
                    text = f"is no field of a container: write it under `resources`, as resources.{beside}"
                    yield invalid(f"{path}.spec.{field_name}[{place}].{beside}", None, text)
    if not objects(template["spec"], "containers"):
        yield required(f"{path}.spec.containers", "a pod has at least one container: write what it requests")
    try:
        msgspec.convert(template, PodTemplate)
    except (msgspec.ValidationError, ValueError) as error:
        said = plain(str(error), SHOWN_CHARS_MAX)
        yield invalid(path, None, f"is no pod template ({said}): mend it, or leave out all but {SCHEDULED_BY}")


def _of_all(found: list[Json]) -> Iterator[FieldError]:
    names = [each["name"] for each in found]
    for name in sorted({each for each in names if names.count(each) > 1})[:1]:
        yield invalid(PATH, name, "names two sets: give each a name of its own, or add their counts up")
    empty = [each["name"] for each in found if _is_empty(each.get("template"))]
    if len(empty) > 1:
        text = f"{empty[0]} and {empty[1]} have no template, and only one set may stand for this pod: write the other"
        yield invalid(PATH, None, text)
    total = sum(each["count"] for each in found)
    if total > MEMBERS_MAX:
        yield invalid(PATH, None, f"declares {total} pods, a group has at most {MEMBERS_MAX}: make several groups")
    size = sum(len(each.template or b"") for each in map(_set, found))
    if size > TEMPLATES_BYTES_MAX:
        text = f"the templates have {size} bytes, a Workload holds {TEMPLATES_BYTES_MAX} of them: leave out all but"
        yield invalid(PATH, None, f"{text} {SCHEDULED_BY}")


def _set(found: Json) -> DeclaredSet:
    template = found.get("template")
    written = None if _is_empty(template) else msgspec.json.encode(template, order="sorted")
    return DeclaredSet(name=found["name"], count=found["count"], template=written)


def _is_empty(template: Any) -> bool:
    return template is None or template == {} or (isinstance(template, dict) and template == {"spec": {}})


def _shown(value: Any) -> str:
    return plain(value if isinstance(value, str) else msgspec.json.encode(value).decode(), SHOWN_CHARS_MAX)
