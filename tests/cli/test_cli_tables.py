"""Tables, JSON, YAML and ages as people and scripts get them."""

from __future__ import annotations

import datetime as dt
import json

import pytest
import yaml

from gatelift.cli.render import Output, age, lines, show

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
