"""The demo's story on clusters that are up: work comes, travels, is deleted, an agent dies, and promises are kept.

Every promise is something that is read from the clusters, never assumed; the first one that is broken ends the demo.
Neighbours: `sandbox` raises and ends the clusters, `demo_view` renders.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rich.console import Console
from rich.live import Live
from tenacity import stop_after_delay

from gatelift.cli.demo_view import (
    DELETED,
    FAILED,
    FINISHED,
    RUNS,
    WAITS,
    Board,
    Promise,
    StateMark,
    finished_by_cluster,
    rows_of,
)
from gatelift.cli.render import lines
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.objects import conditions
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.process.tasks import spawn
from gatelift_kube.process.waiting import until
from gatelift_kube.values.resources import JOB, POD, WORKER_CLUSTER, WORKLOAD, ObjectKey, ObjectRef, Resource
from gatelift_sandbox import behaviour, records
from gatelift_sandbox.behaviour import Behaviour
from gatelift_sandbox.ensemble import Ensemble
from gatelift_sandbox.installation import InstalledProcess
from gatelift_sandbox.kind import pod_image

NAMESPACE = "default"
QUEUE, HOME_QUEUE = "everywhere", "at-home"
LOOK_SECONDS = 0.25
"""How often the clusters are read: often enough to look alive, rarely enough to cost nothing."""
PROMISE_SECONDS = 180.0
"""No promise takes longer than the longest piece of work, half a minute; a loaded machine gets six times that."""
DEAD_SECONDS = 3.0
"""How long the killed agent stays dead: long enough for a restart or a deletion of its pods to be seen."""
PLACED_BY_GATELIFT = "gatelift.dev/workload-uid"

LONG, CANCELLED, GIANT, STAYS = "long", "cancelled", "giant", "at-home"
LONG_AGAIN = "long-again"
SHORT_PODS = 5
GIANT_SIZE = 100
"""Far more than the sample queue has room for."""
LONG_SECONDS = 35.0
"""Longer than an agent is away after a kill: it has to outwait the Lease, and the last writes, of the killed one."""

AGENT_BACK = "the agent is back and nothing was touched"
MEANWHILE = {AGENT_BACK: "20 to 30 s: the lease of the killed one has to run out first"}
"""What a person waits for, where nothing moves for more than a few seconds."""

Json = dict[str, Any]
T = TypeVar("T")


class BrokenPromiseError(Exception):
    """Something did not happen as promised: one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of work of the demo."""

    name: str
    does: Behaviour
    pods: int = 0  # 0: a single pod, else a Job of so many pods
    queue: str = QUEUE
    size: int = 1  # CPU of a pod, in units of the plan's `pod_millicores`

    def manifest(self, *, pod_millicores: int, real_kubelet: bool, image: str) -> Json:
        """Return what a user would write."""
        container = {"name": "main", "resources": {"requests": {"cpu": f"{self.size * pod_millicores}m"}}}
        grace = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 5}
        template = {"metadata": {}, "spec": {**grace, "containers": [container]}}
        shaped = behaviour.shape(template, self.does, real_kubelet=real_kubelet, image=image)
        metadata = {"name": self.name, "namespace": NAMESPACE, "labels": {"kueue.x-k8s.io/queue-name": self.queue}}
        if self.pods:
            spec = {"parallelism": self.pods, "completions": self.pods, "backoffLimit": 0, "template": shaped}
            return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
        return {"apiVersion": "v1", "kind": "Pod", **shaped, "metadata": {**shaped["metadata"], **metadata}}


PIECES: tuple[Piece, ...] = (
    Piece(name=LONG, does=Behaviour(run_seconds=LONG_SECONDS)),
    Piece(name=CANCELLED, does=Behaviour()),
    Piece(name="train", pods=3, does=Behaviour(run_seconds=6.0)),
    Piece(name=GIANT, does=Behaviour(), size=GIANT_SIZE),
    Piece(name=STAYS, does=Behaviour(run_seconds=4.0), queue=HOME_QUEUE),
    Piece(name="sweep", pods=4, does=Behaviour(run_seconds=3.0)),
    *(Piece(name=f"short-{number}", does=Behaviour(run_seconds=3.0)) for number in range(1, SHORT_PODS + 1)),
)
ENDLESS = (CANCELLED, GIANT)


@dataclass(slots=True)
class Stage:
    """The clusters, what is known of them, and what is shown."""

    raised: Ensemble
    console: Console
    clients: dict[str, Client]
    board: Board = field(default_factory=Board)
    live: Live | None = None
    started: float = field(default_factory=time.monotonic)
    _before: Mapping[str, Json] = field(default_factory=dict)  # pods that ran when the agent was killed, by UID
    _session: int = 0
    _killed_at: float = 0.0
    _long: str = LONG

    @classmethod
    @asynccontextmanager
    async def open(cls, raised: Ensemble, console: Console) -> AsyncIterator[Stage]:
        """Connect to all clusters with the rights of the person who made them."""
        async with AsyncExitStack() as stack:
            clients = {
                each.name: await stack.enter_async_context(await raised.installation.admin(each))
                for each in (raised.management, *raised.workers)
            }
            yield cls(raised, console, clients)

    async def play(self) -> None:
        """Play the whole story. Raises BrokenPromiseError at the first promise that is not kept."""
        acts: list[tuple[str, Callable[[], Awaitable[str]]]] = [
            ("work runs on both workers", self._travels),
            ("what never fits says why", self._says_why),
            ("deleted while it runs: stopped there, gone here", self._deleted),
            ("an agent is killed: its pods run on", self._agent_dies),
            (AGENT_BACK, self._agent_returns),
            ("all other work finishes", self._all_finish),
            ("nothing is left behind on the workers", self._nothing_left),
            ("nothing ran twice at the same time", self._no_overlap),
        ]
        self.board.promises = [Promise(text=text, meanwhile=MEANWHILE.get(text, "")) for text, _ in acts]
        self.started = time.monotonic()
        with self._shown():
            await self._submit()
            for index, (_, act) in enumerate(acts):
                self._tell(self.board.mark(index, StateMark.DOING))
                try:
                    detail = await act()
                except BrokenPromiseError:
                    self._tell(self.board.mark(index, StateMark.BROKEN))
                    raise
                self._tell(self.board.mark(index, StateMark.KEPT, detail))
        self._sum_up()

    # --- acts, in order ----------------------------------------------------------------------------------------------

    async def _submit(self) -> None:
        for piece in PIECES:
            await self._submit_one(piece)

    async def _submit_one(self, piece: Piece) -> None:
        document = piece.manifest(
            pod_millicores=self.raised.plan.pod_millicores,
            real_kubelet=self.raised.management.capabilities.real_kubelet,
            image=pod_image(),
        )
        resource = JOB if piece.pods else POD
        await self._management.create(resource, NAMESPACE, json.dumps(document).encode())

    async def _travels(self) -> str:
        names = [worker.name for worker in self.raised.workers]

        def both() -> bool:
            used = {row.cluster for row in self.board.rows.values() if row.state.startswith((RUNS, FINISHED))}
            return used.issuperset(names)

        await self._until(both, "work runs on " + " and ".join(names))
        return " and ".join(names)

    async def _says_why(self) -> str:
        def said() -> bool:
            row = self.board.row(GIANT)
            return row is not None and row.state == WAITS and "maximum" in row.why

        await self._until(said, f"pod {GIANT} says why it waits")
        return f"{GIANT} asks for more than its queue has"

    async def _deleted(self) -> str:
        await self._until(lambda: self.board.state(CANCELLED).startswith(RUNS), f"pod {CANCELLED} runs")
        row = self.board.row(CANCELLED)
        cluster = row.cluster if row is not None else ""
        await self._management.delete(ObjectRef(POD, ObjectKey(NAMESPACE, CANCELLED)))
        await self._until(lambda: self.board.state(CANCELLED) == DELETED, f"pod {CANCELLED} is gone")
        left = [pod for pod in await self._list(cluster, POD) if pod["metadata"]["name"] == CANCELLED]
        if any("running" in one.get("state", {}) for pod in left for one in pod["status"].get("containerStatuses", [])):
            raise BrokenPromiseError(f"pod {CANCELLED} is gone here but still runs on {cluster}")

        async def gone() -> bool:
            return all(pod["metadata"]["name"] != CANCELLED for pod in await self._list(cluster, POD))

        # What has stopped is kept there until its end is written here; then it goes, too.
        await self._until_seen(gone, f"pod {CANCELLED} is gone from {cluster}")
        return f"it was on {cluster}"

    async def _agent_dies(self) -> str:
        await self._until(lambda: self.board.state(LONG).startswith((RUNS, FINISHED)), f"pod {LONG} runs")
        if self.board.state(LONG) == FINISHED:  # on a slow machine it was over before its turn came
            self._long = LONG_AGAIN
            await self._submit_one(Piece(name=LONG_AGAIN, does=Behaviour(run_seconds=LONG_SECONDS)))
            await self._until(lambda: self.board.state(LONG_AGAIN).startswith(RUNS), f"pod {LONG_AGAIN} runs")
        daemon, cluster = self._agent()
        self._before = {pod["metadata"]["uid"]: pod for pod in await self._list(cluster, POD) if _runs(pod)}
        self._session = await self._session_of(cluster)
        self._killed_at = time.monotonic()
        self.raised.installation.kill(daemon)
        deadline = self._killed_at + DEAD_SECONDS
        while time.monotonic() < deadline:
            await self._untouched(cluster, "while its agent was dead")
            await asyncio.sleep(LOOK_SECONDS)
        return f"{_pods(len(self._before))} on {cluster}"

    async def _agent_returns(self) -> str:
        daemon, cluster = self._agent()
        await self._meanwhile(self.raised.installation.restart(daemon))
        await self._until_seen(lambda: self._heard(cluster), f"{cluster} connects again")
        away = time.monotonic() - self._killed_at
        await self._untouched(cluster, "when its agent came back")
        return f"after {away:.0f} s, same pods, no restart"

    async def _all_finish(self) -> str:
        names = sorted({self._long, *(piece.name for piece in PIECES if piece.name not in ENDLESS)})

        def all_finished() -> bool:
            failed = [row for row in self.board.rows.values() if row.state.startswith(FAILED)]
            if failed:
                raise BrokenPromiseError(str(failed[0]))
            return all(self.board.state(name) == FINISHED for name in names)

        await self._until(all_finished, "all work finishes")
        return f"{len(names)} of {len(names)}"

    async def _nothing_left(self) -> str:
        async def empty() -> bool:
            found = [await self._placed(worker.name, kind) for worker in self.raised.workers for kind in (POD, JOB)]
            return not any(found)

        await self._until_seen(empty, "pods and Jobs on the workers are cleaned up")
        return "no pod, no Job"

    async def _no_overlap(self) -> str:
        paths = [each.record for each in (self.raised.management, *self.raised.workers) if each.record is not None]
        if not paths:
            return "real kubelets keep no records of it; checked on providers embedded and local"
        found = await asyncio.to_thread(records.read, *paths)
        overlaps = records.overlaps(found)
        if overlaps:
            raise BrokenPromiseError(str(overlaps[0]))
        return f"{_pods(len(records.runs(found)))} ran, 0 overlaps"

    # --- looking -----------------------------------------------------------------------------------------------------

    @property
    def _management(self) -> Client:
        return self.clients[self.raised.management.name]

    def _agent(self) -> tuple[InstalledProcess, str]:
        row = self.board.row(self._long)
        cluster = row.cluster if row is not None else ""
        return self.raised.installation.daemons[f"agent-{cluster}"], cluster

    async def _untouched(self, cluster: str, when: str) -> None:
        """Check the pods that ran when the agent was killed: the same ones, none deleted, none restarted."""
        now = {pod["metadata"]["uid"]: pod for pod in await self._list(cluster, POD)}
        await self._look()  # after the list: what is cleaned up there was shown as finished here before
        for uid, before in self._before.items():
            name = before["metadata"]["name"]
            pod = now.get(uid)
            if pod is None:
                if self.board.state(name).startswith(RUNS):  # a finished one is cleaned up
                    raise BrokenPromiseError(f"pod {name} on {cluster} vanished {when}")
                continue
            statuses = pod["status"].get("containerStatuses", ())
            if pod["metadata"].get("deletionTimestamp") and pod["status"].get("phase") == "Running":
                raise BrokenPromiseError(f"pod {name} on {cluster} was deleted {when}")
            if any(status.get("restartCount") for status in statuses):
                raise BrokenPromiseError(f"pod {name} on {cluster} was restarted {when}")

    async def _worker_cluster(self, name: str) -> WorkerCluster:
        served = await self._management.get(ObjectRef(WORKER_CLUSTER, ObjectKey("", name)))
        if not isinstance(served.object, WorkerCluster):
            raise BrokenPromiseError(f"WorkerCluster {name} cannot be read")
        return served.object

    async def _session_of(self, cluster: str) -> int:
        return (await self._worker_cluster(cluster)).status.session

    async def _heard(self, cluster: str) -> bool:
        status = (await self._worker_cluster(cluster)).status
        return status.session > self._session and conditions.is_true(status.conditions, "Connected")

    async def _list(self, cluster: str, resource: Resource, query: str = "") -> list[Json]:
        answer = await self.clients[cluster].raw("GET", resource.path(NAMESPACE), query)
        items: list[Json] = json.loads(answer)["items"]
        return items

    async def _placed(self, cluster: str, resource: Resource) -> list[Json]:
        return await self._list(cluster, resource, f"labelSelector={PLACED_BY_GATELIFT}")

    async def _look(self) -> None:
        """Read what a user sees in the management cluster, and show what changed."""
        home = self.raised.management.name
        workloads = [
            served.object
            async for page in self._management.list(WORKLOAD, Selection(namespace=NAMESPACE))
            for served in page.items
            if isinstance(served.object, Workload)
        ]
        for row in self.board.update(rows_of(await self._list(home, POD), await self._list(home, JOB), workloads)):
            self._tell(row)
        if self.live is not None:  # the time goes on where nothing else does
            self.live.update(self.board.render(time.monotonic() - self.started), refresh=True)

    async def _until(self, done: Callable[[], bool], what: str) -> None:
        """Look until `done()`; the picture is kept fresh meanwhile. BrokenPromiseError after PROMISE_SECONDS."""

        async def look() -> bool:
            return done()

        await self._until_seen(look, what)

    async def _until_seen(self, done: Callable[[], Awaitable[bool]], what: str) -> None:
        async def seen() -> bool:
            await self._look()
            self._check_daemons()
            return await done()

        if not await until(seen, LOOK_SECONDS, stop_after_delay(PROMISE_SECONDS)):
            raise BrokenPromiseError(f"not within {PROMISE_SECONDS:g} s: {what}")

    def _check_daemons(self) -> None:
        """Tell of a daemon that ended by itself at once, instead of waiting for what it will not do."""
        for daemon in self.raised.installation.daemons.values():
            if not daemon.alive:
                raise BrokenPromiseError(f"{daemon.name} ended by itself, its log says why: {daemon.log}")

    async def _meanwhile(self, work: Awaitable[T]) -> T:
        """Await `work` and keep the picture fresh."""

        async def awaited() -> T:
            return await work

        task = spawn("demo", awaited())
        try:
            while not task.done():
                await self._look()
                await asyncio.wait([task], timeout=LOOK_SECONDS)
        finally:
            if not task.done():
                task.cancel()
        return await task

    # --- telling -----------------------------------------------------------------------------------------------------

    def _shown(self) -> AbstractContextManager[object]:
        if not self.console.is_terminal:
            return nullcontext()
        self.live = Live(console=self.console, auto_refresh=False)
        return self.live

    def _tell(self, what: object) -> None:
        """Show a change: in the live picture, or by one line of its own where there is none."""
        seconds = time.monotonic() - self.started
        if self.live is None:
            self.console.print(f"{seconds:5.1f} s  {what}", markup=False, soft_wrap=True)
        else:
            self.live.update(self.board.render(seconds), refresh=True)

    def _sum_up(self) -> None:
        finished = finished_by_cluster(self.board.rows.values())
        took = time.monotonic() - self.started
        rows = [(cluster, count) for cluster, count in finished.items()]
        self.console.print("")
        for line in lines(("Cluster", "Finished"), rows):
            self.console.print(line, markup=False)
        self.console.print(f"\nAll {len(self.board.promises)} promises kept in {took:.0f} s.\n")


def _runs(pod: Json) -> bool:
    return bool(pod["status"].get("phase") == "Running" and PLACED_BY_GATELIFT in pod["metadata"].get("labels", {}))


def _pods(count: int) -> str:
    return f"{count} pod{'' if count == 1 else 's'}"
