"""Decision 80 lists each file of the manager's core that asks for one object of a work, or for what stands for all."""

from __future__ import annotations

import re

from scripts.rooms import ROOT

CORE = ROOT / "manager/gatelift/core"
DECISION = ROOT / "docs/decisions/0080-work-joins-objects-and-workloads.md"
ASKED = re.compile(r"\.(only_object|stands_for_all)\b")


def test_each_file_that_asks_for_one_object_of_a_work_is_listed_with_what_it_asks() -> None:
    asking = {str(path.relative_to(CORE)) for path in CORE.rglob("*.py") if ASKED.search(path.read_text())}
    rows = [line for line in DECISION.read_text().splitlines() if line.startswith("| `")]
    assert {name for row in rows for name in re.findall(r"`([\w/]+\.py)`", row.split("|")[1])} == asking
