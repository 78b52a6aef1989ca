"""A pytest plugin: which scenarios stay together when a run is spread over processes (`scripts/e2e` asks for it).

What shares clusters is one group, so that each set of clusters is made once: the scenarios of the shared world, the
contract suite, each other module by itself. (The markers of `--dist loadgroup` do not reach xdist with this pytest.)
"""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist ships no types

WORLD = frozenset({"test_road.py", "test_crashes.py", "test_refusals.py", "test_leadership.py"})
CONTRACT = "contract"


def group(nodeid: str) -> str:
    """Return the group of a test by its id: `tests/e2e/test_road.py::test_x`."""
    path = PurePosixPath(nodeid.split("::", 1)[0])
    if path.name in WORLD:
        return "world"
    return CONTRACT if path.parent.name == CONTRACT else str(path)


class Together(LoadScopeScheduling):  # type: ignore[misc]  # for the same reason
    """Gives each group to one process as a whole."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Together:
    """Take the place of xdist's own ways of spreading."""
    return Together(config, log)
