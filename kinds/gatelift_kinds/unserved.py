"""Kinds on which a queue's name would promise what nobody keeps: refused, with the way out. Pure.

Kueue queues Deployments and StatefulSets by this label, handing it on to their pods. Here their pods are queued one by
one where these say so themselves; on what makes them the label holds nothing back and charges nothing (decision 41).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gatelift_kinds import markers, rules
from gatelift_kinds.review import Verdict
from gatelift_kinds.rules import Object, forbidden, label


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """A kind that makes what is queued. `templates`: where the label counts, the one to be named first."""

    kind: str
    group: str
    plural: str
    makes: str
    templates: tuple[tuple[str, ...], ...] = (("spec", "template"),)


MAKERS = (
    Maker(kind="Deployment", group="apps", plural="deployments", makes="its pods"),
    Maker(kind="ReplicaSet", group="apps", plural="replicasets", makes="its pods"),
    Maker(kind="StatefulSet", group="apps", plural="statefulsets", makes="its pods"),
    Maker(
        kind="CronJob",
        group="batch",
        plural="cronjobs",
        makes="its Jobs",
        templates=(("spec", "jobTemplate"), ("spec", "jobTemplate", "spec", "template")),
    ),
)
BY_KIND = {each.kind: each for each in MAKERS}


def verdict(kind: str, old: Object, new: Object) -> Verdict:
    """Return what is wrong with an object of one of these kinds, or with a change of it; `old` is empty when it is new.

    What was labelled before there was anybody to refuse it may be changed in all else.
    """
    maker, queue = BY_KIND[kind], rules.marks(new).get(markers.QUEUE_NAME)
    if queue is None or queue == rules.marks(old).get(markers.QUEUE_NAME):
        return Verdict()
    if any(rules.marks(_part(new, path)).get(markers.QUEUE_NAME) for path in maker.templates):
        return Verdict()  # what it makes is queued: the label says no more than what is so
    first = ".".join(maker.templates[0])
    text = (
        f"a {kind} is not queued by this version, {maker.makes} are: put the label on {first}.metadata.labels, "
        f"where it queues {maker.makes} one by one, or leave it out"
    )
    return Verdict(errors=(forbidden(label(markers.QUEUE_NAME), text),))


def _part(document: Object, path: tuple[str, ...]) -> Object:
    part: Any = document
    for name in path:
        part = part.get(name) or {}
    found: Object = part
    return found
