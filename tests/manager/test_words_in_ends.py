"""What a worker says with the end of a placement (IS-22): an end is written whatever that is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.told.refused_ends import SET_ASIDE_SECONDS
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.plain_text import SHOWN_CHARS_MAX
from gatelift_kube.values.resources import WORKLOAD
from gatelift_wire.values.messages import Bid, BidKind, Evicted, Finished, ObjectReport, Refused, Stopped
from gatelift_wire.values.refusals import Refusal
from support.manager.builders import a_pod, a_setting
from support.manager.world import SUCCEEDED, World, a_running_pod, a_world

End = Finished | Stopped | Refused | Evicted
HOSTILE = "\x1b[2Jgone\u202e" + "x" * 32_000


def said_with_the_end(report: End) -> World:
    """Return a world in which a running pod's cluster has said this of it."""
    world, agent = a_running_pod()
    key = agent.commits[-1]
    world.stopped(key, "a")
    del agent.placements[key]
    agent.say(replace(report, key=key))
    return world


def ends() -> list[End]:
    _, agent = a_running_pod()
    key = agent.commits[-1]
    return [
        Finished(key=key, succeeded=False, reason="no reason!\n", message=HOSTILE),
        Finished(key=key, succeeded=True, reason="x" * 316 + "-", message=HOSTILE),
        Stopped(key=key, reason="\x1b", message=HOSTILE),
        Refused(key=key, refusal=Refusal.DENIED, text=HOSTILE),
        Evicted(key=key, reason="no reason!\n", message=HOSTILE),
    ]


def texts_of(world: World) -> list[str]:
    """Return all reasons and messages that the Workload shows."""
    status = world.find("Workload")["status"]
    conditions, checks = status.get("conditions", []), status.get("admissionChecks", [])
    return [one.get(field, "") for one in [*conditions, *checks] for field in ("reason", "message")]


@pytest.mark.parametrize("report", ends(), ids=lambda report: type(report).__name__)
def test_is_22_texts_of_a_worker_are_cut_and_cleaned_where_they_come_in(report: End) -> None:
    world = said_with_the_end(report)
    world.advance(1.0)
    said = texts_of(world)
    assert any("gone" in one for one in said), "what can be shown of it is"
    assert not {"\x1b", "\u202e", "\n"} & {*"".join(said)}
    assert max(map(len, said)) < 2 * SHOWN_CHARS_MAX


@pytest.mark.parametrize(("succeeded", "reason"), [(True, "Succeeded"), (False, "Failed")])
def test_is_22_a_reason_that_is_none_is_not_written(succeeded: bool, reason: str) -> None:
    _, agent = a_running_pod()
    world = said_with_the_end(Finished(key=agent.commits[-1], succeeded=succeeded, reason="no reason!", message=""))
    world.advance(120.0)
    assert world.condition(world.find("Workload"), "Finished")["reason"] == reason


def test_is_22_a_reason_that_is_one_is() -> None:
    _, agent = a_running_pod()
    world = said_with_the_end(Finished(key=agent.commits[-1], succeeded=False, reason="OOMKilled", message="too much"))
    world.advance(1.0)
    assert "OOMKilled" in texts_of(world)


def refusing(word: str, world: World, error: WriteError = WriteError.INVALID) -> list[float]:
    """Let the API server refuse each status of a Workload in which a word stands; return when it did."""
    times: list[float] = []

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        if command.ref.resource == WORKLOAD and isinstance(command, Patch) and word.encode() in command.body:
            times.append(world.now)
            return error
        return None

    world.fail = fail
    return times


@pytest.mark.parametrize("report", ends(), ids=lambda report: type(report).__name__)
def test_is_22_an_end_that_is_refused_is_written_at_once_without_the_workers_words(report: End) -> None:
    """The symptom: 422 on the check's message, tried again for ever, and the quota stayed charged."""
    world = said_with_the_end(report)
    times = refusing("xxx", world)
    uid = world.find("Workload")["metadata"]["uid"]
    held = world.machine.core.attempts[uid]
    world.advance(1.0)
    assert len(times) == 1
    said = " ".join(texts_of(world))
    assert "refused by the API server and is left out" in said
    assert "xxx" not in said
    assert world.machine.core.attempts.get(uid) is not held or isinstance(report, Finished)


