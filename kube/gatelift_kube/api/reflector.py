"""Keeps a cache equal to what an API server holds of one kind, and tells of each change: list, watch, list again.

`run` ends only by cancellation. Whatever breaks (connection, 410, 429, 500, silence) is answered by going on after a
growing delay; the difference between what was known and what a new list says becomes `ObjectSeen` and `ObjectGone`, so
that no change is missed and none is told twice. A watch on which nothing came for long is opened anew where it was,
without a word: API servers send no bookmarks for a kind of which nothing ever changed.

That a watch is opened says nothing of how far behind it is. Whoever has to know what is there now asks for it by
`list_anew`: a list that begins after the call, whatever the watch does, and `Synced` behind what it shows.

Versions never go back. Where a list shows that they did, the API server was put back to a backup under our feet, and
all that was told of the time that is lost is wrong: `on_went_back` hears it once, before the list is told.

Several parts of a process may need one kind. There is one watch for all: who comes later uses `follow`, which begins
with a new list. Followers are handed the same objects and the same bytes.

`emit` is called in the event loop and must not wait.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import count

import structlog

from gatelift_kube.api.client import ALL, PAGE_SIZE, WATCH_IDLE_SECONDS, WATCH_SECONDS, Client, Selection
from gatelift_kube.deciding.backoff import Backoff
from gatelift_kube.deciding.cache import Cache, key_of
from gatelift_kube.deciding.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    KubeError,
    NotFoundError,
    SilentError,
    UndecodableError,
)
from gatelift_kube.deciding.history import History
from gatelift_kube.deciding.writes import ApiEvent, KubeObject, ObjectGone, ObjectSeen, Synced
from gatelift_kube.decoding import decoding
from gatelift_kube.decoding.decoding import Page
from gatelift_kube.process.clock import Clock, monotonic
from gatelift_kube.values.resources import ObjectKey, Resource

Emit = Callable[[ApiEvent], None]

OURS = frozenset({"gatelift.dev", "kueue.x-k8s.io"})
"""Groups whose kinds are CRDs that we bring."""
ANSWERED_MAX = 4096
"""Answers to writes whose echo has not come: as many writes as may wait. Of one forgotten the echo is told."""

REPLAY_SLICE = 500
"""Objects told to a new follower before other tasks have their turn: a page of a list does the same."""

PASSING_MAX = 3
"""Answers in a row of which nobody is told where the API server only asks to begin anew or later: 410, and 429.

