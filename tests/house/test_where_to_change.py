"""RM-10: the table of everyday changes in ARCHITECTURE.md names source files that bear the noun of the question.

A file or a folder above it bears the noun that the question has, or the term of the field that stands for it in
`SYNONYMS`. What every path has (the tree, the package, `core`) bears nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "ARCHITECTURE.md"
HEADING = "## Where to change what"
LINES_MAX = 150
TREES = ("admission", "kinds", "kube", "manager", "protos", "worker_agent")
SYNONYMS = {
    "message": {"rules"},
    "namespace": {"policy"},
    "preempted": {"preemption"},
    "right": {"leases"},
    "stands": {"standings"},
    "words": {"texts"},
}
"""A question's word -> what the product calls it."""
COMMON = frozenset(
    ("a", "an", "and", "as", "at", "is", "it", "not", "of", "on", "or", "so", "the", "to", "what", "own")
)
"""Words that every sentence has."""


def _stem(word: str) -> str:
    return word.removesuffix("s")


def borne(question: str, name: str) -> set[str]:
    """Return which words of a question a source file bears, or a folder between it and its package."""
    path = Path(name)
    if path.suffix != ".py" or path.parts[0] not in TREES:
        return set()
    inside = [part for part in path.with_suffix("").parts[2:] if part != "core"]
    parts = {_stem(word) for part in inside for word in part.split("_")}
    words = set(re.findall(r"[a-z]+", question.lower())) - COMMON
    return {word for word in words if parts & {_stem(each) for each in (word, *SYNONYMS.get(word, ()))}}


def rows() -> list[tuple[str, list[str]]]:
    """Return each question with its files; one without a folder is beside the one before it."""
    found = []
    for line in PAGE.read_text().partition(HEADING)[2].splitlines():
        cells = re.fullmatch(r"\| (.+) \| (.+) \|", line)
        if cells is None or cells[1] == "question":
            continue
        folder, files = Path(), []
        for name in re.findall(r"`([^`]+)`", cells[2]):
            path = Path(name) if "/" in name else folder / name
            folder = path.parent
            files.append(str(path))
        found.append((cells[1], files))
    return found


def test_rm_10_twelve_everyday_changes_have_a_file_each_and_it_is_there() -> None:
    assert len(rows()) >= 12
    for question, files in rows():
        assert files, question
        assert [name for name in files if not (ROOT / name).is_file()] == [], question


def test_rm_10_each_row_names_a_source_file_that_bears_the_noun_of_its_question() -> None:
    nameless = [question for question, files in rows() if not any(borne(question, name) for name in files)]
    assert nameless == []
    assert [name for _, files in rows() for name in files if not name.endswith(".py")] == [], (
        "no page is where it changes"
    )


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("how long an offer is held", "docs/protocol.md"),
        ("how long an offer is held", "docs/offer.md"),
        ("how long an offer is held", "manager/gatelift/own_settings.py"),
        ("which write frees quota", "manager/gatelift/core/dispatching/endings.py"),
        ("what a manager is", "manager/gatelift/core/machine.py"),
        ("how long an offer is held", "tests/offer.py"),
    ],
)
def test_rm_10_a_page_or_a_file_of_another_name_bears_nothing(question: str, name: str) -> None:
    assert borne(question, name) == set()


def test_rm_10_every_synonym_is_asked_for() -> None:
    asked = {word for question, _ in rows() for word in re.findall(r"[a-z]+", question.lower())}
    assert set(SYNONYMS) <= asked


def test_the_page_can_be_read_in_one_sitting() -> None:
    assert len(PAGE.read_text().splitlines()) < LINES_MAX
