"""The command line against a fake API server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.manager.cli_stage import Stage, staged


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as made:
        yield made
