"""Follows nodes and pods of the whole cluster, and says what room there is: once in a while, not for each pod.

Decides nothing: the sums are `NodeRoom`'s. The mirror of pods keeps no more than what tells one version from another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from gatelift_agent.core.values.events import RoomSeen
from gatelift_agent.core.values.node_room import NodeRoom, RoomOfNodes
from gatelift_kube.api.client import Selection
from gatelift_kube.deciding.cache import Cache, CacheChange
from gatelift_kube.deciding.writes import ApiEvent, KubeObject, ObjectGone, ObjectSeen, Synced
from gatelift_kube.objects.core import Node, Pod
from gatelift_kube.objects.meta import ObjectMeta
from gatelift_kube.values.resources import NODE, POD, Resource

ROOM_SECONDS = 5.0
"""How often the sums are told at most: a bid may be that much behind what others run, as any scheduler's view is."""

RUNNING = Selection(fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed")
"""Pods that hold room on a node."""


class ThinCache(Cache):
    """Which pods there are, by key, UID and version; nothing else of them."""

    def put(self, object_: KubeObject) -> CacheChange:
        """Remember that there is an object."""
        meta = object_.metadata
        thin = ObjectMeta(
            name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version
        )
        return super().put(Pod(metadata=thin))


class NodeWatch:
    """What is known of the nodes' room, told by `post` when it has changed."""

    def __init__(
        self, post: Callable[[RoomSeen], None], pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._post = post
        self._pause = pause
        self._room = NodeRoom()
        self._missing: set[Resource] = {NODE, POD}
        self._changed = asyncio.Event()
        self._problem = ""
        self._told: RoomOfNodes | None = None

    async def run(self) -> None:
        """Tell, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            room = RoomOfNodes(problem=self._problem) if self._missing else self._room.room()
            if room != self._told:
                self._told = room
                self._post(RoomSeen(room=room))
            await self._pause(ROOM_SECONDS)

    def take(self, event: ApiEvent) -> None:
        """Take what happened to a node or a pod."""
        changed = False
        match event:
            case Synced(resource=resource):
                changed = resource in self._missing
                self._missing.discard(resource)
            case ObjectSeen(object=Node() as node, raw=raw):
                try:
                    changed = self._room.node_seen(node, raw)
                except msgspec.MsgspecError:
                    changed = self._room.node_gone(node.metadata.name)  # one node that cannot be read has no room
            case ObjectSeen(object=Pod() as pod):
                changed = self._room.pod_seen(pod)
            case ObjectGone(object=Node() as node):
                changed = self._room.node_gone(node.metadata.name)
            case ObjectGone(object=Pod() as pod):
                changed = self._room.pod_gone(pod.metadata.uid)
        if changed and not self._missing:
            self._changed.set()

    def refused(self, why: str) -> None:
        """Take that nodes or pods cannot be listed at the moment."""
        if self._missing:
            self._problem = why
            self._changed.set()
