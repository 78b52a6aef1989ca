"""Tables, JSON, YAML and ages as people and scripts get them."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path

import pytest
import typer
import yaml

import gatelift.cli
from gatelift.cli import connection
from gatelift.cli.render import Output, age, dump, lines, show
from gatelift.cli.sentences import say

COLUMNS = ("Name", "Cluster Queue", "Message")
ROWS = [("one", "all", "waits because\nthere is no room"), ("longer-name", None, "")]
NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)


def test_columns_are_as_wide_as_their_widest_cell_and_a_row_is_one_line() -> None:
    assert lines(COLUMNS, ROWS) == [
        "NAME         CLUSTER QUEUE  MESSAGE",
        "one          all            waits because there is no room",
        "longer-name",
    ]


def test_a_terminal_gets_lines_cut_at_its_width_with_an_ellipsis() -> None:
    made = lines(COLUMNS, ROWS, width=20)
    assert [len(line) for line in made] == [20, 20, 11]
    assert made[1] == "one          all   …"


def test_wide_characters_count_as_two_columns() -> None:
    assert lines(("Name", "State"), [("日本", "x"), ("abcd", "y")]) == ["NAME  STATE", "日本  x", "abcd  y"]


def test_a_table_of_one_column_has_no_trailing_gap() -> None:
    assert lines(("Name",), [("a",)]) == ["NAME", "a"]


def test_nothing_to_show_is_said_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, [], Output.TABLE, nothing="No [workloads].")
    assert capsys.readouterr().out == "No [workloads].\n"


def test_json_is_a_list_of_objects_keyed_by_column(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, ROWS, Output.JSON, nothing="")
    first = json.loads(capsys.readouterr().out)[0]
    assert first == {"name": "one", "cluster_queue": "all", "message": "waits because\nthere is no room"}


def test_yaml_says_the_same_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, ROWS, Output.YAML, nothing="")
    in_yaml = yaml.safe_load(capsys.readouterr().out)
    show(COLUMNS, ROWS, Output.JSON, nothing="")
    assert in_yaml == json.loads(capsys.readouterr().out)


def test_nothing_to_show_is_an_empty_list_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    show(COLUMNS, [], Output.JSON, nothing="No workloads.")
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize(
    ("since", "text"),
    [
        ("2026-01-01T23:59:55Z", "5s"),
        ("2026-01-01T23:58:01Z", "119s"),
        ("2026-01-01T23:48:00Z", "12m"),
        ("2026-01-01T21:00:00Z", "3h"),
        ("2025-12-25T00:00:00Z", "8d"),
        ("2026-01-02T00:00:09Z", "0s"),
        (None, ""),
        ("", ""),
    ],
)
def test_ages_are_short_and_never_negative(since: str | None, text: str) -> None:
    assert age(since, NOW) == text


STEERING = "\x1b]0;owned\x07\r\x9b2J\u202eforged\u2066\u200b"
"""What moves a cursor, turns a line or is seen by nobody."""


def is_plain(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))


@pytest.mark.parametrize("output", list(Output))
def test_is_23_nothing_that_steers_a_terminal_passes_a_table_json_or_yaml(
    output: Output, capsys: pytest.CaptureFixture[str]
) -> None:
    show(COLUMNS, [(STEERING, STEERING, STEERING)], output, nothing="nothing")
    assert is_plain(capsys.readouterr().out)


@pytest.mark.parametrize("output", [Output.JSON, Output.YAML])
def test_is_23_nor_a_document(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    dump({STEERING: [STEERING]}, output)
    assert is_plain(capsys.readouterr().out)


@pytest.mark.parametrize("err", [False, True])
def test_is_23_nor_a_sentence(err: bool, capsys: pytest.CaptureFixture[str]) -> None:
    say(f"it says {STEERING}\nand more", err=err)
    said = capsys.readouterr()
    assert is_plain(said.err if err else said.out)
    assert "and more" in (said.err if err else said.out).splitlines()[-1]


def test_is_23_an_error_of_an_api_server_is_told_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        connection._fail(STEERING, connection.FAILED)
    assert is_plain(capsys.readouterr().err)


PRINTS = re.compile(r"\b(?:typer\.echo|console\.print|print)\(")
OF_OUR_OWN = {
    "authority.py",
    "daemons.py",
    "demo.py",
    "explain.py",
    "progress.py",
    "render.py",
    "sandbox.py",
    "sentences.py",
    "version.py",
}
"""What prints for the others, cleans by itself, or prints what this installation and its own files say."""


def test_is_23_no_other_verb_prints_by_itself() -> None:
    (folder,) = gatelift.cli.__path__
    found = {
        f"{path.name}: {line.strip()}"
        for path in Path(folder).glob("*.py")
        if path.name not in OF_OUR_OWN
        for line in path.read_text().splitlines()
        if PRINTS.search(line) and "for programs" not in line
    }
    assert not found, "print with gatelift.cli.sentences.say"
