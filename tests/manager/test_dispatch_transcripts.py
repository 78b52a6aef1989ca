from pathlib import Path

import pytest

from support.manager.dispatch_player import player
from support.transcripts import play

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios" / "dispatch").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_manager_tells_this_story(path: Path) -> None:
    play(path, player)


def test_there_are_stories() -> None:
    assert len(SCENARIOS) >= 15