It gives two or three within a second to everybody who watches a kind whose CustomResourceDefinition was changed.
"""

_BACKOFF = Backoff(first_seconds=0.1, max_seconds=30.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectorLimits:
    """Times of a reflector."""

    page_size: int = PAGE_SIZE
    watch_seconds: int = WATCH_SECONDS
    """Each watch lasts between four fifths of this and all of it, so that reflectors do not reconnect together."""
    idle_seconds: float = WATCH_IDLE_SECONDS
    backoff: Backoff = _BACKOFF
    """A dead API server is asked twice a minute at least; one that hiccups is back after a tenth of a second."""
    calm_seconds: float = 5.0
    """A watch that lived so long, or brought something, was a good one: the next failure starts at the first delay."""


class Reflector:
    """Mirrors one kind (within `selection`) into `cache` and emits its changes.

    `with_raw` puts each object's JSON without managedFields into `ObjectSeen.raw`; it is kept here only with
    `followed`, for those who come later. `on_problem` gets one line for whatever goes wrong; the reflector goes on by
    itself.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource,
        emit: Emit,
        *,
        selection: Selection = ALL,
        cache: Cache | None = None,
        with_raw: bool = True,
        followed: bool = False,
        limits: ReflectorLimits | None = None,
        on_problem: Callable[[str], None] | None = None,
        on_went_back: Callable[[str], None] | None = None,
        rng: random.Random | None = None,
        clock: Clock = monotonic,
    ) -> None:
        self.resource = resource
        self.cache = cache if cache is not None else Cache()
        self.synced = asyncio.Event()
        """Set after the first complete list."""
        self.not_served = ""
        """What to do about a kind that the API server does not serve; "" where it does."""
        self.forbidden = ""
        """What the API server said where it does not let us read; "" where it does, or nobody knows."""
        self.heard_at: float | None = None
        """When the API server last said anything (monotonic seconds), bookmarks included."""
        self._client = client
        self._emit = emit
        self.selection = selection
        self._raws: dict[ObjectKey, bytes] | None = {} if followed else None
        self._answered: dict[ObjectKey, str] = {}
        self._followers: dict[int, Emit] = {}
        self._coming: dict[int, Emit] = {}
        self._numbers = count()
        self._watching: asyncio.Timeout | None = None
        self._with_raw = with_raw
        self._limits = limits or ReflectorLimits()
        self._on_problem = on_problem or (lambda _text: None)
        self._on_went_back = on_went_back or (lambda _text: None)
        self._history = History()
        self._rng = rng or random.Random()  # noqa: S311 - spreads reconnects, guards nothing
        self._clock = clock
        self._version = ""
        self._asked, self._answered_lists = 1, 0
        self._hurried = asyncio.Event()
        self._failures = 0
        self._log = structlog.get_logger("gatelift.kube.reflector")

    async def follow(self, emit: Emit) -> None:
        """Tell `emit` too, until cancelled: all objects of a list that begins after this call, `Synced`, then changes.

        Only of a reflector made with `followed`, while `run` runs.
        """
        if self._raws is None:
            raise RuntimeError(f"{self.resource.plural}: this reflector keeps nothing for followers")
        number = next(self._numbers)
        self._coming[number] = emit
        if self._watching is not None:
            self._watching.reschedule(asyncio.get_running_loop().time())
        try:
            await asyncio.Event().wait()  # for ever: whoever follows cancels
        finally:
            self._coming.pop(number, None)
            self._followers.pop(number, None)

    def list_anew(self) -> None:
        """List again, by a quorum read that begins after this call; `Synced` is emitted when all of it is told."""
        self._asked += 1
        self._hurried.set()
        if self._watching is not None:
            self._watching.reschedule(asyncio.get_running_loop().time())

    def answered(self, object_: KubeObject) -> None:
        """Take what a write was answered: `emit` has it from there and is not told of this version; followers are.

        Only for an `emit` to which an answer says all that the watch would say.
        """
        key = key_of(object_)
        known = self.cache.get(key)
        if known is not None and known.metadata.resource_version == object_.metadata.resource_version:
            return  # the watch was faster
        self._answered.pop(key, None)
        self._answered[key] = object_.metadata.resource_version
        if len(self._answered) > ANSWERED_MAX:
            del self._answered[next(iter(self._answered))]

    async def run(self) -> None:
        """Mirror until cancelled."""
        while True:
            passing = False
            try:
                if not self._version or self._is_asked:
                    await self._list()
                elif await self._watched():
                    self._version = ""  # somebody asked: what is told has to be newer than that
                continue
            except SilentError as silence:
                # The server had opened the watch, and nothing changed; or the connection died since. A new one tells:
                # if it is not opened either, that is a problem like any other.
                self._failures = 0
                self._log.debug("watch opened anew", kind=self.resource.plural, since=self._version, why=str(silence))
                continue
            except GoneError:
                # Too far behind, or compacted: what is known stays, and the next list shows the difference.
                self._version = ""
                self._failures += 1
                if self._failures == 1:
                    continue
                problem, passing = f"{self.resource.plural}: the API server forgets faster than lists are read", True
            except KubeError as error:
                self._failures += 1
                self.not_served = self._way_out if isinstance(error, NotFoundError) else ""
                self.forbidden = str(error) if isinstance(error, ForbiddenError) else ""
                problem = self.not_served or f"{self.resource.plural}: {error}"
                passing = isinstance(error, ApiError) and error.status == 429
                if isinstance(error, ApiError) and error.status < 500 and error.status != 429:
                    self._version = ""  # forbidden, not served, not understood: begin with a list when it is back
            if not passing or self._failures > PASSING_MAX:
                self._on_problem(problem)
            await self._rest()

    @property
    def _is_asked(self) -> bool:
        return bool(self._coming) or self._asked > self._answered_lists

    @property
    def _way_out(self) -> str:
        """Return what is said of a kind that is not there: no list or watch of one that is served is not found."""
        kind = self.resource
        way = (
            "its CRD is missing: kubectl apply --server-side -k deploy/crds" if kind.group in OURS else "is it too old?"
        )
        return f"{kind.plural}: this API server does not serve {kind.kind} of {kind.api_version}; {way}"

    async def _rest(self) -> None:
        """Wait before the next try, unless somebody asks for a list meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.backoff.seconds(self._failures, self._rng.random())):
                await self._hurried.wait()

    async def _list(self) -> None:
        """Read all pages, emit what is new or changed, then what is gone; then tell all to those who came before."""
        coming, asked = tuple(self._coming), self._asked
        self._hurried.clear()
        missing = set(self.cache.keys())
        version = ""
        async with aclosing(
            self._client.list(self.resource, self.selection, limit=self._limits.page_size, with_raw=self._with_raw)
        ) as pages:
            async for page in pages:
                self.heard_at, self.not_served, self.forbidden = self._clock(), "", ""
                self._compare(page)
                for unread in page.unread:
                    missing.discard(unread.key)
                    self._on_problem(unread.problem)
                for served in page.items:
                    missing.discard(key_of(served.object))
                    self._seen(served.object, served.raw)
                version = version or page.resource_version
        for key in sorted(missing):
            gone = self._dropped(key)
            if gone is not None:
                self._tell(ObjectGone(self.resource, gone))
        self._version = version
        self._history.reached(version)
        if asked > self._answered_lists:
            self._answered_lists = asked
            self.synced.set()
            self._emit(Synced(self.resource))
        for number in coming:
            await self._replay(number)

    def _compare(self, page: Page) -> None:
        """Look for what cannot be, if the API server is where it was: before any of it is told."""
        found = self._history.contradiction(self.cache, page.resource_version, [each.object for each in page.items])
        self._history.unread(each.key for each in page.unread)
        if found:
            self._on_went_back(f"{self.resource.plural}: {found}: was the API server restored?")

    async def _replay(self, number: int) -> None:
        """Tell a new follower all that is known; nothing changes meanwhile, since nothing is listed or watched."""
        emit = self._coming.get(number)
        for index, object_ in enumerate(tuple(self.cache)):
            if emit is None:
                return
            emit(ObjectSeen(self.resource, object_, (self._raws or {}).get(key_of(object_), b"")))
            if index % REPLAY_SLICE == REPLAY_SLICE - 1:
                await asyncio.sleep(0)
                emit = self._coming.get(number)
        if emit is not None:
            emit(Synced(self.resource))
            del self._coming[number]
            self._followers[number] = emit

    async def _watched(self) -> bool:
        """Follow changes until the watch ends; True when it was ended because somebody wants a list."""
        try:
            async with asyncio.timeout(None) as scope:
                self._watching = scope
                await self._watch()
        except TimeoutError:
            if not scope.expired():
                raise
            return True
        finally:
            self._watching = None
        return False

    async def _watch(self) -> None:
        """Follow changes until the server ends the watch; raises as `Client.watch` does."""
        limits = self._limits
        started = self._clock()
        seconds = max(1, math.trunc(limits.watch_seconds * (0.8 + 0.2 * self._rng.random())))
        async with aclosing(
            self._client.watch(
                self.resource, self.selection, since=self._version, seconds=seconds, idle_seconds=limits.idle_seconds
            )
        ) as lines:
            async for line in lines:
                self.heard_at = self._clock()
                self._failures = 0
                self._follow(line)
        if self._clock() - started >= limits.calm_seconds:
            self._failures = 0
            return
        self._failures += 1
        await self._rest()

    def _follow(self, line: decoding.WatchLine) -> None:
        if line.type == "BOOKMARK":
            self._version = decoding.bookmark_version(line.raw) or self._version
            self._history.reached(self._version)
            return
        try:
            object_ = decoding.read_object(self.resource, line.raw)
        except UndecodableError as error:
            self._history.unread([decoding.key_in(line.raw)])
            self._on_problem(f"{decoding.key_in(line.raw)}: {error}")
            return
        if line.type == "DELETED":
            self._dropped(key_of(object_))
            self._tell(ObjectGone(self.resource, object_))
        else:
            self._seen(object_, decoding.without_managed_fields(line.raw) if self._with_raw else b"")
        self._version = object_.metadata.resource_version or self._version
        self._history.reached(self._version)

    def _seen(self, object_: KubeObject, raw: bytes) -> None:
        change = self.cache.put(object_)
        if change.fresh and self._raws is not None:
            self._raws[key_of(object_)] = raw
        if change.gone is not None:
            self._tell(ObjectGone(self.resource, change.gone))
        if change.fresh:
            echo = bool(self._answered) and self._is_echo(object_)
            self._tell(ObjectSeen(self.resource, object_, raw), only_followers=echo)

    def _is_echo(self, object_: KubeObject) -> bool:
        """Say whether this very version was the answer to a write; later ones may be on their way before it."""
        key = key_of(object_)
        if self._answered.get(key) != object_.metadata.resource_version:
            return False
        del self._answered[key]
        return True

    def _dropped(self, key: ObjectKey) -> KubeObject | None:
        self._answered.pop(key, None)
        if self._raws is not None:
            self._raws.pop(key, None)
        return self.cache.drop(key)

    def _tell(self, event: ApiEvent, *, only_followers: bool = False) -> None:
        if not only_followers:
            self._emit(event)
        for emit in tuple(self._followers.values()):
            emit(event)
