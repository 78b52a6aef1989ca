"""The write floor of groups as two scripts, one of each cluster, that tell each other by gRPC what they see.

`python -m bench.group_pair home FOLDER MGMT_KUBECONFIG [ROOM]`, and once that is ready `... worker FOLDER W1_KUBECONFIG
[ROOM]`; `bare_sessions.prepare` has made the folder. They watch what manager and agent watch, each at its own cluster,
and make the writes of `group_floor`: what two processes need for it that decide nothing. So it is what the CPU of both
daemons is held against (PF-2). With ROOM no more pods than that have quota at a time, who waits longest comes first,
what a user deletes is stopped, and no word waits for another one: how soon quota can be another's (PF-7). Neighbours:
`pair_stream` has what is said.
"""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvloop

from bench import group_bodies
from bench.bare_sessions import prepare
from bench.fleet import NAMESPACE, WORKERS, Fleet
from bench.group_floor import GroupFloor, let_go, make_gated
from bench.loader import Watcher
from bench.pair_stream import Leave, Place, Shown, Stop, Teller, Word, dialling, served
from bench.side_scripts import beside
from bench.write_floor import OVER, PATIENCE, Remote, live, pod_of, remove
from gatelift_kube.api.client import Client, Selection
from gatelift_kube.api.reflector import Reflector
from gatelift_kube.deciding.writes import ApiEvent, ObjectGone, ObjectSeen
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.core import Pod, raw_status
from gatelift_kube.process import collector
from gatelift_kube.process.tasks import Supervisor
from gatelift_kube.values.resources import POD, ObjectKey, ObjectRef
from gatelift_sandbox.behaviour import RUN_SECONDS
from gatelift_wire.values.keys import LABEL_ORIGIN
from gatelift_wire.values.limits import WRITE_GAP_SECONDS

TOLD = ("Running", *OVER)


class Room:
    """Room for so many pods, given to who has waited longest; of 0 there is room for all."""

    def __init__(self, pods: int) -> None:
        self._left = pods or math.inf
        self._turn = asyncio.Lock()
        self._freed = asyncio.Event()

    async def take(self, pods: int) -> None:
        """Return once there is room for these, which is theirs then."""
        async with self._turn:
            while self._left < pods:
                self._freed.clear()
                await self._freed.wait()
            self._left -= pods

    def free(self) -> None:
        """Take that one pod needs none any more."""
        self._left += 1
        self._freed.set()


class Home(GroupFloor):
    """Stands in for manager and webhooks."""

    def __init__(self, management: Client, supervisor: Supervisor, teller: Teller, room: int = 0) -> None:
        super().__init__(management, {}, supervisor)
        self._teller = teller
        self._room = Room(room)
        self._stopped: set[str] = set()

    def hear(self, word: Word) -> None:
        """Take how a pod is at the worker."""
        if isinstance(word, Shown) and (remote := self._remotes.get(word.name)) is not None:
            remote.is_seen(word.phase, word.status)

    def _user_pod(self, event: ApiEvent) -> None:
        super()._user_pod(event)
        if not isinstance(event, ObjectSeen) or event.object.metadata.deletion_timestamp is None:
            return
        name = event.object.metadata.name
        if name in self._remotes and name not in self._stopped:
            self._stopped.add(name)
            self._teller.say(Stop(name))

    async def _see_through(self, pods: list[tuple[Pod, bytes]]) -> None:
        workload = await self._make_workload(group_bodies.group_workload(pods))
        await self._room.take(len(pods))
        workload = await self._reserve(workload, group_bodies.grant(*pods[0], len(pods)), WORKERS[0])
        remotes = [self._expect(pod) for pod, _ in pods]
        for like, members in alike(pods):
            self._teller.say(Place(workload.metadata.uid, like, members))
        users = (Served(pod, raw) for pod, raw in pods)
        shown = await asyncio.gather(*(self._show(*each) for each in zip(users, remotes, strict=True)))
        await self._finish(workload)
        self._teller.say(Leave([pod.metadata.name for pod, _ in pods]))
        await asyncio.gather(*(self._release(user) for user in shown))
        for pod, _ in pods:
            del self._remotes[pod.metadata.name]
            self._stopped.discard(pod.metadata.name)

    async def _show(self, user: Served, remote: Remote) -> Served:
        user = await self._mirror(user, await remote.running)
        status = await remote.over
        if pod_of(user).metadata.name not in self._stopped:  # of what we end nobody is shown that it failed
            user = await self._mirror(user, status)
        self._room.free()
        return user


