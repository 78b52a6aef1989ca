"""What people are shown in a simulated world equals what the leading manager's engine has, once nothing is under way.

All objects that are still are checked once a second, and at the end every one has to become still. Queues: counts,
usage and Active against the engine's figures. Workloads: QuotaReserved, Admitted and Finished against the engine's
phase, why they wait against what it has to say, quota against its charge. Neighbours: `shown` says what is still,
`truth` believes no core.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gatelift.core.api.agenda import Key
from gatelift.core.clusters.links import Links
from gatelift.core.conclusions import held, reports
from gatelift.core.records.attempt_states import LIVE, AttemptState
from gatelift.core.records.attempts import Attempt
from gatelift.core.rules import kept_out, unrecorded
from gatelift.core.state.core import Core
from gatelift_admission.entries.entry import Phase
from gatelift_kube.objects.conditions import truncated
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox.embedded.watches import Stored
from support.manager.shown import LOOKS, is_moving, queue_differs, shown_by
from support.sim.cluster import Doc, SimCluster
from support.sim.manager import SimManager
from support.sim.objects import holds, is_released, milli
from support.sim.truth import Truth

KEPT_OUT = (
    "EpochAhead",
    "PredecessorUnreachable",
    "PredecessorNotStopped",
    "PredecessorOfAnotherManager",
    "UnreadablePodTemplate",
)
"""Reasons of the manager's own, before the engine is asked."""
_GROWS = re.compile(r"^It grows what runs from [^:]*: ")
"""How a slice that waits to grow what runs says that it does, before it says what the engine has to say."""
Charge = dict[tuple[str, str], int]
"""Milli-CPU by flavor and resource."""


@dataclass(frozen=True, slots=True)
class Read:
    """One version of an object, decoded once, which nobody changes."""

    stored: Stored
    document: Doc
    ref: ObjectRef
    look: Key
    version: str
    figures: Doc
    """What a queue shows; nothing of a Workload."""
    phase: Phase | None
    """Where a Workload shows that it stands; none of a queue."""

    @classmethod
    def of(cls, resource: Resource, stored: Stored) -> Read:
        """Read an object."""
        key = ObjectKey(stored.namespace, stored.name)
        ref, look = ObjectRef(resource, key), Key(LOOKS[resource], key)
        document, is_workload = stored.view(), resource == WORKLOAD
        figures, phase = ({}, _phase(document)) if is_workload else (shown_by(document), None)
        return cls(stored, document, ref, look, str(stored.version), figures, phase)

    def moves(self, core: Core) -> bool:
        """Say whether it may still come to show something else."""
        return is_moving(core, self.ref, self.look, self.version)


