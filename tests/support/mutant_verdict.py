"""A pytest plugin: says whether an assertion failed, and nothing else counts (`scripts/mutants.py` asks for it).

An import that fails, a fixture that breaks or an exception out of the code would fail a run of nothing at all just the
same; none of them shows that a test looks at what was taken out. Written as JSON into the file that `VERDICT` names.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Generator
from pathlib import Path

import pytest

VERDICT = "GATELIFT_MUTANT_VERDICT"
ROOT = "GATELIFT_MUTANT_ROOT"
"""Folder of the copy in which the mutant stands: nothing may be imported from anywhere else."""

PACKAGES = ("gatelift", "gatelift_agent", "gatelift_wire", "gatelift_kinds", "gatelift_kube", "gatelift_admission")
TEXT_MAX = 300
"""Characters of what failed: the table shows the beginning of it."""

_assertions: list[str] = []
_others: list[str] = []


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to judge code that is not the copy's."""
    root = Path(os.environ[ROOT]).resolve()
    for name in PACKAGES:
        found = Path(str(importlib.import_module(name).__file__)).resolve()
        if not found.is_relative_to(root):
            raise pytest.UsageError(f"{name} is imported from {found}, not from {root}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note why a test failed."""
    report = yield
    if report.failed and call.excinfo is not None:
        error = call.excinfo.value
        text = f"{item.nodeid}: {type(error).__name__}: {error}"[:TEXT_MAX]
        fell = isinstance(error, AssertionError | pytest.fail.Exception) and not str(error).startswith("Timeout")
        (_assertions if fell and call.when == "call" else _others).append(text)
    return report


def pytest_sessionfinish() -> None:
    """Write it down."""
    Path(os.environ[VERDICT]).write_text(json.dumps({"assertions": _assertions, "others": _others}))
