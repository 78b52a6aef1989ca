"""HTTP around the endpoints: connections, credentials, watches as streams, faults. The only server with aiohttp."""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import Mapping
from contextlib import suppress

import msgspec
from aiohttp import web

from gatelift_kube.process.clock import monotonic
from gatelift_sandbox.embedded import answers, discovery, identity, openapi, rbac
from gatelift_sandbox.embedded.answers import Answer
from gatelift_sandbox.embedded.audit import AuditLog
from gatelift_sandbox.embedded.documents import encode
from gatelift_sandbox.embedded.drafts import OBJECT_BYTES_MAX
from gatelift_sandbox.embedded.endpoints import Call, Endpoints
from gatelift_sandbox.embedded.failures import RequestRefusedError, bad_request, no_such_path
from gatelift_sandbox.embedded.identity import Tokens
from gatelift_sandbox.embedded.pipeline import Pipeline
from gatelift_sandbox.embedded.rbac import MASTERS, User
from gatelift_sandbox.embedded.requests import RequestInfo, flag, number, parse, version_of
from gatelift_sandbox.embedded.watches import WatchEvent
from gatelift_sandbox.faults import REASONS, FaultAction, FaultPlan, PlannedFault

WATCH_SECONDS_MAX = 3600
WATCH_SECONDS = 1800
"""A watch that names no `timeoutSeconds` ends after this, as with a real API server."""
BOOKMARK_SECONDS = 10.0
"""A real API server sends bookmarks about once a minute; a sandbox shows sooner that they are understood."""
SHUTDOWN_SECONDS = 2.0
CLOSING_TURNS = 3
"""An aborted TLS connection is gone after two turns of the event loop: its own and its socket's."""
KEEPALIVE_SECONDS = 180.0
"""Idle connections live longer than the keep-alive of clients, so that it is the client that closes them."""
FAULTS_PATH = "/sandbox/faults"
_ADDED = msgspec.json.Decoder(PlannedFault)


