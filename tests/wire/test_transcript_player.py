from pathlib import Path

import pytest

from support.transcripts import Machine, TranscriptError, play, read


def echo(settings: dict[str, str]) -> Machine:
    """Make a machine that says each word of an event in turn, with what the settings put before it."""
    return lambda event: [settings.get("before", "") + word for word in event.split()]


def file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "story.txt"
    path.write_text(text)
    return path


def test_a_story_that_is_true_passes(tmp_path: Path) -> None:
    play(file(tmp_path, "# Why.\n== before: x\n>> a b\n<< xa\n<< xb\n\n>> c\n<< xc\n== end\n"), echo)


def test_a_long_line_goes_on_in_an_indented_one(tmp_path: Path) -> None:
    transcript = read(file(tmp_path, ">> a\n     b\n<< c\n     d e\n== end\n"))
    assert transcript.exchanges[0].event == "a b"
    assert transcript.exchanges[0].expected == ["c d e"]


def test_a_difference_is_shown_as_a_diff(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"(?s)-<< y\n\+<< b"):
        play(file(tmp_path, ">> a b\n<< a\n<< y\n== end\n"), echo)


def test_a_command_that_was_not_told_is_a_difference(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match=r"\+<< b"):
        play(file(tmp_path, ">> a b\n<< a\n== end\n"), echo)


@pytest.mark.parametrize("text", ["", ">> a\n<< a\n", "== end\n", "# only a comment\n"])
def test_an_unfinished_story_fails(tmp_path: Path, text: str) -> None:
    with pytest.raises(TranscriptError, match="unfinished"):
        play(file(tmp_path, text), echo)


@pytest.mark.parametrize(
    "text",
    [
        "<< a\n== end\n",
        ">> a\n== late: setting\n== end\n",
        ">> a\n<< a\n== end\n>> b\n",
        "   nothing before\n== end\n",
        ">> a\nwhat is this\n== end\n",
        ">> a\n# between\n<< a\n== end\n",
    ],
)
def test_a_line_without_a_place_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(TranscriptError, match=r"story\.txt:\d+: "):
        read(file(tmp_path, text))


def test_recording_rewrites_the_story_and_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATELIFT_RECORD", "1")
    path = file(tmp_path, "# Why.\n== before: x\n\n# First.\n>> a " + "b" * 100 + "\n>> c\n<< wrong\n== end\n")
    with pytest.raises(TranscriptError, match="rewritten"):
        play(path, echo)
    assert path.read_text() == (
        "# Why.\n== before: x\n\n# First.\n>> a " + "b" * 100 + "\n<< xa\n<< x" + "b" * 100 + "\n>> c\n<< xc\n== end\n"
    )
    play(path, echo)
