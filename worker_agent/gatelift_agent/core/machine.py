"""The agent's machine: one door. An event comes in, commands come out; `now` is an argument, nothing else is read.

Read in this order: here (what an event means), `placements` (the state table), `orders` (what the manager says),
`progress`, `draining`, `closing` (what follows from the state). An event changes what is known and names placements
to look at; what to do follows from the state alone.

A start has three gates. Leadership: this replica acts (R8). Lists: complete, and begun after the predecessor's last
write can have landed. Session: only then the manager is dialled, so that whatever is said in a session is said by one
who knows all that exists.
"""

from __future__ import annotations

from gatelift_agent.core.admission.desk import MakeBackend, quota_of
from gatelift_agent.core.advancing import adopting, answers, progress
from gatelift_agent.core.beginning import last_looks, rebuilding
from gatelift_agent.core.leaving import draining
from gatelift_agent.core.placement.placements import ENDING, Placement
from gatelift_agent.core.refusing import policy
from gatelift_agent.core.seeing import doubts, early, foreign, taking, unlisted
from gatelift_agent.core.session.link import ManagerLink
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import AT_ONCE, MANY_OBJECTS, World
from gatelift_agent.core.values import events
from gatelift_agent.core.values.commands import Command, StopWatching, WatchCluster, WatchNamespaces
from gatelift_agent.core.values.settings import AgentMode, AgentSettings
from gatelift_kube.deciding.writes import ObjectGone, ObjectSeen, Synced, WriteDone, WriteFailed
from gatelift_kube.values.resources import CONFIG_MAP, NAMESPACE, NODE, Resource
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Capacity, CertificateRequest
from gatelift_wire.values.moments import soonest
from gatelift_wire.values.refusals import CloseReason

ALL_NAMESPACES = ("",)

SYSTEM_NAMESPACE = "kube-system"
"""Every cluster has it from its first moment and cannot delete it, so its UID is the cluster's (as KEP-2149 has it)."""

CAPACITY_SECONDS = 1.0
"""Capacity is told this often at most: the manager's picture of free room is a hint, the bid decides."""

STAND_DOWN_SECONDS = 20.0
"""How long an agent that was turned away does nothing before it lists all anew and greets again: longer than a write
of its own is waited for (`WRITE_SECONDS_MAX`), shorter than it takes to count who serves the cluster as lost."""

LOOK_AGAIN_SECONDS_MAX = 0.1
LOOK_AGAIN_SECONDS_MIN = 0.0005
"""From one look at a placement of many objects or pods to the next, for each, however few are not at rest: their events
come by the hundred in a second, and what is said of one of them is as true a moment later."""
LOOKS_PER_EVENT = 2000
"""Placements looked at in one event; the rest follow in a tick of its own, so that no event takes long."""