class HttpServer:
    """Serves one cluster over TLS on one port."""

    def __init__(self, pipeline: Pipeline, tokens: Tokens, faults: FaultPlan, audit: AuditLog) -> None:
        self.faults = faults
        self._audit = audit
        self._pipeline = pipeline
        self._store = pipeline.store
        self._tokens = tokens
        self._endpoints = Endpoints(pipeline, tokens)
        server = web.Server(self._handle, keepalive_timeout=KEEPALIVE_SECONDS, handler_cancellation=True)
        self._runner = web.ServerRunner(server, shutdown_timeout=SHUTDOWN_SECONDS)
        self._watches: set[WatchLines] = set()
        self._transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()
        self._stopped = False
        self.address = ""

    async def start(self, host: str, port: int, tls: ssl.SSLContext) -> int:
        """Listen; return the port. OSError where the address is taken."""
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port, ssl_context=tls)
        await site.start()
        found = int(self._runner.addresses[0][1])
        self.address = f"{host}:{found}"
        return found

    async def stop(self) -> None:
        """End all watches and connections."""
        self._stopped = True
        for lines in self._watches:
            lines.stop()
        await self._runner.cleanup()
        for transport in self._transports:
            transport.abort()  # a client that has gone without a word would leave its half of the TLS session open
        for _ in range(CLOSING_TURNS):
            await asyncio.sleep(0)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._stopped:  # its TLS handshake was under way when this stopped listening, so that nobody has ended it
            gone = web.Response(status=503)
            gone.force_close()
            return gone
        if request.transport is not None:
            with suppress(TypeError):  # uvloop's take no weak reference; its loop closes what is half open by itself
                self._transports.add(request.transport)
        received = self._pipeline.wall()
        try:
            user = self._user(request)
            info = parse(request.method, request.path, request.query)
        except RequestRefusedError as failure:
            return _response(_refused(failure))
        lost = False
        try:
            fault = self.faults.take(info.verb, info.resource, info.namespace, info.name) if info.plural else None
            if fault is not None:
                await self._hurt(request, fault)
            self._authorize(user, info)
            if info.verb == "watch":
                return await self._watch(request, user, info)
            answer = await self._answer(request, user, info)
            lost = fault is not None and fault.action is FaultAction.LOSE_ANSWER
        except RequestRefusedError as failure:
            answer = _refused(failure)
        self._audit.write(user, info, request.headers.get("User-Agent", ""), answer.code, received)
        if lost:
            _cut(request)
        return _response(answer)

    def _authorize(self, user: User, info: RequestInfo) -> None:
        if info.path not in _PUBLIC and not rbac.allowed(self._store, user, info):
            raise RequestRefusedError(403, "Forbidden", _forbidden(user, info), _forbidden_details(info))

    def _user(self, request: web.BaseRequest) -> User:
        found = identity.of_certificate(request.get_extra_info("peercert"))
        if found is not None:
            return found
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return identity.anonymous()
        user = self._tokens.user(token, self._store, self._pipeline.wall()) if scheme == "Bearer" else None
        if user is None:
            raise RequestRefusedError(401, "Unauthorized", "Unauthorized")
        return user

    async def _hurt(self, request: web.BaseRequest, fault: PlannedFault) -> None:
        match fault.action:
            case FaultAction.REFUSE:
                reason = fault.reason or REASONS[fault.code]
                raise RequestRefusedError(fault.code, reason, fault.message, retry_after=fault.retry_after)
            case FaultAction.DELAY:
                await asyncio.sleep(fault.seconds)
            case FaultAction.CUT:
                _cut(request)
            case FaultAction.LOSE_ANSWER:
                pass  # it is done first

    async def _answer(self, request: web.BaseRequest, user: User, info: RequestInfo) -> Answer:
        if not info.plural:
            return await self._plain(request, user, info)
        body = await request.content.read(OBJECT_BYTES_MAX + 1) if request.body_exists else b""
        while request.body_exists and len(body) <= OBJECT_BYTES_MAX and not request.content.at_eof():
            body += await request.content.read(OBJECT_BYTES_MAX + 1 - len(body))
        return await self._endpoints.respond(
            Call(
                info=info,
                user=user,
                query=request.query,
                body=body,
                content_type=request.headers.get("Content-Type", "").partition(";")[0].strip(),
                accept=request.headers.get("Accept", ""),
            )
        )

    async def _plain(self, request: web.BaseRequest, user: User, info: RequestInfo) -> Answer:
        """Answer what is about no object: health, version, discovery, OpenAPI, faults."""
        path, kinds = info.path.rstrip("/"), self._store.kinds
        parts = path.strip("/").split("/")
        if path == FAULTS_PATH:
            return await self._faults(request, user)
        if request.method not in ("GET", "HEAD"):
            raise no_such_path()
        match parts:
            case ["healthz" | "livez" | "readyz", *_]:
                return Answer(body=b"ok", content_type="text/plain")
            case ["version"]:
                return Answer(body=encode(discovery.VERSION))
            case ["api"] | ["apis"]:
                return self._discovery(request, core=parts == ["api"])
            case ["api", "v1"]:
                return Answer(body=encode(discovery.resource_list(kinds, "", "v1")))
            case ["apis", group]:
                return Answer(body=encode(discovery.group(kinds, group)))
            case ["apis", group, version]:
                return Answer(body=encode(discovery.resource_list(kinds, group, version)))
            case ["openapi", "v3"]:
                return Answer(body=encode(openapi.index(kinds)))
            case ["openapi", "v3", *place]:
                return Answer(body=encode(openapi.document(kinds, "/".join(place))))
            case _:
                raise no_such_path()

    def _discovery(self, request: web.BaseRequest, *, core: bool) -> Answer:
        accept = request.headers.get("Accept", "")
        for version in ("v2", "v2beta1"):
            if f"v={version};" in accept + ";" and "APIGroupDiscoveryList" in accept:
                found = discovery.aggregated(self._store.kinds, core=core, version=version)
                return Answer(body=encode(found), content_type=discovery.AGGREGATED.format(version=version))
        legacy = discovery.api_versions(self.address) if core else discovery.group_list(self._store.kinds)
        return Answer(body=encode(legacy))

    async def _faults(self, request: web.BaseRequest, user: User) -> Answer:
        """GET shows what waits, POST asks for one, DELETE clears. Also: POST `?drop=watches` or `?drop=history`."""
        if MASTERS not in user.groups:
            raise RequestRefusedError(403, "Forbidden", "faults are for cluster administrators")
        if request.method == "DELETE":
            self.faults.clear()
        elif request.method == "POST" and "drop" in request.query:
            self._drop(request.query)
        elif request.method == "POST":
            try:
                self.faults.add(_ADDED.decode(await request.read()))
            except ValueError as failure:
                raise bad_request(f"fault: {failure}") from None
        elif request.method != "GET":
            raise no_such_path()
        return Answer(body=encode({"waiting": self.faults.waiting(), "used": self.faults.used}))

    def _drop(self, query: Mapping[str, str]) -> None:
        what, wanted = query["drop"], query.get("resource", "")
        if what not in ("watches", "history"):
            raise bad_request(f"drop: {what!r} is neither watches nor history")
        for kind in self._store.kinds:
            if wanted in ("", kind.resource.plural):
                if what == "history":
                    self._store.compact(kind)
                self._store.drop_watches(kind)

    async def _watch(self, request: web.BaseRequest, user: User, info: RequestInfo) -> web.StreamResponse:
        call = Call(
            info=info,
            user=user,
            query=request.query,
            body=b"",
            content_type="",
            accept=request.headers.get("Accept", ""),
        )
        stream = web.StreamResponse(headers={"Content-Type": answers.JSON})
        stream.enable_chunked_encoding()
        lines = WatchLines(self._pipeline, call)
        try:
            lines.begin()
        except RequestRefusedError as failure:
            if failure.code != 410:
                raise
            await stream.prepare(request)
            await stream.write(encode({"type": "ERROR", "object": failure.status()}) + b"\n")
            return stream
        self._watches.add(lines)
        try:
            await stream.prepare(request)
            await stream.write(b"")
            while (chunk := await lines.next()) is not None:
                await stream.write(chunk)
        except ConnectionResetError:
            return stream  # the client has gone, which is how most watches end
        finally:
            self._watches.discard(lines)
            lines.end()
        return stream


