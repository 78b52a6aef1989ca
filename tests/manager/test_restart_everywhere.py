"""The manager is thrown away after every single step of a workload's life; a new one must bring it to its end."""

from __future__ import annotations

import pytest

from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import JOB, POD, WORKLOAD, ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, a_job, a_pod, a_setting
from support.manager.crashing import STEPS_OF_A_LIFE, Act, crashes, over_and_clean
from support.manager.world import RUNNING, SUCCEEDED, World, a_world

COMPLETE = {"succeeded": 2, "conditions": [{"type": "Complete", "status": "True"}]}


def submit_pod(world: World) -> None:
    world.api.apply(a_pod().document())


def submit_job(world: World) -> None:
    world.api.apply(a_job())


def show_running(world: World) -> None:
    for agent in world.agents.values():
        for key, held in list(agent.placements.items()):
            if held.lifted and held.commit is not None:
                agent.show(key, RUNNING if held.commit.kind == "Pod" else {"active": 2, "ready": 2})


def finish(world: World) -> None:
    for agent in world.agents.values():
        for key, held in list(agent.placements.items()):
            if held.lifted and held.commit is not None:
                agent.finish(key, SUCCEEDED if held.commit.kind == "Pod" else COMPLETE)


def finish_locally(world: World) -> None:
    """Let the kubelet of the management cluster end the pod, then the agent."""
    for agent in world.agents.values():
        for key, held in list(agent.placements.items()):
            if held.lifted:
                world.api.edit(ObjectRef(POD, ObjectKey(NAMESPACE, "one")), lambda pod: pod.update(status=SUCCEEDED))
                agent.finish(key, SUCCEEDED)


def delete_pod(world: World) -> None:
    world.api.delete(ObjectRef(POD, ObjectKey(NAMESPACE, "one")))


def delete_job(world: World) -> None:
    world.api.delete(ObjectRef(JOB, ObjectKey(NAMESPACE, "work")))


def deactivate(world: World) -> None:
    world.api.edit(world_workload(world), lambda workload: workload["spec"].update(active=False))


def reactivate(world: World) -> None:
    world.api.edit(world_workload(world), lambda workload: workload["spec"].update(active=True))


def world_workload(world: World) -> ObjectRef:
    meta = world.find("Workload")["metadata"]
    return ObjectRef(WORKLOAD, ObjectKey(meta["namespace"], meta["name"]))


def test_a_pod_is_finished_once_whenever_the_manager_dies() -> None:
    for crash_at, world in crashes(lambda: a_world(a_setting()), (submit_pod, show_running, finish)):
        assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded", crash_at
        assert world.find("Pod")["metadata"]["finalizers"] == [], crash_at
        assert len(world.runs) == 1, f"crash at step {crash_at}: {world.runs}"
        assert len({key for agent in world.agents.values() for key in agent.commits}) == 1
        over_and_clean(world, crash_at)


def test_a_pod_is_finished_whenever_manager_and_agents_die_at_once() -> None:
    acts = (submit_pod, show_running, finish, show_running, finish)
    for crash_at, world in crashes(lambda: a_world(a_setting()), acts, agents_too=True):
        assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded", crash_at
        epochs = [epoch for _, epoch, _ in world.runs]
        assert epochs in ([1], [2]), f"one run, under a higher epoch if the hold was lost: {crash_at}, {world.runs}"
        over_and_clean(world, crash_at)


def test_a_local_pod_is_finished_once_whenever_the_manager_dies() -> None:
    def setting() -> World:
        return a_world(a_setting(clusters=()), clusters=("local",))

    for crash_at, world in crashes(setting, (submit_pod, finish_locally)):
        assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded", crash_at
        assert world.find("Pod")["metadata"]["finalizers"] == [], crash_at
        assert len(world.runs) == 1, f"crash at step {crash_at}: {world.runs}"
        over_and_clean(world, crash_at)


def test_a_job_is_finished_once_whenever_the_manager_dies() -> None:
    for crash_at, world in crashes(lambda: a_world(a_setting()), (submit_job, show_running, finish)):
        assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded", crash_at
        assert world.find("Job")["status"]["succeeded"] == 2, crash_at
        assert len(world.runs) == 1, f"crash at step {crash_at}: {world.runs}"
        over_and_clean(world, crash_at)


@pytest.mark.parametrize(("submit", "delete"), [(submit_pod, delete_pod), (submit_job, delete_job)])
def test_a_deleted_object_leaves_nothing_behind_whenever_the_manager_dies(submit: Act, delete: Act) -> None:
    for crash_at, world in crashes(lambda: a_world(a_setting()), (submit, show_running, delete)):
        assert not world.all("Pod"), crash_at
        assert not world.all("Job"), crash_at
        assert not world.all("Workload"), crash_at
        over_and_clean(world, crash_at)


def test_an_evicted_pod_runs_again_under_a_higher_epoch_whenever_the_manager_dies() -> None:
    acts = (submit_pod, show_running, deactivate, reactivate, show_running, finish)
    for crash_at, world in crashes(lambda: a_world(a_setting()), acts):
        workload = world.find("Workload")
        assert world.condition(workload, "Finished")["reason"] == "Succeeded", (crash_at, workload)
        epochs = [epoch for _, epoch, _ in world.runs]
        assert epochs == sorted(set(epochs)), f"crash at step {crash_at}: {world.runs}"
        assert len(epochs) in {1, 2}, f"crash at step {crash_at}: {world.runs}"
        over_and_clean(world, crash_at)


@pytest.mark.parametrize("error", [WriteError.UNKNOWN, WriteError.CONFLICT, WriteError.FORBIDDEN])
def test_a_pod_is_finished_once_whichever_write_fails(error: WriteError) -> None:
    """Each write of the life fails once, or nobody can tell whether it happened."""
    for nth in range(1, STEPS_OF_A_LIFE):
        world = a_world(a_setting())
        count = 0

        def fail(command: Create | Patch | Delete, nth: int = nth) -> WriteError | None:
            nonlocal count
            count += 1
            return error if count == nth else None

        world.fail = fail
        for act in (submit_pod, show_running, finish):
            act(world)
            world.advance(10.0)
        world.advance(60.0)
        assert world.condition(world.find("Workload"), "Finished")["reason"] == "Succeeded", nth
        assert world.find("Pod")["metadata"]["finalizers"] == [], nth
        assert len(world.runs) == 1, f"write {nth}: {world.runs}"
        over_and_clean(world, nth)
        if count < nth:
            return
