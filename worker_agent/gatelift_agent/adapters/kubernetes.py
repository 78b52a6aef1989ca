"""The worker's API for the agent: what is watched, how writes are carried out, how healthy it is. Decides nothing.

Access is by namespace (a RoleBinding in each accepted one), so Pods and Jobs have a watch per namespace; what runs on
the nodes is summed up beside it, where that right is given (`node_watch`). Kinds that a cluster may lack or keep to
itself (nodes, flavors) are asked for now and then, and count as empty until they answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from tenacity import stop_never

from gatelift_agent.adapters.health import HealthWatch
from gatelift_agent.adapters.kubelet_leases import KubeletLeases
from gatelift_agent.adapters.node_watch import RUNNING, NodeWatch, ThinCache
from gatelift_agent.core.memory.keeper import LABEL as STATE_LABEL
from gatelift_agent.core.values.commands import ReadNamespace, ReadPods
from gatelift_agent.core.values.events import (
    Event,
    NamespaceNotRead,
    NamespaceRead,
    NamespaceRefused,
    NamespaceSynced,
    PodsNotRead,
    PodsRead,
)
from gatelift_agent.core.watched import ownership
from gatelift_kinds.registry import SERVED, Registry
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.events import EventRecorder
from gatelift_kube.api.executor import Executor, WritesFullError
from gatelift_kube.api.reads import Reads
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.budget import Budget, Traffic
from gatelift_kube.deciding.errors import ApiError, KubeError, is_absent
from gatelift_kube.deciding.writes import (
    ApiEvent,
    ApiWrite,
    EmitEvent,
    ObjectGone,
    ObjectSeen,
    Synced,
    WriteDone,
    WriteError,
    WriteFailed,
)
from gatelift_kube.objects.core import Namespace, Pod
from gatelift_kube.process.clock import Clock
from gatelift_kube.process.repetitions import watch_problems
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.process.waiting import until
from gatelift_kube.values.resources import (
    CONFIG_MAP,
    NAMESPACE,
    NODE,
    POD,
    RESOURCE_FLAVOR,
    ObjectKey,
    ObjectRef,
    Resource,
)
from gatelift_wire.values.keys import LABEL_MADE_HERE, LABEL_ORIGIN

OPTIONAL_RETRY_SECONDS = 60.0
"""How often a kind that is not served, or not allowed, is asked for again."""

DRAIN_POLL_SECONDS = 0.05

HIDDEN_RETRY_SECONDS = 2.0

Watched = tuple[tuple[Resource, str], ...]
"""Resources, each with the labels by which it is watched, "" for all of it."""


def namespaced(kinds: Registry) -> Watched:
    """Return what is watched in each accepted namespace: objects with our labels, and the pods that they make."""
    return tuple((each, LABEL_ORIGIN) for each in dict.fromkeys((POD, *kinds.travelling)))


def hidden(kinds: Registry) -> tuple[tuple[Resource, Selection], ...]:
    """Return what no watch of ours shows. Listed once with each namespace: somebody may have taken our label off."""
    return tuple((resource, Selection(labels=f"!{LABEL_ORIGIN}")) for resource, _ in namespaced(kinds))


def hidden_at_home(kinds: Registry) -> tuple[tuple[Resource, Selection], ...]:
    """Return the same of `local`: of all but the pods of others the manager's record tells there.

    What has ended holds nothing there.
    """
    fields = "status.phase!=Succeeded,status.phase!=Failed"
    return ((POD, Selection(labels=_unwatched(kinds, f"!{LABEL_ORIGIN}"), fields=fields)),)


def at_home(kinds: Registry) -> Watched:
    """Return what the agent of `local` watches in all namespaces: what the manager watches, and pods that run here.

    The manager's watch of Jobs goes by no label: its user may take the queue's name off a Job that runs.
    """
    seen = [(each, kinds.sight(each).labels) for each in kinds.travelling]
    queued = [each for each in seen if each[0] == POD]
    return (*queued, (POD, _unwatched(kinds, LABEL_ORIGIN)), *(each for each in seen if each[0] != POD))


def namespace_of(command: ReadPods | ReadNamespace) -> str:
    """Return the namespace for whose sake something is read."""
    return command.name if isinstance(command, ReadNamespace) else command.namespace


def _unwatched(kinds: Registry, labels: str) -> str:
    """Return a selector of pods, narrowed to those which the manager's own watch, by one label, does not show."""
    if POD not in kinds.travelling:
        return labels
    key, _, value = kinds.sight(POD).labels.partition("=")
    return f"{labels},{key}!={value}"