class WatchLines:
    """The lines of one watch: what is there, what comes, bookmarks in between, until its time is over."""

    def __init__(self, pipeline: Pipeline, call: Call) -> None:
        self._store, self._wall = pipeline.store, pipeline.wall
        self._call = call
        self._stopped = False
        info, query = call.info, call.query
        self._kind = self._store.kinds.find(info.group, info.version, info.plural)
        self._bookmarks = flag(query, "allowWatchBookmarks")
        self._initial = flag(query, "sendInitialEvents")
        seconds = number(query, "timeoutSeconds", WATCH_SECONDS_MAX) or WATCH_SECONDS
        self._deadline = monotonic() + seconds
        self._bookmark_at = monotonic() + BOOKMARK_SECONDS
        self._some = asyncio.Event()
        self._headers = True

    def begin(self) -> None:
        """Start taking up events; ApiError 410 where the version asked for is forgotten."""
        since = version_of(self._call.query) or None
        if self._initial:
            since = None
        self._watch = self._store.watch(self._kind, self._call.selection(self._kind), since, self._some.set)
        self._some.set()

    def stop(self) -> None:
        """Let `next` return None from now on."""
        self._stopped = True
        self._some.set()

    def end(self) -> None:
        """Stop taking up events."""
        self._store.unwatch(self._kind, self._watch)

    async def next(self) -> bytes | None:
        """Return the next lines, None when the watch is over."""
        while True:
            if self._stopped:
                return None
            events = self._watch.take()
            if events or self._initial:
                return self._lines(events)
            now = monotonic()
            if self._watch.closed or now >= self._deadline:
                return None
            if self._bookmarks and now >= self._bookmark_at:
                self._bookmark_at = now + BOOKMARK_SECONDS
                return answers.bookmark_line(self._kind, self._store.version, self._call.form)
            self._some.clear()
            until = min(self._deadline, self._bookmark_at) if self._bookmarks else self._deadline
            await self._wait(until - now)

    def _lines(self, events: list[WatchEvent]) -> bytes:
        kind, form, now, lines = self._kind, self._call.form, self._wall(), []
        for event in events:
            lines.append(answers.event_line(kind, event, form, now, headers=self._headers))
            self._headers = False
        if self._initial:
            self._initial = False
            lines.append(answers.bookmark_line(kind, self._store.version, form, initial_end=True))
        return b"".join(lines)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._some.wait()
        except TimeoutError:
            return


_PUBLIC = frozenset({"/healthz", "/livez", "/readyz", "/version"})


def _forbidden(user: User, info: RequestInfo) -> str:
    text = rbac.refusal(user, info)
    if not info.plural:
        return f"forbidden: {text}"
    resource = f"{info.plural}.{info.group}" if info.group else info.plural
    about = f'{resource} "{info.name}"' if info.name else resource
    return f"{about} is forbidden: {text}"


def _forbidden_details(info: RequestInfo) -> dict[str, str]:
    found = {"name": info.name, "group": info.group, "kind": info.plural}
    return {key: value for key, value in found.items() if value}


def _cut(request: web.BaseRequest) -> None:
    """Break the connection; the client hears nothing."""
    if request.transport is not None:
        request.transport.abort()
    raise ConnectionResetError("cut by a fault of the sandbox")


def _refused(failure: RequestRefusedError) -> Answer:
    headers = {"Retry-After": str(failure.retry_after)} if failure.retry_after else {}
    return Answer(body=encode(failure.status()), code=failure.code, headers=headers)


def _response(answer: Answer) -> web.Response:
    response = web.Response(body=answer.body, status=answer.code, headers=answer.headers)
    response.headers["Content-Type"] = answer.content_type
    for warning in answer.warnings:
        text = warning.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        response.headers.add("Warning", f'299 - "{text}"')
    return response
