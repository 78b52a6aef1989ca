"""The pages that have ids and the tests are held together by `scripts/attacks.py`, which notices what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import attacks

TEST = '''
import pytest

@pytest.mark.parametrize("one", [pytest.param(1, id="IS-3: by parameter")])
def test_hd_1_by_name(one):
    """And HD-2 by docstring."""
    # HD-9 in a comment is nobody's
'''


def page(*rows: str) -> str:
    return "\n".join(["| id | history | holds | test |", "|---|---|---|---|", *rows])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(TEST)
    return tmp_path


def found(tree: Path, *rows: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tree)
    Path("docs", "decisions").mkdir(parents=True)
    Path("docs", "attacks.md").write_text(page(*rows[:2]))
    Path("docs", "decisions", "0001.md").write_text(page(*rows[2:]))
    return attacks.problems(Path("docs"), Path("tests"))


ALL = tuple(f"| {one} | a history | a rule | `tests/test_one.py` |" for one in ("HD-1", "HD-2", "IS-3"))


def test_names_docstrings_and_parameter_ids_show_an_id(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tree, *ALL, monkeypatch=monkeypatch) == []


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        pytest.param(ALL[:2], "shows IS-3, of which docs has no row", id="a test without a row"),
        pytest.param((*ALL, "| HD-9 | h | r | `tests/test_one.py` |"), "no test of tests/test_one.py", id="no test"),
        pytest.param((*ALL, "| HD-9 | h | r | later |"), "names no test", id="no file named"),
        pytest.param((*ALL, "| HD-9 | h | r | `tests/test_two.py` |"), "is no test file", id="no such file"),
        pytest.param((*ALL[:2], ALL[2].replace(".py", ".py::test_x")), "has no test test_x", id="no such test"),
        pytest.param((*ALL, ALL[0]), "HD-1 has 2 rows", id="twice"),
    ],
)
def test_what_does_not_agree_is_said(
    tree: Path, rows: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = found(tree, *rows, monkeypatch=monkeypatch)
    assert said in problem
