"""Pods that a driver has made at a worker by itself, as the Workload of their group tells people of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.plain_text import plain
from gatelift_wire.values.messages import PodSetCounts

ANNOTATION = "gatelift.dev/made-there"
"""On the Workload, for people: they have no pod at home. A list of conditions has no room for one more of ours."""
CHARS_MAX = 1000


def text(counts: Iterable[PodSetCounts]) -> str:
    """Return in one line where they are, role by role; "" where there are none."""
    found = "; ".join(filter(None, map(_of_set, sorted(counts, key=lambda each: each.name))))
    return plain(found, CHARS_MAX)


def said(workload: Workload) -> str:
    """Return what a Workload says of them, "" for nothing."""
    return plain(workload.metadata.annotations.get(ANNOTATION, ""), CHARS_MAX)


def at_rest(text: str) -> str:
    """Return what is left of such a text once nothing runs or stops there any more."""
    found: list[str] = []
    for line in text.split("; "):
        name, _, counts = line.partition(": ")
        kept = [each for each in counts.split(", ") if not each.endswith((" active", " stopping"))]
        found += [f"{name}: {', '.join(kept)}"] if any(kept) else []
    return "; ".join(found)


def _of_set(one: PodSetCounts) -> str:
    numbers = (
        ("active", one.active),
        ("stopping", one.terminating),
        ("succeeded", one.succeeded),
        ("failed", one.failed),
        ("turned away", one.rejected),
    )
    parts = [f"{count} {word}" for word, count in numbers if count]
    return f"{one.name}: {', '.join(parts)}" if parts else ""
