"""Random walks of one chain whose queue asks a check of another controller about each growth (SL-33, decision 127).

As `chain_walks`, and the check says Ready, Retry or Rejected of any slice at any moment, also of one that is not asked
about any more; somebody deactivates or evicts what waits, forges its marks and counts, and takes reservations away.

Run: `python -m support.manager.checked_chain_walks --first 0 --count 1000`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from support import walks_many
from support.manager.api import Doc
from support.manager.builders import kueue_object
from support.manager.chain_walks import (
    CALM_SECONDS,
    COUNT_MAX,
    STEPS,
    ChainTruthError,
    ChainWalk,
    is_over,
    told,
)
from support.manager.slice_world import QUEUE, all_slices, ref_of, resize, used

ON = {"type": "Active", "status": "True", "reason": "Active", "message": "On"}
BUDGET = "budget"
STEPS_TO_BE_ASKED = 200


class CheckedChainWalk(ChainWalk):
    """One walk."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        super().__init__(seed, steps=steps)
        budget = kueue_object("AdmissionCheck", BUDGET, {"controllerName": "example.com/foreign"})
        self.world.api.apply({**budget, "status": {"conditions": [ON]}})
        names = [{"name": name} for name in (*(() if self.at_home else ("dispatch",)), BUDGET)]
        strategy = {"admissionChecks": names}
        self.world.api.edit(QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy))
        more: tuple[tuple[int, Callable[[], None]], ...] = (
            (10, self._is_asked),
            (12, self._says_ready),
            (5, self._says_retry),
            (3, self._says_rejected),
            (2, self._deactivates_the_target),
            (2, self._takes_the_reservation_away),
            (2, self._edits_counts),
        )
        self._acts = (*self._acts, *more)

    # --- the check ----------------------------------------------------------------------------------------------------

    def _is_asked(self) -> None:
        """Let the user want as much as there is, and go on until the check is asked about it, or has to wait."""
        resize(self.world, COUNT_MAX)
        for _ in range(STEPS_TO_BE_ASKED):
            if any(_state(one) == "Pending" and _has_quota(self.world, one) for one in self._open()):
                return
            self.world.step()

    def _open(self) -> list[Doc]:
        return [one for one in all_slices(self.world) if not is_over(self.world, one)]

    def _say_of(self, chosen: Doc, state: str, **more: object) -> None:
        def write(workload: Doc) -> None:
            for one in workload["status"]["admissionChecks"]:
                if one["name"] == BUDGET:
                    one.update(state=state, message="said so", **more)

        self.world.api.edit(ref_of(chosen), write)

    def _says_ready(self) -> None:
        for one in [one for one in self._open() if _state(one)][-1:]:
            self._say_of(one, "Ready")

    def _says_retry(self) -> None:
        for one in self._drawn():
            self._say_of(one, "Retry", requeueAfterSeconds=self.rng.choice((1, 5, 30)))

    def _says_rejected(self) -> None:
        for one in self._drawn():
            self._say_of(one, "Rejected")

    def _drawn(self) -> list[Doc]:
        asked = [one for one in self._open() if _state(one)]
        return asked[-1:] if self.rng.random() < 0.8 else asked[:1]

    # --- hands --------------------------------------------------------------------------------------------------------

    def _deactivates_the_target(self) -> None:
        chosen = self._some("target")
        if chosen is not None:
            self.world.api.edit(ref_of(chosen), lambda one: one["spec"].update(active=False))

    def _takes_the_reservation_away(self) -> None:
        chosen = self._some("target")
        if chosen is None or not _has_quota(self.world, chosen):
            return

        def write(workload: Doc) -> None:
            workload["status"].pop("admission", None)
            for one in workload["status"]["conditions"]:
                if one["type"] == "QuotaReserved":
                    one.update(status="False", reason="Pending", message="by hand")

        self.world.api.edit(ref_of(chosen), write)

    def _edits_counts(self) -> None:
        chosen = self._some("target")
        if chosen is not None:
            counts = self.rng.randint(0, COUNT_MAX + 3)
            self.world.api.edit(ref_of(chosen), lambda one: one["spec"]["podSets"][0].update(count=counts))

    # --- what must hold -------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        core = self.world.machine.core
        if core.rebuilt and self.agent.run is not None and self.agent.run[1] and used(self.world) < self.agent.may_run:
            live = [each for each in core.attempts.values() if each.live]
            if live:
                raise ChainTruthError(
                    f"{self.agent.may_run} may run, booked are {used(self.world)}: {told(self.world)}"
                )

    def _comes_to_rest(self) -> None:
        self.trouble = False
        self._pass(WRITE_SECONDS_MAX)
        resize(self.world, self.rng.randint(0, COUNT_MAX))  # what was rejected is not made again for the same wish
        self._opens_all()
        for _ in range(int(CALM_SECONDS / 10)):
            for one in self._open():
                if _state(one) and _state(one) != "Ready":
                    self._say_of(one, "Ready")
            self._pass(10.0)
            self._says_size()
            self._answers()
            self._activates_all()
        super()._comes_to_rest()

    def _opens_all(self) -> None:
        self.world.api.edit(QUEUE, lambda queue: queue["spec"].update(stopPolicy="None"))
        for name in sorted(self.world.agents) if not self.at_home else ():
            if not self.world.links.views[name].open:
                self.world.connect(name)

    def _activates_all(self) -> None:
        for one in self._open():
            if not one["spec"].get("active", True):
                self.world.api.edit(ref_of(one), lambda each: each["spec"].update(active=True))


def _state(document: Doc) -> str:
    said = document.get("status", {}).get("admissionChecks", [])
    return next((str(one["state"]) for one in said if one["name"] == BUDGET), "")


def _has_quota(world: object, document: Doc) -> bool:
    return "admission" in document.get("status", {})


if __name__ == "__main__":
    sys.exit(walks_many.main(__doc__, lambda seed: CheckedChainWalk(seed).live(), ChainTruthError))
