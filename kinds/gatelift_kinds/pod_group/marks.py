"""What a member of a group says by labels and annotations: read, bounded, and what is wrong with it. Pure.

Kueue's rules (pods-and-slices 1.1 and 1.3), and those of KEP-976's story 3. What one pod alone shows is judged here;
what several disagree on, `composition` tells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gatelift_kinds.shared import markers
from gatelift_kinds.shared.review import FieldError
from gatelift_kinds.shared.rules import annotation, invalid, is_label, label, required, subdomain
from gatelift_kube.values.numbers import whole
from gatelift_kube.values.plain_text import plain

Texts = Mapping[str, str]

MEMBERS_MAX = 4096
"""Pods of one group. A Workload names each as an owner, and has to fit into what an API server stores."""
SHOWN_CHARS_MAX = 100
"""Of a value that is wrong, in the line that says so: the beginning tells which it is."""
TRUE, FALSE = "true", "false"
_FLAGS = (markers.POD_GROUP_FAST_ADMISSION, markers.POD_GROUP_SERVING)
_ALONE = (*_FLAGS, markers.POD_GROUP_SETS)
"""Annotations that have a meaning in a group alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMarks:
    """What a pod says of its group; what it does not say, or says in a way that nobody can read, is empty or None.

    `group`: the group's name, "" for none. `total`: pods of the group, 1 to `MEMBERS_MAX`. `fast`: the Workload is made
    with the first pod. `serving`: the group runs on, and never finishes. `retriable`: False where nobody is to replace
    a member once the others are over. `role`: which of the declared sets. `role_hash`: its shape as it was written
    down. `index`: its rank, below `total`. `sets`: the declaration as it was written. `pod_set`: as what it was let go.
    """

    group: str = ""
    total: int | None = None
    fast: bool = False
    serving: bool = False
    retriable: bool = True
    role: str = ""
    role_hash: str = ""
    index: int | None = None
    sets: str = ""
    pod_set: str = ""

    @property
    def declared(self) -> bool:
        """Say whether the pod belongs to a group whose size a driver declares: it says which sets, or its role."""
        return bool(self.sets or self.role)


def read(labels: Texts, annotations: Texts) -> GroupMarks:
    """Return what a pod says. Total: any texts."""
    return GroupMarks(
        group=markers.group_name(labels, annotations),
        total=total_count(annotations.get(markers.POD_GROUP_TOTAL_COUNT)),
        fast=is_fast(annotations),
        serving=is_serving(annotations),
        retriable=annotations.get(markers.RETRIABLE_IN_GROUP) != FALSE,
        role=labels.get(markers.POD_GROUP_ROLE, ""),
        role_hash=annotations.get(markers.ROLE_HASH, ""),
        index=whole(labels.get(markers.POD_GROUP_POD_INDEX, "")),
        sets=annotations.get(markers.POD_GROUP_SETS, ""),
        pod_set=labels.get(markers.POD_SET, ""),
    )


def is_fast(annotations: Texts) -> bool:
    """Return whether a pod says that its group is admitted with the first one."""
    return annotations.get(markers.POD_GROUP_FAST_ADMISSION) == TRUE


def is_serving(annotations: Texts) -> bool:
    """Return whether a pod says that its group never finishes by itself."""
    return annotations.get(markers.POD_GROUP_SERVING) == TRUE


def total_count(text: str | None) -> int | None:
    """Return how many pods a group has, None for what is no number from 1 to `MEMBERS_MAX`."""
    count = whole(text or "")
    return count if count and count <= MEMBERS_MAX else None


def problems(labels: Texts, annotations: Texts) -> list[FieldError]:
    """Return all that is wrong with what a pod says of its group, but for the declared sets."""
    group = markers.group_name(labels, annotations)
    if not group:
        return list(_without_group(labels, annotations))
    found = subdomain(group_path(annotations), group)
    return [*found, *_sized(labels, annotations), *_worded(labels, annotations), *_prebuilt(labels, annotations, group)]


