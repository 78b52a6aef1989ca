"""What people get wrong, and the one line they see: every row of `bad_input.yaml` through the real code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from support.servers.bad_input import DOORS, FRAMES

TABLE: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("bad_input.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", TABLE, ids=[row["mistake"] for row in TABLE])
def test_a_mistake_is_told_in_one_line(row: dict[str, Any]) -> None:
    """SL-75: those of elastic Jobs among them."""
    said = DOORS[row["door"]](row["comes"])
    assert said == row["said"].strip()
    assert "\n" not in said


def test_the_table_uses_every_door_and_names_no_mistake_twice() -> None:
    assert {row["door"] for row in TABLE} == set(DOORS)
    assert len({row["mistake"] for row in TABLE}) == len(TABLE)
    assert {row["comes"] for row in TABLE if row["door"] == "wire"} == set(FRAMES)
