"""One hostile tenant and one hostile worker beside honest ones, on the manager's core.

The tenant's objects and what his worker says are changed case by case; the honest live the same history twice, with the
cases and without them. Nothing leaves `handle`, the books of the honest end alike, and what was set aside is named.
"""

from __future__ import annotations

import json
import random
import typing
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gatelift.core.api import events
from gatelift.core.api.agenda import Key
from gatelift.core.rules import invariants
from gatelift.core.rules.invariants import InvariantBroken
from gatelift_kinds.shared import markers
from gatelift_kube.deciding.contained import Contained
from gatelift_kube.deciding.errors import UndecodableError
from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.decoding.decoding import struct_of
from gatelift_kube.values.resources import ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CertificateRequest, Report
from support.fuzz import fuzzing
from support.manager.api import Api, ApiError, Doc, seen
from support.manager.builders import a_job, a_pod, kueue_object
from support.manager.world import RUNNING, World

TENANT = "bad"
"""Begins the names of all that is the tenant's; `b` is his worker."""
NAMESPACE = "team"
STEPS_TOLD = 12
CHECKED = 20
"""Cases between two lives of honest work from its beginning to its end."""
REPORTS = tuple(each for each in typing.get_args(Report) if each is not CertificateRequest)


class FuzzedApi(Api):
    """Refuses what it cannot make sense of, as a real one would have before."""

    def carry_out(self, command: Create | Patch | Delete) -> Doc | None:
        try:
            return super().carry_out(command)
        except ApiError:
            raise
        except Exception as error:  # the fake one's own parsing, not the machine's
            raise ApiError(WriteError.INVALID, str(error)) from error


class FuzzedWorld(World):
    """What a hostile worker says may start its own work twice; honest work may not."""

    def started(self, key: PlacementKey, cluster: str) -> None:
        if cluster == "a":
            super().started(key, cluster)

    def give(self, event: events.Event) -> None:
        """Hand the machine an event; nothing may leave it. What is no longer true of the tenant's work is his own."""
        commands = self.machine.handle(event, self.now)
        try:
            invariants.check(self.machine.core, self.now)
        except InvariantBroken as broken:
            others = [each for each in str(broken).split("; ") if not self.is_tenants(each.split("@", maxsplit=1)[0])]
            if others:
                raise
        self.history = self.history[-STEPS_TOLD:] + commands
        for command in commands:
            self._carry_out(command)

    def _check_shown(self) -> None:
        """Leave it to the books, which hold what the queue of the honest shows."""

    def is_tenants(self, uid: str) -> bool:
        """Say whether a Workload is the tenant's."""
        known = self.machine.core.knowledge.workloads.values()
        return any(each.metadata.uid == uid and is_tenants(each.metadata.name) for each in known)


def is_tenants(name: str) -> bool:
    """Say whether what has a name is the tenant's: by its beginning, or since he has drawn it for a group of his."""
    return TENANT in name or name in fuzzing.TEXTS


@dataclass
class Lived:
    """What became of the cases of one seed. `aside`: what was set aside, by what raised."""

    cases: int = 0
    refused: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    books: dict[str, Any] = field(default_factory=dict)


def live(seed: int, cases: int, keys: tuple[str, ...], *, hostile: bool = True) -> Lived:
    """Live through one history; without `hostile` nothing is done, and the same things happen to the honest."""
    surfaces, Contained.surfaces = Contained.surfaces, False
    try:
        return _Tenancy(seed, keys).live(cases, hostile=hostile)
    finally:
        Contained.surfaces = surfaces


