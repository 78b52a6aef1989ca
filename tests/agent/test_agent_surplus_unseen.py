"""HD-625: what a start does not know of pods above a size of before, and what it answers until that is known."""

from __future__ import annotations

from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.values.resources import JOB, NODE, POD
from gatelift_sandbox.embedded.drafts import Deletion
from support.agent.values import UNSEEN_SECONDS

from .test_agent_sizes import grown


def test_hd_625_surplus_that_was_removed_by_force_before_a_start_is_in_the_way() -> None:
    """Size 6, P10: the agent dies between the patch of a smaller size and its answer, and nobody sees who vanishes."""
    stage = grown(count=3)
    stage.create(NODE, {"metadata": {"name": "node-1"}})
    stage.settle()
    stage.resize(2, main=1)
    stage.crash()
    for name in ("j-0002", "j-0003"):
        stage.remove(POD, name, grace=0)
    stage.start()
    stage.confirm()
    stage.confirm_size(2)
    stage.pass_seconds(2 * UNSEEN_SECONDS)
    assert stage.answers == [1], "its node is silent, and may run both"
    stage.resize(3, main=2)
    stage.pass_seconds(UNSEEN_SECONDS)
    assert stage.answers == [1], "nor is a later size answered"
    stage.store.delete(stage.store.kinds.of(NODE), "", "node-1", Deletion(), stage.now)
    stage.settle()
    stage.pass_seconds(1.0)
    assert stage.answers == [1, 3]


def test_hd_625_so_is_what_a_user_took_off_his_job_at_home_while_nobody_led() -> None:
    stage = grown(count=3, mode=AgentMode.LOCAL)
    stage.crash()
    stage.change(JOB, "j", {"spec": {"parallelism": 1}})
    for name in ("j-0002", "j-0003"):
        stage.remove(POD, name, grace=0)
    stage.start()
    stage.confirm()
    stage.resize(2, main=1)
    stage.pass_seconds(1.0)
    assert stage.answers == [1]
    stage.pass_seconds(UNSEEN_SECONDS)
    assert stage.answers == [1, 2]


def test_hd_625_without_nodes_it_is_over_in_time_and_a_first_size_is_answered_at_once() -> None:
    stage = grown(count=3)
    stage.restart()
    stage.confirm()
    stage.confirm_size(1)
    assert stage.answers == [1, 1], "of a size that was never changed no surplus can have been"
    stage.resize(2, main=3)
    stage.restart()
    stage.confirm()
    stage.confirm_size(2)
    assert stage.answers == [1, 1, 2]
    stage.pass_seconds(UNSEEN_SECONDS + 1.0)
    assert stage.answers == [1, 1, 2, 2]
