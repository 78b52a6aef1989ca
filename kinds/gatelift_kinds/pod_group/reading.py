"""From a pod as served to what its group counts of it. Pure.

Neighbours: `members` has what comes of it, `roles` the role.
"""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_kinds.pod_group import marks as group_marks
from gatelift_kinds.pod_group.declaration import declared
from gatelift_kinds.pod_group.member import Elsewhere, MemberState, facts_of, failed_at, standing
from gatelift_kinds.pod_group.members import Agreement, GroupMember
from gatelift_kinds.pod_group.roles import RoleFit
from gatelift_kinds.shared import markers, pods
from gatelift_kube.objects.core import Pod
from gatelift_kube.values.plain_text import plain

VALUE_CHARS_MAX = 63
"""Of what members have to agree on: what is longer differs from all that may be said, and is cut."""


def member_of(
    pod: Pod, fit: RoleFit, shape: str, elsewhere: Elsewhere = Elsewhere.NOWHERE, *, copied: Iterable[str] = ()
) -> GroupMember:
    """Return a pod as its group counts it.

    `fit`: its role; `shape`: of its spec (`shapes.shape_of`); `elsewhere`: what its worker says; `copied`: keys of the
    labels that go on to the Workload.
    """
    meta, facts = pod.metadata, facts_of(pod, elsewhere)
    state = standing(facts).state
    return GroupMember(
        uid=meta.uid,
        name=meta.name,
        created=meta.creation_timestamp or "",
        role=fit.role,
        shape=shape if facts.gated else "",  # with what its flavor added it is that of no other pod
        state=state,
        lifted=state not in {MemberState.WAITING, MemberState.WITHDRAWN},
        finalizer=markers.MANAGED in meta.finalizers,
        since=failed_at(pod) if state is MemberState.FAILED else "",
        ready=pods.ready(pod),
        retriable=facts.retriable,
        deleted=facts.deleted and not facts.evicted,
        said=_said(pod, copied),
    )


def _said(pod: Pod, copied: Iterable[str]) -> tuple[tuple[Agreement | str, str], ...]:
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    marks = group_marks.read(labels, annotations)
    said: list[tuple[Agreement | str, str]] = [(Agreement.QUEUE, _value(labels.get(markers.QUEUE_NAME, "")))]
    total = annotations.get(markers.POD_GROUP_TOTAL_COUNT)
    if total is not None or not marks.declared:
        said.append((Agreement.COUNT, str(marks.total) if marks.total else _value(total or "")))
    for subject, key in ((Agreement.CLASS, markers.PRIORITY_CLASS), (Agreement.LIMIT, markers.MAX_EXECUTION_SECONDS)):
        if key in labels:
            said.append((subject, _value(labels[key])))
    if marks.sets:
        said.append((Agreement.DECLARATION, _declaration(marks.sets)))
    return (*said, *((key, _value(labels[key])) for key in copied if key in labels))


def _declaration(text: str) -> str:
    found = declared(text).declaration
    return found.digest if found is not None else "nothing that can be read"


def _value(text: str) -> str:
    return plain(text, VALUE_CHARS_MAX)
