"""The management cluster's API for the manager: what is watched, how writes and reads are carried out, who runs beside.

Everything that comes in goes to one `post`; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from gatelift.core.api.commands import ListOutOfSight, Read, ReadAll
from gatelift.core.api.events import Event, OutOfSightListed, ReadAllDone, ReadDone, ReadFailed, WentBack
from gatelift.core.works import beginning
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kinds.shared import markers
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.events import EventRecorder
from gatelift_kube.api.executor import Executor, WritesFullError
from gatelift_kube.api.reads import Reads
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.budget import Budget, Traffic
from gatelift_kube.deciding.errors import KubeError, NotFoundError
from gatelift_kube.deciding.writes import (
    ApiEvent,
    ApiWrite,
    EmitEvent,
    KubeObject,
    ObjectGone,
    ObjectSeen,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.decoding.decoding import struct_of
from gatelift_kube.objects.core import Pod
from gatelift_kube.process.repetitions import Repetitions, watch_problems
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import NAMESPACE, POD, RESOURCE_FLAVOR, WORKLOAD, ObjectKey, ObjectRef, Resource

FOLLOWED = frozenset({NAMESPACE, RESOURCE_FLAVOR})
"""What the agent of `local` needs as well, besides users' objects: it follows these watches and keeps the same."""

NOT_GATED = (
    "It names a queue and has no gate, so it runs without quota: the webhooks were not asked, as their configuration "
    "was not there, or leaves its namespace out"
)

Asked = Read | ReadAll | ListOutOfSight


def watches(kinds: Registry) -> tuple[tuple[Resource, Selection], ...]:
    """Return the watches: one per resource per process. Beside them those of `unmarked`."""
    seen = {each: Selection(labels=kinds.sight(each).labels) for each in kinds.travelling}
    return tuple((each, seen.get(each, Selection())) for each in beginning.watched(kinds))


def unmarked(kinds: Registry) -> tuple[tuple[Resource, Selection], ...]:
    """Return what may have lost the label of its watch by somebody's hand, also while nobody led."""
    found = ((each, kinds.sight(each).unmarked) for each in kinds.travelling)
    return tuple((each, Selection(labels=labels)) for each, labels in found if labels)


def lost(kinds: Registry) -> tuple[tuple[Resource, Selection], ...]:
    """Return what neither shows: of those few that were taken over are told to who begins to lead."""
    found = ((each, kinds.sight(each)) for each in kinds.travelling)
    return tuple((each, Selection(labels=one.lost, fields=one.lost_fields)) for each, one in found if one.lost)


def out_of_sight(kinds: Registry, resource: Resource, obj: KubeObject) -> tuple[ObjectRef, str] | None:
    """Return where an object of that list is, and its UID, if it has our finalizer, which no selector says; else None.

    A pod that a node has is its kubelet's: of that a watch was told.
    """
    kind = kinds.of(resource, obj)
    bound = isinstance(obj, Pod) and bool(obj.spec.node_name)
    if bound or kind is None or not kind.out_of_sight(obj) or not kind.release_step(obj):
        return None
    return ObjectRef(resource, ObjectKey(obj.metadata.namespace, obj.metadata.name)), obj.metadata.uid


def is_told_of_unmarked(kinds: Registry, event: Event) -> bool:
    """Say whether the core hears what a watch of what has lost its label says: only of what was taken over.

    No selector says that. What goes from there has its label back, unless it was being deleted. Nothing is concluded
    from its lists, so nobody waits for them.
    """
    if isinstance(event, ObjectSeen):
        kind = kinds.of(event.resource, event.object)
        return kind is not None and kind.managed(event.object)
    return isinstance(event, ObjectGone) and event.object.metadata.deletion_timestamp is not None


def ungated(event: ApiEvent) -> EmitEvent | None:
    """Return what a pod is told that names a queue and that nobody has asked the webhooks about; None for others.

    Only before a node has it, so that it is said once. What somebody makes pods of answers for them.
    """
    if not (isinstance(event, ObjectSeen) and isinstance(event.object, Pod)):
        return None
    pod, meta = event.object, event.object.metadata
    told = pod.spec.node_name or pod.spec.scheduling_gates or meta.owner_references or meta.deletion_timestamp
    if told or pod.status.phase not in {"", "Pending"} or markers.MANAGED in meta.finalizers:
        return None
    ref = ObjectRef(POD, ObjectKey(meta.namespace, meta.name))
    return EmitEvent(ref=ref, uid=meta.uid, warning=True, reason="NotGated", message=NOT_GATED)


def namespace_of(command: Asked) -> str:
    """Return in which namespace something is read, "" where in none or in all."""
    match command:
        case Read():
            return command.ref.key.namespace
        case ReadAll():
            return command.namespace
        case ListOutOfSight():
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterNames:
    """Names under which this process writes."""

    controller: str
    instance: str


