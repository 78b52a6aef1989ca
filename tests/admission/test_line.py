"""The order in which the members of a class stand, at any length."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from gatelift_admission.waking.equals import HEAP_MAX, Line, Stand


def stand(at: float, number: int) -> Stand:
    return (at, f"w{number:06}", number)


@pytest.mark.parametrize("seed", range(20))
def test_whoever_comes_when_the_earliest_goes_first(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    ways: list[Callable[[int], float]] = [float, lambda _: rng.random(), lambda number: -float(number)]
    come = rng.choice(ways)
    line = Line([stand(rng.random(), -number) for number in range(rng.choice([0, 10]))])
    known = sorted([*line.order, *line.late])
    for number in range(4 * HEAP_MAX):
        if rng.random() < rng.choice([0.2, 0.8]) and known:
            assert line.first() == known.pop(0)
            assert line.next() == (known[0] if known else None)
        else:
            one = stand(come(number), number)
            line.push(one)
            known = sorted([*known, one])
        assert len(line) == len(known)
        assert line.first() == (known[0] if known else None)


def test_many_are_sorted_and_few_that_came_since_are_not() -> None:
    line = Line()
    for number in range(HEAP_MAX + 1):
        line.push(stand(float(number), number))
    assert (len(line.order), len(line.late)) == (0, HEAP_MAX + 1)
    assert line.first() == stand(0.0, 0)
    assert (len(line.order), len(line.late)) == (HEAP_MAX + 1, 0)
    line.push(stand(-1.0, 7))
    assert line.next() == stand(0.0, 0)
    assert (len(line.order), len(line.late)) == (HEAP_MAX + 1, 0)