class _Tenancy:
    def __init__(self, seed: int, keys: tuple[str, ...]) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - draws cases, guards nothing
        self.keys = keys
        self.world = FuzzedWorld(api=FuzzedApi())
        self.lived = Lived()
        self.last = ""
        for document in _setting():
            self.world.api.apply(document)
        self.world.settle()
        for name in ("a", "b", "local"):
            self.world.connect(name)
        self.world.advance(3.0)
        self.round = 0

    def live(self, cases: int, *, hostile: bool) -> Lived:
        self._honest_begins()
        for number in range(cases):
            if number % 50 == 0:
                self._tenant_begins()
            if hostile:
                self.lived.cases += 1
                self._case()
            self.world.advance(0.2)
            self._name_culprits()
            if number % CHECKED == CHECKED - 1:
                self._honest_ends()
                self._honest_begins()
            if number % 100 == 99:
                self.world.restart()
                self.world.advance(3.0)
                self._name_culprits()
        self._honest_ends()
        self.lived.books = self._books()
        return self.lived

    # --- the honest -----------------------------------------------------------------------------------------------

    def _honest_begins(self) -> None:
        self.round += 1
        self.world.api.apply(a_pod(f"good-{self.round}").asking(cpu="1").document())
        self.world.api.apply(a_job(f"good-job-{self.round}", parallelism=2))
        self.world.advance(2.0)

    def _honest_ends(self) -> None:
        agent = self.world.agents["a"]
        ends: dict[str, Doc] = {"Pod": {"phase": "Succeeded"}, "Job": {"succeeded": 2, "conditions": [_complete()]}}
        for key, held in list(agent.placements.items()):
            if held.commit is not None and held.state == "Running":
                agent.show(key, RUNNING if held.commit.kind == "Pod" else {"active": 2, "ready": 2})
                self.world.advance(0.5)
                agent.finish(key, ends[held.commit.kind])
        self.world.advance(3.0)

    def _books(self) -> dict[str, Any]:
        """Return what the honest have in the end: how each ended, what is charged, and what their queue shows."""
        books: dict[str, Any] = {}
        for each in self.world.all("Workload"):
            name = each["metadata"]["name"]
            if not name.startswith(("pod-good", "job-good")):
                continue
            held = self.world.machine.core.ledger.usage(each["metadata"]["uid"])
            said = {one["type"]: (one["status"], one["reason"]) for one in each.get("status", {}).get("conditions", [])}
            books[name.rsplit("-", 1)[0]] = (said, held)
        queue = self.world.find("ClusterQueue", "shared").get("status", {})
        books["queue"] = {name: queue.get(name) for name in ("pendingWorkloads", "reservingWorkloads", "flavorsUsage")}
        return books

    # --- the tenant -----------------------------------------------------------------------------------------------

    def _tenant_begins(self) -> None:
        """Let the tenant delete what he has and begin anew: a pod, Jobs, and a Workload of his own."""
        for ref in [ref for ref in self.world.api.objects if _is_his(ref) and ref.resource.kind in _WORK]:
            self.world.api.delete(ref)
        self.world.advance(1.0)
        for ref in [ref for ref in self.world.api.objects if _is_his(ref) and ref.resource.kind in _WORK]:
            document = self.world.api.objects[ref]
            document["metadata"]["finalizers"] = []
            self.world.api._store(ref, document)
        self.world.advance(1.0)
        for document in _tenants_work():
            self.world.api.apply(document)
        self.world.advance(1.0)

    def _case(self) -> None:
        if self.rng.random() < 0.3 and self._says():
            return
        self._edits()

    def _says(self) -> bool:
        agent = self.world.agents["b"]
        keys = (*(tuple(agent.placements) or (PlacementKey("no-such", 1),)), PlacementKey("nobody", 3))
        known = fuzzing.Known(keys, ("PodGroup", *self._members()))
        made = fuzzing.message(self.rng.choice(REPORTS), self.rng, known)
        if made is None:
            self.lived.refused += 1
            return False
        self.last = f"says {made}"
        agent.say(made)
        return True

    def _members(self) -> list[str]:
        """Return names and UIDs of the pods of the tenant's groups, by which reports name them."""
        pods = sorted(ref for ref in self.world.api.objects if ref.resource.kind == "Pod" and _MEMBER in ref.key.name)
        return [word for ref in pods for word in (ref.key.name, self.world.api.objects[ref]["metadata"]["uid"])]

    def _edits(self) -> None:
        refs = sorted(ref for ref in self.world.api.objects if _is_his(ref))
        ref = self.rng.choice(refs)
        document = self.world.api.objects[ref]
        changed = fuzzing.mutated(document, struct_of(ref.resource), self.rng, self.keys)
        try:
            seen(ref, changed)
        except (UndecodableError, UnicodeError):
            self.lived.refused += 1
            return
        self.last = f"{ref}: {changed}"
        self.world.api._store(ref, changed)

    # --- who is named ---------------------------------------------------------------------------------------------

    def _name_culprits(self) -> None:
        """Check that whatever was set aside is the tenant's, and count it by what raised."""
        for key in _aside(self.world.machine.core.contained):
            if not self.names_tenant(key):
                raise AssertionError(f"set aside is {key}, which is not the tenant's; last case: {self.last[:2000]}")
        for note in self.world.notes:
            where = dict(note.fields).get("traceback", "")
            if where:
                self.lived.aside[where.strip()[-400:]] += 1
        self.world.notes.clear()
        if self.world.stepped_down:
            raise AssertionError(f"the leader stepped down: {self.world.stepped_down}; last: {self.last[:2000]}")

    def names_tenant(self, key: Any) -> bool:
        """Say whether what was set aside is the tenant's, or his worker's."""
        if isinstance(key, Key):
            return is_tenants(key.object.name)
        return key in {"b", "local"} or (isinstance(key, ObjectRef) and is_tenants(key.key.name))


