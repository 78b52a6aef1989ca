"""A simple worker quota: capacity per flavor and resource, charged from the hold to the end of the placement.

Room is charged once, when the offer is held, and kept until the placement is over: between bid and lift nobody else
can take it. So it grants at once, and what it said to the offer stands. Of pods that need no room any more it is given
back while the others run (KEP-78). With no capacity everything fits; without one the agent counts its nodes by default
(`node_quota`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
from gatelift_agent.core.values.events import RoomSeen
from gatelift_agent.core.values.settings import NominalCapacity
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import CapacityEntry, PodSetRequest
from gatelift_wire.values.refusals import Refusal

_Slot = tuple[str, str]


class WorkerQuota:
    """Charges of this worker by placement."""

    __slots__ = ("_asked", "_charged", "_nominal", "_over", "_used")

    def __init__(self, capacity: Iterable[NominalCapacity]) -> None:
        self._nominal: dict[_Slot, int] = {(each.flavor, each.resource): each.nominal for each in capacity}
        self._used: dict[_Slot, int] = dict.fromkeys(self._nominal, 0)
        self._charged: dict[PlacementKey, dict[_Slot, int]] = {}
        self._asked: dict[PlacementKey, tuple[PodSetRequest, ...]] = {}
        self._over: dict[PlacementKey, Mapping[str, int]] = {}

    def judge(self, request: Request) -> Judgement:
        """Say whether the request fits, what it already holds not counted against it."""
        wanted = self._wanted(request.pod_sets)
        own = self._charged.get(request.key, {})
        cost = 0.0
        for slot, amount in wanted.items():
            flavor, resource = slot
            if amount < 0:
                text = f"podSets: {amount} of {resource} asked for; must not be negative"
                return Judgement(refusal=Refusal.INVALID, text=text)
            nominal = self._nominal.get(slot)
            if nominal is None:
                return Judgement(
                    refusal=Refusal.QUOTA_NEVER_FITS,
                    text=f"flavor {flavor}, {resource}: this cluster has none; add it to the agent's capacity",
                )
            if amount > nominal:
                return Judgement(
                    refusal=Refusal.QUOTA_NEVER_FITS,
                    text=f"flavor {flavor}, {resource}: {amount} asked for, {nominal} in all; ask for less",
                )
            used = self._used[slot] - own.get(slot, 0)
            if used + amount > nominal:
                return Judgement(
                    refusal=Refusal.QUOTA_BUSY,
                    text=f"flavor {flavor}, {resource}: {amount} asked for, {nominal - used} of {nominal} free; wait",
                )
            cost = max(cost, (used + amount) / nominal if nominal else 0.0)
        return Judgement(cost=cost)

    def ask(self, request: Request, now: float) -> tuple[BackendCommand, ...]:  # noqa: ARG002 (of the protocol)
        """Charge a placement (again: the last word counts), also above the nominal amount: `judge` was asked before."""
        self._asked[request.key] = request.pod_sets
        self._charge(request.key)
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
        wanted = self._wanted(without(self._asked[key], self._over.get(key, {})))
        charged = {slot: amount for slot, amount in wanted.items() if slot in self._nominal}
        if charged:
            self._charged[key] = charged
            for slot, amount in charged.items():
                self._used[slot] += amount

    def _uncharge(self, key: PlacementKey) -> None:
        for slot, amount in self._charged.pop(key, {}).items():
            self._used[slot] -= amount

    def hear(self, event: RoomSeen | Answered) -> Heard:  # noqa: ARG002 (of the protocol)
        """Take nothing: what there is was listed."""
        return Heard()

    def entries(self) -> tuple[CapacityEntry, ...]:
        """Return the capacity as the manager is told it."""
        return tuple(
            CapacityEntry(
                flavor=flavor,
                resource=resource,
                nominal=nominal,
                used=self._used[(flavor, resource)],
                largest_fit=max(0, nominal - self._used[(flavor, resource)]),
            )
            for (flavor, resource), nominal in sorted(self._nominal.items())
        )

    def _wanted(self, pod_sets: Iterable[PodSetRequest]) -> dict[_Slot, int]:
        if not self._nominal:
            return {}
        wanted: dict[_Slot, int] = {}
        for pod_set in pod_sets:
            flavors = dict(pod_set.flavors)
            for resource, amount in pod_set.requests:
                flavor = flavors.get(resource)
                if flavor is not None:  # the manager gave no flavor: the resource is not under quota there
                    wanted[(flavor, resource)] = wanted.get((flavor, resource), 0) + amount
        return wanted
