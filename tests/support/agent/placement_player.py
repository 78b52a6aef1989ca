"""Plays the agent's machine on its stage from transcript lines (see `transcripts`), and renders what it did.

Events are what happens to a placement w-1@1 named `p` (a Pod) or `j` (a Job): words of the manager (`offer`, `commit`,
`confirm`, `stop`, `forget`, with `epoch=N`), of the cluster (`run`, `finish Succeeded`, `delete`), of the world (`cut`,
`mend`, `resume`, `crash`, `start`, `pass 5`), and of the API server's slowness (`hold patch`, `land`, `lose`).
What comes out: writes to the placement's objects, reports that the manager heard, and the state where it changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, Patch
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from support.agent.stage import Stage
from support.agent.values import NAMESPACE_NAME, POD_SPEC
from support.transcripts import Machine

KINDS: dict[str, type[Any]] = {"create": Create, "patch": Patch, "delete": Delete}
DULL = (m.Capacity, m.ObjectReport, m.CountsReport)
"""Left out: the transcripts are about the protocol."""


class Player:
    """One stage, played line by line."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.stage = Stage()
        self.kind = settings.get("kind", "Pod")
        self.name = "p" if self.kind == "Pod" else "j"
        self.shown: list[object] = []
        self._heard = self._written = 0
        self._state = "none"
        self._key = PlacementKey("w-1", 1)

    def perform(self, text: str) -> list[str]:
        """Carry out one line; return what came of it."""
        word, *arguments = text.split()
        fields = dict(each.split("=", 1) for each in arguments if "=" in each)
        plain = [each for each in arguments if "=" not in each]
        self._key = PlacementKey("w-1", int(fields.get("epoch", self._key.epoch)))
        action: Callable[[list[str]], None] = getattr(self, f"_{word}")
        action(plain)
        return self._rendered()

    # --- the manager --------------------------------------------------------------------------------------------

    def _offer(self, _words: list[str]) -> None:
        self.stage.offer(self._key, self.kind, self.name)

    def _commit(self, _words: list[str]) -> None:
        self.stage.commit(self._key, self.kind, self.name)

    def _confirm(self, _words: list[str]) -> None:
        self.stage.confirm(self._key)

    def _withdraw(self, _words: list[str]) -> None:
        self.stage.send(m.Withdraw(key=self._key))

    def _stop(self, words: list[str]) -> None:
        self.stage.send(m.Stop(key=self._key, reason=words[0] if words else "Evicted"))

    def _forget(self, _words: list[str]) -> None:
        self.stage.send(m.Forget(key=self._key))

    def _grants(self, words: list[str]) -> None:
        self.stage.peer.grants = words == ["on"]

    # --- the cluster --------------------------------------------------------------------------------------------

    def _run(self, _words: list[str]) -> None:
        self.stage.run(self.name)

    def _finish(self, words: list[str]) -> None:
        self.stage.finish(self.name, words[0])

    def _delete(self, _words: list[str]) -> None:
        self.stage.remove(POD if self.kind == "Pod" else JOB, self.name)

    def _foreign(self, _words: list[str]) -> None:
        self.stage.create(POD, {"metadata": {"name": self.name, "namespace": NAMESPACE_NAME}, "spec": POD_SPEC})

    # --- the world ----------------------------------------------------------------------------------------------

    def _start(self, _words: list[str]) -> None:
        self.stage.start()

    def _crash(self, _words: list[str]) -> None:
        self.stage.crash()
        self._state = "none"

    def _gain(self, words: list[str]) -> None:
        self.stage.post(events.AgentLeadershipGained(term=9, settle_seconds=float(words[0])))
        self.stage.lead()

    def _lead(self, words: list[str]) -> None:
        self.stage.machine.world.leadership.valid_until = self.stage.now
        if words:
            self.stage.lead(float(words[0]))

    def _cut(self, _words: list[str]) -> None:
        self.stage.cut_stream()

    def _mend(self, _words: list[str]) -> None:
        self.stage.mend(resume=False)

    def _resume(self, _words: list[str]) -> None:
        self.stage.mend(resume=True)

    def _pass(self, words: list[str]) -> None:
        self.stage.pass_seconds(float(words[0]))

    def _hold(self, words: list[str]) -> None:
        kinds = tuple(KINDS[word] for word in words)
        self.stage.hold = lambda write: isinstance(write, kinds) and write.ref.resource in (POD, JOB)

    def _release(self, _words: list[str]) -> None:
        self.stage.hold = lambda _write: False

    def _land(self, words: list[str]) -> None:
        if words == ["unanswered"]:
            self.stage.land_unanswered()
        else:
            self.stage.land()

    def _lose(self, _words: list[str]) -> None:
        self.stage.lose()

    # --- what came of it ----------------------------------------------------------------------------------------

    def _rendered(self) -> list[str]:
        stage = self.stage
        lines = [
            _write(write, held=any(each.command is write for each in stage.held))
            for write in stage.writes[self._written :]
            if write.ref.resource in (POD, JOB)
        ]
        self._written = len(stage.writes)
        lines += [_report(message) for message in stage.peer.heard[self._heard :] if not isinstance(message, DULL)]
        self._heard = len(stage.peer.heard)
        state = stage.state(self._key)
        if state != self._state:
            lines.append(f"state {state}")
            self._state = state
        return lines


def _write(write: ApiWrite, *, held: bool) -> str:
    verb = type(write).__name__.lower()
    what = ""
    if isinstance(write, Patch):
        what = " " + _purpose(write.body)
    elif isinstance(write, Create) and write.dry_run:
        what = " (dry run)"
    return f"{verb} {write.ref.resource.kind} {write.ref.key.name}{what}{' (does not land)' if held else ''}"


def _purpose(body: bytes) -> str:
    if b"schedulingGates" in body or b'"/spec/suspend"' in body:
        return "lift"
    if b"finalizers" in body:
        return "drop the report finalizer"
    if b"suspend" in body:
        return "suspend"
    if b"gatelift.dev~1found" in body or b'"labels"' in body:
        return "probe"
    return "stop handshake" if b"StopAsked" in body else "?"


def _report(message: m.Message) -> str:
    name = type(message).__name__
    match message:
        case m.Bid(kind=kind, refusal=refusal):
            return f"report {name} {kind.value}{' ' + refusal.value if refusal else ''}"
        case m.Refused(refusal=refusal):
            return f"report {name} {refusal.value}"
        case m.Finished(succeeded=succeeded):
            return f"report {name} {'succeeded' if succeeded else 'failed'}"
        case m.Stopped(reason=reason) | m.Evicted(reason=reason):
            return f"report {name} {reason}"
        case _:
            return f"report {name}"


def machine(settings: dict[str, str]) -> Machine:
    """Return a new player's door."""
    return Player(settings).perform
