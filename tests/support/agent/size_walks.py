"""Random walks of one elastic placement: the agent's own core, with a manager that says whatever may be said.

Each step is drawn by the seed. The manager says sizes with random counts, says old ones again, confirms what is known
and what is not, commits again, offers a growth and takes it back. Streams are cut, sessions resumed or not, processes
die, the replica's lease runs out, pods run, end, are deleted, are made by hand; the controller looks whenever it likes;
all else that may be late is (`late_stage`). After every write `size_account` compares. At the end, with all trouble
over, the last size has to be what runs, and answered.

Run: `python -m support.agent.size_walks --first 0 --count 1000`.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from typing import Any

from gatelift_agent.core.placement.placements import LIVE
from gatelift_agent.core.values import events
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from gatelift_wire.values.sizes import PlacementSize, Resize
from support import walks_many
from support.agent.late_stage import LateStage, LateTrainingStage
from support.agent.size_account import SizeAccount, SizeTruthError
from support.agent.size_stage import a_job, deleting, gated, over, sets
from support.agent.values import KEY, UNSEEN_SECONDS
from support.toys.training.objects import a_group

STEPS = 120
COUNT_MAX = 4
CALM_SECONDS = 3 * UNSEEN_SECONDS


class SizeWalk:
    """One walk. `rushes`: its manager counts an answer to an earlier size for one to the last (without Size 5)."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        self.seed, self.steps = seed, steps
        self.rng = random.Random(seed)  # noqa: S311 (a history that is told by its seed)
        release = self.rng.choice(("OnTerminal", "OnTerminating"))
        self.names = ("leader", "workers") if self.rng.random() < 0.3 else ("main",)
        self.account = SizeAccount(names=self.names, on_terminating=release == "OnTerminating")
        stage = LateTrainingStage if len(self.names) > 1 else LateStage
        self.local = len(self.names) == 1 and self.rng.random() < 0.3
        mode = AgentMode.LOCAL if self.local else AgentMode.REMOTE
        self.stage = stage(self.rng, self.account, release=release, **({"mode": mode} if self.local else {}))
        self.number = 1
        self.counts = self._drawn()
        self.spec = self._spec()
        self.told: list[str] = []
        self.edited = False
        self._acts: tuple[tuple[int, Callable[[], None]], ...] = (
            (12, self._resizes),
            (4, self._says_again),
            (5, self._confirms),
            (2, self._commits_again),
            (2, self._offers),
            (3, self._cuts),
            (5, self._mends),
            (2, self._dies),
            (2, self._lapses),
            (16, self._controls),
            (10, self._runs),
            (8, self._ends_one),
            (3, self._deletes_one),
            (8, self._stops_deleted),
            (2, self._makes_one),
            (1, self._edits),
            (16, self._waits),
        )

    def live(self) -> SizeWalk:
        """Live through it. Raises SizeTruthError, with the seed, where a promise is broken."""
        try:
            self._begins()
            for _ in range(self.steps):
                (act,) = self.rng.choices([act for _, act in self._acts], [weight for weight, _ in self._acts])
                self.told.append(act.__name__)
                act()
                self.stage.settle()
            self._comes_to_rest()
        except AssertionError as error:
            raise SizeTruthError(f"seed {self.seed}, after {len(self.told)} steps: {error}") from error
        return self

    # --- the manager --------------------------------------------------------------------------------------------

    def _drawn(self) -> dict[str, int]:
        return {name: self.rng.randint(0, COUNT_MAX) for name in self.names}

    def _spec(self) -> dict[str, Any]:
        if len(self.names) > 1:
            return {name: a_group(replicas=self.counts[name]) for name in self.names}
        return a_job(self.counts["main"])

    def _begins(self) -> None:
        stage, kind = self.stage, "Training" if len(self.names) > 1 else "Job"
        stage.start(0.0)
        stage.mend()
        if self.local:
            stage.make_local(self.counts["main"])
        stage.offer(KEY, kind, "j")
        self._commits()
        stage.react()
        stage.trouble = True

    def _commits(self) -> None:
        kind = "Training" if len(self.names) > 1 else "Job"
        self._charges()
        fields: dict[str, Any] = {"pod_sets": sets(self.counts), "size": self.number, "release": self.stage.release}
        self.stage.commit(KEY, kind, "j", self.spec, **fields)

    def _charges(self) -> None:
        """Write the charge before the word (Size 2)."""
        self.account.says(self.number, self.counts)
        self.stage.words.add(self.number)

    def _resizes(self) -> None:
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            self.number += self.rng.choice((1, 1, 2))
            self.counts = self._drawn()
            self._says()

    def _says(self) -> None:
        if self.stage.peer.open:
            self._charges()
            self.stage.confirm()
            self.stage.send(Resize(key=KEY, number=self.number, pod_sets=sets(self.counts)))

    def _says_again(self) -> None:
        """Say a size of before once more; the last one is a confirmation."""
        number = self.rng.choice([*self.account.said])
        if self.stage.peer.open:
            self.stage.words.add(number)
            counts = dict(self.account.said[number])
            self.stage.send(Resize(key=KEY, number=number, pod_sets=sets(counts)))

    def _confirms(self) -> None:
        number = self.rng.choice([*self.account.said, self.number, self.number, self.number + 1])
        if self.stage.peer.open:
            self.stage.words.add(number)
            self.stage.send(m.Confirm(keys=(KEY,), sizes=(PlacementSize(key=KEY, number=number),)))

    def _commits_again(self) -> None:
        if self.stage.peer.open:
            self._commits()

    def _offers(self) -> None:
        stage, kind = self.stage, "Training" if len(self.names) > 1 else "Job"
        if not stage.peer.open:
            return
        more = sets({name: self.rng.randint(0, 2) for name in self.names})
        stage.offer(KEY, kind, "j", size=self.number + 1, pod_sets=more, hold_seconds=self.rng.uniform(1.0, 20.0))
        if self.rng.random() < 0.5:
            stage.send(m.Withdraw(key=KEY, size=self.number + 1))

    # --- both ends ----------------------------------------------------------------------------------------------

    def _cuts(self) -> None:
        self.stage.cut_stream()

    def _mends(self) -> None:
        self.stage.cut = False
        self.stage.resume = self.rng.random() < 0.6
        self.stage.passes(self.rng.uniform(0.0, 15.0))
        if self.stage.peer.open and self.rng.random() < 0.7:
            self._says()

    def _dies(self) -> None:
        self.stage.crash()
        self.stage.start()
        self.stage.passes(self.rng.uniform(0.0, 20.0))

    def _lapses(self) -> None:
        """Let the replica's lease be taken by nobody for a while, and by itself again."""
        self.stage.post(events.AgentLeadershipLost())
        self.stage.passes(self.rng.uniform(0.0, 5.0))
        self.stage.start()

    def _waits(self) -> None:
        self.stage.passes(self.rng.choice((0.1, 1.0, 5.0, 12.0, 30.0)))

    # --- the cluster --------------------------------------------------------------------------------------------

    def _some(self, *, running: bool) -> str | None:
        found = [
            one["metadata"]["name"]
            for name in (*self.names, "")
            for one in self.stage.pods(name)
            if not over(one) and (not running or one["spec"].get("nodeName"))
        ]
        return self.rng.choice(found) if found else None

    def _controls(self) -> None:
        self.stage.react()

    def _runs(self) -> None:
        self.stage.run_all()

    def _ends_one(self) -> None:
        name = self._some(running=True)
        if name is not None:
            self.stage.finish(name, self.rng.choice(("Failed", "Succeeded")))

    def _deletes_one(self) -> None:
        name = self._some(running=False)
        if name is not None:
            self.stage.remove(POD, name)

    def _stops_deleted(self) -> None:
        for pod_set in (*self.names, ""):
            for one in self.stage.pods(pod_set):
                if deleting(one) and self.rng.random() < 0.6:
                    self._stop(one)

    def _stop(self, pod: dict[str, Any]) -> None:
        if over(pod):
            self.stage.remove(POD, pod["metadata"]["name"], grace=0)
        else:
            self.stage.finish(pod["metadata"]["name"], "Failed")

    def _makes_one(self) -> None:
        """Make a pod that its controller has not made: of a pod set, or of none."""
        if self.stage.document(JOB, "j") is None:
            return
        if len(self.names) > 1:
            self.stage.make_of(self.rng.choice(self.names))
        else:
            self.stage.make_pod(pod_set=self.rng.choice(("main", None)))

    def _edits(self) -> None:
        """Change at the worker what the object asks for: it is put back, once. At home it is its user's wish."""
        if not self.local:
            if self.edited or self.seed % 4:
                return
            self.edited = True
        count = self.rng.randint(0, 2 * COUNT_MAX)
        spec = {"parallelism": count} if len(self.names) == 1 else {self.names[-1]: {"replicas": count}}
        if self.stage.document(JOB, "j") is not None:
            self.stage.change_what_runs({"spec": spec})

    # --- the end ------------------------------------------------------------------------------------------------

    def _comes_to_rest(self) -> None:
        """With all trouble over, the last size is what runs, and it is answered."""
        stage = self.stage
        stage.trouble = False
        stage.passes(15.0)
        stage.cut, stage.resume = False, True
        stage.start(0.0)
        stage.mend()
        if self.local:
            stage.change_what_runs({"spec": {"parallelism": self.counts["main"]}})
        for _ in range(int(CALM_SECONDS / 10)):
            if self.number not in stage.words:
                self._says()
            for one in [each for name in (*self.names, "") for each in stage.pods(name)]:
                if deleting(one):
                    self._stop(one)
            stage.react()
            stage.run_all()
            stage.passes(10.0)
        placed = stage.placement()
        if self.edited and (placed is None or placed.state not in LIVE):
            return  # what is put back once may be changed by that, and ends
        if self.account.holding() != self.counts:
            raise SizeTruthError(f"at rest there run {self.account.holding()}, wanted are {self.counts}: {self._why()}")
        if self.account.answered != self.number:
            raise SizeTruthError(f"at rest size {self.account.answered} is answered, not {self.number}: {self._why()}")

    def _why(self) -> str:
        found = self.stage.placement()
        if found is None:
            return "nothing is placed"
        lines = [str(found.sizing) if found.sizing is not None else "no size", found.state.value]
        lines += [note.text for note in self.stage.notes[-5:]]
        waits = [one["metadata"]["name"] for name in self.names for one in self.stage.pods(name) if gated(one)]
        return "; ".join([*lines, f"waiting {waits}", *self.told[-8:]])


if __name__ == "__main__":
    sys.exit(walks_many.main(__doc__, lambda seed: SizeWalk(seed).live(), SizeTruthError))
