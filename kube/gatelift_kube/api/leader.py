"""Leader election by a Lease, on its own thread, event loop and connection: no burst of work costs the lead.

`Elector` is the loop of one candidate; `LeaderElector` runs it in a thread and tells the main loop what happened.
`election` decides. A reader of `standing` asks its own clock: what was true when a callback ran may have run out since.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from gatelift_kube.api.client import Client
from gatelift_kube.api.config import ClusterConfig
from gatelift_kube.deciding.election import Election, ElectionStep, ElectionTimes, LeadStanding
from gatelift_kube.deciding.errors import (
    AlreadyExistsError,
    ConflictError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    TimedOutError,
    UnauthorizedError,
)
from gatelift_kube.objects.core import Lease
from gatelift_kube.process.clock import Clock, monotonic, wall
from gatelift_kube.values.resources import LEASE, ObjectKey, ObjectRef

T = TypeVar("T")
Floors = Callable[[Client], Awaitable[tuple[int, int]]]
"""Reads the term that the next one must exceed, and the number from which the Lease counts on at least."""

STOP_SECONDS = 5.0
"""How long a clean stop waits for the lease to be given back; without an answer the others wait for its end."""
TRY_SHARE = 0.3
"""Part of `renew_seconds` that a first request may take, so that a lost packet leaves time for another try.

