"""One cluster of a simulation: the sandbox's pure store, stand-in controllers and stand-in kubelet, on simulated time.

Writes land at once when `carry_out` is called; whoever calls it has let the write's way pass before. Controllers and
kubelet follow a little after each write.
"""

from __future__ import annotations

import copy
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from gatelift.cli.manifests import InstallPart, load_manifests
from gatelift_kube.deciding.errors import from_status, write_error
from gatelift_kube.deciding.writes import (
    ApiWrite,
    Create,
    KubeObject,
    ObjectGone,
    ObjectSeen,
    Patch,
    PatchKind,
    Synced,
    WriteDone,
    WriteFailed,
)
from gatelift_kube.decoding import decoding
from gatelift_kube.values.resources import JOB, LEASE, NAMESPACE, NODE, POD, SERVICE_ACCOUNT, ObjectRef, Resource
from gatelift_sandbox.behaviour import LOST as NODE_LOST
from gatelift_sandbox.controllers.collecting import Collector
from gatelift_sandbox.controllers.jobs import Jobs
from gatelift_sandbox.controllers.loop import attach, settle
from gatelift_sandbox.controllers.namespaces import Namespaces
from gatelift_sandbox.controllers.pod_collecting import PodCollector
from gatelift_sandbox.controllers.scheduling import Scheduler
from gatelift_sandbox.embedded import builtin, crds
from gatelift_sandbox.embedded.drafts import Deletion
from gatelift_sandbox.embedded.failures import RequestRefusedError
from gatelift_sandbox.embedded.kinds import ServedKind
from gatelift_sandbox.embedded.store import Copy, Store
from gatelift_sandbox.embedded.watches import StoreChange, Stored
from gatelift_sandbox.kubelet.documents import NodeSettings
from gatelift_sandbox.kubelet.machine import AppendRecord, Command, Event, KubeletMachine, TimePassed
from gatelift_sandbox.records import RunRecord
from support.manager.marks import bears_a_mark
from support.sim.clock import WALL, Timeline
from support.sim.faults import Faults

TEAM = "team"
SYSTEM = "gatelift-system"
ELSEWHERE = "elsewhere"
"""Where somebody installs an agent once more."""
ACCEPT = "gatelift.dev/accept"
Doc = dict[str, Any]


class Names:
    """UIDs and name endings, counted per cluster."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._count = 0

    def uid(self) -> str:
        self._count += 1
        return f"{self._cluster}-{self._count}"

    def suffix(self) -> str:
        self._count += 1
        return f"x{self._count:04d}"


@functools.cache
def management_kinds() -> tuple[ServedKind, ...]:
    """Return what the management cluster serves: ours and Kueue's kinds besides the built-in ones."""
    custom = [kind for each in load_manifests(InstallPart.CRDS) for kind in crds.kinds_of(each)]
    return (*builtin.kinds(), *custom)