def alike(pods: Iterable[tuple[Pod, bytes]]) -> Iterator[tuple[bytes, list[tuple[str, str]]]]:
    """Yield of pods that are to run as long as each other how the first is, and the name and UID of each."""
    found: dict[str, tuple[bytes, list[tuple[str, str]]]] = {}
    for pod, raw in pods:
        meta = pod.metadata
        _, members = found.setdefault(meta.annotations.get(RUN_SECONDS, ""), (raw, []))
        members.append((meta.name, meta.uid))
    yield from found.values()


class Away:
    """Stands in for an agent."""

    def __init__(self, client: Client, supervisor: Supervisor, teller: Teller) -> None:
        self._client = client
        self._supervisor = supervisor
        self._teller = teller
        self._told: dict[str, str] = {}
        self._pods: dict[str, Pod] = {}
        self._leaving: set[str] = set()

    async def start(self) -> None:
        """Watch what an agent watches."""
        ours = Selection(namespace=NAMESPACE, labels=LABEL_ORIGIN)
        reflector = Reflector(self._client, POD, self.see, selection=ours)
        self._supervisor.spawn("watch", reflector.run())
        await reflector.synced.wait()

    def hear(self, word: Word) -> None:
        """Do what is said."""
        match word:
            case Place():
                self._supervisor.spawn(word.workload, self._place(word))
            case Stop():
                self._supervisor.spawn(
                    word.name, self._client.delete(ObjectRef(POD, ObjectKey(NAMESPACE, word.name)), seconds=PATIENCE)
                )
            case Leave():
                self._supervisor.spawn("leave", self._leave(word))
            case _:
                raise TypeError(f"nobody says this to a worker: {word!r}")

    def see(self, event: ApiEvent) -> None:
        """Tell, once, that a pod runs, and that it is over."""
        if not isinstance(event, ObjectSeen | ObjectGone) or not isinstance(event.object, Pod):
            return
        pod = event.object
        if isinstance(event, ObjectGone):
            self._told.pop(pod.metadata.name, None)
            self._pods.pop(pod.metadata.name, None)
            self._leaving.discard(pod.metadata.name)
            return
        name, phase = pod.metadata.name, pod.status.phase
        if phase not in TOLD or name in self._leaving:
            return
        self._pods[name] = pod
        if self._told.get(name) != phase:
            self._told[name] = phase
            self._teller.say(Shown(name, phase, raw_status(event.raw)))

    async def _place(self, word: Place) -> None:
        like = pod_of(Served(decoding.read_object(POD, word.like), word.like))
        made = await make_gated(self._client, (like, word.like), word.members, word.workload)
        await asyncio.gather(*(let_go(self._client, each) for each in made))

    async def _leave(self, word: Leave) -> None:
        self._leaving.update(word.names)
        await asyncio.gather(*(remove(self._client, self._pods[name]) for name in word.names))


async def main(role: str, folder: Path, kubeconfig: str, room: int = 0) -> None:
    """Be one of both until standard input ends."""
    gap = 0.0 if room else WRITE_GAP_SECONDS

    async def begin(clients: list[Client], supervisor: Supervisor, stack: AsyncExitStack) -> None:
        teller = Teller()
        if role == "home":
            home = Home(clients[0], supervisor, teller, room)
            await home.start()
            await stack.enter_async_context(served(folder, teller, home.hear, gap))
        else:
            away = Away(clients[0], supervisor, teller)
            await away.start()
            await stack.enter_async_context(dialling(folder, teller, away.hear, supervisor, gap))

    collector.tune()  # as both daemons do
    await live([kubeconfig], begin)


@asynccontextmanager
async def both(made: Fleet, watcher: Watcher, *room: str) -> AsyncIterator[tuple[int, int]]:
    """Have both scripts run in Gatelift's place for the time of a block; gives their pids."""
    manager, agent = kubeconfigs(made)
    with tempfile.TemporaryDirectory(dir=made.home) as folder:
        prepare(Path(folder))
        async with (
            beside("bench.group_pair", "home", folder, manager, *room, fail=watcher.fail) as home,
            beside("bench.group_pair", "worker", folder, agent, *room, fail=watcher.fail) as away,
        ):
            yield home, away


def kubeconfigs(made: Fleet) -> tuple[str, str]:
    """Return those of the manager and of the worker's agent, for scripts with their rights."""
    of = made.installation.kubeconfig
    (worker,) = made.workers
    return str(of(made.management, "gatelift-manager")), str(of(worker, "gatelift-agent"))


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:])))
