"""Users of pod groups in drawn histories: they make groups, replace who failed, and change their minds.

By a chance of its own. A *crew* is one user's group. A diligent user makes another pod for each that failed or is gone,
as a controller does; the others leave it at that. Once all is calm nobody makes what fails, so that each diligent
user's group comes to its end or runs.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from gatelift_kinds.shared import markers
from gatelift_kube.values.resources import POD, WORKLOAD
from support.manager.builders import a_pod
from support.sim.account import asked_by
from support.sim.cluster import TEAM, Doc
from support.sim.surplus import is_present

if TYPE_CHECKING:
    from support.sim.world import SimWorld

CREWS_MAX = 3
"""Groups of one history at a time; a name is used again when all of it is gone."""
AMOUNTS = (100, 200, 300, 400)
"""Milli-CPU of a pod of each role: no two roles ask for the same, so the amount tells the role."""
RUN_SECONDS = "sandbox.gatelift.dev/run-seconds"
STOP_SECONDS = "sandbox.gatelift.dev/stop-seconds"
EXIT_CODE = "sandbox.gatelift.dev/exit-code"
DRIVER, WORKER = "driver", "workers"
GATE = "kueue.x-k8s.io/admission"


@dataclass(slots=True, kw_only=True)
class Crew:
    """One user's group: how many pods of each amount, and what he is like."""

    name: str
    queue: str
    roles: dict[int, int]
    fast: bool = False
    serving: bool = False
    declared: bool = False
    diligent: bool = True
    notes: dict[str, str] = field(default_factory=dict)
    """What all its pods say."""
    made: int = 0
    gone: list[str] = field(default_factory=list)
    """Names that pods have had, to be used again."""

    @property
    def total(self) -> int:
        """Return how many pods the group has."""
        return sum(self.roles.values())