class SimCluster:
    """A cluster. `started` and `stopped` of a pod's containers go to `noted`."""

    def __init__(
        self,
        timeline: Timeline,
        faults: Faults,
        name: str,
        *,
        management: bool = False,
        known_as: str = "",
        noted: Callable[[str, RunRecord], None],
    ) -> None:
        self.timeline = timeline
        self.faults = faults
        self.name = name
        self.management = management
        self.known_as = known_as or name
        """Under which name the manager knows it; another cluster may have had that name before."""
        self.manager_file = ""
        """What the manager's configuration file says."""
        self.ended = False
        self.restoring = False
        self.restores = 0
        """How often its etcd was put back to a copy: what was under way to its API server then has died with it."""
        self.unheard: Counter[str] = Counter()
        """How many writes of an object nobody has answered, by the object's name."""
        self.store = Store(Names(name), management_kinds() if management else None)
        self.by_hand = False
        """Whether the write of this moment is a person's, not one of a process of ours, a controller or kubelet."""
        self.late = False
        """Whether who asked for the write of this moment has ended since, or leads no more."""
        self._noted = noted
        self._typed: dict[bytes, KubeObject] = {}
        self._collector = Collector()
        self._controllers = [
            self._collector,
            Jobs(),
            PodCollector(),
            Scheduler(),
            *([] if management else [Namespaces("")]),
        ]
        node = NodeSettings(name=f"{name}-node", capacity={"cpu": "64", "memory": "64Gi", "pods": "500"})
        self._kubelet = KubeletMachine(name, [node], now=timeline.now, wall_offset=WALL)
        self._news: list[Event] = []
        self._step_wanted = False
        self._timer_at = float("inf")
        attach(self.store, self._controllers)
        self.store.listen(self._changed)
        for namespace in (TEAM, SYSTEM, ELSEWHERE, "kube-system"):
            labels = {ACCEPT: "true"} if namespace == TEAM else {}
            self.create(NAMESPACE, {"metadata": {"name": namespace, "labels": labels}})
            self.create(SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": namespace}})
        self._feed([TimePassed(), Synced(POD)])

    # --- reading ------------------------------------------------------------------------------------------------

    def typed(self, resource: Resource, stored: Stored) -> KubeObject:
        """Return an object as the cores see it."""
        found = self._typed.get(stored.raw)  # not by its version: a watch tells what was before with that of what came
        if found is None:
            found = self._typed[stored.raw] = decoding.read_object(resource, stored.raw)
        return found

    def find(self, ref: ObjectRef) -> Stored | None:
        return self.store.find((ref.resource.group, ref.resource.plural), ref.key.namespace, ref.key.name)

    def look(self, resource: Resource, name: str, namespace: str = TEAM) -> Doc | None:
        return self.store.look((resource.group, resource.plural), namespace if resource.namespaced else "", name)

    def all(self, resource: Resource) -> list[Doc]:
        """Return all objects of a kind by namespace and name; the caller owns them."""
        return [each.document() for each in self._sorted(resource)]

    def views(self, resource: Resource) -> list[Doc]:
        """Return the same for who only reads: nobody may change any of it."""
        return [each.view() for each in self._sorted(resource)]

    def _sorted(self, resource: Resource) -> list[Stored]:
        found = self.store.all((resource.group, resource.plural))
        return sorted(found, key=lambda one: (one.namespace, one.name))

    # --- writing ------------------------------------------------------------------------------------------------

    @contextmanager
    def _hand(self) -> Iterator[None]:
        self.by_hand = True
        try:
            yield
        finally:
            self.by_hand = False

    def create(self, resource: Resource, document: Doc) -> Stored:
        document = copy.deepcopy({"apiVersion": resource.api_version, "kind": resource.kind, **document})
        namespace = document["metadata"].get("namespace", "")
        with self._hand():
            return self.store.create(self.store.kinds.of(resource), namespace, document, self.timeline.wall)

    def change(
        self, resource: Resource, name: str, patch: Doc, subresource: str = "", namespace: str = TEAM
    ) -> Stored | None:
        """Change an object as somebody else would; None where it is gone or refused."""
        kind, where = self.store.kinds.of(resource), namespace if resource.namespaced else ""
        media = "application/merge-patch+json"
        body = msgspec.json.encode(patch)
        try:
            with self._hand():
                return self.store.patch(kind, where, name, body, media, self.timeline.wall, subresource=subresource)
        except RequestRefusedError:
            return None

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        propagation: str = "Background",
        namespace: str = TEAM,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete an object as somebody else would."""
        deletion = Deletion(propagation=propagation, grace_seconds=grace_seconds)
        where = namespace if resource.namespaced else ""
        try:
            with self._hand():
                self.store.delete(self.store.kinds.of(resource), where, name, deletion, self.timeline.wall)
        except RequestRefusedError as error:
            if error.code != 404:
                raise

    def carry_out(self, command: ApiWrite) -> WriteDone | WriteFailed:
        """Let a write of a process of ours land now and return its answer."""
        found = self.find(command.ref)
        answer = self._answered(command)
        if found is not None and isinstance(answer, WriteDone):  # of a version that is gone no policy hears
            self._holds_to_policies(command, found)
        return answer

    def _answered(self, command: ApiWrite) -> WriteDone | WriteFailed:
        try:
            stored = self._write(command)
        except RequestRefusedError as error:
            failure = from_status(error.code, msgspec.json.encode(error.status()))
            text = f"{command.ref}: {error.message}"
            return WriteFailed(write_id=command.write_id, error=write_error(failure), message=text)
        if isinstance(command, Create) and command.dry_run and stored is not None:  # its version will be another's
            asked_for = decoding.read_object(command.ref.resource, stored.raw)
            return WriteDone(write_id=command.write_id, object=asked_for, raw=stored.raw)
        found = self.typed(command.ref.resource, stored) if stored is not None else None
        return WriteDone(write_id=command.write_id, object=found, raw=stored.raw if stored is not None else b"")

    def _holds_to_policies(self, command: ApiWrite, found: Stored) -> None:
        """Raise AssertionError for a write that the policies of the manager refuse: none needs one (IS-54)."""
        if not self.management or isinstance(command, Create) or command.ref.resource not in (POD, JOB):
            return
        if not bears_a_mark(found.view()):
            raise AssertionError(f"{command} changes what bears no mark of ours: {found.raw!r}")

    def _write(self, command: ApiWrite) -> Stored | None:
        kind, wall = self.store.kinds.of(command.ref.resource), self.timeline.wall
        namespace, name = command.ref.key.namespace, command.ref.key.name
        if isinstance(command, Create):
            body = msgspec.json.decode(command.body)
            return self.store.create(kind, namespace, body, wall, dry_run=command.dry_run)
        if isinstance(command, Patch) and command.kind is PatchKind.REPLACE:
            new = msgspec.json.decode(command.body)
            return self.store.update(kind, namespace, name, new, wall, subresource=command.subresource)
        if isinstance(command, Patch):
            return self.store.patch(
                kind, namespace, name, command.body, command.kind.value, wall, subresource=command.subresource
            )
        deletion = Deletion(
            grace_seconds=command.grace_seconds,
            uid=command.uid,
            version=command.resource_version,
            propagation=command.propagation,
        )
        deleted = self.store.delete(kind, namespace, name, deletion, wall)
        return None if deleted.gone else deleted.stored

    def restore(self, copy: Copy) -> None:
        """Restore etcd from a copy: all watches end, versions are given again, and what is under way never lands.

        Which nodes are cut off is the network's state, though an annotation says it: it stays as it is.
        """
        self._typed.clear()
        lost = self.lost_nodes
        self.restores += 1
        self.restoring = True
        self._collector.begin_anew()  # all that runs beside an API server is started anew with it
        with self._hand():
            self.store.restore(copy)
        for name in sorted(self.lost_nodes ^ lost):
            self.cut_node(name, lost=name in lost)
        self.restoring = False
        self._typed.clear()
        self._relist()

    @property
    def lost_nodes(self) -> frozenset[str]:
        """Names of the nodes that are cut off the API server."""
        nodes = (each["metadata"] for each in self.views(NODE))
        return frozenset(each["name"] for each in nodes if each.get("annotations", {}).get(NODE_LOST) == "true")

    def cut_node(self, name: str, *, lost: bool) -> None:
        """Cut a node off the API server, or mend that; what runs there runs on."""
        self.change(NODE, name, {"metadata": {"annotations": {NODE_LOST: "true" if lost else None}}})

    def _relist(self) -> None:
        """Let the kubelet list anew: what it had not heard yet of the time that was lost is no news any more."""
        there = {stored.uid: stored for stored in self.store.all((POD.group, POD.plural))}
        gone = [each for each in self._news if isinstance(each, ObjectGone) and each.object.metadata.uid not in there]
        self._kubelet.restored(self.timeline.now)
        found = [ObjectSeen(POD, self.typed(POD, each), each.raw) for each in there.values()]
        nodes = [each for each in self._news if isinstance(each, ObjectSeen) and each.resource == NODE]
        self._news = [*gone, *found, *nodes]

    def end(self) -> None:
        """End with all machines: nothing moves any more."""
        self.ended = True

    # --- controllers and kubelet ----------------------------------------------------------------------------------

    def _changed(self, storage: tuple[str, str], change: StoreChange) -> None:
        if storage == (POD.group, POD.plural):
            found = self.typed(POD, change.after)
            self._news.append(ObjectGone(POD, found) if change.removed else ObjectSeen(POD, found, change.after.raw))
        elif storage == (NODE.group, NODE.plural) and not change.removed:
            self._news.append(ObjectSeen(NODE, self.typed(NODE, change.after), change.after.raw))
        if not self._step_wanted:
            self._step_wanted = True
            slow = self.faults.strikes("pod_slow", self.timeline)
            self.timeline.after(self.timeline.between(0.001, 3.0 if slow else 0.05), self._step)

    def _step(self) -> None:
        self._step_wanted = False
        if self.ended:
            return
        settle(self.store, self._controllers, self.timeline.wall)
        news, self._news = self._news, []
        self._feed(news)
        self._timers()

    def _feed(self, news: list[Event]) -> None:
        waiting: list[Command] = []
        for event in news:
            waiting += self._kubelet.handle(event, self.timeline.now)
        while waiting:
            command = waiting.pop(0)
            if isinstance(command, AppendRecord):
                self._noted(self.name, command.record)
                continue
            if command.ref.resource == LEASE:
                outcome: WriteDone | WriteFailed = WriteDone(write_id=command.write_id, object=None)
            else:
                outcome = self._answered(command)
            waiting += self._kubelet.handle(outcome, self.timeline.now)

    def _timers(self) -> None:
        deadlines = [each.next_deadline() for each in self._controllers]
        due = [when - WALL for when in deadlines if when is not None]
        when = min([*due, self._kubelet.next_deadline()])
        if when < self._timer_at or self._timer_at <= self.timeline.now:
            self._timer_at = when
            self.timeline.after(when - self.timeline.now, self._time_passed)

    def _time_passed(self) -> None:
        if self.timeline.now < self._timer_at:
            return
        self._timer_at = float("inf")
        self._news.append(TimePassed())
        self._step()


__all__ = ["ELSEWHERE", "NODE", "SYSTEM", "TEAM", "Doc", "SimCluster"]
