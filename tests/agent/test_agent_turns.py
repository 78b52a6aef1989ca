"""Objects of a group that are at rest, or wait for their turn, while all are made, let go or ended: nothing is missed.

Two agents see the same history, drawn by chance. One looks at all objects with each look, the other one at those that
are not at rest: in the end both have done the same. What the other one has counted is held against a walk through all
after each step, and so is each lift that it asks for.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift_agent.core import machine
from gatelift_agent.core.advancing import progress, resting, room
from gatelift_agent.core.advancing.resting import Place
from gatelift_agent.core.leaving.draining import LABEL_FOUND
from gatelift_agent.core.machine import LOOK_AGAIN_SECONDS_MAX
from gatelift_agent.core.placement.placements import LIVE, Placement, Tracked
from gatelift_agent.core.refusing import starting
from gatelift_agent.core.state import asking, world
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.asked import WantedPatch, WritePurpose
from gatelift_kube.deciding.writes import ApiWrite, Patch, WriteError, WriteFailed
from gatelift_kube.values.resources import POD
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_wire.values import messages as m
from support.agent.group_stage import GroupStage
from support.agent.values import KEY

AT_ONCE = 2
"""Writes of a placement that are asked for in one call: few, so that a group of some members has to wait."""
FEW = tuple(f"p{number}" for number in range(7))
LATE = ("q0", "q1")
WITHIN_SECONDS = 400.0


def walked(placement: Placement, ask: Callable[[], Any]) -> Any:
    """Return what is found while nothing is at rest."""
    calm, placement.calm = placement.calm, None
    try:
        return ask()
    finally:
        placement.calm = calm


def assert_counted(stage: GroupStage) -> None:
    """Hold what is at rest, and what waits, against a walk through all objects."""
    placement, known = stage.placement(), stage.machine.world
    if placement is None or placement.calm is None or placement.key in known._dirty:
        return
    calm = placement.calm
    assert sorted([*calm.restless, *calm.resting, *calm.waiting]) == sorted(placement.objects), "each is in one of them"
    if placement.state not in LIVE:
        return  # what ends is compared with what the other agent does
    for name in calm.resting:
        assert resting.place_of(known, placement, placement.objects[name]) in {Place.RESTS, Place.UNDER_WAY}, name
    for name in calm.waiting:
        assert resting.place_of(known, placement, placement.objects[name]) is Place.WAITS, name
    under_way = [each for each in placement.objects.values() if each.asked and each.name not in calm.restless]
    assert calm.goes_on == bool(under_way or calm.waiting)
    free = functools.partial(room.free, known, placement, stage.now)
    assert free() == walked(placement, free)


class Turns(GroupStage):
    """A group whose writes land one by one, as the history has it."""

    def __init__(self, each_event: Callable[[Turns], None]) -> None:
        super().__init__()
        handle = self.machine.handle

        def watched(*given: Any) -> Any:
            commands = handle(*given)
            each_event(self)
            return commands

        vars(self.machine)["handle"] = watched
        self.start()
        self.hold = lambda write: write.ref.resource == POD

    def takes(self, what: str, number: int) -> None:
        """Take one step of a history."""
        name = (*FEW, *LATE)[number % (len(FEW) + len(LATE))]
        if name in self.there() or what in {"joins", "session", "time", "lands", "fails"}:
            with contextlib.suppress(RequestRefusedError):  # what a strict API server does not do
                getattr(self, f"_{what}")(name)
        self.pass_seconds(LOOK_AGAIN_SECONDS_MAX)  # all that may be asked for is, at whatever pace

    def _lands(self, name: str) -> None:
        self._next(name, self._write)

    def _fails(self, name: str) -> None:
        self._next(name, functools.partial(self._is_failed, WriteError.NOT_DONE))

    def _unknown(self, name: str) -> None:
        self._next(name, functools.partial(self._is_failed, WriteError.UNKNOWN))

    def _is_failed(self, error: WriteError, write: ApiWrite) -> None:
        self._answer(WriteFailed(write_id=write.write_id, error=error, message="by chance"))

    def _next(self, name: str, does: Callable[[ApiWrite], None]) -> None:
        """Do so with the write to an object that is under way."""
        found = next((each for each in self.held if each.command.ref.key.name == name), None)
        if found is not None:
            self.held.remove(found)
            does(found.command)
            self.settle()

    def _runs(self, name: str) -> None:
        if not self.pod(name)["spec"].get("schedulingGates"):
            self.run(name)

    def _succeeds(self, name: str) -> None:
        self.finish(name)

    def _dies(self, name: str) -> None:
        self.finish(name, "Failed")

    def _relabelled(self, name: str) -> None:
        self.edit(name, {"metadata": {"labels": {"gatelift.dev/epoch": "7"}}})

    def _noted(self, name: str) -> None:
        self.edit(name, {"metadata": {"annotations": {"note": "1"}}})

    def _edited(self, name: str) -> None:
        self.edit(name, {"spec": {"activeDeadlineSeconds": 5}})

    def _let_go(self, name: str) -> None:
        self.edit(name, {"spec": {"schedulingGates": []}})

    def _deleted(self, name: str) -> None:
        self.remove(POD, name)

    def _forced(self, name: str) -> None:
        self.edit(name, {"metadata": {"finalizers": []}})
        self.remove(POD, name, grace=0)

    def _leaves(self, name: str) -> None:
        self.say(leave=[name])

    def _joins(self, name: str) -> None:
        if name in LATE:
            self.say(join=[name])

    def _session(self, _name: str) -> None:
        self.new_session()

    def _time(self, _name: str) -> None:
        self.pass_seconds(1.0)

    def comes_to_rest(self) -> None:
        """Let all land that is under way, and time pass, until nothing happens any more."""
        for _ in range(20):
            self.pass_seconds(5.0)
            while self.held:
                self.land()
                self.pass_seconds(1.0)
        self.pass_seconds(WITHIN_SECONDS)
        self.land()

    def shown(self) -> dict[str, Any]:
        """Return what has come of all of it."""
        found: dict[str, Any] = {"state": self.state()}
        for name in self.there():
            pod = self.pod(name)
            meta = pod["metadata"]
            gates = [each["name"] for each in pod["spec"].get("schedulingGates", [])]
            labels = {key: said for key, said in meta["labels"].items() if key != LABEL_FOUND}
            finalizers = meta.get("finalizers", [])
            phase = pod.get("status", {}).get("phase")
            found[name] = (gates, phase, "deletionTimestamp" in meta, labels, finalizers)
        for each in self.peer.of(m.ObjectReport):
            found[f"said of {each.name}"] = each.gone, msgspec.json.decode(each.status).get("phase")
        return found


STEPS = st.tuples(
    st.sampled_from(
        ["lands"] * 12
        + ["time"] * 3
        + ["runs"] * 4
        + ["succeeds", "dies", "fails", "unknown", "relabelled", "noted", "edited", "let_go", "deleted", "forced"]
        + ["leaves", "joins", "session"]
    ),
    st.integers(0, len(FEW) + len(LATE) - 1),
)
ENDS = st.sampled_from(["", "stop", "stop and forget"])


def play(steps: list[tuple[str, int]], end: str, each_event: Callable[[Turns], None]) -> Turns:
    """Return a stage after a history; `each_event` is called after each event that the agent took."""
    stage = Turns(each_event)
    stage.group(*FEW)
    for what, number in steps:
        stage.takes(what, number)
    if end:
        stage.send(m.Stop(key=KEY, reason="Deactivated"))
        stage.comes_to_rest()
    if end == "stop and forget":
        stage.send(m.Forget(key=KEY))
    stage.comes_to_rest()
    return stage


@pytest.fixture(scope="module", autouse=True)
def _few_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        for module in (world, machine, progress):
            patched.setattr(module, "MANY_OBJECTS", AT_ONCE)
        yield


@given(steps=st.lists(STEPS, max_size=60), end=ENDS)
@settings(max_examples=100, deadline=None)
def test_pf_2_who_rests_or_waits_is_who_a_walk_through_all_finds_nothing_for(
    steps: list[tuple[str, int]], end: str
) -> None:
    """HD-530: as a group is made, let go or ended."""
    with pytest.MonkeyPatch.context() as patched:
        patch = asking.patch

        def checked(known: World, placement: Placement, tracked: Tracked, wanted: WantedPatch, now: float) -> bool:
            if wanted.purpose is WritePurpose.LIFT:
                assert not starting.why_not(known, placement, now)
                free = walked(placement, lambda: room.free(known, placement, now))
                assert free[tracked.pod_set] >= 0, "it has a slot, by the walk"
            return patch(known, placement, tracked, wanted, now)

        patched.setattr(asking, "patch", checked)
        counted = play(steps, end, assert_counted)
        patched.setattr(resting, "settle", lambda *_: None)
        gone_through = play(steps, end, lambda _: None)
    assert counted.shown() == gone_through.shown()


def test_those_whose_turn_comes_are_looked_at_though_nothing_is_heard_of_any_of_them() -> None:
    stage = Turns(assert_counted)
    stage.group(*FEW)
    stage.takes("lands", 0)
    assert [each.command.ref.key.name for each in stage.held] == [*FEW[1:]]


def test_r1_who_was_let_go_by_others_is_ended_with_all_once_none_may_be_let_go_any_more() -> None:
    """Of a group that is being let go it is not at rest, though it runs: that may end with time alone."""
    stage = Turns(assert_counted)
    stage.group(*FEW)
    stage.takes("lands", 0)
    stage.takes("let_go", 0)
    for number in range(1, len(FEW)):
        stage.takes("lands", number)
    stage.run(FEW[0])
    stage.pass_seconds(4.0)
    assert stage.state() == "Gated", "the others are still to be let go"
    stage.peer.grants = False
    standing = stage.machine.world.standing
    stage.pass_seconds(standing.lease_until - stage.now + 1.0)
    assert standing.open, "no event has told of it"
    stage.takes("noted", 1)
    assert stage.state() == "Draining"


def test_labels_of_more_than_are_asked_for_in_one_call_are_put_back_while_others_are_made() -> None:
    stage = Turns(assert_counted)
    stage.group(*FEW)
    made = FEW[:5]
    for name in made:
        stage.takes("lands", FEW.index(name))
    for name in made:
        stage.edit(name, {"metadata": {"labels": {"gatelift.dev/epoch": "7"}}})
    stage.pass_seconds(1.0)
    assert stage.state() == "Applying"
    assert {each.command.ref.key.name for each in stage.held if isinstance(each.command, Patch)} == {*made}


def test_r7_a_group_has_stopped_when_nothing_is_under_way_of_any_of_it() -> None:
    """Who rests until its create is answered may be there."""
    stage = Turns(assert_counted)
    stage.group(*FEW)
    stage.takes("lands", 0)
    assert len(stage.held) == len(FEW) - 1, "all others are under way"
    stage.send(m.Stop(key=KEY, reason="Deactivated"))
    stage.takes("lands", 0)
    stage.pass_seconds(1.0)
    assert "deletionTimestamp" in stage.pod(FEW[0])["metadata"]
    assert not stage.peer.of(m.Stopped), "a pod may be made"
    stage.comes_to_rest()
    assert stage.peer.of(m.Stopped)


def test_r7_a_group_is_forgotten_when_nothing_is_under_way_of_any_of_it() -> None:
    stage = Turns(assert_counted)
    stage.group(*FEW)
    stage.comes_to_rest()
    stage.send(m.Stop(key=KEY, reason="Deactivated"))
    stage.pass_seconds(1.0)
    stage.land()
    stage.pass_seconds(1.0)
    assert stage.peer.of(m.Stopped)
    stage.send(m.Forget(key=KEY))
    stage.pass_seconds(1.0)
    for name in FEW:
        assert stage.placement() is not None, f"{name} is still there"
        stage.takes("lands", FEW.index(name))
    stage.pass_seconds(1.0)
    assert stage.placement() is None
    assert not stage.there()
