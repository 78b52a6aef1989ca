"""Random walks of one chain whose queue asks a check of another controller about each growth (SL-33, decision 127).

As `chain_walks`, and the check says Ready, Retry or Rejected of any slice at any moment, also of one that is not asked
about any more; somebody deactivates or evicts what waits, forges its marks and counts, and takes reservations away.

Run: `python -m support.manager.checked_chain_walks --first 0 --count 1000`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from gatelift_kube.deciding.writes import WRITE_SECONDS_MAX
from gatelift_kube.values.resources import JOB, ObjectRef
from support import walks_many
from support.manager.api import Doc
from support.manager.builders import a_job, kueue_object
from support.manager.chain_walks import (
    CALM_SECONDS,
    COUNT_MAX,
    QUEUE_CPU,
    STEPS,
    ChainTruthError,
    ChainWalk,
    has_winner,
    is_over,
    slices_of,
    told,
)
from support.manager.slice_world import QUEUE, all_slices, charged, ref_of, resize, used

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
        preemption = {"withinClusterQueue": "LowerPriority"}
        self.world.api.edit(
            QUEUE, lambda queue: queue["spec"].update(admissionChecksStrategy=strategy, preemption=preemption)
        )
        for name, value in (("high", 100), ("low", -100)):
            self.world.api.apply(kueue_object("WorkloadPriorityClass", name, {}) | {"value": value})
        self.rivals = 0
        more: tuple[tuple[int, Callable[[], None]], ...] = (
            (10, self._is_asked),
            (12, self._says_ready),
            (5, self._says_retry),
            (3, self._says_rejected),
            (2, self._deactivates_the_target),
            (2, self._takes_the_reservation_away),
            (2, self._edits_counts),
            (8, self._another_leads_as_it_grows),
            (4, self._a_rival_comes),
            (3, self._a_rival_goes),
            (2, self._forges_a_condition),
        )
        self._acts = (*self._acts, *more)

    # --- the check ----------------------------------------------------------------------------------------------------

    def _is_asked(self) -> None:
        """Let the user want as much as there is, and go on until the check is asked about it, or has to wait."""
        resize(self.world, COUNT_MAX)
        for _ in range(STEPS_TO_BE_ASKED):
            if any(_state(one) == "Pending" and _has_quota(one) for one in self._open()):
                return
            self.world.step()

    def _open(self) -> list[Doc]:
        return [one for one in slices_of(self.world) if not is_over(self.world, one)]

    def _say_of(self, chosen: Doc, state: str, **more: object) -> None:
        def write(workload: Doc) -> None:
            for one in workload["status"]["admissionChecks"]:
                if one["name"] == BUDGET:
                    one.update(state=state, message="said so", **more)

        self.world.api.edit(ref_of(chosen), write)

    def _says_ready(self) -> None:
        self._rivals_are_asked()
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
        if chosen is None or not _has_quota(chosen):
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

    def _forges_a_condition(self) -> None:
        """Let somebody who may write a status announce an end, or evict."""
        chosen = self._some(self.rng.choice(("target", "target", "record")))
        if chosen is None:
            return
        type_ = self.rng.choice(("DeactivationTarget", "Evicted", "Admitted", "Preempted"))
        one = {"type": type_, "status": "True", "reason": "Forged", "message": "by hand"}

        def write(workload: Doc) -> None:
            there = workload.setdefault("status", {}).setdefault("conditions", [])
            there[:] = [each for each in there if each["type"] != type_] + [
                {**one, "lastTransitionTime": "2026-11-18T11:00:00Z"}
            ]

        self.world.api.edit(ref_of(chosen), write)

    def _another_leads_as_it_grows(self) -> None:
        """Let the check be ready, and another manager lead while the write of the growth is under way."""
        self._is_asked()
        self._says_ready()
        for _ in range(STEPS_TO_BE_ASKED):
            if any(b"admission" in getattr(one.command, "body", b"") for one in self.under_way):
                break
            self.world.step()
        if self.rng.random() < 0.5:
            self._some_edit()
        self.world.restart()
        if self.rng.random() < 0.5:
            self._some_edit()
        self._goes_some_steps()

    def _some_edit(self) -> None:
        self.rng.choice((self._resizes, self._deactivates, self._says_retry, self._a_rival_comes, self._holds_queue))()

    # --- rivals -------------------------------------------------------------------------------------------------------

    def _a_rival_comes(self) -> None:
        """Let a plain Job want what the growth is about to have, above it or below it."""
        job = a_job(f"rival-{self.rivals}", parallelism=self.rng.randint(2, 9))
        self.rivals += 1
        job["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = self.rng.choice(("high", "low"))
        if self.at_home:
            del job["spec"]["managedBy"]
        self.world.api.apply(job)
        self._goes_some_steps()

    def _there(self) -> list[ObjectRef]:
        found = [ref for ref in self.world.api.objects if ref.resource == JOB and ref.key.name.startswith("rival-")]
        return sorted(found, key=lambda ref: ref.key.name)

    def _a_rival_goes(self) -> None:
        there = self._there()
        if there:
            self.world.api.delete(self.rng.choice(there))

    def _rivals_are_asked(self) -> None:
        for one in all_slices(self.world):
            if one not in slices_of(self.world) and _state(one) == "Pending" and _has_quota(one):
                self._say_of(one, "Ready")

    # --- what must hold ---------------------------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        self._check_quota()
        core = self.world.machine.core
        knows = core.rebuilt and any(each.live for each in core.attempts.values())
        if knows and self.agent.run is not None and used(self.world) < self.agent.may_run:
            raise ChainTruthError(f"{self.agent.may_run} may run, booked are {used(self.world)}: {told(self.world)}")

    def _check_quota(self) -> None:
        """Compare what has a winner, and stays, with the quota."""
        ours = slices_of(self.world)
        held = [one for one in ours if has_winner(self.world, one) and not is_over(self.world, one)]
        chain = max((charged(one) or 0 for one in held), default=0) if self.agent.run is not None else 0
        rest = [one for one in all_slices(self.world) if one not in ours and not is_over(self.world, one)]
        stay = [one for one in rest if not one["metadata"].get("deletionTimestamp")]
        others = {one["metadata"]["name"]: charged(one) or 0 for one in stay if has_winner(self.world, one)}
        if chain + sum(others.values()) > QUEUE_CPU:
            raise ChainTruthError(f"more than the quota has a winner: {others}; {told(self.world)}")

    def _comes_to_rest(self) -> None:
        self.trouble = False
        self._pass(WRITE_SECONDS_MAX)
        resize(self.world, self.rng.randint(0, COUNT_MAX))  # what was rejected is not made again for the same wish
        self._opens_all()
        for _ in range(int(CALM_SECONDS / 10)):
            for ref in self._there():
                self.world.api.delete(ref)
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


def _has_quota(document: Doc) -> bool:
    return "admission" in document.get("status", {})


if __name__ == "__main__":
    sys.exit(walks_many.main(__doc__, lambda seed: CheckedChainWalk(seed).live(), ChainTruthError))
