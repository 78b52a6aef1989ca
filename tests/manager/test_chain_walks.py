"""A chain under random words and faults, with the manager's own core; and rules that are missed when taken out.

`python -m support.manager.chain_walks --first 1000 --count 10000` walks many more.
"""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_kube.deciding.writes import Create, Delete, Patch, WriteError
from gatelift_kube.values.resources import WORKLOAD
from support.manager import chain_rules
from support.manager.chain_walks import ChainTruthError, ChainWalk
from support.manager.slice_world import a_running_chain, resize, seen, used
from support.manager.world import World

SEEDS = tuple(range(40))
TRIES = 60
"""Walks that a removed rule may hide in."""


@pytest.mark.parametrize("seeds", [SEEDS[first::4] for first in range(4)], ids=repr)
def test_sl_83_a_chain_has_one_record_and_what_may_run_is_charged_once(seeds: tuple[int, ...]) -> None:
    """SL-12, SL-14: whatever is lost, late or seen in another order; and with all trouble over it is what is wanted."""
    walks = [ChainWalk(seed).live() for seed in seeds]
    assert sum(walk.checks for walk in walks) > 1000


def _kept(world: World, held: list[Create | Patch | Delete]) -> None:
    """Let creates of Workloads wait in `held`."""
    lands = world._write

    def write(command: Create | Patch | Delete) -> None:
        if isinstance(command, Create) and command.ref.resource == WORKLOAD:
            held.append(command)
        else:
            lands(command)

    world._write = write  # type: ignore[method-assign]


def test_hd_560_while_a_slice_is_to_be_finished_no_other_one_is_made() -> None:
    """SL-14: at most two at any time."""
    world = a_running_chain(parallelism=1)
    world.fail = lambda command: WriteError.NOT_DONE if b"WorkloadSliceReplaced" in _body(command) else None
    resize(world, 2)
    world.advance(3.0)
    assert [one[:3] for one in seen(world)] == [(1, 1, 1), (2, 2, 2)]
    resize(world, 5)
    world.advance(30.0)
    assert [one[:3] for one in seen(world)] == [(1, 1, 1), (2, 2, 2)], "the first one is not finished"
    world.fail = None
    world.advance(120.0)
    assert [(one[0], one[2], one[3]) for one in seen(world)][-1] == (3, 5, "")
    assert used(world) == 5


def _body(command: Create | Patch | Delete) -> bytes:
    return b"" if isinstance(command, Delete) else command.body


def test_hd_561_while_a_slice_is_being_made_no_other_one_is_by_the_name_of_a_later_size() -> None:
    """SL-14: ten changes in a second, and an API server that takes longer than that for one of them."""
    world, held = a_running_chain(parallelism=1), list[Create | Patch | Delete]()
    lands = world._write
    _kept(world, held)
    for parallelism in range(2, 10):
        resize(world, parallelism)
        world.advance(0.1)
    assert len(held) == 1
    world._write = lands  # type: ignore[method-assign]
    lands(held[0])
    world.advance(10.0)
    assert [(one[1], one[2]) for one in seen(world) if not one[3]] == [(9, 9)]


def test_hd_561_the_first_slice_is_one_too() -> None:
    """A user who thinks again while the first one is made has one chain."""
    world, held = a_running_chain(parallelism=1), list[Create | Patch | Delete]()
    lands = world._write
    _kept(world, held)
    world.api.delete(_ref(world))
    world.advance(5.0)
    assert len(held) == 1
    resize(world, 3)
    world.advance(5.0)
    assert len(held) == 1
    world._write = lands  # type: ignore[method-assign]
    lands(held[0])
    world.advance(30.0)
    assert [(one[1], one[2]) for one in seen(world) if not one[3]] == [(3, 3)]


def _ref(world: World) -> Any:
    (ref,) = [ref for ref in world.api.objects if ref.resource == WORKLOAD]
    return ref


@pytest.mark.parametrize(
    "take",
    [
        pytest.param(chain_rules.released_at_the_change_of_a_count, id="Size 2"),
        pytest.param(chain_rules.an_answer_to_any_size, id="Size 5"),
        pytest.param(chain_rules.a_number_twice, id="Size 4"),
        pytest.param(chain_rules.the_lower_one_counts, id="Size 1, two records"),
        pytest.param(chain_rules.a_past_slice_ends_the_run, id="SL-13"),
        pytest.param(chain_rules.a_slice_beside_one_that_is_not_over, id="HD-560"),
        pytest.param(chain_rules.a_slice_beside_one_that_is_made, id="HD-561"),
    ],
)
def test_sl_83_a_rule_of_chains_that_is_removed_is_missed(
    take: chain_rules.Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(monkeypatch)
    assert any(map(_breaks, range(TRIES)))


def _breaks(seed: int) -> bool:
    try:
        ChainWalk(seed).live()
    except ChainTruthError:
        return True
    return False
