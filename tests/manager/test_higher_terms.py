"""HD-171: a term above the leader's stands in a record. The Lease says whether anybody leads in it, or it is forged."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from gatelift.core.api.commands import Read
from gatelift.core.api.events import (
    Event,
    LeadershipExtended,
    LeadershipGained,
    ReadDone,
    ReadFailed,
    TermUnconfirmed,
    Ticked,
)
from gatelift.core.clusters.link_values import FencedByPerson, HigherTermRead, LinksOutcome
from gatelift.core.conclusions import higher_terms
from gatelift_kube.deciding.writes import Create, Delete, ObjectSeen, Patch
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import LEASE, WORKER_CLUSTER, WORKLOAD
from gatelift_wire.values.messages import Offer
from support.manager.builders import Doc, a_pod, a_setting
from support.manager.world import World, a_world

FORGED = 999_999


def running() -> World:
    world = a_world(a_setting(cpu=1000))
    for name in ("one", "two"):
        world.api.apply(a_pod(name).document())
    world.settle()
    return world


def mark(workload: Doc) -> Doc:
    found: Doc = workload["status"]["admissionChecks"][0]["podSetUpdates"][0]["annotations"]
    return found


def forge(world: World, term: int = FORGED, name: str = "one") -> None:
    def change(workload: Doc) -> None:
        mark(workload)["gatelift.dev/term"] = str(term)

    (ref,) = [ref for ref in world.api.objects if ref.resource == WORKLOAD and f"-{name}-" in ref.key.name]
    world.api.edit(ref, change)


def terms(world: World) -> set[str]:
    return {mark(each)["gatelift.dev/term"] for each in world.all("Workload")}


def reads(world: World) -> int:
    return sum(isinstance(each, Read) and each.ref.resource == LEASE for each in world.history)


def done(world: World) -> int:
    """Return how much was written and said."""
    return len(world.links.log) + sum(isinstance(each, Create | Patch | Delete) for each in world.history)


def test_hd_171_a_forged_term_is_put_back_and_told_and_ends_nobody() -> None:
    world = running()
    forge(world)
    world.settle()
    assert not world.stepped_down
    assert terms(world) == {str(world.term)}
    (told,) = [each for each in world.emitted if each.reason == "RecordPutBack"]
    assert "term 999999" in told.message
    assert "no leader has come further than 1" in told.message
    world.api.apply(a_pod("three").document())
    world.settle()
    assert len(world.all("Workload")) == 3
    assert not world.machine.core.caution.terms.forged, "nothing is kept of what was put back"


def test_hd_171_many_forged_terms_are_one_question() -> None:
    world = running()
    world.watch_late = True
    forge(world, name="one")
    forge(world, name="two")
    world.watch_late = False
    world.restart()
    world.settle()
    assert reads(world) == 1
    assert terms(world) == {str(world.term)}


def test_hd_171_so_it_is_for_the_next_leader_who_finds_it() -> None:
    world = running()
    world.watch_late = True
    forge(world)
    world.watch_late = False
    world.restart()
    world.settle()
    assert not world.stepped_down
    assert str(FORGED) not in terms(world)


def unanswered(world: World) -> Callable[[Read], ReadFailed | None]:
    return lambda asked: ReadFailed(read_id=asked.read_id, ref=asked.ref, message="not reachable")


def test_hd_171_while_the_lease_is_asked_nothing_is_written_and_nobody_is_told_anything() -> None:
    world = running()
    world.read_fails = unanswered(world)
    forge(world)
    world.settle()
    before = done(world)
    world.api.apply(a_pod("three").document())
    world.connect("a")
    world.advance(10 * higher_terms.AGAIN_SECONDS)
    assert reads(world) == 11, "it is asked again, once in a while"
    assert done(world) == before
    assert not world.stepped_down
    world.read_fails = None
    world.advance(higher_terms.AGAIN_SECONDS)
    assert terms(world) == {str(world.term)}
    assert len(world.messages(Offer)) > 2, "and then it goes on with all that came in meanwhile"


def test_hd_171_no_lease_is_no_answer() -> None:
    world = running()
    held, world.lease = world.lease, None
    forge(world)
    world.settle()
    before = done(world)
    world.advance(3.0)
    assert (done(world), world.stepped_down) == (before, [])
    world.lease = held
    world.advance(3.0)
    assert terms(world) == {str(world.term)}


@pytest.mark.parametrize("term", [1, 2, FORGED])
def test_hd_171_a_leader_who_was_truly_deposed_writes_nothing_after_it_saw_the_term(term: int) -> None:
    """Whoever holds the Lease now: under another term, or another name in ours."""
    world = running()
    world.deposed(term)
    forge(world, max(term, 2))
    before = done(world)
    world.api.apply(a_pod("three").document())
    world.settle()
    world.connect("a")
    world.settle()
    assert len(world.stepped_down) == 1
    assert f"the Lease is in term {term}, held by another" in world.stepped_down[0]
    assert done(world) == before


def test_hd_171_what_was_proved_of_one_version_says_nothing_of_the_next() -> None:
    """A later leader may have written that: the Lease is asked anew."""
    world = running()
    forge(world)
    world.settle()
    world.deposed(2)
    forge(world, 2)
    world.settle()
    assert reads(world) == 2
    assert len(world.stepped_down) == 1


def test_hd_171_a_version_that_came_while_the_lease_was_asked_is_asked_about_itself() -> None:
    """The first answer is of the moment before another leader wrote that version."""
    world = running()
    waiting: list[Read] = []

    def hangs(asked: Read) -> ReadFailed:
        waiting.append(asked)
        return ReadFailed(read_id=0, message="of another")

    world.read_fails, before = hangs, world.lease
    forge(world)
    world.settle()
    (asked,) = waiting
    world.deposed(2)
    forge(world, 2)
    world.settle()
    world.read_fails = None
    world.give(ReadDone(read_id=asked.read_id, ref=asked.ref, object=before))
    world.settle()
    assert len(world.stepped_down) == 1
    assert "2" in terms(world), "what the other leader wrote stands"


def test_hd_171_who_knows_no_lease_to_ask_steps_down() -> None:
    world = running()
    higher_terms.leads(world.machine.core, LeadershipGained(term=1))
    forge(world)
    world.settle()
    assert len(world.stepped_down) == 1


def test_hd_171_an_answer_that_comes_after_the_lead_ran_out_is_acted_on_when_it_is_ours_again() -> None:
    world = running()
    forge(world)
    world.give(LeadershipExtended(valid_until=world.now))
    world.settle()
    before = done(world)
    world.give(Ticked())
    assert done(world) == before
    world.give(LeadershipExtended(valid_until=1e9))
    world.settle()
    assert terms(world) == {str(world.term)}


# --- in a WorkerCluster (HD-207) ------------------------------------------------------------------------------------


def cluster(world: World, term: int = FORGED, version: str = "9") -> WorkerCluster:
    """Return a version of the WorkerCluster, as the machine has seen it."""
    metadata = {"name": "a", "uid": "a-uid", "resourceVersion": version}
    found = msgspec.convert({"metadata": metadata, "spec": {}, "status": {"term": term}}, WorkerCluster)
    world.give(ObjectSeen(WORKER_CLUSTER, found, b""))
    return found


def unconfirmed(world: World) -> list[WorkerCluster]:
    """Return what the links were told of from now on."""
    told: list[WorkerCluster] = []
    handle = world.links.handle

    def listens(event: Event, now: float, *, record_revision: int) -> LinksOutcome:
        if isinstance(event, TermUnconfirmed):
            told.append(event.found)
        return handle(event, now, record_revision=record_revision)

    world.links.handle = listens  # type: ignore[method-assign]
    return told


def test_hd_207_a_term_in_a_cluster_that_no_leader_has_written_ends_nobody_and_is_told() -> None:
    world = running()
    told, found = unconfirmed(world), cluster(world)
    world.upcall(HigherTermRead(cluster="a", term=FORGED, found=found))
    world.settle()
    assert (world.stepped_down, told) == ([], [found])
    (event,) = [each for each in world.emitted if each.reason == "RecordPutBack"]
    assert "term 999999" in event.message
    world.api.apply(a_pod("three").document())
    world.settle()
    assert len(world.all("Workload")) == 3


def test_hd_207_while_the_lease_is_asked_about_a_cluster_nothing_is_written_and_nobody_is_told_anything() -> None:
    world = running()
    world.read_fails = unanswered(world)
    told, found = unconfirmed(world), cluster(world)
    world.upcall(HigherTermRead(cluster="a", term=FORGED, found=found))
    world.upcall(HigherTermRead(cluster="a", term=FORGED, found=found))
    world.settle()
    before = done(world)
    world.api.apply(a_pod("three").document())
    world.advance(10 * higher_terms.AGAIN_SECONDS)
    assert (done(world), told, world.stepped_down) == (before, [], [])
    world.read_fails = None
    world.advance(higher_terms.AGAIN_SECONDS)
    world.settle()
    assert told
    assert len(world.all("Workload")) == 3


def test_hd_207_of_a_version_that_is_not_the_last_one_any_more_the_links_are_told_nothing() -> None:
    world = running()
    told, found = unconfirmed(world), cluster(world)
    cluster(world, version="10")
    world.upcall(HigherTermRead(cluster="a", term=FORGED, found=found))
    world.settle()
    assert (world.stepped_down, told) == ([], [])


def test_hd_207_what_a_link_says_while_the_lease_is_asked_waits() -> None:
    world = running()
    world.read_fails = unanswered(world)
    found = cluster(world)
    world.links.pending.append(HigherTermRead(cluster="a", term=FORGED, found=found))
    world.links.pending.append(FencedByPerson(cluster="b", through_session=1, who="ada"))
    world.give(Ticked())
    world.settle()
    assert not any("a person says" in note.text for note in world.notes)
    world.read_fails = None
    world.advance(higher_terms.AGAIN_SECONDS)
    assert any("a person says" in note.text for note in world.notes)