class WorkerApi:
    """Reflectors, executor and health of one cluster.

    `shared` are the reflectors of the process that this agent is part of: it follows them where they mirror what it
    needs, and watches the rest itself (one watch per kind per process).
    """

    def __init__(
        self,
        client: Client,
        post: Callable[[Event], None],
        supervisor: Supervisor,
        *,
        own_namespace: str,
        limits: Budget,
        clock: Clock,
        instance: str,
        kinds: Registry = SERVED,
        watched: Watched | None = None,
        keeps_state: bool = True,
        watch_nodes: bool = True,
        count_nodes: bool = False,
        adopts: bool = False,
        shared: Iterable[Reflector] = (),
        leads: Callable[[], bool] = lambda: True,
        doubts: Callable[[], bool] = lambda: False,
    ) -> None:
        """`leads` says whether this replica may tell people anything; the core decides whether it may write at all.

        `count_nodes`: tell what room there is on the nodes, for which the pods of the whole cluster are watched.
        `adopts`: show pods that drivers make here, as long as they are nobody's. `doubts` says whether somebody has to
        know which kubelets reach the API server.
        """
        self._client = client
        self._shared = {(each.resource, each.selection): each for each in shared}
        self._post = post
        self._supervisor = supervisor
        self._own_namespace = own_namespace
        self._clock = clock
        self._kinds = kinds
        self._watched = namespaced(kinds) if watched is None else watched
        self._keeps_state = keeps_state
        self._watch_nodes = watch_nodes
        self._count_nodes = count_nodes
        self._adopts = adopts
        self._log = structlog.get_logger("gatelift.agent.kubernetes")
        self._problem = watch_problems(self._log, clock)
        self._recorder = EventRecorder(client, "gatelift.dev/agent", instance, allowed=leads)
        self._executor = Executor(client, self._answered, limits=limits, record=self._recorder.record, clock=clock)
        self._leases = KubeletLeases(client, post, doubts, clock=clock, problem=self._problem)
        self.health = HealthWatch(client, post, own_namespace, clock)
        self._reads = Reads[ReadPods | ReadNamespace](
            self._read, self._not_read, namespace_of, limits.shares[Traffic.READ], clock
        )
        self._cluster_tasks: list[asyncio.Task[Any]] = []
        self._namespace_tasks: dict[str, list[asyncio.Task[Any]]] = {}

    def start(self) -> None:
        """Start what runs for the life of the process."""
        self._supervisor.spawn("writes", self._executor.run())
        self._supervisor.spawn("kubernetes events", self._recorder.run())
        self._supervisor.spawn("api health", self.health.run())
        if self._watch_nodes or self._count_nodes:
            self._supervisor.spawn("leases of kubelets", self._leases.run())
        self._reads.start(self._supervisor)

    @property
    def writes_held(self) -> int:
        """Writes that wait or are under way."""
        return self._executor.held

    async def drained(self, seconds: float) -> bool:
        """Wait until no write is under way; False when some still are after `seconds`."""
        end = self._clock() + seconds
        while self._executor.held:
            if self._clock() >= end:
                return False
            await asyncio.sleep(DRAIN_POLL_SECONDS)
        return True

    def write(self, command: ApiWrite | EmitEvent) -> None:
        """Carry out a write; its outcome is posted. One that finds no room is answered as not sent."""
        try:
            if not isinstance(command, EmitEvent):
                self.health.write_began(command.write_id)
            self._executor.submit(command)
        except WritesFullError as error:
            if not isinstance(command, EmitEvent):
                self._post(WriteFailed(write_id=command.write_id, error=WriteError.NOT_SENT, message=str(error)))

    def read(self, command: ReadPods | ReadNamespace) -> None:
        """Read by a quorum read; the answer is posted."""
        self._reads.ask(command)

    async def _read(self, command: ReadPods | ReadNamespace) -> None:
        if isinstance(command, ReadNamespace):
            await self._read_namespace(command)
        else:
            await self._read_pods(command)

    async def _read_namespace(self, command: ReadNamespace) -> None:
        try:
            served = await self._client.get(ObjectRef(NAMESPACE, ObjectKey("", command.name)))
        except KubeError as error:
            if is_absent(error):
                self._post(NamespaceRead(read_id=command.read_id, namespace=None))
            else:
                self._not_read(command, str(error))
            return
        if isinstance(served.object, Namespace):
            self._post(NamespaceRead(read_id=command.read_id, namespace=served.object))
        else:
            self._not_read(command, "the answer is no Namespace")

    async def _read_pods(self, command: ReadPods) -> None:
        labels = ",".join(f"{name}={value}" for name, value in command.labels)
        try:
            found, raws, unread = await self._pods(Selection(namespace=command.namespace, labels=labels))
        except KubeError as error:
            found, raws, unread = [], [], str(error)
        if unread:  # a pod that cannot be read may run: it must not count as absent (R7)
            self._not_read(command, unread)
        else:
            self._post(PodsRead(read_id=command.read_id, pods=tuple(found), raws=tuple(raws)))

    def _not_read(self, command: ReadPods | ReadNamespace, why: str) -> None:
        if isinstance(command, ReadNamespace):
            self._post(NamespaceNotRead(read_id=command.read_id, message=why))
        else:
            self._post(PodsNotRead(read_id=command.read_id, message=why))

    async def _pods(self, selection: Selection) -> tuple[list[Pod], list[bytes], str]:
        """Return the pods, each with its JSON, and what is wrong with one that cannot be read, "" if all can."""
        found: list[Pod] = []
        raws: list[bytes] = []
        unread = ""
        async for page in self._client.list(POD, selection, with_raw=True):
            for served in page.items:
                if isinstance(served.object, Pod):
                    found.append(served.object)
                    raws.append(served.raw)
            unread = unread or next((each.problem for each in page.unread), "")
        return found, raws, unread

    # --- watches ------------------------------------------------------------------------------------------------

    def watch_cluster(self) -> None:
        """List and watch anew what does not depend on a namespace."""
        self.stop_watching()
        self._cluster_tasks.append(self._reflect(NAMESPACE, Selection(), self._post))
        if self._keeps_state:
            own = Selection(namespace=self._own_namespace, labels=STATE_LABEL)
            self._cluster_tasks.append(self._reflect(CONFIG_MAP, own, self._post))
        self._cluster_tasks.append(self._reflect_optional(RESOURCE_FLAVOR, empty_without=True))
        if self._count_nodes:
            self._count()
        elif self._watch_nodes:
            self._cluster_tasks.append(self._reflect_optional(NODE, empty_without=False))

    def _count(self) -> None:
        """Watch nodes for both who ask of them, and all pods that run for the sums alone."""
        counted = NodeWatch(self._post)

        def emit(event: ApiEvent) -> None:
            self._post(event)
            counted.take(event)

        def problem(text: str) -> None:
            self._problem(text)
            counted.refused(text)  # heard only until all is listed

        served = partial(self._when_served, empty_without=False, refused=counted.refused)
        nodes = served(Reflector(self._client, NODE, emit, on_problem=problem, clock=self._clock))
        pods = Reflector(
            self._client,
            POD,
            counted.take,
            selection=RUNNING,
            cache=ThinCache(),
            with_raw=False,
            on_problem=problem,
            clock=self._clock,
        )
        self._cluster_tasks += [
            self._supervisor.spawn("count nodes", counted.run()),
            self._supervisor.spawn("watch nodes", nodes),
            self._supervisor.spawn("watch pods of all namespaces", served(pods)),
        ]

    def watch_namespaces(self, namespaces: Iterable[str]) -> None:
        """Watch Pods and Jobs in exactly these namespaces; "" means all."""
        wanted = set(namespaces)
        for left in self._namespace_tasks.keys() - wanted:
            for task in self._namespace_tasks.pop(left):
                task.cancel()
        for namespace in sorted(wanted - self._namespace_tasks.keys()):
            watches = len(self._watched) + self._adopts
            waiting, listed = set(range(watches + 1)), asyncio.Event()
            self._namespace_tasks[namespace] = [
                self._reflect(
                    resource,
                    Selection(namespace=namespace, labels=labels),
                    self._namespace_emit(namespace, number, waiting, listed),
                    self._namespace_refused(namespace, waiting),
                )
                for number, (resource, labels) in enumerate(self._watched)
            ]
            if self._adopts:
                made_here = Selection(namespace=namespace, labels=LABEL_MADE_HERE)
                shown = partial(self._show_newcomer, self._namespace_emit(namespace, watches - 1, waiting, listed))
                refused = self._namespace_refused(namespace, waiting)
                self._namespace_tasks[namespace].append(self._reflect(POD, made_here, shown, refused))
            emit = self._namespace_emit(namespace, watches, waiting, listed)
            task = self._supervisor.spawn(
                f"find what is hidden in {namespace}", self._find_hidden(namespace, emit, listed)
            )
            self._namespace_tasks[namespace].append(task)

    def stop_watching(self) -> None:
        """End all watches."""
        for task in self._cluster_tasks:
            task.cancel()
        self._cluster_tasks = []
        self.watch_namespaces(())

    def _namespace_emit(
        self, namespace: str, number: int, waiting: set[int], listed: asyncio.Event
    ) -> Callable[[ApiEvent], None]:
        """Return what takes one kind's events; the namespace is synced when its last kind is.

        `listed` is set when all watches have listed. What loses its label after that they tell.
        """

        def emit(event: ApiEvent) -> None:
            if not isinstance(event, Synced):
                self._post(event)
                return
            waiting.discard(number)
            if not waiting - {len(self._watched) + self._adopts}:
                listed.set()
            if not waiting:
                self._post(NamespaceSynced(namespace=namespace))

        return emit

    @staticmethod
    def _show_newcomer(emit: Callable[[ApiEvent], None], event: ApiEvent) -> None:
        """Show what waits to be taken in; what bears our label the other watch shows, and it alone says that it went.

        What is hidden is looked for after this list: what that finds and this one missed would never be called gone.
        """
        shown = isinstance(event, ObjectSeen | ObjectGone) and LABEL_ORIGIN not in event.object.metadata.labels
        if shown or isinstance(event, Synced):
            emit(event)

    def _namespace_refused(self, namespace: str, waiting: set[int]) -> Callable[[str], None]:
        """Return what takes that one kind may not be read there; told until the namespace is synced."""

        def refused(message: str) -> None:
            if waiting:
                self._post(NamespaceRefused(namespace=namespace, message=message))

        return refused

    async def _find_hidden(self, namespace: str, emit: Callable[[ApiEvent], None], listed: asyncio.Event) -> None:
        """Tell of what is ours by its marks and shown by no watch, once; then that this has been looked for."""
        await listed.wait()  # what loses its label between two lists would be in neither
        for resource, selection in (hidden if self._keeps_state else hidden_at_home)(self._kinds):
            found = partial(self._found_hidden, resource, replace(selection, namespace=namespace), emit)
            await until(found, HIDDEN_RETRY_SECONDS, stop_never)
        emit(Synced(POD))

    async def _found_hidden(self, resource: Resource, selection: Selection, emit: Callable[[ApiEvent], None]) -> bool:
        try:
            async for page in self._client.list(resource, selection, with_raw=True):
                for served in page.items:
                    queued = not self._keeps_state and ownership.hides_at_home(served.object)
                    if queued or ownership.may_hide(self._kinds, served.object):
                        emit(ObjectSeen(resource, served.object, served.raw))
        except KubeError as error:
            self._problem(f"{resource.plural} in {selection.namespace or 'all namespaces'}: {error}")
            return False
        return True

    def _reflect(
        self,
        resource: Resource,
        selection: Selection,
        emit: Callable[[ApiEvent], None],
        refused: Callable[[str], None] = lambda _why: None,
    ) -> asyncio.Task[None]:
        shared = self._shared.get((resource, selection))
        if shared is not None:
            return self._supervisor.spawn(f"follow {resource.plural}", shared.follow(emit))

        def problem(text: str) -> None:
            self._problem(text)
            if reflector.forbidden:
                refused(reflector.forbidden)

        reflector = Reflector(self._client, resource, emit, selection=selection, on_problem=problem, clock=self._clock)
        where = f" in {selection.namespace}" if selection.namespace else ""
        return self._supervisor.spawn(f"watch {resource.plural}{where}", reflector.run())

    def _reflect_optional(self, resource: Resource, *, empty_without: bool) -> asyncio.Task[None]:
        if (resource, Selection()) in self._shared:
            return self._reflect(resource, Selection(), self._post)
        reflector = Reflector(self._client, resource, self._post, on_problem=self._problem, clock=self._clock)
        return self._supervisor.spawn(
            f"watch {resource.plural}", self._when_served(reflector, empty_without=empty_without)
        )

    async def _when_served(
        self, reflector: Reflector, *, empty_without: bool, refused: Callable[[str], None] = lambda _why: None
    ) -> None:
        """Mirror a kind once the cluster lets us; `empty_without` counts it as empty until then.

        Else a refusal is told: without nodes, say, nobody can prove that what vanished has stopped.
        """
        resource = reflector.resource
        while True:
            try:
                await self._client.list_page(resource, limit=1)
                break
            except ApiError as error:
                if empty_without and error.status in (403, 404):
                    self._post(Synced(resource))
                else:
                    self._problem(f"{resource.plural}: {error}")
                    refused(f"{resource.plural}: {error}")
            except KubeError as error:
                self._problem(f"{resource.plural}: {error}")
                refused(f"{resource.plural}: {error}")
            await asyncio.sleep(OPTIONAL_RETRY_SECONDS)
        await reflector.run()

    def _answered(self, event: ApiEvent) -> None:
        if isinstance(event, WriteDone | WriteFailed):
            self.health.write_ended(event)
        self._post(event)
