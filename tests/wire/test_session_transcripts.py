from pathlib import Path

import pytest

from support.transcripts import play
from support.wire.session_player import player

SCENARIOS = sorted((Path(__file__).parents[1] / "scenarios" / "session").glob("*.txt"))


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_the_session_tells_this_story(path: Path) -> None:
    play(path, player)


def test_there_are_stories_of_both_ends() -> None:
    assert {path.name.split("_")[0] for path in SCENARIOS} == {"agent", "manager"}
