"""HD-158: a queue's name on what makes pods is refused where it would hold none of them."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds import markers, unserved

Q = {markers.QUEUE_NAME: "q"}
KINDS = tuple(unserved.BY_KIND)


def made(labels: dict[str, str] | None, *template: str, label: dict[str, str] | None = None) -> dict[str, Any]:
    """Return an object with labels, and with labels on the part at a path."""
    document: dict[str, Any] = {"metadata": {"labels": labels}, "spec": None}
    part = document
    for name in template:
        part[name] = part = {}
    if template:
        part["metadata"] = {"labels": label}
    return document


@pytest.mark.parametrize("kind", KINDS)
def test_hd_158_a_new_label_that_nobody_keeps_is_refused(kind: str) -> None:
    path = "spec.jobTemplate" if kind == "CronJob" else "spec.template"
    for old in ({}, made(None), made({markers.QUEUE_NAME: "another"})):
        (error,) = unserved.verdict(kind, old, made(Q)).errors
        assert str(error).startswith(f"metadata.labels[{markers.QUEUE_NAME}]: Forbidden: a {kind} is not queued")
        assert f"put the label on {path}.metadata.labels" in str(error)


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_labelled_before_may_be_changed_in_all_else_and_lose_the_label(kind: str) -> None:
    assert unserved.verdict(kind, made(Q), made(Q)).allowed
    assert unserved.verdict(kind, made(Q), made(None)).allowed
    assert unserved.verdict(kind, {}, made(None)).allowed


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Deployment", ("spec", "template")),
        ("ReplicaSet", ("spec", "template")),
        ("StatefulSet", ("spec", "template")),
        ("CronJob", ("spec", "jobTemplate")),
        ("CronJob", ("spec", "jobTemplate", "spec", "template")),
    ],
)
def test_what_makes_queued_pods_or_jobs_may_say_so_itself(kind: str, path: tuple[str, ...]) -> None:
    assert unserved.verdict(kind, {}, made(Q, *path, label=Q)).allowed
    assert not unserved.verdict(kind, {}, made(Q, *path, label={"app": "x"})).allowed
