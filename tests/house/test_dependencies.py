"""IS-48: ranges are in pyproject.toml, exact versions only in requirements/, and the two agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PIN = re.compile(r"^([a-z0-9-]+)==([^\s;]+)", re.MULTILINE)


def _asked() -> dict[str, list[Requirement]]:
    """Return what pyproject.toml asks for, by the file that locks it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    runtime = project["project"]["dependencies"]
    build = [*groups["build"], *project["build-system"]["requires"]]
    dev = [each for each in groups["dev"] if isinstance(each, str)]
    found = {"runtime": runtime, "build": build, "dev": [*runtime, *build, *dev]}
    return {name: [Requirement(each) for each in asked] for name, asked in found.items()}


@pytest.mark.parametrize("kind", ["runtime", "build", "dev"])
def test_is_48_a_range_is_asked_for_and_an_exact_version_within_it_is_installed(kind: str) -> None:
    pins = dict(PIN.findall((ROOT / "requirements" / f"{kind}.txt").read_text()))
    for asked in _asked()[kind]:
        assert {each.operator for each in asked.specifier} == {">=", "<"}, f"{asked}: write a range"
        assert asked.specifier.contains(pins[asked.name.lower()]), f"{asked}: run make lock"
