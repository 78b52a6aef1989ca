"""IS-35: decision 14 names each difference from Kueue with the tests that show it, and these are there."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import differences

HEAD = f"# 14. Differences\n\n## Deciding\n\n{differences.HEAD}\n|---|---|---|---|"
ROW = "| *a rule* | so | otherwise | `tests/admission/test_differences.py::test_one` |"
FILES = {"admission/test_differences.py": "def test_one():\n    pass\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return tmp_path


def found(tree: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> list[str]:
    monkeypatch.chdir(tree)
    Path("page.md").write_text("\n".join((HEAD, *lines)))
    return differences.problems(Path("page.md"), Path("tests"))


def test_is_35_each_difference_from_kueue_names_a_test_that_is_there() -> None:
    assert differences.problems(differences.PAGE, Path("tests")) == []
    assert len(differences.rows(differences.PAGE)) >= 40


def test_a_page_whose_rows_name_their_tests_is_in_order(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(tree, monkeypatch, ROW) == []


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param((ROW, ROW.replace("a rule", "no case").split("| `")[0] + "| later |"), "names no test", id="none"),
        pytest.param(
            (ROW, f"| *a file* | so | otherwise | `tests/{differences.CASES}` |"), "names no test", id="a file alone"
        ),
        pytest.param((ROW, ROW.replace("_differences", "_two")), "test_two.py is no test file", id="no such file"),
        pytest.param((ROW, ROW.replace("::test_one", "::test_two")), "has no test test_two", id="no such test"),
        pytest.param((ROW, "- *A rule*. Kueue does not."), "stands outside of the table", id="told without a case"),
        pytest.param((ROW, "| *a rule* | `tests/test_one.py::x` |"), "has 2 columns", id="columns left out"),
        pytest.param((), "no row names test_one", id="a case that no row names"),
    ],
)
def test_what_does_not_agree_is_said(
    tree: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], said: str
) -> None:
    (problem,) = found(tree, monkeypatch, *lines)
    assert said in problem
