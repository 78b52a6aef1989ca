"""The world that the end-to-end scenarios of a provider share (`GATELIFT_E2E_PROVIDER`, default local)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from gatelift_sandbox import build
from gatelift_sandbox.errors import SandboxError
from gatelift_sandbox.kind import require_engine
from support.e2e import log_tails
from support.e2e import world as e2e_world
from support.e2e.modules import left_out
from support.e2e.tidy import tidy
from support.e2e.world import REQUIRED, World

PROVIDER = os.environ.get("GATELIFT_E2E_PROVIDER") or "local"
FAILED = pytest.StashKey[bool]()
collect_ignore = left_out(PROVIDER)


async def missing() -> str:
    """Return why the scenarios cannot run here, "" when they can."""
    try:
        if PROVIDER == "kind":
            await require_engine()
        elif PROVIDER == "local" and build.find() is None:
            return "their binaries are not built: make control-plane"
    except SandboxError as error:
        return str(error)
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of each daemon's log beside a failure, and note it for who tidies up."""
    report = yield
    if report.failed:
        item.stash[FAILED] = True
        values: dict[str, object] = getattr(item, "funcargs", {})
        for world in (value for value in values.values() if isinstance(value, World)):
            tails = log_tails.tails(world.installation.folder)
            report.sections += [(f"last {log_tails.LINES} lines of {name}", text) for name, text in tails]
    return report


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One installation that all scenarios of a run share: three clusters, manager, webhooks, two agents."""
    why = await missing()
    if why and not REQUIRED:
        pytest.skip(f"no control planes here: {why}")
    folder = Path(tmp_path_factory.mktemp("e2e"))
    made = await e2e_world.make(PROVIDER, folder)
    try:
        yield made
    finally:
        await e2e_world.end(made)


@pytest_asyncio.fixture(loop_scope="session")
async def tidied(world: World, request: pytest.FixtureRequest) -> AsyncIterator[None]:
    """See to it that the failure of one scenario is not that of the next ones, too."""
    world.made.clear()
    yield
    if request.node.stash.get(FAILED, False):
        trouble = await tidy(world)
        if trouble:
            print("\n".join(["what the failed scenario leaves behind:", *trouble]))  # noqa: T201 (beside the failure)


@pytest.fixture(autouse=True)
def _tidied_where_shared(request: pytest.FixtureRequest) -> None:
    """Tidy up after all that runs in the shared world."""
    if "world" in request.fixturenames:
        request.getfixturevalue("tidied")
