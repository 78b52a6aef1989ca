"""Scripted histories (HD-232, HD-233): past the policy, somebody lets a Workload change hands by and by."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kinds.shared.made_for import ANNOTATION_OWNER
from gatelift_kube.values.resources import JOB, LOCAL_QUEUE, POD, WORKLOAD
from support.sim.cluster import TEAM, Doc
from support.sim.history import History

KINDS = {"Pod": POD, "Job": JOB}
ANNOTATIONS_BYTES_MAX = 256 * 1024
"""Of all annotations of an object together, keys and values: what an API server takes."""
SOON_SECONDS = 30.0
"""The containers take fifteen to stop; what is refused has come to longer pauses than the rest by then."""

kinds = pytest.mark.parametrize("kind", KINDS)
queues = pytest.mark.parametrize("queue", ["travels", "stays"])


def running(kind: str, queue: str) -> tuple[History, Doc]:
    """Let an object run; return the history and its Workload."""
    history = History(shown=False)
    make: Any = history.job if kind == "Job" else history.pod
    make("one", queue, stops_in=15)
    history.until_runs("one", kind)
    history.passes(5.0)
    workload = history.workload("one", kind)
    assert workload is not None
    return history, workload


def stranger(history: History, queue: str) -> Doc:
    """Return a reference to an object that is there, of a kind that does not travel."""
    found = history.home.look(LOCAL_QUEUE, queue, TEAM)
    assert found is not None
    named = {"apiVersion": LOCAL_QUEUE.api_version, "kind": LOCAL_QUEUE.kind}
    return {**named, "name": queue, "uid": found["metadata"]["uid"]}


def edit(history: History, workload: Doc, references: list[Doc] | None, **annotations: str | None) -> None:
    said: Doc = {"gatelift.dev/owner" if key == "owner" else key: value for key, value in annotations.items()}
    metadata = {"ownerReferences": references, "annotations": said}
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"metadata": metadata})
    history.passes(10.0)


def said_of(history: History, workload: Doc) -> str | None:
    found = history.home.look(WORKLOAD, workload["metadata"]["name"], TEAM)
    return None if found is None else found["metadata"].get("annotations", {}).get(ANNOTATION_OWNER, "")


def goes_with_its_object(history: History, workload: Doc, kind: str, queue: str) -> None:
    """See that it runs, is charged, names its object, and leaves nothing when that is deleted."""
    assert (history.containers("one", kind), history.leader.charges(queue)) == (1, 500)
    assert said_of(history, workload) == workload["metadata"]["annotations"][ANNOTATION_OWNER]
    history.delete("home", KINDS[kind], "one")
    history.until("its quota is free", lambda: not history.leader.charges(queue), 120.0)
    history.until("its Workload is gone", lambda: said_of(history, workload) is None, 120.0)
    assert not history.containers("one", kind)


@kinds
@queues
def test_hd_232_a_workload_changes_hands_in_no_two_patches(kind: str, queue: str) -> None:
    """HD-232: the first patch names another object before its own, the second that alone."""
    history, workload = running(kind, queue)
    other, (own,) = stranger(history, queue), workload["metadata"]["ownerReferences"]
    edit(history, workload, [other, own], owner=None)
    edit(history, workload, [other])
    goes_with_its_object(history, workload, kind, queue)


@kinds
@queues
def test_hd_232_an_object_that_is_named_before_its_own_does_not_keep_it(kind: str, queue: str) -> None:
    """HD-232: one patch, and its own object is among those that the Workload names, as the second."""
    history, workload = running(kind, queue)
    (own,) = workload["metadata"]["ownerReferences"]
    edit(history, workload, [stranger(history, queue), own], owner=None)
    goes_with_its_object(history, workload, kind, queue)


@kinds
@queues
def test_hd_232_an_object_that_never_was_is_not_written_as_its_owner(kind: str, queue: str) -> None:
    """HD-232: the garbage collector takes the first reference off, and the manager put just that back."""
    history, workload = running(kind, queue)
    (own,) = workload["metadata"]["ownerReferences"]
    never = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "never-there"}
    edit(history, workload, [never, own], owner=None)
    edit(history, workload, [own])
    goes_with_its_object(history, workload, kind, queue)


@kinds
@queues
def test_hd_232_an_annotation_that_gives_its_object_another_kind_is_put_back(kind: str, queue: str) -> None:
    """HD-232: it names the UID that it named, of a kind that does not travel: it was nobody's."""
    history, workload = running(kind, queue)
    own = workload["metadata"]["annotations"][ANNOTATION_OWNER]
    edit(history, workload, None, owner=own.replace(f'"kind":"{kind}"', '"kind":"ConfigMap"'))
    goes_with_its_object(history, workload, kind, queue)


@kinds
def test_hd_232_who_first_sees_it_without_the_annotation_goes_by_the_kind_that_travels(kind: str) -> None:
    """HD-232: nobody led at the first patch; the leader that comes sees two owners, and then the other one alone."""
    history, workload = running(kind, "travels")
    other, (own,) = stranger(history, "travels"), workload["metadata"]["ownerReferences"]
    history.kill_leader()
    edit(history, workload, [other, own], owner=None)
    history.until("another leads", history.leads)
    history.passes(30.0)
    edit(history, workload, [other])
    goes_with_its_object(history, workload, kind, "travels")


def test_hd_232_a_workload_of_an_object_that_does_not_travel_is_left_to_its_maker() -> None:
    """HD-232: what its maker, or the garbage collector, takes off it, nobody writes back."""
    history, workload = running("Pod", "stays")
    metadata = {"name": "theirs", "namespace": TEAM, "ownerReferences": [stranger(history, "stays")]}
    theirs = {**{each: workload[each] for each in ("apiVersion", "kind", "spec")}, "metadata": metadata}
    history.home.create(WORKLOAD, theirs)
    history.passes(10.0)
    edit(history, theirs, None)
    assert said_of(history, theirs) == ""


@kinds
@queues
@pytest.mark.parametrize("how", ["is deleted", "is deactivated"])
def test_hd_233_whose_owner_cannot_be_written_back_is_stopped_all_the_same(kind: str, queue: str, how: str) -> None:
    """HD-233: its annotations are full, and nothing waits for the write that is refused for ever."""
    history, workload = running(kind, queue)
    said = {each: value for each, value in workload["metadata"]["annotations"].items() if each != ANNOTATION_OWNER}
    left = ANNOTATIONS_BYTES_MAX - sum(len(each) + len(value) for each, value in said.items())
    edit(history, workload, None, owner=None, x="y" * (left - len("x") - 10))
    history.passes(60.0)  # what is refused pauses for longer and longer
    assert (history.containers("one", kind), history.leader.charges(queue)) == (1, 500)
    if how == "is deleted":
        history.delete("home", KINDS[kind], "one")
        history.until("its Workload is gone", lambda: said_of(history, workload) is None, SOON_SECONDS)
    else:
        history.edit("home", WORKLOAD, workload["metadata"]["name"], {"spec": {"active": False}})
    history.until("it has stopped", lambda: not history.containers("one", kind), SOON_SECONDS)
    history.until("its quota is free", lambda: not history.leader.charges(queue), SOON_SECONDS)
    tries = [each for each in history.world.time.trace if "put the owner back" in each]
    assert len(tries) < 20, "it is tried again at a pace"
