"""The search through the flavors of one resource group, for one pod set or for those that get them together.

What preemption could do for a cell is asked of `Market.ask`; a queue that may not preempt has no need to ask, the
answer is *no candidates*. Neighbours: `assigner` begins searches, `tree` says what there is, `matching` which nodes
suit, `catalogue` what is tried in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gatelift_admission import texts
from gatelift_admission.demand.growth import Held, sticky
from gatelift_admission.flavors.assignment import SEVERITY, Mode, Pins, Trial
from gatelift_admission.flavors.catalogue import Catalogue, Group
from gatelift_admission.flavors.matching import flavor_objection
from gatelift_admission.quota.nodes import TreeNode
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values import amounts
from gatelift_admission.values.model import Amounts, Cell, PodSetDemand, Usage, cell_of
from gatelift_kube.objects.kueue import FlavorFungibility, ResourceFlavor

Ask = Callable[[Cell, int], tuple[Mode, int]]
"""What preemption could make of an amount in a cell: NO_CANDIDATES, PREEMPT or RECLAIM; and the borrowing level."""


@dataclass(frozen=True, slots=True)
class Market:
    """Where flavors are looked for: the tree, the queue's node and catalogue, and the flavor objects."""

    tree: Tree
    node: TreeNode
    catalogue: Catalogue
    flavors: Mapping[str, ResourceFlavor]
    ignore_undeclared: bool = False
    ask: Ask | None = None
    """None: preemption is out of the question."""
    pins: Pins | None = None
    """If set, no other flavors are considered."""
    held: Held | None = None
    """What the chain of a slice that grows it is charged already: just the rest is asked for, in the same flavors."""


