"""Which end-to-end scenarios stay together when a run is spread over processes."""

from __future__ import annotations

import pytest

from support.e2e_spread import group


@pytest.mark.parametrize(
    ("nodeid", "found"),
    [
        ("tests/e2e/test_road.py::test_a_pod", "world"),
        ("tests/e2e/test_crashes.py::test_a_kill[x::y]", "world"),
        ("tests/contract/test_contract_jobs.py::test_a_job[real]", "contract"),
        ("tests/e2e/test_kueue_crds.py::test_a_pod", "tests/e2e/test_kueue_crds.py"),
    ],
)
def test_what_shares_clusters_is_one_group(nodeid: str, found: str) -> None:
    assert group(nodeid) == found
