"""Scripted histories (HD-87, IS-1): whatever people write into marks of ours, nothing is raised at all.

The keys are read from the sources, so a new one is tried as soon as it is there. The embedded server takes values that
a policy refuses elsewhere: cores must live with them all the same.
"""

from __future__ import annotations

import itertools

import pytest

from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER, WORKLOAD, Resource
from support.fuzz.many import marks
from support.sim.history import History

HOSTILE = {
    "no JSON": "not json",
    "a list": "[]",
    "an object": "{}",
    "a number": "7",
    "a string": '"x"',
    "null": "null",
    "wrong types": '{"parallelism":"x","completions":[],"metadata":7,"spec":[],"uid":1,"epoch":{},"stage":9}',
    "wrong parts": '{"metadata":{"labels":[1],"annotations":"x"},"spec":{"nodeSelector":[],"tolerations":{"a":1}}}',
    "negative": "-1",
    "huge": "9" * 5000,
    "other digits": "\u0663\u0664",
    "a digit that is no number": "\u00b2",
    "deep": "[" * 5000,
    "deep in an object": '{"x":' + "[" * 5000,
    "long": "x" * 200_000,
    "control characters": "\u001b]0;x\u0007\r\n\u202e",
    "empty": "",
}
EVERY = pytest.mark.parametrize("value", [pytest.param(value, id=name) for name, value in HOSTILE.items()])


def mark(history: History, cluster: str, resource: Resource, annotations: dict[str, str]) -> None:
    """Write annotations on every object of a kind."""
    for each in history.objects(cluster, resource):
        history.cluster(cluster).change(resource, each["metadata"]["name"], {"metadata": {"annotations": annotations}})


def everywhere(history: History, annotations: dict[str, str]) -> None:
    """Write annotations on all objects that people may write to."""
    for cluster, resource in itertools.product(("home", *history.workers), (POD, JOB)):
        mark(history, cluster, resource, annotations)
    for resource in (WORKLOAD, WORKER_CLUSTER):
        mark(history, "home", resource, annotations)


def test_hd_87_the_keys_are_found() -> None:
    found = marks()
    assert {"gatelift.dev/template-before", "gatelift.dev/parallelism-before", "gatelift.dev/epoch"} <= {*found}
    assert len(found) > 20


@EVERY
def test_hd_87_marks_of_ours_with_hostile_values_raise_nothing(value: str) -> None:
    """HD-87, IS-1: leaders and agents that start with such objects there do, too."""
    history = History(shown=False)
    history.job("travels")
    history.job("stays", "stays")
    history.pod("one")
    history.until("all run", lambda: all(history.containers(*one) for one in RUNNING))
    for key in marks():
        if key not in SAID_BY_THE_RECORD:
            everywhere(history, {key: value})
            history.passes(0.5)
    history.kill_leader()
    for name in history.workers:
        history.kill_agent(name)
    history.passes(40.0)
    for resource, name in ((JOB, "travels"), (JOB, "stays"), (POD, "one")):
        history.home.delete(resource, name)
    history.passes(60.0)


RUNNING = (("travels", "Job"), ("stays", "Job"), ("one", "Pod"))
SAID_BY_THE_RECORD = frozenset({"gatelift.dev/term", "gatelift.dev/epoch"})
"""Judged by the histories of HD-30 and, for a term, a reason to step down: a policy leaves both to the manager."""


@pytest.mark.parametrize("key", marks())
def test_hd_87_one_mark_on_a_job_that_is_queued_and_then_stopped_raises_nothing(key: str) -> None:
    for value in ("[]", '{"x":' + "[" * 5000, "9" * 5000, "\u0663"):
        history = History(shown=False)
        history.job("stays", "stays")
        history.home.change(JOB, "stays", {"metadata": {"annotations": {key: value}}})
        history.passes(3.0)
        history.home.change(JOB, "stays", {"spec": {"suspend": True}})
        history.passes(3.0)
        history.home.delete(JOB, "stays")
        history.passes(5.0)