class Shown:
    """Compares what the management cluster shows with what a manager has."""

    def __init__(self, home: SimCluster, truth: Truth) -> None:
        self._home = home
        self._truth = truth
        self._read: dict[str, Read] = {}  # by UID
        self._compared: tuple[object, int, int] | None = None
        self._listed: dict[Resource, list[Read]] = {}
        self._listed_at = (-1, -1)
        """Restores and version of the store of which that are the objects."""
        self.checks = 0

    def forget(self) -> None:
        """Compare all of it the next time: somebody has changed a manager's engine that heard of nothing."""
        self._compared = None

    def moving(self, manager: SimManager | None) -> list[str]:
        """Return what may still come to show something else; all of it where nobody leads."""
        if manager is None:
            return ["no manager leads and has done all that is due"]
        return [
            f"{resource.kind} {each.stored.name}"
            for resource in LOOKS
            for each in self._all(resource)
            if each.moves(manager.machine.core)
        ]

    def wrong(self, manager: SimManager | None) -> list[str]:
        """Return what is still and shows something else than the manager has."""
        if manager is None:
            return []
        core, found = manager.machine.core, []
        now = manager, manager.process.handled, self._home.store.version
        if now == self._compared:
            return []  # nothing was written, and it has heard of nothing, since it was found right
        for resource in LOOKS:
            for each in self._all(resource):
                if not each.moves(core):
                    self.checks += 1
                    found += (
                        self._workload(core, each.document, each.phase)
                        if each.phase is not None
                        else queue_differs(core, resource, each.ref.key, each.figures)
                    )
        for cluster in self._home.all(WORKER_CLUSTER):
            found += _cordoned_otherwise(core, cluster)
        self._compared = None if found else now
        return found

    def _workload(self, core: Core, document: Doc, shown: Phase) -> list[str]:
        engine, meta = core.ledger.engine, document["metadata"]
        found, phase = [], engine.phase(meta["uid"])
        attempt = core.attempts.get(meta["uid"])
        if shown is Phase.FINISHED and attempt is not None and attempt.state in LIVE:
            return []  # by a stranger, or a dead leader's late write: charged until its cluster was heard (decision 35)
        if shown is Phase.FINISHED and attempt is not None and not any(engine.charged(meta["uid"]).values()):
            return []  # so it was, and has been heard since: its quota is free, and the record says all there is to say
        if core.caution.tampered.is_maybe_former(meta["uid"]):
            return []  # an end that a leader before has written: charged until its cluster was heard (decision 48)
        if shown is not phase:
            found.append(
                f"Workload {meta['name']} shows {shown.value}; the engine has {phase.value if phase else None}"
            )
        if meta.get("deletionTimestamp") or self._truth.orphaned(document):
            return found  # the ledger lets go of its quota when nothing of it runs any more, without a write
        charged: Charge = {cell: amount for cell, amount in engine.charged(meta["uid"]).items() if amount}
        reserves = shown in (Phase.RESERVED, Phase.ADMITTED) and not is_released(document)
        due: Charge = _granted(document) if reserves else {}
        known = core.knowledge.workload_of(meta["uid"])
        if engine.state.entries[meta["uid"]].ghost and known is not None and unrecorded.runs(core, known):
            due = charged  # a cluster says that it runs, and no record does: what it had nobody can tell
        if known is not None and core.knowledge.work_of(known).gathered is not None and not _is_placed(attempt):
            return [
                *found,
                *_held_otherwise(core, document),
            ]  # what its pods give back is written once, or with its end
        unheard = attempt is not None and attempt.counts is None
        if _is_covered_by_growth(core, meta["uid"], charged, due):
            return [*found, *_held_otherwise(core, document)]
        if charged != due and not (unheard and charged == _granted(document, reclaimed=False)):
            found.append(f"Workload {meta['name']} is shown with {due}; the engine charges {charged}")
        found += _held_otherwise(core, document)
        return [*found, *_waits_for_another_reason(core, document)] if shown is Phase.PENDING else found

    def _all(self, resource: Resource) -> list[Read]:
        at = self._home.restores, self._home.store.version
        if at != self._listed_at:
            self._listed_at = at
            self._listed.clear()
        if resource not in self._listed:
            there = self._home.store.all((resource.group, resource.plural))
            self._listed[resource] = [self._reading(resource, stored) for stored in sorted(there, key=_name)]
        return self._listed[resource]

    def _reading(self, resource: Resource, stored: Stored) -> Read:
        known = self._read.get(stored.uid)
        if known is None or known.stored is not stored:
            known = self._read[stored.uid] = Read.of(resource, stored)
        return known


def idle_leader(managers: list[SimManager]) -> SimManager | None:
    """Return the manager that leads, if it has handled all that came and has nothing due at this moment."""
    for manager in managers:
        machine, process = manager.machine, manager.process
        leads = manager.elector.leads() and machine.core.leads(process.now) and machine.core.rebuilt
        if leads and not manager.port.down and process.is_idle:
            return manager
    return None


def _name(stored: Stored) -> tuple[str, str]:
    return stored.namespace, stored.name


def _waits_for_another_reason(core: Core, document: Doc) -> list[str]:
    """Compare why a Workload waits with what the manager keeps it out for, and only where it does not with the engine.

    What keeps it out is asked before the engine is, whose last word may be of a moment before; what no longer does is
    not shown, whatever the engine has to say. What it has not been asked about since is in its queue, like others.
    """
    name, uid = document["metadata"]["name"], document["metadata"]["uid"]
    known, said, is_out = core.knowledge.workload_of(uid), _said(document), uid in core.ledger.blocked
    if known is None:
        return []
    kept = _kept_out(core, known)
    if said == kept:
        return []
    if is_out and kept is not None:
        return [f"Workload {name} says {said}; the manager {kept}"]
    if not is_out and said[0] in KEPT_OUT and not _has_yet_to_say(core, uid):
        return [f"Workload {name} says {said}; nothing keeps it out"]
    if core.ledger.engine.is_due(core.now):
        return []  # all is halted: what it has to say it is asked with the first decision after that
    want, why = core.ledger.engine.state.entries[uid].want, (said[0], _GROWS.sub("", said[1]))
    return [f"Workload {name} says {said}; the engine {want}"] if want is not None and why != want else []


