"""Each transcript of a placement's way is what the agent's machine does (RM-3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import transcripts
from support.agent import placement_player

FILES = sorted((Path(__file__).parent.parent / "scenarios" / "placement").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_machine_tells_the_same_story(path: Path) -> None:
    transcripts.play(path, placement_player.machine)


def test_there_are_transcripts() -> None:
    assert len(FILES) >= 15
