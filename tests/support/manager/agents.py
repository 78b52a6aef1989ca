"""Scripted links and worker clusters for tests of the manager: they keep the rules, a test decides the rest."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gatelift.core.api import events
from gatelift.core.clusters.link_values import ClusterView, LinksOutcome, PlaceCounts, Sent, Upcall
from gatelift.core.records import given
from gatelift_kube.objects.gatelift import Predecessor, WorkerCluster
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.inventory import InventoryEntry
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Applied,
    Bid,
    BidKind,
    Commit,
    Confirm,
    CountsReport,
    Finished,
    Forget,
    GatesLifted,
    Message,
    ObjectReport,
    Offer,
    PodSetCounts,
    PodSetRequest,
    Refused,
    Report,
    Stop,
    Stopped,
    Withdraw,
)
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Resize, SizeRefused, SliceFinished
from support.manager.api import Doc

if TYPE_CHECKING:
    from support.manager.world import World


@dataclass
class ScriptedLinks:
    """Links whose sessions are what the test says; what is sent lands in `sent`."""

    views: dict[str, ClusterView] = field(default_factory=dict)
    sent: deque[tuple[str, int, int, Message]] = field(default_factory=deque)
    log: list[tuple[str, Message]] = field(default_factory=list)
    pending: deque[Upcall] = field(default_factory=deque)
    sequences: dict[str, int] = field(default_factory=dict)
    revision: int = 0
    predecessors: dict[str, tuple[Predecessor, ...]] = field(default_factory=dict)
    inventories_compared: dict[str, int] = field(default_factory=dict)
    no_new_work: dict[str, tuple[str, str]] = field(default_factory=dict)
    seal_key: bytes = b""
    broken_off: list[tuple[str, str]] = field(default_factory=list)
    namespaces: dict[str, frozenset[str]] = field(default_factory=dict)
    tell: Callable[[Any, Any], None] = lambda _who, _what: None

    def handle(self, event: events.Event, now: float, *, record_revision: int) -> LinksOutcome:
        self.revision = record_revision
        if isinstance(event, events.BreakOff):
            self.broken_off.append((event.cluster, event.text))
        upcalls = tuple(self.pending)
        self.pending.clear()
        return LinksOutcome(upcalls=upcalls)

    def owns_write(self, write_id: int) -> bool:
        return False

    def send(self, cluster: str, messages: Iterable[Message], now: float) -> Sent:
        view = self.views.get(cluster)
        if view is None or not view.open:
            return Sent()
        first = self.sequences.get(cluster, 0) + 1
        for offset, message in enumerate(messages):
            self.sequences[cluster] = first + offset
            self.sent.append((cluster, view.session, first + offset, message))
            self.log.append((cluster, message))
            self.tell(f"to {cluster}:", message)
        return Sent(session=view.session, first_sequence=first)

    def expects(self, cluster: str, token: str) -> bool:
        return False

    def place_counts(self, cluster: str, counts: PlaceCounts) -> None:
        self.counts = (cluster, counts.placements, counts.offers)
        if counts.no_new_work is not None:
            self.no_new_work[cluster] = counts.no_new_work

    def placed_in(self, cluster: str, namespaces: frozenset[str]) -> None:
        self.namespaces[cluster] = namespaces

    def compared(self, cluster: str, session: int) -> None:
        self.inventories_compared[cluster] = session

    def remember(self, cluster: str, predecessors: tuple[Predecessor, ...], over: frozenset[PlacementKey]) -> None:
        self.predecessors[cluster] = predecessors

    def given(self, cluster: str, placed: PlacementKey, namespace: str, name: str) -> str:
        return given.mark(self.seal_key, "origin", cluster, placed, ObjectKey(namespace, name))

    def state(self, cluster: str) -> ClusterView | None:
        return self.views.get(cluster)

    def counted(self, found: WorkerCluster) -> WorkerCluster:
        return found

    def clusters(self) -> tuple[str, ...]:
        return tuple(sorted(self.views))

    def next_deadline(self) -> float | None:
        return None


@dataclass
class Held:
    """A placement at a scripted agent."""

    offer: Offer | None = None
    commit: Commit | None = None
    state: str = "Held"
    lifted: bool = False
    confirmed: int = 0
    final: Report | None = None
    called: str = ""
    size: int = 0
    """The number of its size, of elastic work."""
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def name(self) -> str:
        """Return the name of its object: as told, as offered or committed, or of the usual pod."""
        told = self.commit or self.offer
        return self.called or (told.name if told is not None else "one")


@dataclass
class ScriptedAgent:
    """A worker cluster that keeps the rules: R1 (starts only when confirmed in the session), R5, R7.

    `bid` decides what it answers to an offer; `auto` False stops it after Applied until `lift` is called. `mark`: what
    it lists with all that it has.
    """

    name: str
    world: World
    placements: dict[PlacementKey, Held] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    bid: Callable[[Offer], Bid] | None = None
    refuse_commit: Refusal | None = None
    auto: bool = True
    silent: bool = False
    session: int = 0
    applied: int = 0
    mark: str = ""
    commits: list[PlacementKey] = field(default_factory=list)
    answers: bool = False
    """Whether it answers each size at once, as one whose surplus has gone."""
    grows: Callable[[Offer], Bid] | None = None
    """What it answers to the offer of a growth; None: it holds the room."""
    refuse_size: Refusal | None = None

    def receive(self, session: int, sequence: int, message: Message) -> None:
        if session != self.session:
            return
        self.applied = sequence
        if self.silent or self._is_of_a_size(message):
            return
        match message:
            case Offer():
                self._offer(message)
            case Commit():
                self._commit(message)
            case Confirm():
                for key in message.keys:
                    if key in self.placements:
                        self.placements[key].confirmed = self.session
                        self._start(key)
            case Withdraw():
                held = self.placements.get(message.key)
                if held is not None and held.state == "Held":
                    del self.placements[message.key]
            case Stop():
                self._stop(message.key)
            case Forget():
                self.placements.pop(message.key, None)

    def _is_of_a_size(self, message: Message) -> bool:
        """Take what is about a size alone."""
        match message:
            case Offer(size=size) if size:
                held = Bid(key=message.key, kind=BidKind.HELD, hold_seconds=30.0, size=size)
                self.say(self.grows(message) if self.grows is not None else held)
            case Resize():
                self._resize(message.key, message.number, message.pod_sets)
            case Withdraw(size=size) if size:
                pass
            case _:
                return False
        return True

    def say(self, report: Report) -> None:
        self.world.report(self.name, self.session, report)

    def _offer(self, offer: Offer) -> None:
        if self.used.get(offer.key.uid, 0) >= offer.key.epoch:
            self.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=Refusal.EPOCH_STALE))
            return
        answer = self.bid(offer) if self.bid is not None else Bid(key=offer.key, kind=BidKind.HELD, hold_seconds=30.0)
        if answer.kind is not BidKind.REFUSED:
            self.placements[offer.key] = Held(offer=offer)
        self.say(answer)

    def _commit(self, commit: Commit) -> None:
        key = commit.key
        held = self.placements.get(key)
        if held is not None and held.final is not None:
            self.say(held.final)  # it was over before: its last word again
            return
        if held is not None and held.commit is not None:
            return
        if self.used.get(key.uid, 0) >= key.epoch:
            self.say(Refused(key=key, refusal=Refusal.EPOCH_STALE))
            return
        self.used[key.uid] = key.epoch
        if held is None:
            self.say(Refused(key=key, refusal=Refusal.HOLD_EXPIRED))
            return
        if self.refuse_commit is not None:
            self.placements.pop(key, None)
            self.say(Refused(key=key, refusal=self.refuse_commit, text="as told"))
            return
        self.commits.append(key)
        self.placements[key] = Held(commit=commit, state="Gated", confirmed=self.session)
        self.say(Applied(key=key))
        if commit.size:
            self._resize(key, commit.size, commit.pod_sets)
        if self.auto:
            self._start(key)

    def _resize(self, key: PlacementKey, number: int, pod_sets: tuple[PodSetRequest, ...]) -> None:
        """Keep the rules of sizes: none at or below the one that it has is taken (Size 4)."""
        held = self.placements.get(key)
        if held is None or held.commit is None or number < held.size:
            return
        if number > held.size and self.refuse_size is not None:
            self.say(SizeRefused(key=key, number=number, refusal=self.refuse_size, text="as told"))
            return
        if number > held.size:
            held.size, held.counts = number, tuple((one.name, one.count) for one in pod_sets)
        if self.answers:
            self.answer_size(key)

    def answer_size(self, key: PlacementKey, number: int = 0) -> None:
        """Say that no more runs, or can start, than its size (or another one) grants."""
        self.say(SliceFinished(key=key, number=number or self.placements[key].size))

    def _start(self, key: PlacementKey) -> None:
        held = self.placements[key]
        if held.state == "Gated" and held.confirmed == self.session and self.auto:
            self.lift(key)

    def lift(self, key: PlacementKey) -> None:
        """Lift the gates: from here it runs."""
        held = self.placements[key]
        held.lifted, held.state = True, "Running"
        self.world.started(key, self.name)
        self.say(GatesLifted(key=key))

    def _stop(self, key: PlacementKey) -> None:
        held = self.placements.get(key)
        self.used[key.uid] = max(self.used.get(key.uid, 0), key.epoch)
        if held is not None and isinstance(held.final, Finished):
            self.say(held.final)
            return
        if held is not None and held.lifted:
            self.world.stopped(key, self.name)
            self.world.local_stop(self.name, held)
        final = Stopped(key=key)
        self.placements[key] = replace(held or Held(), state="Reported", lifted=False, final=final)
        self.say(final)

    def show(self, key: PlacementKey, status: Doc) -> None:
        """Report the status of the one object of a placement."""
        held = self.placements[key]
        assert held.commit is not None
        body = json.dumps(status).encode()
        self.say(ObjectReport(key=key, kind=held.commit.kind, name=held.commit.name, uid="w", status=body))

    def count(self, key: PlacementKey, *, reclaimable: int = 0, **counts: int) -> None:
        """Report where the pods of the one pod set are."""
        said = (("main", reclaimable),) if reclaimable else ()
        self.say(CountsReport(key=key, pod_sets=(PodSetCounts(name="main", **counts),), reclaimable=said))

    def finish(self, key: PlacementKey, status: Doc, *, succeeded: bool = True, message: str = "") -> None:
        """End the work by itself."""
        held = self.placements[key]
        assert held.commit is not None
        report = ObjectReport(
            key=key, kind=held.commit.kind, name=held.commit.name, uid="w", status=json.dumps(status).encode()
        )
        final = Finished(
            key=key,
            succeeded=succeeded,
            reason="Succeeded" if succeeded else "Failed",
            message=message,
            objects=(report,),
        )
        self.world.stopped(key, self.name)
        held.state, held.lifted, held.final = "Reported", False, final
        self.say(final)

    def die(self) -> None:
        """End all that runs, and know nothing: the machine is gone."""
        for key in self.placements:
            self.world.stopped(key, self.name)
        self.placements.clear()

    def restart(self) -> None:
        """Lose what is only in memory: holds, and epochs of which no object is left (R5)."""
        self.placements = {key: held for key, held in self.placements.items() if held.state != "Held"}
        self.used = {key.uid: key.epoch for key in self.placements}

    def inventory(self) -> tuple[InventoryEntry, ...]:
        return tuple(
            InventoryEntry(
                key=key,
                namespace="team",
                name=held.name,
                state=held.state,
                lifted=held.lifted,
                given=self.mark,
                size=held.size,
                granted=held.counts,
            )
            for key, held in sorted(self.placements.items())
            if held.state != "Held"  # nothing of a hold exists, it expires by itself
        )

    def resend(self) -> None:
        """After a resync: final states are said again (R6)."""
        for held in list(self.placements.values()):
            if held.final is not None:
                self.say(held.final)