def _held_otherwise(core: Core, document: Doc) -> list[str]:
    """Compare what a Workload says of a hold, beside a reservation, with what holds it."""
    known, name = core.knowledge.workload_of(document["metadata"]["uid"]), document["metadata"]["name"]
    if known is None:
        return []
    _, rec = core.knowledge.readings[ObjectKey(known.metadata.namespace, known.metadata.name)]
    want = held.why(core, rec)
    said = _told(document, "gatelift.dev/Held")
    return [f"Workload {name} says that it is held for {said}; the manager {want}"] if said != want else []


def _cordoned_otherwise(core: Core, document: Doc) -> list[str]:
    """Compare why a cluster says that it gets no new work with what the manager has, once nothing is to be written."""
    name = document["metadata"]["name"]
    links = core.links
    link = links._links.get(name) if isinstance(links, Links) else None
    want = held.of_cluster(core, name)
    if link is None or want is None or name in core.caution.to_tell or name in core.placements.changed:
        return []
    record = link.record
    if link.object is None or link.object.metadata.resource_version != document["metadata"]["resourceVersion"]:
        return []
    if record.write_id is not None or record.held or record.next_write() is not None:
        return []
    said = _told(document, "NoNewWork") or held.NOTHING
    return [f"WorkerCluster {name} says {said}; the manager {want}"] if said != want else []


def _is_covered_by_growth(core: Core, uid: str, charged: Charge, due: Charge) -> bool:
    """Say whether a slice that is granted in place of this record, and is not written yet, is charged for all of both.

    A chain is charged once, and from the decision on for the slice that is to be its record: for no less than the
    record is. For how much more stands nowhere by then: its user may have edited it since it was granted.
    """
    chain, engine = core.knowledge.slices.of(uid), core.ledger.engine
    if chain is None or chain.record is None or chain.target is None or chain.record.uid != uid or charged:
        return False
    if engine.phase(chain.target.uid) is not Phase.ASSUMED:
        return False
    whole = engine.charged(chain.target.uid)
    return all(whole.get(cell, 0) >= amount for cell, amount in due.items())


def _told(document: Doc, type_: str) -> tuple[str, str] | None:
    """Return reason and message of a condition that is True."""
    conditions = document.get("status", {}).get("conditions", [])
    found = [one for one in conditions if one["type"] == type_ and one["status"] == "True"]
    return (found[0]["reason"], found[0]["message"]) if found else None


def _is_placed(attempt: Attempt | None) -> bool:
    return attempt is None or attempt.state in {AttemptState.PLACED, AttemptState.RUNNING}


def _has_yet_to_say(core: Core, uid: str) -> bool:
    """Say whether the engine has yet to look, as where all is halted, or says within a second that it has not."""
    engine = core.ledger.engine
    return engine.is_due(core.now) or any(each == uid for _, each in engine.state.unevaluated)


def _kept_out(core: Core, known: Workload) -> tuple[str, str] | None:
    if core.caution.holds(known.metadata.uid):
        _, rec = core.knowledge.readings[ObjectKey(known.metadata.namespace, known.metadata.name)]
        return "EpochAhead", truncated(reports.why_held(core, rec.uid, rec.highest_epoch))
    why = kept_out.why(core, known)
    return (why[0], truncated(why[1])) if why is not None else None


def _phase(document: Doc) -> Phase:
    if holds(document, "Finished"):
        return Phase.FINISHED
    if not holds(document, "QuotaReserved"):
        return Phase.PENDING
    return Phase.ADMITTED if holds(document, "Admitted") else Phase.RESERVED


def _said(document: Doc) -> tuple[str, str]:
    """Return reason and message of QuotaReserved."""
    found = [one for one in document.get("status", {}).get("conditions", []) if one["type"] == "QuotaReserved"]
    return (found[0]["reason"], found[0]["message"]) if found else ("", "")


def _granted(document: Doc, *, reclaimed: bool = True) -> Charge:
    """Return the milli-CPU that a Workload shows as its own, without the pods that it shows as reclaimable.

    Not `reclaimed`: with them. Charged so is what a person asks less of since: what was found of it is not believed
    until its cluster was heard, which has it written anew (HD-256).
    """
    status = document["status"]
    due: Charge = {}
    asked = {one["name"]: one.get("count", 1) for one in document["spec"]["podSets"]}
    over = {one["name"]: one["count"] for one in status.get("reclaimablePods", []) if reclaimed}
    for one in status["admission"]["podSetAssignments"]:
        count = one.get("count", asked[one["name"]])
        left = count - max(0, over.get(one["name"], 0) - max(0, asked[one["name"]] - count))
        for name, amount in one.get("resourceUsage", {}).items():
            cell = one["flavors"][name], name
            total = due.get(cell, 0) + milli(amount) // max(1, count) * left
            due |= {cell: total} if total else {}
    return due
