"""A pytest plugin: how scenarios are spread over processes (`scripts/e2e` asks for it).

What shares clusters is one group, so that each set of clusters is made once: the scenarios of the shared world, the
contract suite, each other module by itself. (The markers of `--dist loadgroup` do not reach xdist with this pytest.)
Groups are dealt out before the run, the longest first, each to whoever has least until then. xdist alone goes by the
number of tests: a module with one test that takes a minute comes last, and all but one process have nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist ships no types

WORLD = frozenset(
    {"test_road.py", "test_crashes.py", "test_filled_objects.py", "test_refusals.py", "test_leadership.py"}
)
GROUPS = "test_groups_"
"""What names of modules begin with whose daemons serve groups of pods: they are restarted for all of them once."""
CONTRACT = "contract"
SECONDS: Mapping[str, float] = {
    "world": 260.0,
    "tests/e2e/test_recovery.py": 300.0,
    "tests/e2e/test_elastic_jobs.py": 150.0,
    "tests/e2e/test_image.py": 150.0,
    "groups": 140.0,
    "tests/e2e/test_admission.py": 115.0,
    "tests/e2e/test_demo_verb.py": 75.0,
    "tests/e2e/test_demo_kept.py": 85.0,
    "tests/e2e/test_release.py": 120.0,
    "tests/e2e/test_home_jobs.py": 110.0,
    "tests/e2e/test_condemned_namespaces.py": 105.0,
    "tests/e2e/test_kueue_crds.py": 55.0,
    "tests/e2e/test_local_provider.py": 55.0,
}
"""About what the long groups take. Nothing depends on it but how evenly the processes are busy."""
SECONDS_A_TEST = 0.5
"""About what a test of any other group takes, among them the hundreds of the contract suite."""


def group(nodeid: str) -> str:
    """Return the group of a test by its id: `tests/e2e/test_road.py::test_x`."""
    path = PurePosixPath(nodeid.split("::", 1)[0])
    if path.name in WORLD:
        return "world"
    if path.name.startswith(GROUPS):
        return "groups"
    return CONTRACT if path.parent.name == CONTRACT else str(path)


def deal(nodeids: Iterable[str], processes: int) -> dict[str, int]:
    """Return which process takes which group; the same for the same tests."""
    takes: dict[str, float] = {}
    for nodeid in nodeids:
        name = group(nodeid)
        takes[name] = max(SECONDS.get(name, 0.0), takes.get(name, 0.0) + SECONDS_A_TEST)
    busy = [0.0] * processes
    dealt = {}
    for name in sorted(takes, key=lambda name: (-takes[name], name)):
        dealt[name] = busy.index(min(busy))
        busy[dealt[name]] += takes[name]
    return dealt


class Together(LoadScopeScheduling):  # type: ignore[misc]  # for the same reason
    """Gives each group to one process as a whole."""

    _dealt: dict[str, int] | None = None

    def _split_scope(self, nodeid: str) -> str:
        if self._dealt is None:
            self._dealt = deal(self.collection, len(self.nodes))
        return str(self._dealt[group(nodeid)])


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Together:
    """Take the place of xdist's own ways of spreading."""
    return Together(config, log)