class Search:
    """One search through the flavors of one resource group for one pod set, or for those that get them together."""

    __slots__ = ("assumed", "attempts", "last", "market", "members", "pod_sets", "wanted")

    def __init__(
        self,
        market: Market,
        members: tuple[int, ...],
        pod_sets: tuple[PodSetDemand, ...],
        wanted: Amounts,
        assumed: Usage,
    ) -> None:
        self.market = market
        self.members = members
        self.pod_sets = pod_sets
        self.wanted = wanted
        self.assumed = assumed
        self.attempts: list[Trial] = []
        self.last = -1

    def run(self, group: Group, start: int) -> Trial | None:
        """Try flavors from index `start` on; return the best attempt, None if nothing is possible."""
        best: Trial | None = None
        fungibility = self.market.catalogue.fungibility
        end = len(group.flavors) - 1
        for index in range(start if start <= end else 0, end + 1):
            attempt = self._attempt(group.flavors[index])
            self.attempts.append(attempt)
            self.last = -1 if index == end else index
            if not _try_next(fungibility, attempt):
                return attempt
            # By the worst mode: where the level counts first, one in which somebody would have to leave is no fit.
            found = (attempt.lowest, attempt.level)
            if attempt.mode is not Mode.NO_FIT and (
                best is None or _preferred(fungibility, found, (best.lowest, best.level))
            ):
                best = attempt
        return best

    def reasons(self) -> list[str]:
        """Return why flavors were turned down, each text once."""
        return list(dict.fromkeys(text for attempt in self.attempts for text in attempt.reasons))

    def reason(self) -> str:
        """Return the mildest reason over the flavors tried."""
        found = [attempt.reason for attempt in self.attempts if attempt.reason]
        return min(found, key=lambda reason: SEVERITY[reason], default=texts.NO_MATCHING_FLAVOR)

    def _attempt(self, flavor: str) -> Trial:
        pins = self.market.pins
        if pins is not None:
            resource = next(iter(self.wanted))
            pinned = next(
                (pins[one].get(resource) for one in self.members if one < len(pins) and resource in pins[one]), None
            )
            if pinned != flavor:
                return Trial(
                    flavor, Mode.NO_FIT, 0, (texts.not_pinned(flavor, resource),), texts.NO_MATCHING_FLAVOR, ()
                )
        known = self.market.flavors.get(flavor)
        objection = texts.flavor_not_found(flavor) if known is None else self._objection(known)
        if objection is not None:
            return Trial(flavor, Mode.NO_FIT, 0, (objection,), texts.NO_MATCHING_FLAVOR, ())
        if self.market.held is not None:
            original = self._original(self.market.held)
            if original not in ("", flavor):
                return Trial(
                    flavor, Mode.NO_FIT, 0, (texts.not_original(flavor, original),), texts.NO_MATCHING_FLAVOR, ()
                )
        return self._quota(flavor)

    def _objection(self, flavor: ResourceFlavor) -> str | None:
        """Return why a flavor does not suit a member, None if it suits all."""
        for index in self.members:
            found = flavor_objection(flavor, self.pod_sets[index])
            if found is not None:
                return found
        return None

    def _original(self, held: Held) -> str:
        """Return in which flavor the first of the resources is charged already, "" where none is."""
        known = sticky(held, [self.pod_sets[index].name for index in self.members])
        return next((known[name] for name in self.wanted if name in known), "")

    def _quota(self, flavor: str) -> Trial:
        tree, node = self.market.tree, self.market.node
        worst = (Mode.FIT, 0)
        borrowing, lowest = 0, Mode.FIT
        reasons: list[str] = []
        needs: list[tuple[Cell, int]] = []
        short: list[Cell] = []
        exceeds = False
        for resource, request in self.wanted.items():
            cell = cell_of(flavor, resource)
            assumed = self.assumed.get(cell, 0)
            value = amounts.add(assumed, request)
            free = tree.free(node, cell)
            most = tree.potential(node, cell)
            if value > most:
                worst, exceeds = (Mode.NO_FIT, 0), True
                before, bound = (amounts.to_text(amount, resource) for amount in (assumed, most))
                asked = amounts.to_quantity(request, resource)  # nobody asks for everything: a request is a quantity
                reasons.append(texts.insufficient_maximum(resource, flavor, before, asked, bound))
                continue
            level, below_root = tree.lowest_fit(node, cell, value)
            mode = Mode.FIT
            needs.append((cell, value))
            if value > free:
                more = amounts.to_text(amounts.sub(value, free), resource)
                reasons.append(texts.insufficient_unused(resource, flavor, more))
                mode, level = self._beyond_free(cell, value, level, below_root=below_root)
                if mode is not Mode.NO_FIT:
                    short.append(cell)
            borrowing, lowest = max(borrowing, level), min(lowest, mode)
            if _preferred(self.market.catalogue.fungibility, worst, (mode, level)):
                worst = (mode, level)
        mode, level = worst
        reason = (
            ""
            if mode is Mode.FIT and lowest is Mode.FIT
            else texts.EXCEEDS_MAX_QUOTA
            if exceeds
            else texts.WAITING_FOR_QUOTA
        )
        option = () if exceeds else tuple(needs)
        return Trial(flavor, mode, level, tuple(reasons), reason, option, borrowing, tuple(short), lowest)

    def _beyond_free(self, cell: Cell, value: int, level: int, *, below_root: bool) -> tuple[Mode, int]:
        """Return what preemption could make of it, NO_FIT where it may not help, and the borrowing level."""
        market = self.market
        if market.node.nominal(cell) < value and not below_root and not market.catalogue.can_preempt_while_borrowing:
            return Mode.NO_FIT, level
        return market.ask(cell, value) if market.ask is not None else (Mode.NO_CANDIDATES, level)


def _try_next(fungibility: FlavorFungibility, attempt: Trial) -> bool:
    if attempt.mode is Mode.NO_FIT or attempt.mode is Mode.NO_CANDIDATES:
        return True
    if attempt.mode is not Mode.FIT and fungibility.when_can_preempt == "TryNextFlavor":
        return True
    return attempt.level > 0 and fungibility.when_can_borrow == "TryNextFlavor"


def _preferred(fungibility: FlavorFungibility, new: tuple[Mode, int], old: tuple[Mode, int]) -> bool:
    """Return whether a mode at a borrowing level beats another one strictly."""
    for mode in (Mode.NO_FIT, Mode.NO_CANDIDATES):
        if new[0] is mode:
            return old[0] < mode or (old[0] is mode and mode is not Mode.NO_FIT and new[1] < old[1])
        if old[0] is mode:
            return True
    if fungibility.preference == "PreemptionOverBorrowing":
        return (-new[1], new[0]) > (-old[1], old[0])
    return (new[0], -new[1]) > (old[0], -old[1])
