"""The end of work elsewhere reaches the user's object, whatever its API server says to the first write of it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from gatelift.core.told.shown_end import SHOW_END_SECONDS
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError, WriteFailed
from gatelift_kube.values.resources import JOB, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Forget
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, THE_POD, World, a_running_pod, a_world

Fault = Callable[[Create | Patch | Delete], WriteError | None]


def status_of_pods(errors: Iterable[WriteError]) -> Fault:
    """Fail the next writes of pods' status, one by one, as told."""
    left = list(errors)

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        mirrors = isinstance(command, Patch) and command.ref == THE_POD and command.subresource == "status"
        return left.pop(0) if mirrors and left else None

    return fail


def always(error: WriteError) -> Fault:
    return status_of_pods([error] * 10_000)


def states(world: World) -> tuple[str, str, bool]:
    """Return what the pod shows, what its Workload says of the end, and whether the pod is still held."""
    pod, workload = world.find("Pod"), world.find("Workload")
    return pod["status"]["phase"], world.condition(workload, "Finished").get("reason", ""), bool(finalizers(pod))


def finalizers(document: dict[str, Any]) -> list[str]:
    return list(document["metadata"].get("finalizers", []))


def order(world: World) -> list[str]:
    """Return what was written, in order: the shown phase, Finished, the pod let go."""
    found = []
    for verb, ref, body in world.api.writes:
        if ref == THE_POD:
            found.append(body["status"]["phase"] if verb == "patch status" and isinstance(body, dict) else "let go")
        elif ref.resource == WORKLOAD and verb == "replace status" and isinstance(body, dict):
            found += [one["type"] for one in body["status"].get("conditions", []) if one["type"] == "Finished"]
    return found


@pytest.mark.parametrize("error", [WriteError.CONFLICT, WriteError.FORBIDDEN, WriteError.NOT_DONE])
def test_a_mirror_of_the_end_that_fails_once_is_written_again_before_finished_and_before_the_pod_is_let_go(
    error: WriteError,
) -> None:
    world, agent = a_running_pod()
    world.api.writes.clear()
    world.fail = status_of_pods([error])
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(3.0)
    assert states(world) == ("Succeeded", "Succeeded", False)
    assert order(world) == ["Succeeded", "Finished", "let go"]


def test_a_mirror_of_the_end_that_an_api_server_in_trouble_did_not_write_is_tried_again_with_pauses() -> None:
    world, agent = a_running_pod()
    world.api.writes.clear()
    tries: list[float] = []
    write = world._write

    def in_trouble(command: Create | Patch | Delete) -> None:
        if isinstance(command, Patch) and command.ref == THE_POD and command.subresource == "status" and len(tries) < 5:
            tries.append(world.now)
            world.put(WriteFailed(write_id=command.write_id, error=WriteError.UNKNOWN, message="500"))
        else:
            write(command)

    world._write = in_trouble  # type: ignore[method-assign]  # writes pass through it
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(30.0)
    assert states(world) == ("Succeeded", "Succeeded", False)
    assert order(world) == ["Succeeded", "Finished", "let go"]
    pauses = [after - before for before, after in itertools.pairwise(tries)]
    assert pauses == [0.0, 0.5, 1.0, 2.0], "at once after the first, then longer each time"


def test_finished_waits_while_nobody_can_tell_whether_the_mirror_was_written() -> None:
    world, agent = a_running_pod()
    lost = status_of_pods([WriteError.UNKNOWN])
    world.api.writes.clear()
    world.fail = lost
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(3.0)
    assert states(world) == ("Succeeded", "Succeeded", False)
    assert order(world) == ["Succeeded", "Finished", "let go"], "the read showed it, it is not written twice"


def test_a_status_that_is_refused_is_followed_by_the_smallest_that_tells_the_end() -> None:
    world, agent = a_running_pod()
    world.fail = status_of_pods([WriteError.INVALID])
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(2.0)
    pod = world.find("Pod")
    assert states(world) == ("Succeeded", "Succeeded", False)
    assert "containerStatuses" not in pod["status"], "what its containers showed while it ran is not kept"
    assert world.condition(pod, "Ready")["status"] == "False"