Each try after one that failed may take twice as long: a server that is overloaded answers late, and to all alike."""
TROUBLES_TOLD = 3
"""So many requests in a row that came to nothing are told: one may be a lost packet, or somebody who was first."""
HURRY = 0.25
"""Part of the retry time that a leader waits after a renewal that failed."""


class Elector:
    """One candidate. `run` loops until `stop` was called, then gives the lease back; callbacks run in its loop.

    `floors` is asked before each try to take the Lease, after it was found free: a candidate may have waited for days,
    and who led before may have given it back because of what it had read there.
    """

    def __init__(
        self,
        client: Client,
        election: Election,
        *,
        on_acquired: Callable[[int], None],
        on_lost: Callable[[str], None],
        floors: Floors | None = None,
        rng: random.Random | None = None,
        clock: Clock = monotonic,
        wall_clock: Clock = wall,
        on_problem: Callable[[str], None] = lambda _text: None,
        on_edited: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._client = client
        self._on_problem = on_problem
        self._on_edited = on_edited
        self._troubles = 0
        self._election = election
        self._on_acquired = on_acquired
        self._on_lost = on_lost
        self._floors = floors
        self._rng = rng or random.Random()  # noqa: S311 - spreads candidates, guards nothing
        self._clock = clock
        self._wall = wall_clock
        self._stop = asyncio.Event()
        self._ref = ObjectRef(LEASE, election.key)
        self._led = False
        self._failures = 0

    def stop(self) -> None:
        """End `run` soon."""
        self._stop.set()

    async def run(self) -> None:
        """Be a candidate until stopped."""
        try:
            while not self._stop.is_set():
                hurry = 1.0
                try:
                    await self._turn()
                    self._failures = 0
                except KubeError as error:  # whatever it was, the next turn reads the Lease again
                    self._failures += 1
                    self._trouble(error)
                    hurry = HURRY if self._led else 1.0
                self._tell()
                await self._pause(hurry)
        finally:
            await self._release()
            self._tell()

    async def _turn(self) -> None:
        election = self._election
        if not election.standing.leads(self._clock()):
            await self._read()
        step = election.step(self._clock())
        if step is ElectionStep.WAIT:
            self._well()
            return
        if step is not ElectionStep.RENEW:
            await self._raise_floors()
        sent_at = self._clock()
        try:
            lease = await self._write(step)
        except (AlreadyExistsError, ConflictError, NotFoundError) as error:
            # Somebody was first, or an earlier write of ours got through after all: only the record can tell.
            await self._read()
            self._trouble(error)
            return
        self._well()
        self._tell_edited()
        now = self._clock()
        if step is ElectionStep.RENEW:
            election.renewed(lease, sent_at, now)
        else:
            election.acquired(lease, sent_at, now)

    async def _raise_floors(self) -> None:
        """Ask how far terms and counter have come elsewhere; without an answer the Lease is not taken."""
        if self._floors is None:
            return
        try:
            async with asyncio.timeout(self._try_seconds()):
                term, counter = await self._floors(self._client)
        except TimeoutError as error:
            raise TimedOutError("how far terms have come was not answered in time") from error
        self._election.raise_floor(term)
        self._election.raise_counter(counter)

    def _trouble(self, error: KubeError) -> None:
        """Take that a request about the Lease came to nothing; told when it is no passing one."""
        self._troubles += 1
        if self._troubles >= TROUBLES_TOLD:
            self._on_problem(f"leader election by Lease {self._ref.key}: {error}; {_way_out(error)}")

    def _well(self) -> None:
        """Take that requests about the Lease are answered."""
        if self._troubles >= TROUBLES_TOLD:
            self._on_problem("")
        self._troubles = 0

    def _tell_edited(self) -> None:
        """Tell once of a number in the Lease that no holder wrote; it is put right by the write that has just gone."""
        edited = self._election.take_edited()
        if edited:
            self._on_edited(f"Lease {self._ref.key}: {edited}; look who may write it")

    async def _read(self) -> None:
        try:
            served = await self._client.get(self._ref, seconds=self._try_seconds())
        except NotFoundError:
            self._election.observe(None, self._clock())
            return
        self._election.observe(_lease(served.object), self._clock())

    async def _write(self, step: ElectionStep) -> Lease:
        body = msgspec.json.encode(self._election.body(step, self._wall(), self._clock()))
        seconds = self._try_seconds()
        if step is ElectionStep.CREATE:
            served = await self._client.create(LEASE, self._ref.key.namespace, body, seconds=seconds)
        else:
            served = await self._client.patch(self._ref, body, seconds=seconds)
        return _lease(served.object)

    def _try_seconds(self) -> float:
        """Return the limit of one request: a share of the renewal time, and never past the end of our own lease."""
        renew = self._election.times.renew_seconds
        share = min(renew, renew * TRY_SHARE * 2.0 ** min(self._failures, 2))
        now = self._clock()
        standing = self._election.standing
        return min(share, max(0.05, standing.valid_until - now)) if standing.leads(now) else share

    def _tell(self) -> None:
        """Tell of a change of standing, once, and of a Lease that went back, also who does not lead."""
        election = self._election
        if not self._led and election.went_back():
            why = election.went_back()
            election.resigned()
            self._on_lost(why)
        elif self._led:
            why = election.lost(self._clock())
            if why:
                self._led = False
                election.resigned()
                self._on_lost(why)
        elif election.standing.leads(self._clock()):
            self._led = True
            self._on_acquired(election.standing.term)

    async def _pause(self, hurry: float) -> None:
        """Wait for the next turn: `hurry` times a retry time, spread by a fifth, and no longer than the lease lasts."""
        now = self._clock()
        seconds = hurry * self._election.times.retry_seconds * (0.8 + 0.2 * self._rng.random())
        end = self._election.standing.valid_until if self._led else self._election.free_at()
        if now < end:
            seconds = min(seconds, end - now)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stop.wait()

    async def _release(self) -> None:
        """Lead no more, then say so in the Lease, so that the next one need not wait."""
        body = self._election.release_body(self._wall())
        led, self._led = self._led, False
        self._election.resigned()
        if led:
            self._on_lost("stopped")
        if body is not None:
            with suppress(KubeError):  # best effort: without it the others wait for the end of the lease
                await self._client.patch(self._ref, msgspec.json.encode(body), seconds=STOP_SECONDS / 2)


class LeaderElector:
    """Runs for the Lease `namespace/name` as `identity` (unique to this process) on a thread of its own.

    `on_acquired(term)`, `on_lost(reason)`, `on_problem(text)` and `on_edited(text)`, of numbers in the Lease that no
    holder wrote, are posted to the event loop that called `start`.
    `floor` is the highest term known from elsewhere: a Lease that was deleted must not make terms go back; `floors`
    reads that, and from which number it counts on, each time before the Lease is taken. `counts`: see `election`.
    """

    def __init__(
        self,
        config: ClusterConfig,
        namespace: str,
        name: str,
        identity: str,
        *,
        on_acquired: Callable[[int], None],
        on_lost: Callable[[str], None],
        times: ElectionTimes | None = None,
        floor: int = 0,
        floors: Floors | None = None,
        counts: bool = False,
        clock: Clock = monotonic,
        user_agent: str = "gatelift-elector",
        on_problem: Callable[[str], None] = lambda _text: None,
        on_edited: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self.problem = ""
        """Why nobody is elected, or a lead cannot be kept, and the way out; "" while the Lease is read and written."""
        self.identity = identity
        self._told_of = on_problem
        self._on_edited = on_edited
        self._config = config
        self._clock = clock
        self._user_agent = user_agent
        self._on_acquired = on_acquired
        self._on_lost = on_lost
        self._floors = floors
        self._election = Election(
            ObjectKey(namespace, name), identity, times or ElectionTimes(), floor=floor, counts=counts
        )
        self._thread: threading.Thread | None = None
        self._main: asyncio.AbstractEventLoop | None = None
        self._own: asyncio.AbstractEventLoop | None = None
        self._elector: Elector | None = None
        self._stopping = threading.Event()

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the Lease."""
        return self._election.key

    @property
    def standing(self) -> LeadStanding:
        """Term and end of our lease, as one value that is replaced as a whole: safe to read from any thread."""
        return self._election.standing

    @property
    def term(self) -> int:
        """Our term; 0 where we do not lead."""
        return self.standing.term

    @property
    def holder(self) -> str:
        """Identity of who leads, as last read."""
        return self._election.holder

    def leads(self) -> bool:
        """Return whether we lead now, by our own clock."""
        return self.standing.leads(self._clock())

    def valid_until(self) -> float:
        """Return the moment (of the clock given) up to which we lead unless renewed; the past where we do not."""
        return self.standing.valid_until

    def settle(self, term: int, *, settled: bool) -> None:
        """Have the Lease say from its next renewal on whether who leads in `term` is settled; see `election`."""
        self._election.settle(term, settled=settled)

    async def look(self, client: Client) -> None:
        """Take in the Lease before anything else is read: counts it less later, then that may be of a lost history.

        Call before `start`. Where nobody answers nothing is known, as without the call.
        """
        with suppress(KubeError):
            served = await client.get(ObjectRef(LEASE, self._election.key))
            self._election.observe(_lease(served.object), self._clock())

    def start(self) -> None:
        """Become a candidate. Call once, in the event loop that shall get the callbacks."""
        if self._thread is not None:
            raise RuntimeError("leader election is started already")
        self._main = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._thread_main, name=f"elector {self._election.key}", daemon=True)
        self._thread.start()

    async def stop(self, seconds: float = STOP_SECONDS) -> bool:
        """Give the lease back and end the thread; False where it has not ended within `seconds`."""
        self._stopping.set()
        thread, own, elector = self._thread, self._own, self._elector
        if thread is None:
            return True
        if own is not None and elector is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                own.call_soon_threadsafe(elector.stop)
        await asyncio.to_thread(thread.join, seconds)
        return not thread.is_alive()

    def _thread_main(self) -> None:
        try:
            asyncio.run(self._candidate())
        except Exception as error:  # noqa: BLE001 - the edge of the thread: the main loop must hear of any failure
            self._election.resigned()
            self._post(self._on_lost, f"leader election failed: {type(error).__name__}: {error}")

    async def _candidate(self) -> None:
        async with Client.connect(self._config, connections=2, user_agent=self._user_agent) as client:
            self._elector = Elector(
                client,
                self._election,
                on_acquired=lambda term: self._post(self._on_acquired, term),
                on_lost=lambda reason: self._post(self._on_lost, reason),
                floors=self._floors,
                clock=self._clock,
                on_problem=lambda text: self._post(self._problem, text),
                on_edited=lambda text: self._post(self._on_edited, text),
            )
            self._own = asyncio.get_running_loop()
            if self._stopping.is_set():  # stopped before the thread was ready
                self._elector.stop()
            await self._elector.run()

    def _problem(self, text: str) -> None:
        """Keep what is wrong, and tell it; how often that is worth a line is the listener's to say."""
        self.problem = text
        if text:
            self._told_of(text)

    def _post(self, callback: Callable[[T], None], value: T) -> None:
        if self._main is not None:
            with suppress(RuntimeError):  # the main loop is closed: nobody is left to be told
                self._main.call_soon_threadsafe(callback, value)


def _way_out(error: KubeError) -> str:
    """Return what a person can do about a refusal."""
    if isinstance(error, ForbiddenError | UnauthorizedError):
        return "its ServiceAccount needs the Role that deploy/ gives it: create leases; get, patch and update this one"
    if isinstance(error, NotFoundError):
        return "is its namespace there?"
    return "nobody leads until that is answered: is the API server well?"


def _lease(object_: object) -> Lease:
    if not isinstance(object_, Lease):
        raise TypeError(f"a Lease was asked for, not {type(object_).__name__}")
    return object_
