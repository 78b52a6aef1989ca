"""Room that a round keeps for its heads: given back to the last unit, also where it was below zero."""

from __future__ import annotations

from gatelift_admission.flavors.assignment import Assignment
from gatelift_admission.quota.nodes import Quota, TreeNodeSpec
from gatelift_admission.quota.tree import Tree
from gatelift_admission.rounds.claims import Claims
from gatelift_admission.values.model import Cell

CPU: Cell = ("default", "cpu")


def lowered(used: int, lending: int | None = None) -> Tree:
    """Return a tree in which queue `a` uses `used` and may use 7 since its limit was lowered."""
    quota = Quota(nominal=2, borrowing=5, lending=lending)
    tree = Tree(
        [TreeNodeSpec(name="a", parent="team", quotas={CPU: quota})],
        [
            TreeNodeSpec(name="team", parent="org", quotas={CPU: Quota(nominal=3, borrowing=None, lending=1)}),
            TreeNodeSpec(name="org", parent="", quotas={CPU: Quota(nominal=20, borrowing=None, lending=None)}),
        ],
    )
    tree.add_usage(tree.queues["a"], {CPU: used})
    return tree


def usage(tree: Tree) -> dict[str, int]:
    """Return what every node uses."""
    return {one.name: one.usage.get(CPU, 0) for one in [*tree.queues.values(), *tree.cohorts.values()]}


def kept_by(tree: Tree) -> Claims:
    """Return the claims of a round in which the head of `a` would borrow 1 more than there is."""
    claims = Claims()
    claims.keep_room(tree, tree.queues["a"], Assignment(usage={CPU: 1}, borrowing=1))
    return claims


def test_a_queue_above_its_lowered_limit_counts_as_using_less_while_the_round_lasts() -> None:
    tree = lowered(9)
    before = usage(tree)
    claims = kept_by(tree)
    assert usage(tree) == {**before, "a": 7}
    assert claims.give_back(tree) == {CPU}
    assert usage(tree) == before


def test_what_leaves_while_room_below_zero_is_kept_leaves_the_cohorts_in_full() -> None:
    tree = lowered(9)
    claims = kept_by(tree)
    tree.remove_usage(tree.queues["a"], {CPU: 9})
    claims.give_back(tree)
    assert usage(tree) == {"a": 0, "team": 0, "org": 0}


def test_what_comes_while_room_below_zero_is_kept_reaches_the_cohorts_in_full() -> None:
    tree = lowered(9, lending=0)
    claims = kept_by(tree)
    tree.remove_usage(tree.queues["a"], {CPU: 8})
    tree.add_usage(tree.queues["a"], {CPU: 5})
    claims.give_back(tree)
    assert usage(tree) == usage(lowered(6, lending=0))


def test_a_queue_within_its_limit_keeps_what_it_may_still_borrow() -> None:
    tree = lowered(6)
    before = usage(tree)
    claims = kept_by(tree)
    assert usage(tree)["a"] == 7
    claims.give_back(tree)
    assert usage(tree) == before
