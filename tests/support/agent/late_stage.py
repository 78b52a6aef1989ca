"""A stage of elastic work on which all comes late: messages, watches, answers, each kind in its own order.

What becomes of a write is drawn: it lands now or later, answered or not, or it is answered and does not land. Writes to
one object land in the order in which they were asked for. What a dead process has asked for lands all the same, within
the time limit of writes. `account` is told of all that the cluster and the wire show.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass
from typing import Any

from gatelift_agent.core.machine import AgentMachine
from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, ApiWrite, ObjectGone, ObjectSeen, WriteDone, WriteError
from gatelift_kube.deciding.writes import WriteFailed as Failed
from gatelift_kube.values.resources import JOB, NAMESPACE, POD, ObjectRef, Resource
from gatelift_sandbox.embedded.watches import StoreChange
from gatelift_wire.sessions import session as wire
from gatelift_wire.values import messages as m
from gatelift_wire.values.sizes import SliceFinished
from support.agent.size_account import SizeAccount, SizeTruthError
from support.agent.size_stage import SizeStage, TrainingStage
from support.toys.training.objects import TRAINING

NOT_WRITTEN = (WriteError.DENIED, WriteError.NOT_DONE, WriteError.CONFLICT)
LAG_SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class InFlight:
    """A write that has not landed. `answered`: whoever asked is still to hear of it."""

    write: ApiWrite
    process: int
    at: float
    answered: bool
    lands: bool


class LateStage(SizeStage):
    """See above. While `trouble` is off, all is at once, in order."""

    rng: random.Random
    account: SizeAccount
    settle_seconds_of_start = WRITE_SECONDS_MAX

    def __init__(self, rng: random.Random, account: SizeAccount, **settings: Any) -> None:
        self.rng, self.account = rng, account
        self.trouble = False
        self.in_flight: list[InFlight] = []
        self._lanes: dict[str, deque[events.Event]] = {}
        self._stuck: dict[str, float] = {}
        self._order: dict[ObjectRef, float] = {}
        self._heard = 0
        self._broken: SizeTruthError | None = None
        self.words: set[int] = set()
        """Numbers that were said in the present session."""
        super().__init__(**settings)

    # --- what comes late ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        for _ in range(100_000):
            self._sort()
            event = self._next()
            if event is None:
                return
            for command in self.machine.handle(event, self.now):
                self._perform(command)
            if self._broken is not None:
                raise self._broken
            self._hear()
        raise AssertionError("events without end")

    def _sort(self) -> None:
        while self.events:
            event = self.events.popleft()
            self._lanes.setdefault(_lane(event), deque()).append(event)

    def _next(self) -> events.Event | None:
        for first in ("list", "own"):
            if self._lanes.get(first):
                return self._lanes[first].popleft()
        ready = [name for name, lane in self._lanes.items() if lane and self._stuck.get(name, 0.0) <= self.now]
        if not ready:
            return None
        name = self.rng.choice(ready) if self.trouble else ready[0]
        event = self._lanes[name].popleft()
        if self.trouble and self.rng.random() < 0.08:
            self._stuck[name] = self.now + self.rng.uniform(0.0, LAG_SECONDS)
        return event

    def _list_cluster(self) -> None:
        self._sort()
        super()._list_cluster()
        self._listed()

    def _list_namespaces(self, namespaces: tuple[str, ...]) -> None:
        self._sort()
        anew = bool(set(namespaces) - self.watched)
        for lane in ("pods", "jobs") if anew else ():
            self._lanes.pop(lane, None)  # a list shows what there is
        super()._list_namespaces(namespaces)
        self._listed()
        if anew:
            self.account.begins()

    def _listed(self) -> None:
        self._lanes.setdefault("list", deque()).extend(self.events)
        self.events.clear()

    def crash(self) -> None:
        self._lanes.clear()
        self._stuck.clear()
        super().crash()

    def start(self, settle_seconds: float | None = None) -> None:
        """Let the next process lead, and list once what the one before has asked for can land no more (R8)."""
        waits = self.settle_seconds_of_start if settle_seconds is None else settle_seconds
        self.post(events.AgentLeadershipGained(term=self.process, settle_seconds=waits, unix=self.now))
        self.lead()

    # --- writes -------------------------------------------------------------------------------------------------

    def _take_write(self, write: ApiWrite) -> None:
        self.writes.append(write)
        waiting = tuple(one.write for one in self.in_flight)
        self.account.asks(write, (*waiting, write), self._unseen(), may_open=self._may_open())
        after = self._order.get(write.ref, self.now)
        drawn = self.rng.random() if self.trouble else 1.0
        if drawn < 0.04:
            error = self.rng.choice(NOT_WRITTEN)
            self._answer(Failed(write_id=write.write_id, error=error, message=f"{write.ref}: told to fail"))
            return
        one = InFlight(write=write, process=self.process, at=max(after, self.now), answered=True, lands=True)
        if drawn < 0.30:
            one.at = max(one.at, self.now + self.rng.uniform(0.0, WRITE_SECONDS_MAX))
        if drawn < 0.12:
            self._doubt(one)
        if one.at <= self.now and one.lands:
            self._land(one)
            return
        self._order[write.ref] = max(after, one.at)
        self.in_flight.append(one)

    def _doubt(self, one: InFlight) -> None:
        """Let nobody know what became of a write: it lands, now or later, or never does."""
        one.answered = False
        one.lands = self.rng.random() < 0.7
        if self.rng.random() < 0.3:
            one.at = self.now
        unknown = Failed(write_id=one.write.write_id, error=WriteError.UNKNOWN, message="timeout")
        self._lanes.setdefault(f"answer {one.write.write_id}", deque()).append(unknown)
        self._stuck[f"answer {one.write.write_id}"] = self.now + self.rng.uniform(0.0, WRITE_SECONDS_MAX)

    def _land(self, one: InFlight) -> None:
        if one.lands:
            self._write(one.write, answered=one.answered and one.process == self.process)

    def land_due(self) -> None:
        """Let what is due land."""
        due = [one for one in self.in_flight if one.at <= self.now]
        self.in_flight = [one for one in self.in_flight if one.at > self.now]
        for one in sorted(due, key=lambda each: each.at):
            self._land(one)

    def _unseen(self) -> set[str]:
        """Return the UIDs of pods of which something is on its way."""
        self._sort()
        seen = [one for one in self._lanes.get("pods", ()) if isinstance(one, ObjectSeen | ObjectGone)]
        return {one.object.metadata.uid for one in seen}

    def _may_open(self) -> bool:
        """Say whether a slot may be opened: its size was said in this session, whose lease has not run out (R1)."""
        found = self.placement()
        number = found.sizing.number if found is not None and found.sizing is not None else 0
        return number in self.words and self.now <= self.peer.session.right_until

    def passes(self, seconds: float) -> None:
        """Let time pass; what is in flight or late comes on its way."""
        end = self.now + seconds
        while self.now < end:
            marks = [one.at for one in self.in_flight] + [at for at in self._stuck.values() if at > self.now]
            step = min([end, *(at for at in marks if at > self.now)])
            self.pass_seconds(step - self.now)
            self._stuck = {name: at for name, at in self._stuck.items() if at > self.now}
            self.land_due()
            self.settle()

    # --- words --------------------------------------------------------------------------------------------------

    def _peer_upcall(self, output: wire.SessionOutput) -> None:
        if isinstance(output, wire.GreetingReceived):
            self.words.clear()
        super()._peer_upcall(output)

    def _hear(self) -> None:
        new = self.peer.heard[self._heard :]
        self._heard = len(self.peer.heard)
        for message in new:
            if isinstance(message, SliceFinished):
                self.account.hears(message.number)

    def _new_machine(self) -> AgentMachine:
        made = super()._new_machine()
        says = made.world.say

        def say(message: m.Message) -> None:
            if isinstance(message, SliceFinished):
                landing = tuple(one.write for one in self.in_flight if one.lands)
                try:
                    self.account.hears_said(message.number, landing)
                except SizeTruthError as error:  # the agent would contain it
                    self._broken = self._broken or error
            says(message)

        made.world.say = say  # type: ignore[method-assign]
        return made

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        super()._changed(storage, change)
        if storage == ("", "pods") or storage in {("batch", "jobs"), self.what}:
            self.account.sees(change, is_pod=storage == ("", "pods"))

    def change_what_runs(self, patch: dict[str, Any]) -> None:
        """Change the object as somebody at the worker would."""
        self.change(self.resource, "j", patch)

    what = ("batch", "jobs")
    resource: Resource = JOB


class LateTrainingStage(LateStage, TrainingStage):
    """The same with a leader and workers."""

    what = ("toys.example.com", "trainings")
    resource: Resource = TRAINING


def _lane(event: events.Event) -> str:
    match event:
        case ObjectSeen(resource=resource) | ObjectGone(resource=resource):
            return "pods" if resource == POD else "around" if resource == NAMESPACE else "jobs"
        case events.ManagerFrameArrived() | events.ManagerStreamOpened() | events.ManagerStreamClosed():
            return "wire"
        case WriteDone(write_id=write_id) | Failed(write_id=write_id):
            return f"answer {write_id}"
        case _:
            return "own"