def test_an_end_that_is_refused_for_good_frees_the_quota_at_once_and_is_said_at_both_objects() -> None:
    world, agent = a_running_pod()
    world.fail = always(WriteError.INVALID)
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(5.0)
    assert states(world) == ("Running", "Succeeded", False)
    assert not world.machine.core.ledger.engine.charged(agent.commits[-1].uid)
    said = [event for event in world.emitted if event.reason == "EndNotShown"]
    assert len(said) == 1
    assert said[0].ref == THE_POD
    assert said[0].warning
    assert "the status of this Pod cannot be written: as told" in said[0].message
    finished = world.condition(world.find("Workload"), "Finished")
    assert finished["message"] == "(not shown at the user's object: as told)"
    assert [cluster for cluster, _ in world.messages(Forget)] == ["a"]
    world.advance(3600.0)
    assert len([event for event in world.emitted if event.reason == "EndNotShown"]) == 1, "said once, tried no more"


def test_an_api_server_that_takes_no_status_of_pods_keeps_the_pod_until_it_shows_the_end_but_not_the_quota() -> None:
    world, agent = a_running_pod()
    tries = [0]

    def forbidden(command: Create | Patch | Delete) -> WriteError | None:
        if isinstance(command, Patch) and command.ref == THE_POD and command.subresource == "status":
            tries[0] += 1
            return WriteError.FORBIDDEN
        return None

    world.fail = forbidden
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(SHOW_END_SECONDS - 1.0)
    assert states(world) == ("Running", "", True)
    assert world.machine.core.ledger.engine.charged(agent.commits[-1].uid)
    world.advance(2.0)
    assert states(world) == ("Running", "Succeeded", True), "quota is free, the pod is kept"
    assert not world.machine.core.ledger.engine.charged(agent.commits[-1].uid)
    world.advance(3600.0)
    assert tries[0] < 100, "it is not asked in a loop"
    world.fail = None
    world.advance(61.0)
    assert states(world) == ("Succeeded", "Succeeded", False)


def test_a_new_leader_shows_an_end_that_its_predecessor_could_not() -> None:
    world, agent = a_running_pod()
    world.fail = always(WriteError.FORBIDDEN)
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(SHOW_END_SECONDS + 1.0)
    world.fail = None
    world.restart()
    world.advance(1.0)
    assert states(world) == ("Succeeded", "Succeeded", False)


def test_a_pod_whose_end_cannot_be_shown_goes_when_its_user_deletes_it() -> None:
    world, agent = a_running_pod()
    world.fail = always(WriteError.FORBIDDEN)
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.advance(SHOW_END_SECONDS + 1.0)
    world.api.delete(THE_POD)
    world.advance(61.0)
    assert not world.all("Pod")
    assert not world.all("Workload")


def test_a_refusal_while_it_ran_does_not_hold_up_the_end() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    world.fail = always(WriteError.INVALID)
    agent.show(agent.commits[-1], RUNNING)
    world.advance(120.0)
    world.fail = None
    agent.finish(agent.commits[-1], SUCCEEDED)
    world.settle()
    assert states(world) == ("Succeeded", "Succeeded", False)


def test_an_end_without_a_status_is_shown_by_its_outcome() -> None:
    world, agent = a_running_pod()
    key = agent.commits[-1]
    agent.finish(key, {}, succeeded=False, message="the node is gone")
    world.settle()
    assert states(world) == ("Failed", "Failed", False)
    assert world.find("Pod")["status"]["message"] == "the node is gone"


def test_a_job_is_unsuspended_before_its_end_is_shown_also_when_the_reported_status_is_refused() -> None:
    world = a_world(a_setting())
    world.api.apply(a_job())
    world.settle()
    agent = next(one for one in world.agents.values() if one.commits)
    refusals = [WriteError.INVALID]
    ref = ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))

    def fail(command: Create | Patch | Delete) -> WriteError | None:
        mirrors = isinstance(command, Patch) and command.ref == ref and command.subresource == "status"
        return refusals.pop(0) if mirrors and refusals else None

    world.fail = fail
    done = {"type": "Complete", "status": "True", "reason": "CompletionsReached", "message": "done"}
    agent.finish(agent.commits[-1], {"succeeded": 2, "conditions": [done]}, message="done")
    world.advance(2.0)
    job = world.find("Job")
    assert job["spec"]["suspend"] is False
    assert world.condition(job, "Complete")["message"] == "done"
    assert world.condition(job, "SuccessCriteriaMet")["status"] == "True"
    assert job["status"]["completionTime"]
    assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded"


def test_finished_by_hand_is_shown_at_the_pod_once_nothing_runs() -> None:
    world, _ = a_running_pod()
    (workload,) = [ref for ref in world.api.objects if ref.resource == WORKLOAD]
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Failed",
        "message": "by hand",
        "lastTransitionTime": "2026-11-21T00:00:00Z",
    }
    world.api.edit(workload, lambda one: one["status"]["conditions"].append(finished))
    world.settle()
    assert not world.running
    assert states(world) == ("Failed", "Failed", False)
