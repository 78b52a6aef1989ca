"""What sources refer to by a letter and a number (R1, P10, H11, ...) stands in the page of the protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocol.md"
PACKAGES = ("manager", "worker_agent", "protos", "kinds", "admission", "kube", "sandbox")
RULE = re.compile(r"\b[A-Z]\d{1,2}\b")
ELSEWHERE = re.compile(r"\bdesign,? (?:section )?\d", re.IGNORECASE)
"""A section of a paper that is not in the repository."""


def spoken_of() -> dict[str, str]:
    """Return each rule that some source names, and one file that does."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
                found.update(dict.fromkeys(RULE.findall(path.read_text()), path.relative_to(ROOT).as_posix()))
    return found


def test_every_rule_that_a_source_names_has_a_row_in_the_page() -> None:
    rows = set(re.findall(r"^\| ([RPH]\d{1,2}) \|", PAGE.read_text(), flags=re.MULTILINE))
    missing = {rule: file for rule, file in spoken_of().items() if rule not in rows}
    assert len(rows) > 10
    assert not missing


@pytest.mark.parametrize("rule", ["R1", "P10", "H12"])
def test_sources_do_name_rules(rule: str) -> None:
    assert rule in spoken_of()


def test_no_source_points_to_a_paper_outside_of_the_repository() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if ELSEWHERE.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_source_that_points_there_is_seen() -> None:
    assert ELSEWHERE.search("Where an attempt stands (design 6).")
