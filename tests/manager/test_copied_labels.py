"""Labels of `integrations.labelKeysToCopy` go on from what is queued to the Workload that is made of it."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.assembly import new_machine
from gatelift.config import Configuration
from support.manager.api import Doc
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.group_world import GROUP, a_member, a_world_with_groups, join, warnings
from support.manager.world import a_world

COPIED: dict[str, Any] = {"copied_labels": ("team", "tier")}


def labels_of(workload: Doc) -> dict[str, str]:
    return {key: value for key, value in workload["metadata"].get("labels", {}).items() if key in {"team", "tier", "x"}}


def a_document(made: Any) -> Doc:
    return made if isinstance(made, dict) else made.document()


@pytest.mark.parametrize("made", [a_pod, a_job], ids=["PC-078 a single pod", "a Job"])
def test_pc_078_those_that_an_object_has_of_them_are_copied_and_no_others(made: Any) -> None:
    world = a_world(a_setting(), **COPIED)
    document = a_document(made("a"))
    document["metadata"]["labels"] |= {"team": "red", "x": "y"}
    world.api.apply(document)
    world.advance(2.0)
    assert labels_of(world.find("Workload")) == {"team": "red"}


def test_without_the_setting_none_is_copied() -> None:
    world = a_world_with_groups()
    join(world, a_member("a", total=1, labels={"team": "red"}))
    assert labels_of(world.find("Workload", GROUP)) == {}


def test_pc_079_of_a_group_those_that_any_member_has() -> None:
    world = a_world_with_groups(**COPIED)
    members = [a_member("a", total=2, at=1, labels={"team": "red"}), a_member("b", total=2, at=2, labels={"tier": "1"})]
    join(world, *members)
    assert labels_of(world.find("Workload", GROUP)) == {"team": "red", "tier": "1"}


def test_pc_082_members_that_differ_in_one_have_no_workload_and_are_told_bg_14() -> None:
    world = a_world_with_groups(**COPIED)
    members = [a_member(name, total=2, at=at, labels={"team": name}) for at, name in enumerate("ab", 1)]
    join(world, *members)
    assert world.all("Workload") == []
    told = "the pods of the group differ in team: 1 says a (a), 1 says b (b)"
    assert warnings(world, "ErrWorkloadCompose") == [("a", told)]


def test_the_configuration_says_which() -> None:
    file = Configuration.model_validate({"integrations": {"labelKeysToCopy": ["team"]}})
    assert new_machine(file, "origin", "i").core.settings.copied_labels == ("team",)
    assert file.without_effect() == ()