def warnings(labels: Texts, annotations: Texts) -> list[str]:
    """Return what a pod says that is taken no notice of."""
    found = []
    named, noted = labels.get(markers.POD_GROUP_NAME), annotations.get(markers.POD_GROUP_NAME)
    if named and noted and named != noted:
        text = f"says {_shown(named)!r} and is not read: the annotation of that name counts; leave one of them out"
        found.append(f"{label(markers.POD_GROUP_NAME)}: {text}")
    for key in _FLAGS:
        said = annotations.get(key)
        if said is not None and said not in {TRUE, FALSE}:
            found.append(f"{annotation(key)}: {_shown(said)!r} means no: write `true`, or leave it out")
    return found


def group_path(annotations: Texts) -> str:
    """Return the path of the group's name: that one which counts."""
    noted = annotations.get(markers.POD_GROUP_NAME)
    return annotation(markers.POD_GROUP_NAME) if noted else label(markers.POD_GROUP_NAME)


def _without_group(labels: Texts, annotations: Texts) -> Iterator[FieldError]:
    path = label(markers.POD_GROUP_NAME)
    if markers.POD_GROUP_TOTAL_COUNT in annotations:
        yield required(path, "has to be given together with the group's size")
    elif markers.POD_GROUP_ROLE in labels or any(key in annotations for key in _ALONE):
        yield required(path, "is missing, and what the pod says of its group means nothing without it: name the group")


def _sized(labels: Texts, annotations: Texts) -> Iterator[FieldError]:
    path, text = annotation(markers.POD_GROUP_TOTAL_COUNT), annotations.get(markers.POD_GROUP_TOTAL_COUNT)
    number = whole(text or "")
    if text is None:
        if markers.POD_GROUP_SETS not in annotations and markers.POD_GROUP_ROLE not in labels:
            yield required(path, "has to be given together with the group's name")
    elif not number:
        yield _invalid(path, text, f"must be a whole number from 1 to {MEMBERS_MAX}: the pods of the group in all")
    elif number > MEMBERS_MAX:
        yield _invalid(path, text, f"a group has at most {MEMBERS_MAX} pods: make several groups of them")
    yield from _indexed(labels.get(markers.POD_GROUP_POD_INDEX), total_count(text))


def _indexed(text: str | None, total: int | None) -> Iterator[FieldError]:
    if text is None:
        return
    path, index = label(markers.POD_GROUP_POD_INDEX), whole(text)
    if index is None:
        yield _invalid(path, text, "must be a whole number from 0 on: the pod's rank in its group")
    elif total is not None and index >= total:
        yield _invalid(path, text, f"must be below the group's size {total}: ranks are 0 to {total - 1}")


def _worded(labels: Texts, annotations: Texts) -> Iterator[FieldError]:
    said = annotations.get(markers.RETRIABLE_IN_GROUP)
    if said is not None and said not in {TRUE, FALSE}:
        yield _invalid(annotation(markers.RETRIABLE_IN_GROUP), said, "must be `true` or `false`: write one of them")
    role, digest = labels.get(markers.POD_GROUP_ROLE), annotations.get(markers.ROLE_HASH)
    rule = "must be a DNS label, since a pod set is named so: at most 63 lower-case letters, digits and '-'"
    if role is not None and not is_label(role):
        yield _invalid(label(markers.POD_GROUP_ROLE), role, rule)
    if digest is not None and not is_label(digest):
        yield _invalid(annotation(markers.ROLE_HASH), digest, f"{rule}; or leave it out, and it is set for you")


def _prebuilt(labels: Texts, annotations: Texts, group: str) -> Iterator[FieldError]:
    name = markers.prebuilt_name(labels, annotations)
    if name and name != group:
        where = annotation if annotations.get(markers.PREBUILT_WORKLOAD) else label
        yield _invalid(where(markers.PREBUILT_WORKLOAD), name, "must be equal to the group's name")


def _invalid(path: str, value: str, text: str) -> FieldError:
    return invalid(path, _shown(value), text)


def _shown(value: str) -> str:
    return plain(value, SHOWN_CHARS_MAX)