class AgentMachine:
    """Deterministic: the same events at the same times give the same commands."""

    def __init__(self, settings: AgentSettings, *, jitter: float = 0.0, backend: MakeBackend = quota_of) -> None:
        """`backend`: makes what decides whether there is room here (`admission`)."""
        self._settings = settings
        self._backend = backend
        self._world = World(settings, backend)
        self._link = ManagerLink(self._world, jitter=jitter)
        self._synced: set[Resource] = set()
        self._watched: tuple[str, ...] = ()
        self._lists_due: float | None = None
        self._capacity_at = 0.0
        self._capacity_said: tuple[int, Capacity] | None = None
        self._more_at: float | None = None
        self.turned_away = ""
        """Why the manager does not let this agent serve, until it does; for people."""

    @property
    def world(self) -> World:
        """What the machine knows, for metrics, health and tests. Read only."""
        return self._world

    @property
    def connected(self) -> bool:
        """Say whether a session with the manager is open."""
        return self._world.standing.open

    def handle(self, event: events.Event, now: float) -> list[Command]:
        """Take one event and return what is wanted."""
        self._take(event, now)
        taking.again(self._world, now)
        rebuilding.read_again(self._world, now)
        if self._link.turned_away:
            self._stand_down(now)
        if isinstance(event, ObjectSeen) and self._world.ready and not self._world.stirred:
            return []  # an echo, or an object of no placement; what is due meanwhile is due at `next_deadline`
        self._go_on(now)
        self._link.tick(now)
        adopting.tend(self._world, now)
        self._look(now)
        last_looks.ask(self._world, now)
        containment.release_again(self._world, now)
        if self._world.namespace_left:
            self._world.namespace_left = False
            self._namespaces_changed(now)
        self._flush(now)
        commands, self._world.commands = self._world.commands, []
        return commands

    def next_deadline(self) -> float | None:
        """Return the moment at which `Ticked` has something to do, None when only an event can change anything."""
        world = self._world
        capacity = self._capacity_at if world.standing.open and world.capacity_changed else None
        return soonest(
            self._lists_due,
            self._more_at,
            capacity,
            world.wakes.next(),
            world.keeper.next_deadline() if world.ready else None,
            doubts.settles_at(world),
            last_looks.next_deadline(world) if world.ready else None,
            world.newcomers.alarms.next() if world.ready else None,
            taking.next_deadline(world),
            self._link.next_deadline(),
        )

    # --- events -------------------------------------------------------------------------------------------------

    def _take(self, event: events.Event, now: float) -> None:
        match event:
            case ObjectSeen() | ObjectGone():
                taking.take(self._world, event, now)
            case WriteDone() | WriteFailed():
                answers.write_answered(self._world, event, now)
            case (
                events.ManagerStreamOpened()
                | events.ManagerFrameArrived()
                | events.FrameViolated()
                | events.ManagerStreamClosed()
            ):
                self._link.take(event, now)
            case events.AgentTicked():
                doubts.settle(self._world, now)  # all else that is due is done after every event
            case _:
                self._take_rarer(event, now)

    def _take_rarer(self, event: events.Event, now: float) -> None:
        world = self._world
        match event:
            case Synced(resource=resource):
                self._synced.add(resource)
                if resource == NODE:
                    world.nodes.synced()
            case events.NamespaceRefused() | events.NamespaceSynced():
                self._list_answered(event, now)
            case events.AgentLeadershipGained():
                self._lose(now)
                ahead = event.unix - now if event.unix else None
                lists_from = now + event.settle_seconds
                self._world.leadership.gain(event.term, lists_from, event.mark, unix_ahead=ahead)
                self._lists_due = now + event.settle_seconds
            case events.AgentLeadershipExtended(valid_until=valid_until, mark=mark):
                could = world.leadership.acts(now)
                world.leadership.extend(valid_until, mark)
                self._link.set_mark(mark)
                if not could:
                    world.look_at_all()
            case events.AgentLeadershipLost():
                self._lose(now)
            case events.ApiHealthChanged() | events.RoomSeen() | events.KubeletsRead():
                self._cluster_changed(event, now)
            case events.PodsRead() | events.PodsNotRead() | events.NamespaceRead() | events.NamespaceNotRead():
                self._read(event, now)
            case events.CertificateDue(request=request):
                world.say(CertificateRequest(request=request))
            case events.IdentityReplaced():
                self._link.redial(now)

    def _list_answered(self, event: events.NamespaceRefused | events.NamespaceSynced, now: float) -> None:
        world, name = self._world, event.namespace
        if isinstance(event, events.NamespaceRefused):
            unlisted.refused(world, name, event.message)
            return
        world.listed.add(name)
        unlisted.listed(world, name)
        rebuilding.take_namespace(world, name, now)
        doubts.listed(world, now)

    def _read(self, event: events.ReadAnswer, now: float) -> None:
        asked = self._world.writes.answered(event.read_id)
        self._world.room_again()
        if asked is not None and asked.key is None:
            last_looks.answered(self._world, asked, event, now)
        elif asked is not None:
            answers.read_answered(self._world, asked, event, now)

    def _cluster_changed(self, event: events.ClusterNews, now: float) -> None:
        if isinstance(event, events.ApiHealthChanged):
            self._api_changed(event)
        elif isinstance(event, events.KubeletsRead):
            doubts.renewed(self._world, event, now)
        else:
            containment.hear(self._world, lambda: self._world.admission.room_seen(event), None, now)

    def _api_changed(self, event: events.ApiHealthChanged) -> None:
        api = self._world.api
        back = event.reachable and not api.reachable
        api.reachable, api.latency_seconds, api.throttled = event.reachable, event.latency_seconds, event.throttled
        if back:
            self._world.look_at_all()

    # --- starting up --------------------------------------------------------------------------------------------

    def _lose(self, now: float) -> None:
        """Act no more: end session and watches, forget what this replica saw; used epochs stay in memory (R5)."""
        old = self._world
        was_leading = old.leadership.held
        old.leadership.lose()
        old.ready = False
        self._lists_due = None
        if not was_leading:
            return
        self._link.drop(CloseReason.NOT_LEADER, "this replica of the agent does not lead any more", now)
        world = World(self._settings, self._backend)
        world.epochs, world.api, world.commands = old.epochs, old.api, old.commands
        world.writes = old.writes.next_generation()
        world.standing.origin, world.standing.away_since = "", now
        self._world = world
        self._link.serve(world)
        self._synced, self._watched = set(), ()
        world.commands.append(StopWatching())

    def _stand_down(self, now: float) -> None:
        """Begin anew after a while, since another agent serves this cluster: what is known here may be behind by then.

        Nothing is done for placements meanwhile: they are the other one's.
        """
        self.turned_away, self._link.turned_away = self._link.turned_away, ""
        lead = self._world.leadership
        term, valid_until, counts, ahead = lead.term, lead.valid_until, lead.counts, lead.unix_ahead
        self._lose(now)
        self._lists_due = now + STAND_DOWN_SECONDS
        self._world.leadership.gain(term, self._lists_due, counts, unix_ahead=ahead)
        self._world.leadership.extend(valid_until)

    def _go_on(self, now: float) -> None:
        """Pass the gates of a start whose conditions are met."""
        world = self._world
        if self._lists_due is not None and now >= self._lists_due:
            self._lists_due = None
            world.commands.append(WatchCluster())
            if self._settings.mode is AgentMode.LOCAL:
                self._watched = ALL_NAMESPACES
                world.commands.append(WatchNamespaces(namespaces=ALL_NAMESPACES))
        if not world.leadership.held or world.ready:
            return
        needed = {NAMESPACE, *self._settings.shared_kinds}
        if self._settings.mode is AgentMode.REMOTE:
            needed.add(CONFIG_MAP)
        if not needed <= self._synced or world.untaken.own_memory:
            return
        self._namespaces_changed(now)
        # One that is being deleted may let nobody list it any more: it is listed late, or looked into (`last_looks`).
        # One that nobody lets us list keeps no other from being served (`unlisted`).
        waiting = set(self._watched) - world.listed
        if waiting <= world.condemned.keys() | world.shut.keys():
            world.unlisted |= waiting
            self._become_ready(now)

    def _become_ready(self, now: float) -> None:
        world = self._world
        world.ready = True
        state = world.keeper.state
        world.standing.origin = world.standing.origin or state.origin
        world.standing.away_since = now
        rebuilding.rebuild(world, now)
        system = world.namespaces.get(SYSTEM_NAMESPACE)
        cluster_uid = system.metadata.uid if system is not None else ""
        self._link.start(state.session, state.term, world.keeper.sealed, cluster_uid, now)

    def _namespaces_changed(self, now: float) -> None:
        """Watch the namespaces that accept work, and those in which objects of ours may be left.

        One that is gone is watched for as long as a placement is in it: the last events of its objects may still come.
        """
        world = self._world
        if self._settings.mode is AgentMode.LOCAL or NAMESPACE not in self._synced or CONFIG_MAP not in self._synced:
            return
        accepted = {name for name, each in world.namespaces.items() if policy.accepts(each, self._settings.policy)}
        used = set(world.keeper.state.namespaces)
        live = {placement.namespace for placement in world.placements.values()}
        gone = frozenset(used - world.namespaces.keys() - live - world.untaken.namespaces())
        if gone:
            world.keeper.uncover(gone)
        wanted = tuple(sorted(((accepted | used) & world.namespaces.keys()) | live))
        if wanted != self._watched:
            for left in set(self._watched) - set(wanted):
                world.objects.forget_namespace(left)
                early.forget_namespace(world, left)
                world.newcomers.forget_namespace(left)
                world.untaken.forget_namespace(left)
                world.listed.discard(left)
                unlisted.left(world, left, now)
            self._watched = wanted
            world.commands.append(WatchNamespaces(namespaces=wanted))
        world.capacity_changed = True

    # --- after every event --------------------------------------------------------------------------------------

    def _look(self, now: float) -> None:
        """Look at every placement that was named or whose time has come."""
        world = self._world
        self._more_at = None
        if not world.ready:
            return
        due, looked = dict.fromkeys(world.wakes.due(now)), set[PlacementKey]()
        for key in due:
            world.look_on(key)
        for _ in range(LOOKS_PER_EVENT):
            placement = world.next_dirty()
            if placement is None:
                return
            if placement.key in looked and self._members(placement) > MANY_OBJECTS:
                world.wakes.ask(placement.key, AT_ONCE)
            elif not self._puts_off(placement, now, is_due=placement.key in due):
                looked.add(placement.key)
                self._drive(placement, now)
        self._more_at = now

    def _puts_off(self, placement: Placement, now: float, *, is_due: bool) -> bool:
        """Say whether a look waits a little: one at many objects costs as much as they are, and each has its events.

        So looks at it take a share of the time, however many objects there are, or pods that these made (HD-685). What
        has moved on, as one that is to stop from now on, is looked at at once, and what has a time of its own when that
        has come.
        """
        members = self._members(placement)
        if members <= MANY_OBJECTS:
            return False
        if now < placement.look_from and placement.looked_as is placement.state and not is_due:
            self._world.wakes.ask(placement.key, placement.look_from)
            return True
        placement.looked_as = placement.state
        placement.look_from = now + min(LOOK_AGAIN_SECONDS_MAX, members * LOOK_AGAIN_SECONDS_MIN)
        return False

    def _members(self, placement: Placement) -> int:
        """Return what a look goes through: the objects of a placement, or the pods of a few of these as well."""
        count, objects = len(placement.objects), self._world.objects
        if count > MANY_OBJECTS:
            return count
        return count + sum(objects.count_children(each.uid) for each in placement.objects.values())

    def _drive(self, placement: Placement, now: float) -> None:
        """Bring a placement forward; an exception belongs to it."""
        world = self._world
        try:
            if containment.rests(world, placement.key, now):
                return
            progress.drive(world, placement, now)
        except Exception as error:  # noqa: BLE001 (containment: one placement ends no process)
            placement.stirs()
            containment.placement_failed(world, placement, error, now)
            self._obey_stop(placement, now)
        else:
            world.contained.well(placement.key)

    def _obey_stop(self, placement: Placement, now: float) -> None:
        """Ask for the end of each object of a placement that is set aside and is to stop; that it has, nobody says."""
        if placement.state not in ENDING:
            return
        for tracked in placement.objects.values():
            try:
                draining.stop_object(self._world, placement, tracked, now)
            except Exception as error:  # noqa: BLE001 (containment: one object keeps no other from being stopped)
                containment.object_failed(self._world, tracked.ref, error, now)

    def _flush(self, now: float) -> None:
        """Hand over what is to be said and kept."""
        world = self._world
        if not world.ready:
            return
        world.commands += world.keeper.flush(world.writes, now)
        if world.standing.open and world.capacity_changed and now >= self._capacity_at:
            world.capacity_changed = False
            self._capacity_at = now + CAPACITY_SECONDS
            capacity = Capacity(
                entries=containment.capacity(world, self._capacity_said, now),
                namespaces=self._accepting(),
                foreign=foreign.known(world, now),
                unheard=world.unheard,
            )
            if (world.standing.session, capacity) != self._capacity_said:
                self._capacity_said = (world.standing.session, capacity)
                world.say(capacity)
        self._link.flush(now)
        if world.has_dirty:
            self._more_at = now

    def _accepting(self) -> tuple[str, ...]:
        world = self._world
        if self._settings.policy.any_namespace:
            return tuple(sorted(world.namespaces))
        accepting = {name for name, each in world.namespaces.items() if policy.accepts(each, self._settings.policy)}
        return tuple(sorted(accepting - world.shut.keys()))
