"""The quota tree: known figures, exact undo, inverse charges, and agreement with the literal twin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gatelift_admission.quota.nodes import Quota, TreeNodeSpec
from gatelift_admission.quota.tree import Tree
from gatelift_admission.values.amounts import AMOUNT_MIN, UNLIMITED
from gatelift_admission.values.model import Cell
from support.twin.quota_twin import Twin, TwinNode

CPU: Cell = ("default", "cpu")


def node(
    name: str, parent: str, nominal: int, borrowing: int | None = None, lending: int | None = None
) -> TreeNodeSpec:
    return TreeNodeSpec(
        name=name, parent=parent, quotas={CPU: Quota(nominal=nominal, borrowing=borrowing, lending=lending)}
    )


def test_a_queue_without_cohort_has_its_nominal_quota_less_its_usage() -> None:
    tree = Tree([node("a", "", 10)])
    tree.add_usage(tree.queues["a"], {CPU: 7})
    assert tree.available(tree.queues["a"], CPU) == 3
    assert tree.potential(tree.queues["a"], CPU) == 10


def test_queues_of_a_cohort_share_what_is_unused() -> None:
    tree = Tree([node("a", "team", 10), node("b", "team", 5)])
    tree.add_usage(tree.queues["a"], {CPU: 12})
    assert tree.available(tree.queues["b"], CPU) == 3
    assert tree.available(tree.queues["a"], CPU) == 3
    assert tree.potential(tree.queues["a"], CPU) == 15


def test_a_borrowing_limit_caps_what_is_available_and_possible() -> None:
    tree = Tree([node("a", "team", 10, borrowing=2), node("b", "team", 5)])
    assert tree.available(tree.queues["a"], CPU) == 12
    assert tree.potential(tree.queues["a"], CPU) == 12
    tree.add_usage(tree.queues["a"], {CPU: 11})
    assert tree.available(tree.queues["a"], CPU) == 1


def test_what_is_not_lent_stays_with_its_queue() -> None:
    tree = Tree([node("a", "team", 10, lending=4), node("b", "team", 5)])
    assert tree.available(tree.queues["b"], CPU) == 9
    tree.add_usage(tree.queues["b"], {CPU: 9})
    assert tree.available(tree.queues["a"], CPU) == 6
    assert tree.available(tree.queues["b"], CPU) == 0


def test_quota_of_a_cohort_is_shared_by_all_below_it() -> None:
    tree = Tree([node("a", "team", 1), node("b", "other", 1)], [node("team", "org", 2), node("org", "", 3)])
    assert tree.potential(tree.queues["a"], CPU) == 6
    assert tree.potential(tree.queues["b"], CPU) == 1
    assert tree.queues["a"].root == "cohort/org"


def test_over_admission_is_a_debt_that_siblings_see() -> None:
    tree = Tree([node("a", "team", 4), node("b", "team", 4)])
    tree.add_usage(tree.queues["a"], {CPU: 10})
    assert tree.available(tree.queues["b"], CPU) == -2
    assert tree.free(tree.queues["b"], CPU) == 0


def test_unlimited_quota_stays_unlimited_under_usage() -> None:
    tree = Tree([node("a", "", UNLIMITED)])
    tree.add_usage(tree.queues["a"], {CPU: 2**62})
    assert tree.available(tree.queues["a"], CPU) == UNLIMITED


def test_usage_beyond_int64_is_charged_and_released_exactly() -> None:
    tree = Tree([node("a", "", 5)])
    for _ in range(3):
        tree.add_usage(tree.queues["a"], {CPU: 2**63 - 1})
    assert tree.available(tree.queues["a"], CPU) == AMOUNT_MIN
    for _ in range(3):
        tree.remove_usage(tree.queues["a"], {CPU: 2**63 - 1})
    assert tree.available(tree.queues["a"], CPU) == 5


def test_cohorts_in_a_circle_are_named_and_their_queues_have_no_root() -> None:
    tree = Tree([node("a", "x", 1), node("b", "", 1)], [node("x", "y", 0), node("y", "x", 0)])
    assert tree.cyclic == {"a"}
    assert tree.queues["a"].root == ""
    assert [one.name for one in tree.members["queue/b"]] == ["b"]


def test_the_borrowing_level_is_the_height_of_the_lowest_subtree_that_fits() -> None:
    tree = Tree(
        [node("a", "team", 2), node("b", "team", 3), node("c", "org", 4)], [node("team", "org", 0), node("org", "", 1)]
    )
    at = tree.queues["a"]
    assert tree.lowest_fit(at, CPU, 2) == (0, True)
    assert tree.lowest_fit(at, CPU, 5) == (1, True)
    assert tree.lowest_fit(at, CPU, 6) == (2, False)


def test_a_chain_of_cohorts_may_be_longer_than_the_stack_is_deep() -> None:
    depth = 3000
    chain = [node(f"c{index}", f"c{index + 1}", 1) for index in range(depth)]
    tree = Tree([node("a", "c0", 1)], chain)
    tree.add_usage(tree.queues["a"], {CPU: 1000})
    assert tree.available(tree.queues["a"], CPU) == depth + 1 - 1000
    assert tree.lowest_fit(tree.queues["a"], CPU, 10) == (1009, True)


LIMIT = st.one_of(st.none(), st.integers(0, 6))


@st.composite
def forests(draw: st.DrawFn) -> tuple[list[TreeNodeSpec], list[TreeNodeSpec], list[tuple[int, int]]]:
    """Cohorts whose parent has a lower number, queues below them or alone, and charges to try."""
    cohorts = []
    for index in range(draw(st.integers(0, 4))):
        parent = draw(st.sampled_from(["", *(f"c{one}" for one in range(index))]))
        limits = (draw(LIMIT), draw(LIMIT)) if parent else (None, None)
        cohorts.append(node(f"c{index}", parent, draw(st.integers(0, 6)), *limits))
    queues = []
    for index in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from(["", *(one.name for one in cohorts)]))
        limits = (draw(LIMIT), draw(LIMIT)) if parent else (None, None)
        queues.append(node(f"q{index}", parent, draw(st.integers(0, 8)), *limits))
    charges = draw(st.lists(st.tuples(st.integers(0, len(queues) - 1), st.integers(1, 6)), max_size=8))
    return queues, cohorts, charges


def twin_of(queues: list[TreeNodeSpec], cohorts: list[TreeNodeSpec]) -> Twin:
    nodes = {}
    for prefix, specs in (("cohort", cohorts), ("queue", queues)):
        for spec in specs:
            quota = spec.quotas[CPU]
            parent = f"cohort/{spec.parent}" if spec.parent else ""
            nodes[f"{prefix}/{spec.name}"] = TwinNode(quota.nominal, quota.borrowing, quota.lending, parent)
    for name, one in nodes.items():
        if one.parent:
            nodes[one.parent].children.append(name)
    return Twin(nodes)


@settings(max_examples=300, deadline=None)
@given(forests())
def test_what_is_available_agrees_with_the_literal_statement_of_the_kep(
    forest: tuple[list[TreeNodeSpec], list[TreeNodeSpec], list[tuple[int, int]]],
) -> None:
    queues, cohorts, charges = forest
    tree, twin = Tree(queues, cohorts), twin_of(queues, cohorts)
    ceiling = 80
    for index, amount in charges:
        for spec in queues:
            assert tree.free(tree.queues[spec.name], CPU) == twin.available(f"queue/{spec.name}", ceiling)
        name = queues[index].name
        if amount <= tree.free(tree.queues[name], CPU):
            tree.add_usage(tree.queues[name], {CPU: amount})
            twin.nodes[f"queue/{name}"].usage += amount
    assert twin.right()


@settings(max_examples=200, deadline=None)
@given(forests(), st.randoms(use_true_random=False))
def test_charges_taken_back_in_any_order_leave_no_trace(
    forest: tuple[list[TreeNodeSpec], list[TreeNodeSpec], list[tuple[int, int]]], random: object
) -> None:
    queues, cohorts, charges = forest
    tree = Tree(queues, cohorts)
    for index, amount in charges:
        tree.add_usage(tree.queues[queues[index].name], {CPU: amount})
    shuffled = list(charges)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis hands out a random.Random
    for index, amount in shuffled:
        tree.remove_usage(tree.queues[queues[index].name], {CPU: amount})
    assert all(one.usage == {} for one in [*tree.queues.values(), *tree.cohorts.values()])


@settings(max_examples=200, deadline=None)
@given(forests(), st.integers(0, 8))
def test_undo_restores_exactly_what_was_there_at_its_mark(
    forest: tuple[list[TreeNodeSpec], list[TreeNodeSpec], list[tuple[int, int]]], split: int
) -> None:
    queues, cohorts, charges = forest
    tree = Tree(queues, cohorts)
    nodes = [*tree.queues.values(), *tree.cohorts.values()]
    for index, amount in charges[:split]:
        tree.add_usage(tree.queues[queues[index].name], {CPU: amount})
    before = [dict(one.usage) for one in nodes]
    outer = tree.mark()
    for index, amount in charges[split:]:
        tree.add_usage(tree.queues[queues[index].name], {CPU: amount})
    middle = [dict(one.usage) for one in nodes]
    inner = tree.mark()
    for index, amount in charges[:split]:
        tree.remove_usage(tree.queues[queues[index].name], {CPU: amount})
    tree.undo(inner)
    assert [one.usage for one in nodes] == middle
    tree.undo(outer)
    assert [one.usage for one in nodes] == before


@pytest.mark.parametrize("amount", [0, -1])
def test_a_charge_of_nothing_changes_nothing(amount: int) -> None:
    tree = Tree([node("a", "", 1)])
    tree.add_usage(tree.queues["a"], {CPU: amount})
    assert tree.queues["a"].usage == {}
