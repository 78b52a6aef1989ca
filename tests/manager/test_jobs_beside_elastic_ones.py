"""A Job that does not ask to be elastic (KEP-77) is written, said and stopped in the same way by both registries."""

from __future__ import annotations

from typing import Any

from gatelift_kinds.registry import SERVED, WITH_SLICES, Registry
from gatelift_kube.values.resources import JOB, ObjectKey, ObjectRef
from support.manager.builders import NAMESPACE, Doc, a_job, a_setting
from support.manager.world import a_world

THE_JOB = ObjectRef(JOB, ObjectKey(NAMESPACE, "work"))


def _grow(job: Doc) -> None:
    job["spec"].update(parallelism=3, completions=3)


def lived(kinds: Registry) -> tuple[list[Any], list[Any]]:
    """Return all that is written and said while a Job is placed, is given another size, and is placed again."""
    world = a_world(a_setting(cpu=8), kinds=kinds)
    world.api.apply(a_job(parallelism=2))
    world.advance(5.0)
    world.api.edit(THE_JOB, _grow)
    world.advance(30.0)
    return world.api.writes, world.links.log


def test_sl_03_without_the_annotation_the_same_is_written_and_said() -> None:
    """SL-09: another size ends the run of a Job that does not ask."""
    written, said = lived(WITH_SLICES)
    assert (written, said) == lived(SERVED)
    assert {type(message).__name__ for _, message in said} >= {"Commit", "Stop"}