class Crews:
    """Draws them for one world."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._rng = random.Random(f"groups {world.time.seed}")  # noqa: S311 (no secret)
        self.by_name: dict[str, Crew] = {}
        self._made = 0

    def begin(self) -> None:
        """Begin with a group; look after all of them from now on."""
        self.make()
        self._attend()

    # --- what is there ----------------------------------------------------------------------------------------------

    def pods(self, crew: Crew) -> list[Doc]:
        """Return the pods of a group at home."""
        label = markers.POD_GROUP_NAME
        return [
            each for each in self._world.home.views(POD) if each["metadata"].get("labels", {}).get(label) == crew.name
        ]

    def lacking(self, crew: Crew) -> dict[int, int]:
        """Return how many pods of each amount lack: neither over without success nor being deleted."""
        there = Counter(asked_by(each["spec"]) for each in self.pods(crew) if is_present(each))
        return {amount: count - there[amount] for amount, count in self._asked(crew).items() if count > there[amount]}

    def _asked(self, crew: Crew) -> dict[int, int]:
        """Return what the Workload asks for: he may have made it of others than he meant; else what he meant."""
        found = self._world.home.look(WORKLOAD, crew.name)
        if found is None or crew.declared:
            return crew.roles
        sets = found["spec"]["podSets"]
        return {asked_by(each["template"]["spec"]): each["count"] for each in sets}

    # --- what users do --------------------------------------------------------------------------------------------

    def make(self) -> None:
        """Let a user make a group: all pods at once, or one after the other, perhaps not all."""
        free = [f"crew-{number}" for number in range(CREWS_MAX) if self._is_free(f"crew-{number}")]
        if not free:
            return
        rng = self._rng
        amounts = rng.sample(AMOUNTS, rng.choice((1, 1, 1, 2, 2, 3)))
        most = rng.choice((1, 2, 3, 3, 4, 6, 8))
        roles = dict.fromkeys(amounts, 1)
        while sum(roles.values()) < most:
            roles[rng.choice(amounts)] += 1
        style = rng.choice(("", "", "", "", "", "fast", "serving", "declared", "declared"))
        if style == "declared":
            roles = {AMOUNTS[3]: 1, AMOUNTS[0]: rng.randint(1, 5)}
        if style == "fast":
            roles = {amounts[0]: most}
        crew = Crew(
            name=free[0],
            queue=rng.choice(("travels", "travels", "stays")),
            roles=roles,
            fast=style == "fast",
            serving=style == "serving",
            declared=style == "declared",
            diligent=rng.random() < 0.7,
        )
        self.by_name[crew.name] = crew
        self._made += 1
        self._world.counts[f"groups_{style or 'plain'}"] += 1
        self._world.time.say("user", f"makes {crew}")
        lots = [amount for amount, count in roles.items() for _ in range(count)]
        if crew.declared:
            self._make_later(crew, lots)
            return
        rng.shuffle(lots)
        for amount in lots:
            self._world.time.after(rng.choice((0.0, 0.0, 1.0)) * rng.random(), partial(self._one, crew, amount))

    def _make_later(self, crew: Crew, lots: list[int]) -> None:
        """Make a driver first, and its workers some time later."""
        self._one(crew, lots[0])
        for amount in lots[1:]:
            self._world.time.after(self._rng.uniform(0.1, 15.0), partial(self._one, crew, amount))

    def replace(self) -> None:
        """Let a user make pods for those that lack."""
        crew = self._some(list(self.by_name.values()))
        for amount, count in self.lacking(crew).items() if crew else ():
            for _ in range(count):
                self._one(crew, amount)

    def surplus(self) -> None:
        """Let a user make a pod more than his group has."""
        crew = self._some(list(self.by_name.values()))
        if crew is not None:
            self._world.counts["surplus_members"] += 1
            self._one(crew, self._rng.choice([*crew.roles]))

    def delete_member(self) -> None:
        """Let a user delete a pod or some of a group, with its grace or none; perhaps he makes another at once."""
        crew, rng = self._some(list(self.by_name.values())), self._rng
        there = self.pods(crew) if crew else []
        for each in rng.sample(there, min(len(there), rng.choice((1, 1, 2, 8)))):
            name = each["metadata"]["name"]
            self._world.counts["members_deleted"] += 1
            self._world.time.say("user", f"deletes {name}")
            self._world.home.delete(POD, name, grace_seconds=rng.choice((None, None, None, 0)))
            if crew and rng.random() < 0.4:
                self._one(crew, asked_by(each["spec"]))

    def say_final(self) -> None:
        """Let a user say that nobody is to replace a pod."""
        crew = self._some(list(self.by_name.values()))
        chosen = self._some(self.pods(crew) if crew else [])
        if chosen is not None:
            self._world.counts["members_made_final"] += 1
            note = {"metadata": {"annotations": {markers.RETRIABLE_IN_GROUP: "false"}}}
            self._world.home.change(POD, chosen["metadata"]["name"], note)

    def delete_workload(self) -> None:
        """Let a user delete the Workload of a group."""
        crew = self._some(list(self.by_name.values()))
        if crew is not None and self._world.home.look(WORKLOAD, crew.name) is not None:
            self._world.counts["groups_workloads_deleted"] += 1
            self._world.time.say("user", f"deletes Workload {crew.name}")
            self._world.home.delete(WORKLOAD, crew.name)

    def deactivate(self) -> None:
        """Let a user switch a group off and on again."""
        crew, world = self._some(list(self.by_name.values())), self._world
        if crew is None or world.home.change(WORKLOAD, crew.name, {"spec": {"active": False}}) is None:
            return
        world.counts["groups_deactivated"] += 1
        back = {"spec": {"active": True}}
        world.time.after(self._rng.uniform(0.1, 20.0), lambda: world.home.change(WORKLOAD, crew.name, back))

    def end(self) -> None:
        """Let users delete the Workloads of their groups: what was evicted keeps its place until then."""
        for name in self.by_name:
            if self._world.home.look(WORKLOAD, name) is not None:
                self._world.home.delete(WORKLOAD, name)

    # --- how --------------------------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Look after groups every few seconds: the diligent make what lacks, until users delete everything."""
        world = self._world
        for crew in self.by_name.values() if not world.leaving else ():
            if crew.diligent and self.pods(crew):
                for amount, count in self.lacking(crew).items() if not self.is_over(crew) else ():
                    for _ in range(count):
                        self._one(crew, amount)
        world.time.after(self._rng.uniform(3.0, 15.0), self._attend)

    def is_over(self, crew: Crew) -> bool:
        """Say whether nobody makes anything for a group any more: it has come to its end, or its user says so."""
        found = self._world.home.look(WORKLOAD, crew.name)
        said = (found or {}).get("status", {}).get("conditions", [])
        finished = any(one["type"] == "Finished" and one["status"] == "True" for one in said)
        return finished or any(
            each["metadata"].get("annotations", {}).get(markers.RETRIABLE_IN_GROUP) == "false"
            for each in self.pods(crew)
        )

    def _is_free(self, name: str) -> bool:
        crew = self.by_name.get(name)
        return crew is None or (not self.pods(crew) and self._world.home.look(WORKLOAD, name) is None)

    def _some(self, found: list[Any]) -> Any:
        return self._rng.choice(found) if found else None

    def _one(self, crew: Crew, amount: int) -> None:
        """Make one pod of a group that asks for so much."""
        world, rng = self._world, self._rng
        if world.leaving:
            return
        taken = {each["metadata"]["name"] for each in world.home.views(POD)}
        names = [each for each in crew.gone if each not in taken]
        if names and rng.random() < 0.4:
            name = rng.choice(names)
        else:
            crew.made += 1
            name = f"{crew.name}-{crew.made}"
            if name in taken:
                return
            crew.gone.append(name)
        document = a_pod(name).asking(cpu=f"{amount}m").document()
        meta = document["metadata"]
        meta |= {"namespace": TEAM, "annotations": self._notes(crew, amount, name)}
        meta["labels"] |= {"kueue.x-k8s.io/queue-name": crew.queue, markers.POD_GROUP_NAME: crew.name}
        if crew.declared and amount != AMOUNTS[3]:
            meta["labels"][markers.POD_GROUP_ROLE] = WORKER
        if rng.random() < 0.1:
            document["spec"]["terminationGracePeriodSeconds"] = rng.choice((0, 1, 5))
        document.pop("status", None)
        meta.pop("creationTimestamp", None)
        world.home.create(POD, document)
        world.time.say("user", f"creates {name}")

    def _notes(self, crew: Crew, amount: int, name: str) -> dict[str, str]:
        rng, troubled = self._rng, self._world.troubled
        notes = {markers.POD_GROUP_TOTAL_COUNT: str(crew.total)}
        if crew.declared:
            del notes[markers.POD_GROUP_TOTAL_COUNT]
            if amount == AMOUNTS[3]:
                notes[markers.POD_GROUP_SETS] = json.dumps(_sets(crew))
        if crew.fast:
            notes[markers.POD_GROUP_FAST_ADMISSION] = "true"
        if crew.serving:
            notes[markers.POD_GROUP_SERVING] = "true"
        if rng.random() < 0.75 and not crew.serving:
            notes[RUN_SECONDS] = f"{rng.choice((0.5, 3, 10, 30)):g}"
        if rng.random() < 0.3:
            notes[STOP_SECONDS] = f"{rng.choice((1, 5, 20)):g}"
        if troubled and rng.random() < 0.25:
            notes |= {EXIT_CODE: "1", RUN_SECONDS: f"{rng.choice((0.5, 3, 10)):g}"}
        if rng.random() < 0.04:
            notes[markers.RETRIABLE_IN_GROUP] = "false"
        return notes


def _sets(crew: Crew) -> list[Doc]:
    container = {"name": "main", "resources": {"requests": {"cpu": f"{AMOUNTS[0]}m"}}}
    workers = {"name": WORKER, "count": crew.roles[AMOUNTS[0]], "template": {"spec": {"containers": [container]}}}
    return [{"name": DRIVER, "count": 1}, workers]
