"""IS-46: Finished and an event at the user's object say which container failed first, where, and what it said last."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gatelift.core.told.failed_containers import FAILED_ON_CLUSTER
from gatelift_kube.deciding.event_series import NOTE_BYTES_MAX
from gatelift_wire.values import limits
from gatelift_wire.values.messages import Finished
from gatelift_wire.values.told import FailedContainer
from support.manager.world import World, a_running_pod

FAILED = FailedContainer(
    pod="p", node="node-1", container="main", exit_code=3, reason="Error", message="boom\nno such file\n"
)
TEXT = "pod p on node node-1: container main ended with exit code 3 (Error): boom no such file"


def finished(
    failed: FailedContainer | None, *, succeeded: bool = False, message: str = "it failed", kept: float = 0.0
) -> World:
    """Return a world in which a running pod's cluster has said this end."""
    world, agent = a_running_pod()
    key = agent.commits[-1]
    world.stopped(key, "a")
    del agent.placements[key]
    agent.say(Finished(key=key, succeeded=succeeded, message=message, failed=failed, kept_seconds=kept))
    world.advance(120.0)
    return world


def message_of(world: World) -> str:
    message: str = world.condition(world.find("Workload"), "Finished")["message"]
    return message.split(" (not shown", maxsplit=1)[0]


def events_of(world: World) -> list[tuple[str, str, bool]]:
    found = [one for one in world.emitted if one.reason == FAILED_ON_CLUSTER]
    return [(one.ref.resource.kind, one.message, one.warning) for one in found]


def test_is_46_the_message_of_finished_and_one_event_say_what_failed() -> None:
    world = finished(FAILED)
    assert message_of(world) == f"it failed; {TEXT}"
    assert events_of(world) == [("Pod", f'On cluster "a": {TEXT}', True)]


@pytest.mark.parametrize(
    ("seconds", "text"), [(3600.0, "1 h"), (5400.0, "1.5 h"), (600.0, "10 min"), (20.0, "1 min"), (604800.0, "168 h")]
)
def test_is_46_both_say_for_how_long_it_can_be_looked_at_where_it_failed(seconds: float, text: str) -> None:
    world = finished(FAILED, kept=seconds)
    assert message_of(world) == f"it failed; {TEXT}; its objects stay there for up to {text}"
    assert events_of(world) == [("Pod", f'On cluster "a": {TEXT}; its objects stay there for up to {text}', True)]


def test_is_46_of_what_succeeded_it_is_not_said() -> None:
    assert message_of(finished(None, succeeded=True, kept=60.0)) == "it failed"


def test_is_46_an_agent_that_does_not_say_it_is_served_as_before() -> None:
    world = finished(None)
    assert message_of(world) == "it failed"
    assert events_of(world) == []


def test_is_46_an_end_that_succeeded_has_no_container_that_failed() -> None:
    world = finished(FAILED, succeeded=True)
    assert message_of(world) == "it failed"
    assert events_of(world) == []


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        (FailedContainer(pod="p", reason="Evicted", message="low on memory"), "pod p: failed (Evicted): low on memory"),
        (FailedContainer(pod="p", exit_code=1), "pod p: a container ended with exit code 1"),
        (replace(FAILED, reason="x" * 64, message=""), TEXT.split(" (", maxsplit=1)[0]),
        (replace(FAILED, reason="no reason!", message=""), TEXT.split(" (", maxsplit=1)[0]),
    ],
)
def test_is_46_what_is_not_known_is_left_out(failed: FailedContainer, text: str) -> None:
    assert message_of(finished(failed, message="")) == text


def test_is_46_the_longest_and_ugliest_words_fit_and_are_plain() -> None:
    words = "\x1b[2J\u202e" + "x" * (limits.LAST_WORDS_MAX - 20) + " at last"
    name = "n" * limits.NAME_MAX
    short = "n" * limits.LABEL_MAX
    longest = replace(FAILED, pod=name, node=name, container=short, reason=short, message=words)
    world = finished(longest, kept=limits.SECONDS_MAX)
    stays = "x at last; its objects stay there for up to 87600 h"
    assert message_of(world).endswith(stays)
    ((_, text, _),) = events_of(world)
    assert text.endswith(stays)
    assert len(text.encode()) <= NOTE_BYTES_MAX
    assert not {"\x1b", "\u202e"} & {*message_of(world), *text}
