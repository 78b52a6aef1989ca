"""The shortest counterexamples to the rules of sizes that are the agent's, by its machine (SL-43 to SL-48, SL-55)."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import transcripts
from support.agent import size_player

FILES = sorted((Path(__file__).parent.parent / "scenarios" / "sizes").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_the_machine_tells_the_same_story_of_sizes(path: Path) -> None:
    transcripts.play(path, size_player.machine)


@pytest.mark.parametrize("rule", ["sl_43", "sl_44", "sl_45", "sl_46", "sl_47", "sl_48", "sl_55"])
def test_each_rule_that_is_the_agents_has_its_transcript(rule: str) -> None:
    """SL-43, SL-44, SL-45, SL-46, SL-47, SL-48, SL-55."""
    assert any(path.stem.startswith(rule) for path in FILES)
