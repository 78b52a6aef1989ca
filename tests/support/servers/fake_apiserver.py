"""A small API server over HTTP for the tests of the Kubernetes layer: scripted faults, no semantics beyond need.

It keeps objects, one resourceVersion for all, and a history for watches. It can be told to fail, to hang, to cut.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.values.resources import ObjectKey, ObjectRef, Resource

HISTORY_START = 100

Event = tuple[int, str, str, dict[str, Any]]
Events = asyncio.Queue[Event | None]
_NOT_FOLDERS = 3


@dataclass
class Fault:
    """What to do to the next `times` requests of this method whose path contains `part`, by one user agent or any."""

    method: str
    part: str
    times: int
    status: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop: bool = False
    carry_out: bool = False
    by: str = ""


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes


def status_of(code: int, reason: str, message: str = "", **details: Any) -> dict[str, Any]:
    """Return a metav1.Status."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "details": details,
        "code": code,
    }


class FakeApiServer:
    """Start with `start`, end with `stop`; `config` reaches it."""

    def __init__(self) -> None:
        self.version = HISTORY_START
        self.compacted = 0
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.expire_tokens = False
        self.mute = False
        self.kept_back = 0
        """Events that watches did not bring because of `mute`."""
        self.end_watches_at_once = False
        self.selects_labels = False  # True: lists and watches show what a labelSelector names, as a server does
        self._objects: dict[str, dict[str, Any]] = {}
        self._history: list[Event] = []
        self._watches: dict[int, tuple[web.Request, Events]] = {}
        self._hanging = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""
        self.user = "ada"

    @property
    def config(self) -> ClusterConfig:
        return ClusterConfig(server=self.url)

    async def start(self, tls: ssl.SSLContext | None = None) -> None:
        app = web.Application(client_max_size=8 * 1024 * 1024)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        host, bound = self._runner.addresses[0][:2]
        self.url = f"{'https' if tls else 'http'}://{host}:{bound}"

    async def stop(self) -> None:
        self._hanging.set()
        self.end_watches()
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()

    # What a test does behind the client's back.

    def fault(self, method: str, part: str, times: int = 1, **what: Any) -> None:
        self.faults.append(Fault(method, part, times, **what))

    def put(self, resource: Resource, name: str, namespace: str = "", **parts: Any) -> dict[str, Any]:
        """Create or replace an object and tell all watches."""
        path = resource.path(namespace, name)
        old = self._objects.get(path)
        metadata = {"name": name, "uid": f"uid-{name}", **parts.pop("metadata", {})}
        if namespace:
            metadata["namespace"] = namespace
        made = {"apiVersion": resource.api_version, "kind": resource.kind, **parts, "metadata": metadata}
        return self._store(path, made, "MODIFIED" if old else "ADDED")

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        path = resource.path(namespace, name)
        self._store(path, self._objects[path], "DELETED")

    def find(self, resource: Resource, name: str, namespace: str = "") -> dict[str, Any] | None:
        return self._objects.get(resource.path(namespace, name))

    def all(self, resource: Resource) -> list[dict[str, Any]]:
        return [found for found in self._objects.values() if found["kind"] == resource.kind]

    def bookmark(self, resource: Resource) -> None:
        """Send a bookmark to all watches of a kind: an empty object, as Go encodes it, required lists null."""
        metadata = {"resourceVersion": str(self.version)}
        made: dict[str, Any] = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
        made["spec"] = {"containers": None}
        self._append(resource.path("", "x"), made, "BOOKMARK")

    def error_line(self, resource: Resource, status: dict[str, Any]) -> None:
        self._append(resource.path("", "x"), status, "ERROR")

    def compact(self) -> None:
        """Forget all history: a watch from before now gets 410."""
        self._history.clear()
        self.compacted = self.version

    def copy(self) -> tuple[int, dict[str, dict[str, Any]]]:
        """Return a backup."""
        return self.version, dict(self._objects)

    def put_back(self, copy: tuple[int, dict[str, dict[str, Any]]], *, raised: int = 0) -> None:
        """Restore a backup: objects have the versions that they had; the server's own may be raised above the last."""
        self.version, self._objects = copy[0] + raised, dict(copy[1])
        self.compact()
        self.end_watches()

    def forget(self, resource: Resource, name: str, namespace: str = "") -> None:
        """Remove an object without a trace in the history, as if the watch had missed it."""
        self.version += 1
        del self._objects[resource.path(namespace, name)]

    def cut_watches(self) -> None:
        """Break the connections of all watches without a word."""
        for request, _ in list(self._watches.values()):
            if request.transport is not None:
                request.transport.abort()

    def end_watches(self) -> None:
        """End all watches in good order, as a server does after `timeoutSeconds`."""
        for _, queue in self._watches.values():
            queue.put_nowait(None)

    @property
    def watching(self) -> int:
        return len(self._watches)

    def asked(self, method: str, part: str = "") -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method and part in seen.path]

    # The server's side.

    def _store(self, path: str, made: dict[str, Any], kind: str) -> dict[str, Any]:
        self.version += 1
        made = {**made, "metadata": {**made["metadata"], "resourceVersion": str(self.version)}}
        if kind == "DELETED":
            self._objects.pop(path, None)
        else:
            self._objects[path] = made
        self._append(path, made, kind)
        return made

    def _append(self, path: str, made: dict[str, Any], kind: str) -> None:
        event = (self.version, path, kind, made)
        if kind not in ("BOOKMARK", "ERROR"):
            self._history.append(event)
        for _, queue in self._watches.values():
            queue.put_nowait(event)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.seen.append(Seen(request.method, request.path, dict(request.query), dict(request.headers), body))
        fault = self._fault_for(request)
        if fault is not None and not fault.carry_out:
            return await self._fail(request, fault)
        answer = await self._answer(request, body)
        return answer if fault is None else await self._fail(request, fault)

    def _fault_for(self, request: web.Request) -> Fault | None:
        by = request.headers.get("User-Agent", "")
        for fault in self.faults:
            asked = fault.method == request.method and fault.part in request.path_qs and fault.by in ("", by)
            if asked and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    async def _fail(self, request: web.Request, fault: Fault) -> web.StreamResponse:
        if fault.hang:
            await self._hanging.wait()
        if (fault.drop or fault.hang) and request.transport is not None:
            request.transport.abort()
        return web.json_response(fault.body, status=fault.status or 500, headers=fault.headers)

    async def _answer(self, request: web.Request, body: bytes) -> web.StreamResponse:
        path = request.path
        found = self._objects.get(path) or self._objects.get(path.rsplit("/", 1)[0] if "/status" in path else "")
        match request.method:
            case "GET" if request.query.get("watch"):
                return await self._watch(request)
            case "GET" if found is not None:
                return web.json_response(found)
            case "GET" if self._is_collection(path):
                return self._list(request)
            case "POST":
                return self._create(path, json.loads(body))
            case "PATCH" if found is not None:
                return self._patch(path.removesuffix("/status"), found, json.loads(body))
            case "DELETE" if found is not None:
                return self._delete(path, found, json.loads(body))
        return web.json_response(status_of(404, "NotFound", f"{path} not found"), status=404)

    def _is_collection(self, path: str) -> bool:
        parts = path.strip("/").split("/")
        depth = len(parts) - (_NOT_FOLDERS if parts[0] == "apis" else _NOT_FOLDERS - 1)
        return depth in (1, 3)

    def _create(self, path: str, made: dict[str, Any]) -> web.Response:
        if path.endswith("/selfsubjectreviews"):
            return web.json_response({**made, "status": {"userInfo": {"username": self.user}}}, status=201)
        metadata = made["metadata"]
        target = f"{path}/{metadata['name']}"
        if target in self._objects:
            return web.json_response(status_of(409, "AlreadyExists", f"{target} already exists"), status=409)
        metadata.setdefault("uid", f"uid-{self.version}")
        return web.json_response(self._store(target, made, "ADDED"), status=201)

    def _patch(self, path: str, old: dict[str, Any], patch: Any) -> web.Response:
        wanted = patch.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != old["metadata"]["resourceVersion"]:
            return web.json_response(status_of(409, "Conflict", "the object has been modified"), status=409)
        return web.json_response(self._store(path, merged(old, patch), "MODIFIED"))

    def _delete(self, path: str, old: dict[str, Any], options: dict[str, Any]) -> web.Response:
        uid = options.get("preconditions", {}).get("uid")
        if uid is not None and uid != old["metadata"]["uid"]:
            return web.json_response(status_of(409, "Conflict", "Precondition failed: UID"), status=409)
        self._store(path, old, "DELETED")
        return web.json_response({"kind": "Status", "apiVersion": "v1", "status": "Success"})

    def _list(self, request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "") if self.selects_labels else ""
        names = sorted(
            path
            for path, found in self._objects.items()
            if _collection(path) == _collection(request.path + "/x") and selects(selector, found)
        )
        token = request.query.get("continue", "")
        if token and self.expire_tokens:
            self.expire_tokens = False
            return web.json_response(status_of(410, "Expired", "the continue token is too old"), status=410)
        start = int(token or "0")
        limit = int(request.query.get("limit", "500"))
        items = [self._objects[name] for name in names[start : start + limit]]
        more = start + limit < len(names)
        metadata = {"resourceVersion": str(self.version), "continue": str(start + limit) if more else ""}
        return web.json_response({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        if since < self.compacted:
            return web.json_response(status_of(410, "Expired", "too old resource version"), status=410)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if self.end_watches_at_once:
            return response
        queue: Events = asyncio.Queue()
        for event in self._history:
            if event[0] > since:
                queue.put_nowait(event)
        self._watches[id(request)] = (request, queue)
        selector = request.query.get("labelSelector", "") if self.selects_labels else ""
        try:
            while (event_or_end := await queue.get()) is not None:
                _, path, kind, made = event_or_end
                if _collection(path) != _collection(request.path + "/x"):
                    continue
                if kind not in ("BOOKMARK", "ERROR") and not selects(selector, made):
                    continue
                if self.mute:
                    self.kept_back += 1
                    continue
                await response.write(json.dumps({"type": kind, "object": made}).encode() + b"\n")
        finally:
            del self._watches[id(request)]
        return response


def _collection(path: str) -> tuple[str, ...]:
    """Return group, version and plural of an object's path."""
    parts = path.strip("/").split("/")
    if "namespaces" in parts and len(parts) - parts.index("namespaces") > 2:
        at = parts.index("namespaces")
        parts = parts[:at] + parts[at + 2 :]
    return tuple(parts[:-1])


def selects(selector: str, found: dict[str, Any]) -> bool:
    """Say whether an object's labels match: `key`, `!key`, `key=value` and `key!=value`, all of them by commas."""
    labels = found["metadata"].get("labels") or {}
    for term in filter(None, selector.split(",")):
        key, differs, value = term.partition("!=")
        if differs:
            matches = labels.get(key) != value
        elif "=" in term:
            key, _, value = term.partition("=")
            matches = labels.get(key) == value.removeprefix("=")
        else:
            matches = (key.removeprefix("!") in labels) != key.startswith("!")
        if not matches:
            return False
    return True


def merged(old: Any, patch: Any) -> Any:
    """Return the result of a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def ref_of(resource: Resource, name: str, namespace: str = "") -> ObjectRef:
    return ObjectRef(resource, ObjectKey(namespace, name))