def _aside(contained: Contained[Any]) -> Iterator[Any]:
    yield from contained.resting


_MEMBER = "-m"
_DECLARED: list[Doc] = [
    {"name": "driver", "count": 1},
    {"name": "workers", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}},
]
_WORK = frozenset({"Pod", "Job", "Workload"})


def _is_his(ref: ObjectRef) -> bool:
    return is_tenants(ref.key.name)


def _complete() -> Doc:
    return {"type": "Complete", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": _TIME}


_TIME = "2026-11-21T00:00:00Z"


def _tenants_work() -> list[Doc]:
    pod, job = a_pod("bad").asking(cpu="1").document(), a_job("bad-job", parallelism=2)
    home = a_job("bad-home", parallelism=1)
    home["spec"].pop("managedBy")
    for document, queue in ((pod, "bad-queue"), (job, "bad-queue"), (home, "bad-stays")):
        document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"queueName": "bad-stays", "active": True, "podSets": [{"name": "main", "count": 1, "template": template}]}
    bare = kueue_object("Workload", "bad-bare", spec, namespace=NAMESPACE)
    return [pod, job, home, bare, *_groups()]


def _groups() -> list[Doc]:
    """Return the pods of three groups: for a worker, for home, and one whose driver declares it."""
    made: list[Doc] = []
    for group, queue, notes in (
        ("bad-crew", "bad-queue", {markers.POD_GROUP_TOTAL_COUNT: "2"}),
        ("bad-homely", "bad-stays", {markers.POD_GROUP_TOTAL_COUNT: "2", markers.POD_GROUP_FAST_ADMISSION: "true"}),
        ("bad-driven", "bad-queue", {markers.POD_GROUP_SETS: json.dumps(_DECLARED)}),
    ):
        for number in range(2):
            document = a_pod(f"{group}{_MEMBER}{number}").asking(cpu="250m").document()
            document["metadata"]["labels"] |= {markers.QUEUE_NAME: queue, markers.POD_GROUP_NAME: group}
            document["metadata"]["annotations"] = {**notes}
            made.append(document)
    made[-1]["metadata"]["annotations"] = {}
    made[-1]["metadata"]["labels"][markers.POD_GROUP_ROLE] = "workers"
    return made


def _setting() -> list[Doc]:
    """Return two queues that share nothing: the honest ones' on worker a, the tenant's on b and at home."""
    objects: list[Doc] = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}]
    for prefix, cluster, flavor in (("", "a", "default"), ("bad-", "b", "bad-flavor")):
        check, config = f"{prefix}dispatch", f"{prefix}all"
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": config}
        spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        objects += [
            kueue_object("ResourceFlavor", flavor, {"nodeLabels": {"disk": "7"}}),
            kueue_object("AdmissionCheck", check, spec),
            kueue_object("MultiKueueConfig", config, {"clusters": [cluster]}),
            _queue(f"{prefix}shared", flavor, check),
        ]
    objects += [
        _queue("bad-home", "bad-flavor", ""),
        kueue_object("Cohort", "bad-cohort", {"parentName": ""}),
        kueue_object("LocalQueue", "main", {"clusterQueue": "shared"}, namespace=NAMESPACE),
        kueue_object("LocalQueue", "bad-queue", {"clusterQueue": "bad-shared"}, namespace=NAMESPACE),
        kueue_object("LocalQueue", "bad-stays", {"clusterQueue": "bad-home"}, namespace=NAMESPACE),
    ]
    return objects


def _queue(name: str, flavor: str, check: str) -> Doc:
    flavors = [{"name": flavor, "resources": [{"name": "cpu", "nominalQuota": "4"}]}]
    spec: Doc = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}]}
    if check:
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": check}]}
    return kueue_object("ClusterQueue", name, spec)
