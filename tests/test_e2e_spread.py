"""Which end-to-end scenarios stay together when a run is spread over processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.e2e.modules import MODULES_OF, left_out
from support.e2e.spread import SECONDS, deal, group

MARK = "pytest.mark." + "e2e"


@pytest.mark.parametrize(
    ("nodeid", "found"),
    [
        ("tests/e2e/test_road.py::test_a_pod", "world"),
        ("tests/e2e/test_crashes.py::test_a_kill[x::y]", "world"),
        ("tests/contract/test_contract_jobs.py::test_a_job[real]", "contract"),
        ("tests/e2e/test_kueue_crds.py::test_a_pod", "tests/e2e/test_kueue_crds.py"),
        ("tests/e2e/test_groups_run.py::test_a_group", "groups"),
    ],
)
def test_what_shares_clusters_is_one_group(nodeid: str, found: str) -> None:
    assert group(nodeid) == found


def test_the_longest_groups_are_dealt_first_and_all_processes_are_about_as_busy() -> None:
    scenarios = ("road", "crashes", "admission", "kueue_crds", "demo_verb", "demo_kept", "local_provider")
    tests = [f"tests/e2e/test_{name}.py::test_x" for name in scenarios]
    tests += [f"tests/contract/test_contract_jobs.py::test_{number}" for number in range(300)]
    dealt = deal(tests, 2)
    assert dealt == deal(list(reversed(tests)), 2), "whatever the order"
    busy = [sum(SECONDS.get(name, 120.0) for name, process in dealt.items() if process == each) for each in (0, 1)]
    assert abs(busy[0] - busy[1]) < min(SECONDS.values())
    assert set(deal(tests, 1).values()) == {0}


def test_a_group_that_nobody_has_timed_counts_by_its_tests() -> None:
    many = [f"tests/e2e/test_new.py::test_{number}" for number in range(1000)]
    dealt = deal(["tests/e2e/test_road.py::test_x", "tests/e2e/test_admission.py::test_x", *many], 2)
    assert dealt["world"] == dealt["tests/e2e/test_admission.py"] != dealt["tests/e2e/test_new.py"]


def test_all_scenarios_are_where_they_are_looked_for() -> None:
    tests = Path(__file__).parent
    folders = {path.relative_to(tests).parts[0] for path in tests.rglob("test_*.py") if MARK in path.read_text()}
    assert folders == {"contract", "e2e"}
    script = (tests.parent / "scripts/e2e").read_text()
    assert 'folders="tests/e2e tests/contract"' in script


def test_each_module_of_scenarios_says_on_which_provider_it_runs() -> None:
    """One that no list names would run on all of them, on kubelets too of which its records know nothing."""
    there = {path.name for path in (Path(__file__).parent / "e2e").glob("test_*.py")}
    assert {module for modules in MODULES_OF.values() for module in modules} == there
    assert "test_release.py" in left_out("kind")
    assert "test_road.py" not in left_out("local")
