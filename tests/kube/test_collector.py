"""The garbage collector of a daemon."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from gatelift_kube.process import collector


@pytest.fixture
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("_as_before")
def test_collections_are_rare_and_what_lives_at_the_start_is_left_out_of_them() -> None:
    collector.tune()
    assert gc.get_threshold() == collector.THRESHOLDS
    collector.settle()
    assert gc.get_freeze_count() > 0


def test_a_pass_that_is_not_a_full_one_walks_through_few_objects() -> None:
    """A pass through 100,000 young objects held a manager's loop for longer than one call of a core may (IS-10)."""
    young, second, full = collector.THRESHOLDS
    assert young * (second + 1) <= 10_000
    assert young * (second + 1) * full >= 100_000_000
