"""HD-217: a Workload vanishes between the end of what it ran and the record of that, and its agent is answered."""

from __future__ import annotations

from gatelift.core.records.attempt_states import AttemptState
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from gatelift_wire.values.messages import Forget, Stop
from support.manager.api import ref_of
from support.manager.builders import a_pod, a_setting
from support.manager.world import SUCCEEDED, a_world


def no_workload_is_written(command: Create | Patch | Delete) -> WriteError | None:
    return WriteError.NOT_DONE if command.ref.resource == WORKLOAD else None


def test_hd_217_what_ended_at_the_users_own_object_is_answered_when_its_agent_tells_it_and_not_before() -> None:
    """HD-217: an agent that has not seen the end yet would stop first what it is told to forget."""
    world = a_world(a_setting(clusters=()), clusters=("local",))
    world.api.apply(a_pod().document())
    world.settle()
    (key,) = world.agents["local"].commits
    attempt = world.machine.core.attempts[key.uid]
    world.fail = no_workload_is_written
    world.api.edit(ref_of(world.find("Pod")), lambda pod: pod.setdefault("status", {}).update(phase="Succeeded"))
    world.settle()
    assert attempt.state is AttemptState.ENDED
    workload = ref_of(world.find("Workload"))
    world.api.edit(workload, lambda document: document["metadata"].update(finalizers=[]))
    world.api.delete(workload)
    world.settle()
    assert not world.messages(Forget)
    assert not world.messages(Stop)
    world.agents["local"].finish(key, SUCCEEDED)
    world.settle()
    assert [cluster for cluster, _ in world.messages(Forget)] == ["local"]
