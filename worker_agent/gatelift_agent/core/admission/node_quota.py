"""The worker quota of an agent that lists no capacity: what its nodes have, less what runs there (decision 71).

What is placed here is charged from the hold to the end, as with a listed capacity: gated pods are on no node yet. So
pods of the origin that is served are not counted as running a second time, and those on nodes that do not count
(cordoned, not Ready) are given back: their charge takes nothing from the others. Each pod is charged one of `pods`,
whether quota covers that or not, and what it asks for beside its quota, as far as its manager says that. Of such
resources ours count by what runs where that is more: not of each placement it was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from gatelift_agent.core.admission.backend import (
    GRANTED,
    Answered,
    BackendCommand,
    Heard,
    Judgement,
    Request,
    RoomVerdict,
    without,
)
from gatelift_agent.core.values.commands import AgentNote
from gatelift_agent.core.values.events import RoomSeen
from gatelift_agent.core.values.node_room import RESOURCES_MAX, RoomOfNodes
from gatelift_kube.objects.core import POD_COUNT
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CapacityEntry, PodSetRequest
from gatelift_wire.values.refusals import Refusal

FLAVOR = "nodes"
"""Under which the manager is told of all nodes together: a node is of no flavor by itself."""

_NO_NODE = "no node of this cluster has it; list it in the agent's capacity, or set capacityFromNodes: false"


class NodeQuota:
    """Charges of this worker by placement, against what its nodes have. `origin` says whom it serves at the moment."""

    __slots__ = ("_asked", "_charged", "_covered", "_origin", "_over", "_room", "_uncounted", "_used")

    def __init__(self, origin: Callable[[], str]) -> None:
        self._origin = origin
        self._room: RoomOfNodes | None = None
        self._used: dict[str, int] = {}
        self._charged: dict[PlacementKey, dict[str, int]] = {}
        self._asked: dict[PlacementKey, tuple[PodSetRequest, ...]] = {}
        self._over: dict[PlacementKey, Mapping[str, int]] = {}
        self._covered: set[str] = set()
        """Resources that placements were charged for, by now or before."""
        self._uncounted: set[str] = set()
        """Of these, those that the quota of some did not count."""

    @property
    def limited(self) -> bool:
        """Say whether this worker does quota of its own: not where it sees no node."""
        return self._room is None or bool(self._room.nodes)

    def take(self, room: RoomOfNodes) -> str:
        """Take what the nodes have now; return a line for people where it changes whether there is a limit, else ""."""
        before, self._room = self._room, room
        if before is not None and bool(before.nodes) == bool(room.nodes) and before.problem == room.problem:
            return ""
        if room.nodes:
            return f"capacity: what {room.nodes} nodes have, less what runs there; list capacity to say it yourself"
        why = room.problem or "no node is seen"
        return f"capacity: {why}; everything fits until nodes and pods are seen, or capacity is listed"

    def judge(self, request: Request) -> Judgement:
        """Say whether the request fits. What it holds already is promised: no pod of others takes it back."""
        given = request.pod_sets
        wanted = _wanted(given)
        least = min(wanted.items(), key=lambda each: each[1], default=("", 0))
        if least[1] < 0:
            text = f"podSets: {least[1]} of {least[0]} asked for; must not be negative"
            return Judgement(refusal=Refusal.INVALID, text=text)
        if self._room is None:
            return Judgement(refusal=Refusal.QUOTA_BUSY, text="the nodes of this cluster are not listed yet; wait")
        if not self._room.nodes:
            return Judgement()
        never = self._never(wanted, given)
        return Judgement(refusal=Refusal.QUOTA_NEVER_FITS, text=never) if never else self._fits(request.key, wanted)

    def ask(self, request: Request, now: float) -> tuple[BackendCommand, ...]:  # noqa: ARG002 (of the protocol)
        """Charge a placement (again: the last word counts), whatever the nodes have: `judge` was asked before."""
        self._asked[request.key] = request.pod_sets
        self._charge(request.key)
        named = {resource for pod_set in request.pod_sets for resource, _ in pod_set.uncounted}
        self._uncounted |= named & self._covered
        return ()

    def verdict(self, key: PlacementKey, now: float) -> RoomVerdict:  # noqa: ARG002 (of the protocol)
        """Grant it: its room was held from the offer on."""
        return GRANTED

    def reclaim(self, key: PlacementKey, over: Mapping[str, int]) -> tuple[BackendCommand, ...]:
        """Charge a placement without so many of its pods."""
        if key in self._asked:
            self._over[key] = over
            self._charge(key)
        return ()

    def release(self, key: PlacementKey) -> tuple[BackendCommand, ...]:
        """Give back what a placement holds; nothing when it holds nothing."""
        self._uncharge(key)
        self._asked.pop(key, None)
        self._over.pop(key, None)
        return ()

    def _charge(self, key: PlacementKey) -> None:
        self._uncharge(key)
        wanted = _wanted(without(self._asked[key], self._over.get(key, {})))
        self._charged[key] = wanted
        for resource, amount in wanted.items():
            self._used[resource] = self._used.get(resource, 0) + amount
            if len(self._covered) < RESOURCES_MAX:
                self._covered.add(resource)

    def _uncharge(self, key: PlacementKey) -> None:
        for resource, amount in self._charged.pop(key, {}).items():
            self._used[resource] -= amount
            if not self._used[resource]:
                del self._used[resource]

    def hear(self, event: RoomSeen | Answered) -> Heard:
        """Take what the nodes have now; people are told where it changes whether there is a limit."""
        if not isinstance(event, RoomSeen):
            return Heard()
        said = self.take(event.room)
        level = "info" if event.room.nodes else "warning"
        return Heard(commands=(AgentNote(level=level, text=said),) if said else (), capacity=True)

    def entries(self) -> tuple[CapacityEntry, ...]:
        """Return the capacity as the manager is told it; nothing where there is no limit."""
        if self._room is None or not self._room.nodes:
            return ()
        taken = self._taken()
        return tuple(
            CapacityEntry(
                flavor=FLAVOR,
                resource=resource,
                nominal=whole,
                used=max(0, taken.get(resource, 0)),
                largest_fit=max(0, whole - max(0, taken.get(resource, 0))),
            )
            for resource, whole in self._room.whole[:RESOURCES_MAX]
        )

    def _never(self, wanted: Mapping[str, int], pod_sets: tuple[PodSetRequest, ...]) -> str:
        room = self._room or RoomOfNodes()
        whole, largest = dict(room.whole), dict(room.largest)
        granted = {resource for pod_set in pod_sets for resource, _ in pod_set.requests}
        for resource, amount in wanted.items():
            if resource not in whole and (resource == POD_COUNT or resource not in granted):
                continue  # nodes do not say how many pods they take; or what quota does not count is the scheduler's
            if amount and resource not in whole:
                return f"{resource}: {_NO_NODE}"
            if amount > whole.get(resource, 0):
                return f"{resource}: {amount} asked for, the nodes have {whole[resource]} in all; ask for less"
        return next(filter(None, (_pod_never(pod_set, whole, largest) for pod_set in pod_sets)), "")

    def _fits(self, key: PlacementKey, wanted: Mapping[str, int]) -> Judgement:
        room = self._room or RoomOfNodes()
        whole, taken, own = dict(room.whole), self._taken(), self._charged.get(key, {})
        cost = 0.0
        for resource, amount in wanted.items():
            held, nominal = own.get(resource, 0), whole.get(resource, 0)
            if resource not in whole:
                continue  # `_never` has let it pass
            used = max(0, taken.get(resource, 0) - held)
            if amount > held and used + amount > nominal:
                free = max(0, nominal - used)
                text = f"{resource}: {amount} asked for, {free} of {nominal} free on the nodes; wait"
                return Judgement(refusal=Refusal.QUOTA_BUSY, text=text)
            cost = max(cost, min(1.0, (used + amount) / nominal) if nominal else 0.0)
        return Judgement(cost=cost)

    def _taken(self) -> dict[str, int]:
        """Return what is charged here and what others run, less what of ours runs where nothing is counted.

        Of what nobody of ours is ever charged for counts what runs.
        """
        room, ours = self._room or RoomOfNodes(), self._origin()
        total: dict[str, int] = {}
        for origin, used in room.taken:
            counts = used if origin != ours or not ours else [each for each in used if each[0] not in self._covered]
            _plus(total, counts, 1)
        aside = dict(dict(room.aside).get(ours, ())) if ours else {}
        for resource, charged in self._used.items():
            total[resource] = total.get(resource, 0) + max(0, charged - aside.get(resource, 0))
        _plus(total, self._unsaid(ours, aside), 1)
        return total

    def _unsaid(self, ours: str, aside: Mapping[str, int]) -> list[tuple[str, int]]:
        """Return of what quota does not count what runs of ours beyond what is charged for it."""
        room = self._room or RoomOfNodes()
        runs = dict(dict(room.taken).get(ours, ())) if ours else {}
        charged = {name: max(0, self._used.get(name, 0) - aside.get(name, 0)) for name in self._uncounted}
        return [(name, max(0, runs.get(name, 0) - charged[name])) for name in sorted(self._uncounted)]


def _pod_never(pod_set: PodSetRequest, whole: Mapping[str, int], largest: Mapping[str, int]) -> str:
    """Return why one pod of a pod set fits on no node, "" where it may."""
    of_nodes = [each for each in pod_set.uncounted if each[0] in whole]
    for resource, amount in (*pod_set.requests, *of_nodes):
        each = amount // max(1, pod_set.count)
        if each > largest.get(resource, 0):
            return f"{resource}: a pod asks for {each}, the largest node has {largest[resource]}; ask for less"
    return ""


def _wanted(pod_sets: Iterable[PodSetRequest]) -> dict[str, int]:
    wanted: dict[str, int] = {}
    count = 0
    for pod_set in pod_sets:
        _plus(wanted, pod_set.requests, 1)
        _plus(wanted, pod_set.uncounted, 1)
        count += pod_set.count
    if count > 0:  # one of `pods` each, as the scheduler counts, whether a ClusterQueue covers them or not
        wanted[POD_COUNT] = max(wanted.get(POD_COUNT, count), count)
    return wanted


def _plus(total: dict[str, int], more: Iterable[tuple[str, int]], sign: int) -> None:
    for resource, amount in more:
        total[resource] = total.get(resource, 0) + sign * amount