def test_is_22_an_end_that_is_refused_without_them_is_set_aside_until_the_workload_changes() -> None:
    world, agent = a_running_pod()
    times = refusing("Finished", world)
    agent.finish(agent.commits[-1], SUCCEEDED, message="well")
    world.advance(SET_ASIDE_SECONDS / 2)
    assert len(times) == 2, "as it was said, and without the words"
    told = [event for event in world.emitted if event.reason == "EndNotWritten"]
    assert len(told) == 1
    assert told[0].warning
    assert "stays charged" in told[0].message
    world.advance(SET_ASIDE_SECONDS)
    assert len(times) == 3, "every ten minutes"
    world.fail = None
    (ref,) = (ref for ref in world.api.objects if ref.resource == WORKLOAD)
    world.api.edit(ref, lambda workload: workload["metadata"].update(labels={"a": "b"}))
    world.advance(1.0)
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"


def test_is_22_an_end_that_a_policy_refuses_is_tried_again_soon() -> None:
    """A webhook or a policy may think otherwise in a minute."""
    world, agent = a_running_pod()
    times = refusing("Finished", world, WriteError.DENIED)
    agent.finish(agent.commits[-1], SUCCEEDED, message="well")
    world.advance(SET_ASIDE_SECONDS / 4)
    assert len(times) > 2
    assert any(event.reason == "EndNotWritten" for event in world.emitted)


def test_is_22_an_end_that_is_not_taken_for_the_moment_keeps_the_workers_words() -> None:
    world, agent = a_running_pod()
    times = refusing("Finished", world, WriteError.NOT_DONE)
    agent.finish(agent.commits[-1], SUCCEEDED, message="what it said")
    world.advance(1.0)
    assert times
    world.fail = None
    world.advance(SET_ASIDE_SECONDS)
    assert "what it said" in world.condition(world.find("Workload"), "Finished")["message"]
    assert not any(event.reason == "EndNotWritten" for event in world.emitted)


def test_is_22_what_is_refused_and_is_no_end_is_not_called_one() -> None:
    world = a_world(a_setting())
    times = refusing("QuotaReserved", world)
    world.api.apply(a_pod("one").document())
    world.advance(5.0)
    assert times
    assert not any(event.reason == "EndNotWritten" for event in world.emitted)


def test_is_21_what_a_worker_tells_of_other_objects_is_not_kept() -> None:
    world, agent = a_running_pod()
    key = agent.commits[-1]
    for number in range(5):
        agent.say(ObjectReport(key=key, kind="Pod", name=f"other-{number}", uid="u", status=b"{}"))
    long = b'{"phase":"Running","podIP":"10.96.0.1","message":"' + b"m" * 1_400_000 + b'"}'
    agent.say(ObjectReport(key=key, kind="Pod", name="one", uid="u", status=long))
    world.advance(5.0)
    kept = world.machine.core.attempts[key.uid].reports
    assert kept.keys() == {"one"}
    assert len(kept["one"].status) < 2 * SHOWN_CHARS_MAX
    shown = world.find("Pod")["status"]
    assert "podIP" not in shown
    assert len(shown["message"]) <= SHOWN_CHARS_MAX


def test_is_22_a_refused_offers_text_is_cleaned() -> None:
    world = a_world(a_setting(clusters=("a",)), clusters=("a",))
    world.agents["a"].bid = lambda offer: Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.POLICY, text=HOSTILE)
    world.api.apply(a_pod("one").document())
    world.advance(1.0)
    said = texts_of(world)
    assert any("gone" in one for one in said)
    assert not {"\x1b", "\u202e"} & {*"".join(said)}
