"""The view of a cluster is remembered, and is the one that would be made anew, whatever of it has changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from gatelift.core.clusters.cluster_facts import Facts
from gatelift.core.clusters.cluster_views import RememberedView
from gatelift.core.clusters.conversation import Conversation
from gatelift.core.clusters.fencing import ANNOTATION_FENCED_BY, ANNOTATION_FENCED_THROUGH
from gatelift_kube.deciding.writes import ObjectSeen
from gatelift_kube.objects.gatelift import ForeignRunStatus
from gatelift_kube.values.resources import WORKER_CLUSTER
from gatelift_wire.values.keys import PROTOCOL_VERSION
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

FOREIGN = (ForeignRunStatus(origin="other", kind="Pod", namespace="d", name="p"),)


def conversation(manager: Manager) -> Conversation:
    return manager.links._links["w1"]._conversation


def is_as_made_anew(manager: Manager, change: Callable[[Conversation], None]) -> bool:
    """Say whether the view after a change, with one remembered from before, is the one that is made of it alone."""
    talk = conversation(manager)
    remembered = RememberedView(talk)
    remembered.at(manager.now)
    change(talk)
    return remembered.at(manager.now) == RememberedView(talk).at(manager.now)


def other(value: Any) -> Any:
    """Return another value of the same type."""
    match value:
        case bool():
            return not value
        case int():
            return value + 3
        case str():
            return value + "x"
        case tuple():
            return FOREIGN
        case _:
            return value


@pytest.mark.parametrize("fact", [field.name for field in dataclasses.fields(Facts) if "capacity" not in field.name])
def test_a_view_follows_each_fact(fact: str) -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    was = getattr(conversation(manager).facts, fact)
    assert is_as_made_anew(manager, lambda talk: setattr(talk.facts, fact, other(was)))


def lost(talk: Conversation) -> None:
    talk.record.lost_session = 1


def suspect(talk: Conversation) -> None:
    talk.suspect = True


def without_session(talk: Conversation) -> None:
    talk.open_session = 0


def credited(talk: Conversation) -> None:
    talk.credits += 1


def of_an_older_agent(talk: Conversation) -> None:
    assert RememberedView(talk).at(0.0).version == PROTOCOL_VERSION
    talk.version = 1


def of_the_first_session(talk: Conversation) -> None:
    talk.facts.opened_session = 0
    talk.record.comparison.resyncs(5, talk.facts)


def led_in_another_term(talk: Conversation) -> None:
    talk.record._leading.term += 1


def cordoned(talk: Conversation) -> None:
    found = talk.record.object
    assert found is not None
    talk.record.object = msgspec.structs.replace(found, spec=msgspec.structs.replace(found.spec, cordoned=True))


def greeted_by_one_of_no_kind(talk: Conversation) -> None:
    assert talk.hello is not None
    talk.hello = dataclasses.replace(talk.hello, kinds=())


@pytest.mark.parametrize(
    "change",
    [
        lost,
        suspect,
        without_session,
        credited,
        of_an_older_agent,
        of_the_first_session,
        cordoned,
        greeted_by_one_of_no_kind,
    ],
    ids=lambda change: change.__name__,
)
def test_a_view_follows_what_is_known_of_a_session(change: Callable[[Conversation], None]) -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3, agents=True)
    before = RememberedView(conversation(manager)).at(manager.now)
    assert is_as_made_anew(manager, change)
    assert RememberedView(conversation(manager)).at(manager.now) != before, "it says something of it"


def settled(talk: Conversation) -> None:
    talk.facts.lost = False
    talk.record.comparison.settled_before = 2


@pytest.mark.parametrize("change", [settled, led_in_another_term], ids=lambda change: change.__name__)
def test_a_view_follows_whether_a_persons_word_counts(change: Callable[[Conversation], None]) -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(70)
    manager.api.annotate("w1", {ANNOTATION_FENCED_THROUGH: "1", ANNOTATION_FENCED_BY: "ada"})
    manager.event(ObjectSeen(WORKER_CLUSTER, manager.api.get("w1"), b""))
    manager.pass_time(3)
    assert RememberedView(conversation(manager)).at(manager.now).fenced_by == "ada"
    assert is_as_made_anew(manager, change)
    assert RememberedView(conversation(manager)).at(manager.now).fenced_by == ""
