"""Plays traces of the checked model of sizes to the agent's own core, under the outside account (SL-41 to SL-48).

Each trace is the shortest history in which a promise is broken without one rule (`sizes_model.needed`). What the user,
the manager, the cluster and chance do in it is done here; what the agent does is its own affair. So with the rules as
they are in force the account finds nothing, and with that rule taken out it finds what the model has found. A manager
hears an answer where the trace takes it, and only one that was given. A pod that the agent is to lift is made first,
and goes before those that were made until then: pods of the model are alike, so no order of theirs may be what helps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from math import inf
from typing import Any

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX, ApiWrite, WriteError, WriteFailed
from gatelift_kube.values.resources import POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.sizes import Resize, SliceFinished
from support.agent.late_stage import InFlight, LateTrainingStage
from support.agent.size_account import SizeAccount
from support.agent.size_stage import is_size, is_ungate, sets
from support.agent.values import KEY
from support.toys.training.objects import a_group

NAMES = ("leader", "workers")
PODS_MAX = 100
AGAIN_SECONDS = 5.0
"""In which a write that was not done is asked for again."""
LOST_SECONDS = 100.0
"""Until a cluster that is cut off counts as lost: before that no person says anything that counts."""
LANDS_SECONDS = WRITE_SECONDS_MAX / 2
"""After which what a dead process has asked for lands."""


class TraceStage(LateTrainingStage):
    """All is at once, but for writes that are slow or not done, and answers, which are heard as the trace says."""

    def __init__(self, account: SizeAccount) -> None:
        self.slow: Callable[[ApiWrite], bool] = lambda _write: False
        self.refuses_sizes = False
        self.said: list[int] = []
        super().__init__(random.Random(0), account, release="OnTerminal")  # noqa: S311 (nothing is drawn)
        self.made = PODS_MAX

    def _take_write(self, write: ApiWrite) -> None:
        if self.refuses_sizes and is_size(write):
            self._answer(WriteFailed(write_id=write.write_id, error=WriteError.NOT_DONE, message="not yet"))
            return
        if not self.slow(write):
            super()._take_write(write)
            return
        self.writes.append(write)
        waiting = tuple(one.write for one in self.in_flight)
        self.account.asks(write, (*waiting, write), self._unseen(), may_open=self._may_open())
        self.in_flight.append(InFlight(write=write, process=self.process, at=inf, answered=True, lands=True))

    def _make(self, found: dict[str, Any], pod_set: str, **labels: str) -> None:
        self.made -= 2
        super()._make(found, pod_set, **labels)

    def lands(self) -> None:
        """Let slow writes land."""
        for one in self.in_flight:
            one.at = self.now
        self.land_due()
        self.settle()

    def waits(self, pod_set: str) -> bool:
        """Say whether a pod of it waits at its gate, and no lift of it is on its way."""
        lifts = {one.write.ref.key.name for one in self.in_flight}
        return bool(set(self.waiting(pod_set)) - lifts)

    def _hear(self) -> None:
        new = self.peer.heard[self._heard :]
        self._heard = len(self.peer.heard)
        self.said += [message.number for message in new if isinstance(message, SliceFinished)]


class SizeTrace:
    """One trace."""

    def __init__(self) -> None:
        self.account = SizeAccount(names=NAMES)
        self.stage = TraceStage(self.account)
        self.target = dict.fromkeys(NAMES, 1)
        self.counts: dict[int, dict[str, int]] = {}
        self.left: list[str] = []

    def play(self, lines: tuple[str, ...]) -> None:
        """Live through it. Raises SizeTruthError where a promise is broken."""
        self._begins()
        self.left = list(lines)
        while self.left:
            self._act(self.left.pop(0))
            self.stage.settle()
        self.stage.refuses_sizes = False
        self.stage.lands()
        self.stage.passes(LOST_SECONDS)
        self.account.check()

    def _act(self, line: str) -> None:
        for pattern, act in ACTS.items():
            found = re.fullmatch(pattern, line)
            if found is not None:
                act(self, *found.groups())
                return
        raise AssertionError(f"no actor has this line: {line}")

    # --- the manager --------------------------------------------------------------------------------------------

    def _begins(self) -> None:
        stage = self.stage
        stage.start(0.0)
        stage.mend()
        stage.offer(KEY, "Training", "j")
        self._charges(1, self.target)
        stage.words.add(1)
        spec = {name: a_group(replicas=1) for name in NAMES}
        fields: dict[str, Any] = {"pod_sets": sets(self.target), "size": 1, "release": stage.release}
        stage.commit(KEY, "Training", "j", spec, **fields)

    def _charges(self, number: int, counts: dict[str, int]) -> None:
        self.counts[number] = counts
        self.account.says(number, counts)

    def _asks(self, counts: str) -> None:
        self.target = _counts(counts)

    def _grows(self, number: str) -> None:
        self._charges(int(number), self.target)

    def _lowers(self, number: str, counts: str) -> None:
        self._charges(int(number), _counts(counts))

    def _hears(self, number: str) -> None:
        if int(number) in self.stage.said:
            self.account.hears(int(number))

    def _deadline(self, number: str) -> None:
        self.account.deadline(int(number))

    def _releases(self) -> None:
        self._charges(max(self.counts), dict.fromkeys(NAMES, 0))
        self.account.answered = max(self.counts)

    # --- the wire and the agent -----------------------------------------------------------------------------------

    def _takes(self, size: str) -> None:
        number, stage = int(size), self.stage
        stage.refuses_sizes = True
        stage.words.add(number)
        key: PlacementKey = KEY
        stage.send(m.Confirm(keys=(key,)), Resize(key=key, number=number, pod_sets=sets(self.counts[number])))

    def _sets(self) -> None:
        self.stage.refuses_sizes = False
        self.stage.passes(AGAIN_SECONDS)

    def _lifts(self, pod_set: str, slow: str | None) -> None:
        stage, name = self.stage, NAMES[int(pod_set)]
        stage.slow = is_ungate if slow else lambda _write: False
        if not stage.waits(name):
            stage.make_of(name)
        for _ in [line for line in self.left if slow and line == f"agent lifts a pod of set {pod_set}"]:
            stage.make_of(name)  # they wait beside it
        stage.slow = lambda _write: False

    def _dies(self) -> None:
        for one in self.stage.in_flight:
            one.at = self.stage.now + LANDS_SECONDS
        self.stage.crash()

    def _begins_again(self) -> None:
        self.stage.refuses_sizes = False
        self.stage.start()

    def _connects(self) -> None:
        self.stage.cut = False
        while not self.stage.peer.open:
            self.stage.passes(1.0)

    # --- the cluster ----------------------------------------------------------------------------------------------

    def _fails(self, pod_set: str) -> None:
        self.stage.run_all()
        self.stage.finish(self.stage.lifted(NAMES[int(pod_set)])[0], "Failed")

    def _deletes(self, pod_set: str) -> None:
        self.stage.run_all()
        self.stage.remove(POD, self.stage.lifted(NAMES[int(pod_set)])[0])


def _counts(text: str) -> dict[str, int]:
    return dict(zip(NAMES, map(int, text.split("+")), strict=True))


def _nothing(_trace: SizeTrace, *_words: str) -> None:
    """Leave to the agent what it is not told of, or does by itself."""


ACTS: dict[str, Callable[..., None]] = {
    r"user asks for .*": _nothing,
    r"manager (?:finishes|evicts|reserves).*": _nothing,
    r"manager has target ask for (.*)": SizeTrace._asks,
    r"manager makes target the record: size (\d+), .*": SizeTrace._grows,
    r"manager lowers the record: size (\d+), (\S+) wanted, .*": SizeTrace._lowers,
    r"manager takes the answer of size (\d+): .*": SizeTrace._hears,
    r"manager releases all and raises the epoch": SizeTrace._releases,
    r"a deadline takes back the slice of size (\d+)": SizeTrace._deadline,
    r"a person sees no pod and says fenced": lambda trace: trace.stage.passes(LOST_SECONDS),
    r"cut": lambda trace: trace.stage.cut_stream(),
    r"agent takes size (\d+)": SizeTrace._takes,
    r"agent sets the Job to .*": SizeTrace._sets,
    r"agent answers size .*": _nothing,
    r"agent lifts a pod of set (\d)( \(slow\))?": SizeTrace._lifts,
    r"the agent dies": SizeTrace._dies,
    r"another replica begins": SizeTrace._begins_again,
    r"the agent connects": SizeTrace._connects,
    r"a pod of set (\d) fails": SizeTrace._fails,
    r"a running pod of set (\d) is deleted": SizeTrace._deletes,
    r"!! .*": _nothing,
}
