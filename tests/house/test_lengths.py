"""Files and functions stay short enough to be read: in the manager's core 400 lines at most, elsewhere 500."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import lengths
from scripts.rooms import ROOT

CORE = "manager/gatelift/core"


def probe(root: Path, name: str, text: str) -> list[str]:
    """Return what is said of a file in an empty repository."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return lengths.problems(root, [name])


@pytest.mark.parametrize(
    ("name", "limit"),
    [(f"{CORE}/works/probe.py", 400), (f"{CORE}/probe.py", 400), ("manager/gatelift/core_of_another.py", 500)],
)
def test_a_file_with_one_line_more_than_its_folder_allows_is_seen(tmp_path: Path, name: str, limit: int) -> None:
    assert probe(tmp_path, name, "a = 1\n" * limit) == []
    assert probe(tmp_path, name, "a = 1\n" * (limit + 1)) == [f"{name}: {limit + 1} lines, {limit} allowed"]


def test_a_long_function_is_seen_and_its_docstring_is_not_counted(tmp_path: Path) -> None:
    docstring, body = '    """Say.\n\n    More.\n    """\n', "    a = 1\n"
    within = f"def f():\n{docstring}{body * (lengths.FUNCTION_LINES_MAX - 1)}"
    assert probe(tmp_path, "probe.py", within) == []
    said = f"probe.py:1: function f has {lengths.FUNCTION_LINES_MAX + 1} lines, {lengths.FUNCTION_LINES_MAX} allowed"
    assert probe(tmp_path, "probe.py", within + body) == [said]


def test_each_folder_with_a_limit_of_its_own_is_there_and_all_files_keep_theirs() -> None:
    names = lengths.tracked(ROOT)
    for folder in lengths.FOLDER_LINES_MAX:
        assert sum(1 for name in names if name.startswith(f"{folder}/")) > 20, folder
    assert lengths.problems(ROOT, names) == []
