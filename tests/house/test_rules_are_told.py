"""Rules that the code refers to (R1, P10, H11, ...) stand in the page of the protocol."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocol.md"
PACKAGES = ("manager", "worker_agent", "protos", "kinds", "admission", "kube", "sandbox")
RULE = re.compile(r"\b[RP]\d{1,2}\b")


def spoken_of() -> dict[str, str]:
    """Return each rule that some source names, and one file that does."""
    found: dict[str, str] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if not path.name.endswith(("_pb2.py", "_pb2_grpc.py")):
                found.update(dict.fromkeys(RULE.findall(path.read_text()), path.relative_to(ROOT).as_posix()))
    return found


def test_every_rule_that_a_source_names_has_a_row_in_the_page() -> None:
    rows = set(re.findall(r"^\| ([RP]\d{1,2}) \|", PAGE.read_text(), flags=re.MULTILINE))
    missing = {rule: file for rule, file in spoken_of().items() if rule not in rows}
    assert len(rows) > 10
    assert not missing


@pytest.mark.parametrize("rule", ["R1", "P10"])
def test_sources_do_name_rules(rule: str) -> None:
    assert rule in spoken_of()
