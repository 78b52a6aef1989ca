"""What an agent writes on what it places, and believes after a restart, a worker's policy keeps from everybody else."""

from __future__ import annotations

import re

from gatelift.cli.manifests import WORKER, load_manifests
from support.agent.group_stage import GroupStage

POLICY = "gatelift-placed-objects"


def named_in(text: str) -> set[str]:
    return set(re.findall(r"'(gatelift\.dev/[a-z-]+)'", text))


def of_members() -> set[str]:
    """Return the marks of ours on pods of a group, one of which joined."""
    stage = GroupStage()
    stage.start()
    stage.group("a", "b", count=3)
    stage.say(join=["c"])
    return {key for name in stage.there() for key in stage.pod(name)["metadata"]["annotations"]}


def test_hd_365_each_mark_of_what_is_placed_is_guarded_by_condition_and_rule_alike() -> None:
    [policy] = [
        each
        for each in load_manifests(*WORKER)
        if each["kind"] == "ValidatingAdmissionPolicy" and each["metadata"]["name"] == POLICY
    ]
    spec = policy["spec"]
    [placed] = [each["expression"] for each in spec["matchConditions"] if each["name"] == "placed"]
    rules = [each["expression"] for each in spec["validations"]]
    marks = {key for key in of_members() if key.startswith("gatelift.dev/")}
    assert {"gatelift.dev/user-uid", "gatelift.dev/joined", "gatelift.dev/kind"} <= marks
    assert marks <= named_in(placed)
    assert marks <= named_in(rules[1])
    assert named_in(placed) == named_in(rules[0]) | named_in(rules[1])
    told = policy["spec"]["validations"][1]["message"]
    assert all(key.removeprefix("gatelift.dev") in told for key in named_in(rules[1]))
