"""Plays the agent's machine on a stage of elastic work from transcript lines (see `transcripts`, `placement_player`).

Words of the manager: `begin 2` (`quiet`: no pod is made yet), `resize 2 main=1`, `confirm 2`, `commit 2 size=3`, stop.
Of the cluster: `react` (the controller makes and ends pods), `run`, `succeed j-0001`, `fail j-0001`, `delete j-0001`,
`over j-0001` (who was deleted has stopped), `pod` (one more, without a pod set or of the one that is named). What comes
out: writes of sizes and of gates, words about sizes, the state of the size, and which pods may run where that changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from gatelift_agent.core.values import events
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.sizes import Drained, SizeRefused, SliceFinished
from support.agent.size_stage import SizeStage, TrainingStage, is_size, is_ungate
from support.transcripts import Machine


class SizePlayer:
    """One stage, played line by line."""

    def __init__(self, settings: dict[str, str]) -> None:
        release = settings.get("release", "OnTerminal")
        self.sets = ("leader", "workers") if settings.get("kind") == "Training" else ("main",)
        self.stage: Any = TrainingStage(release=release) if len(self.sets) > 1 else SizeStage(release=release)
        self._written = self._heard = 0
        self._shown = ""

    def perform(self, text: str) -> list[str]:
        """Carry out one line; return what came of it."""
        word, *arguments = text.split()
        fields = {name: int(count) for name, _, count in (each.partition("=") for each in arguments) if count}
        plain = [each for each in arguments if "=" not in each]
        action: Callable[[list[str], dict[str, int]], None] = getattr(self, f"_{word}")
        action(plain, fields)
        return self._rendered()

    def _begin(self, words: list[str], fields: dict[str, int]) -> None:
        if fields:
            self.stage.begin_sets(**fields)
        else:
            self.stage.begin(int(words[0]), reacts="quiet" not in words)

    def _resize(self, words: list[str], fields: dict[str, int]) -> None:
        self.stage.resize(int(words[0]), **fields)

    def _confirm(self, words: list[str], _fields: dict[str, int]) -> None:
        if words:
            self.stage.confirm_size(int(words[0]))
        else:
            self.stage.confirm()

    def _commit(self, words: list[str], fields: dict[str, int]) -> None:
        self.stage.commit_size(int(words[0]), fields["size"])

    def _stop(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.send(m.Stop(key=self.stage.placement().key, reason="Evicted"))

    def _react(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.react()

    def _run(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.run_all()

    def _succeed(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.finish(words[0])

    def _fail(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.finish(words[0], "Failed")

    _over = _fail

    def _delete(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.remove(POD, words[0])

    def _pod(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.make_pod(pod_set=words[0] if words else None)

    def _hold(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.hold = is_ungate if words == ["gates"] else is_size

    def _release(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.release_writes()

    def _land(self, words: list[str], _fields: dict[str, int]) -> None:
        if words == ["unanswered"]:
            self.stage.land_unanswered()
        else:
            self.stage.land()

    def _lose(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.lose()

    def _cut(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.cut_stream()

    def _mend(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.mend(resume=False)

    def _resume(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.mend(resume=True)

    def _crash(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.crash()

    def _start(self, _words: list[str], _fields: dict[str, int]) -> None:
        self.stage.start()

    def _gain(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.post(events.AgentLeadershipGained(term=9, settle_seconds=float(words[0])))
        self.stage.lead()

    def _pass(self, words: list[str], _fields: dict[str, int]) -> None:
        self.stage.pass_seconds(float(words[0]))

    # --- what came of it ----------------------------------------------------------------------------------------

    def _rendered(self) -> list[str]:
        stage = self.stage
        found = [_write(one, held=any(each.command is one for each in stage.held)) for one in self._new_writes()]
        lines = [line for line in found if line]
        lines += [line for line in map(_word, stage.peer.heard[self._heard :]) if line]
        self._heard = len(stage.peer.heard)
        shown = self._state()
        if shown != self._shown:
            lines.append(shown)
            self._shown = shown
        return lines

    def _new_writes(self) -> list[ApiWrite]:
        new = self.stage.writes[self._written :]
        self._written = len(self.stage.writes)
        return list(new)

    def _state(self) -> str:
        found = self.stage.placement()
        sizing = found.sizing if found is not None else None
        size = f"size {sizing.number} {sizing.state.value}" if sizing is not None else "no size"
        may_run = " ".join(f"{name}: {', '.join(self.stage.lifted(name)) or 'none'}" for name in self.sets)
        return f"{size}; may run {may_run}"


def _write(write: ApiWrite, *, held: bool) -> str:
    late = " (does not land)" if held else ""
    if is_ungate(write):
        return f"let go {write.ref.key.name}{late}"
    if isinstance(write, Patch) and write.ref.resource == POD and b"gatelift.dev~1found" in write.body:
        return f"ask whether {write.ref.key.name} was let go{late}"
    if isinstance(write, Patch) and is_size(write):
        marks = [one["value"] for one in msgspec.json.decode(write.body) if "gatelift.dev~1size" in one["path"]]
        made = msgspec.json.decode(marks[-1])
        counts = "+".join(str(count) for count in made["counts"].values())
        return f"set the size {made['number']}, {counts}{late}"
    return ""


def _word(message: m.Message) -> str:
    match message:
        case SliceFinished(number=number):
            return f"report SliceFinished {number}"
        case Drained(number=number, remaining=remaining):
            return f"report Drained {number} {' '.join(f'{name}={count}' for name, count in remaining)}"
        case SizeRefused(number=number, refusal=refusal):
            return f"report SizeRefused {number} {refusal.value}"
        case _:
            return ""


def machine(settings: dict[str, str]) -> Machine:
    """Return a new player's door."""
    return SizePlayer(settings).perform
