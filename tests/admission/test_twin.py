"""The fast engine against the literal one: random instances, the same events and wake-ups, the same decisions.

GATELIFT_TWIN_RUNS: how many instances (default 500, `make simulate`: 50,000); GATELIFT_TWIN_SEED: the first seed. A
failure names its seed and shows the instance shrunk;
`GATELIFT_TWIN_SEED=<seed> GATELIFT_TWIN_RUNS=1 pytest tests/admission/test_twin.py` plays it again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from support.twin.admission_cases import Case
from support.twin.instances import instance, shrink, with_groups, with_slices
from support.twin.play import Both, Difference, difference

pytestmark = pytest.mark.interpreted  # rounds are watched from inside
RUNS = int(os.environ.get("GATELIFT_TWIN_RUNS", "500"))
FIRST = int(os.environ.get("GATELIFT_TWIN_SEED", "1"))
PARTS = 10
"""The instances run in so many tests, which processes can share."""
KEPT: list[Case] = yaml.safe_load((Path(__file__).parent / "in_step.yaml").read_text())
"""Instances that the engines once decided differently, with a sentence each."""


def explained(seed: int, found: Difference) -> str:
    """Return what differs, and the smallest instance that still shows a difference of the kind."""
    kind = str(found).split()[0]

    def still(case: Case) -> bool:
        other = difference(case)
        return other is not None and other.split()[0] == kind

    small = shrink(instance(seed), still)
    text = yaml.safe_dump(small, default_flow_style=None, width=120, sort_keys=False)
    return f"seed {seed}: {found}\nshrunk: {difference(small)}\n{text}"


@pytest.mark.timeout(max(480, RUNS // 10))
@pytest.mark.parametrize("part", range(PARTS))
def test_random_instances_are_decided_as_the_literal_engine_decides_them(part: int) -> None:
    rounds = reserved = preempted = 0
    for seed in range(FIRST + part, FIRST + RUNS, PARTS):
        both = Both(instance(seed))
        try:
            both.play()
        except Difference as found:
            pytest.fail(explained(seed, found), pytrace=False)
        rounds += both.cycles
        reserved += both.admissions
        preempted += both.preemptions
    runs = len(range(FIRST + part, FIRST + RUNS, PARTS))
    if runs >= 30:  # fewer need not contain all
        assert rounds > 3 * runs
        assert reserved > runs
        assert preempted > 0


@pytest.mark.timeout(max(240, RUNS // 10))
def test_is_31_groups_of_pod_sets_are_decided_as_the_literal_engine_decides_them() -> None:
    for seed in range(FIRST, FIRST + RUNS // 5):
        found = difference(with_groups(seed, instance(seed)))
        assert found is None, f"seed {seed}: {found}"


@pytest.mark.timeout(max(480, RUNS // 10))
@pytest.mark.parametrize("part", range(PARTS))
def test_sl_80_slices_of_elastic_workloads_are_decided_as_the_literal_engine_decides_them(part: int) -> None:
    """As Kueue, or otherwise by a rule that `support.twin.slices` lists; 20,000 instances in `make simulate`."""
    grown = 0
    seeds = range(FIRST + part, FIRST + RUNS * 2 // 5, PARTS)
    for seed in seeds:
        both = Both(with_slices(seed, instance(seed)))
        try:
            both.play()
        except Difference as found:
            pytest.fail(f"seed {seed}: {found}", pytrace=False)
        grown += both.grown
    assert grown > 0 or len(seeds) < 20


@pytest.mark.parametrize("case", KEPT, ids=[case["sentence"].replace(" ", "-") for case in KEPT])
def test_an_instance_that_once_made_a_difference_makes_none(case: Case) -> None:
    assert difference(case) is None


def test_the_comparison_sees_a_wrong_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    case: Case = {
        "queues": {"q": {"flavors": {"red": {"cpu": 2}}}},
        "flavors": {"red": {}},
        "workloads": {"a": {"queue": "q", "requests": {"cpu": 2}}},
        "steps": ["cycle"],
    }
    assert difference(case) is None
    monkeypatch.setattr("support.twin.flavors.available", lambda *_: 1000)
    found = difference(case)
    assert found is not None
    assert "fast reserves [('a', 'q'" in found
