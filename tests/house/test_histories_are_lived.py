"""HD-53: each history of the attack on the foundation is a scenario on both real cores, by its id."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ON_REAL_CORES = ("histories", "simulation")
FOUND = (*range(1, 8), *range(9, 14), *range(20, 23), *range(30, 36), *range(40, 48))
"""What runs and is charged; a person's word; which cluster; epochs and restores; what is changed behind our back."""


def lived() -> str:
    """Return all tests on the real cores."""
    return "\n".join(path.read_text() for room in ON_REAL_CORES for path in sorted((TESTS / room).glob("test_*.py")))


@pytest.mark.parametrize("number", FOUND)
def test_hd_53_a_history_that_was_found_is_lived_on_both_real_cores(number: int) -> None:
    assert re.search(rf"hd_{number}_|HD-{number}\b", lived()), f"HD-{number}"
