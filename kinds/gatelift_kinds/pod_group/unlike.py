"""What a pod says otherwise than its group has quota for, which nobody acts on before that waits again. Pure.

Who replaces another one may say another size, queue, class or limit: it is let go as the others are, since its role is
what is charged. While the group waits `composition` says in what its pods differ, and makes no Workload of them.
"""

from __future__ import annotations

from gatelift_kinds.pod_group.members import Agreement, GroupMember
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain

WORDS = {
    Agreement.COUNT: "the size {}",
    Agreement.QUEUE: "the queue {}",
    Agreement.CLASS: "the priority class {}",
    Agreement.LIMIT: "the execution limit {}",
}
TEXT_CHARS_MAX = 500
WAY_OUT = (
    "that counts for nothing while the group has quota, and holds it back once it waits again: make it like the others"
)


def unlike(member: GroupMember, workload: Workload) -> str:
    """Return in what a pod differs from the Workload of its group, in one line; "" where it does not."""
    has, told = _has(workload), []
    for subject, value in member.said:
        if isinstance(subject, Agreement) and subject in has and value != has[subject]:
            words = WORDS[subject]
            theirs = words.format(has[subject] or "none")
            told.append(f"says {words.format(value or 'nothing')}, and its group has {theirs}")
    return plain(f"{'; '.join(told)}: {WAY_OUT}", TEXT_CHARS_MAX) if told else ""


def _has(workload: Workload) -> dict[Agreement, str]:
    spec = workload.spec
    named, limit = spec.priority_class_ref, spec.maximum_execution_time_seconds
    return {
        Agreement.COUNT: str(sum(each.count for each in spec.pod_sets)),
        Agreement.QUEUE: spec.queue_name,
        Agreement.CLASS: named.name if named is not None and named.kind == "WorkloadPriorityClass" else "",
        Agreement.LIMIT: str(limit) if limit is not None else "",
    }