class ManagementApi:
    """Reflectors, executor, event recorder and reads of the management cluster."""

    def __init__(
        self,
        client: Client,
        post: Callable[[Event], None],
        limits: Budget,
        identity: WriterNames,
        leads: Callable[[], bool],
        kinds: Registry = SERVED,
    ) -> None:
        """`leads` says whether this process may tell people anything; the core decides whether it may write at all."""
        self._client = client
        self._post = post
        self._kinds = kinds
        self._followed = FOLLOWED.union(kinds.travelling)
        self._log = structlog.get_logger("gatelift.kubernetes")
        self._repetitions = Repetitions()
        problem = watch_problems(self._log)
        self._recorder = EventRecorder(client, identity.controller, identity.instance, allowed=leads)
        self._executor = Executor(client, self._answered, limits=limits, record=self._recorder.record)
        self._reflectors = [
            Reflector(
                client,
                resource,
                post,
                selection=selection,
                followed=resource in self._followed,
                on_problem=problem,
                on_went_back=self._went_back,
            )
            for resource, selection in watches(kinds)
        ]
        self._unmarked = [
            Reflector(client, resource, self._unmarked_told, selection=selection, on_problem=problem)
            for resource, selection in unmarked(kinds)
        ]
        # Of these the core takes the answer to a write as it takes the word of the watch; so it need not hear both.
        echoing = {WORKLOAD, *kinds.travelling}
        self._echoing = {struct_of(each.resource): each for each in self._reflectors if each.resource in echoing}
        self._reads = Reads[Asked](self._read, self._not_read, namespace_of, limits.shares[Traffic.READ])

    def start(self, supervisor: Supervisor) -> None:
        """Start everything that runs for the life of the process."""
        supervisor.spawn("writes", self._executor.run())
        supervisor.spawn("kubernetes events", self._recorder.run())
        self._reads.start(supervisor)
        for reflector in self._reflectors:
            supervisor.spawn(f"watch {reflector.resource.plural}", reflector.run())
        for each in self._unmarked:
            supervisor.spawn(f"watch {each.resource.plural} without their mark", each.run())

    def write(self, command: ApiWrite | EmitEvent) -> None:
        """Carry out a write; its outcome is posted. One that finds no room is answered as not sent."""
        try:
            self._executor.submit(command)
        except WritesFullError as error:
            if not isinstance(command, EmitEvent):
                self._answered(WriteFailed(write_id=command.write_id, error=WriteError.NOT_SENT, message=str(error)))

    def read(self, command: Asked) -> None:
        """Read one object or a whole kind; the answer is posted."""
        self._reads.ask(command)

    def list_anew(self) -> None:
        """List every kind by quorum reads that begin now; `Synced` is posted behind what each shows."""
        for reflector in self._reflectors:
            reflector.list_anew()

    async def wait_synced(self) -> None:
        """Wait until every kind was listed completely once; a kind that cannot be listed is said by `waiting_kinds`."""
        for reflector in self._reflectors:
            await reflector.synced.wait()

    @property
    def followed(self) -> tuple[Reflector, ...]:
        """The watches that the agent of `local` may follow."""
        return tuple(each for each in self._reflectors if each.resource in self._followed)

    @property
    def waiting_kinds(self) -> tuple[str, ...]:
        """Kinds that are not listed yet, for the readiness endpoint."""
        return tuple(each.resource.plural for each in self._reflectors if not each.synced.is_set())

    @property
    def not_served(self) -> str:
        """What is not served any more, a line for each kind: a CRD that somebody deleted."""
        return "\n".join(each.not_served for each in self._reflectors if each.not_served)

    @property
    def writes_held(self) -> int:
        """Writes that wait or are under way."""
        return self._executor.held

    def _went_back(self, text: str) -> None:
        self._post(WentBack(text=text))

    def _unmarked_told(self, event: ApiEvent) -> None:
        said = ungated(event)
        if is_told_of_unmarked(self._kinds, event):
            self._post(event)
        elif said is not None:
            self._recorder.record(said)

    def _answered(self, event: ApiEvent) -> None:
        if isinstance(event, WriteDone):
            reflector = self._echoing.get(type(event.object))
            if reflector is not None and event.object is not None:
                reflector.answered(event.object)
        elif isinstance(event, WriteFailed) and event.error is WriteError.NOT_SENT:
            self._not_sent(event.message)
        self._post(event)

    def _not_sent(self, why: str) -> None:
        """Say now and then that writes come to nothing: all that people see of it is that little moves."""
        untold = self._repetitions.untold("not sent")
        if untold is not None:
            self._log.warning("write not sent", why=why, **({"times_before": untold} if untold else {}))

    async def _read(self, command: Asked) -> None:
        try:
            if isinstance(command, Read):
                answer: Event = await self._read_one(command)
            elif isinstance(command, ListOutOfSight):
                answer = await self._list_out_of_sight(command)
            else:
                answer = await self._read_all(command)
        except KubeError as error:
            self._not_read(command, str(error), asked=True)
        else:
            self._post(answer)

    def _not_read(self, command: Asked, why: str, *, asked: bool = False) -> None:
        ref = command.ref if isinstance(command, Read) else None
        self._post(ReadFailed(read_id=command.read_id, ref=ref, message=why, asked=asked))

    async def _read_one(self, command: Read) -> ReadDone:
        try:
            served = await self._client.get(command.ref)
        except NotFoundError:
            return ReadDone(read_id=command.read_id, ref=command.ref, object=None)
        return ReadDone(read_id=command.read_id, ref=command.ref, object=served.object, raw=served.raw)

    async def _read_all(self, command: ReadAll) -> ReadAllDone:
        found = []
        async for page in self._client.list(command.resource, Selection(namespace=command.namespace), with_raw=True):
            found += [(served.object, served.raw) for served in page.items]
        return ReadAllDone(read_id=command.read_id, objects=tuple(found))

    async def _list_out_of_sight(self, command: ListOutOfSight) -> OutOfSightListed:
        found = []
        for resource, selection in lost(self._kinds):
            async for page in self._client.list(resource, selection):
                told = (out_of_sight(self._kinds, resource, served.object) for served in page.items)
                found += [one for one in told if one is not None]
        return OutOfSightListed(read_id=command.read_id, objects=tuple(found))
