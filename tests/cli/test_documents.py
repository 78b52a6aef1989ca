"""What the documents say of the command line and of files is true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from gatelift.cli import connection
from gatelift.cli.main import app
from gatelift.cli.verbs import VERBS
from gatelift_wire.values.refusals import Refusal

ROOT = Path(__file__).parents[2]
GUIDES = [
    ROOT / name
    for name in (
        "README.md",
        "docs/getting-started.md",
        "docs/cli.md",
        "docs/operations.md",
        "docs/troubleshooting.md",
        "kubeconfigs/README.md",
    )
]
CLI = (ROOT / "docs/cli.md").read_text()


def verbs() -> set[str]:
    """Return all verbs as they are typed: `demo`, `cluster add`, ..."""
    command: Any = typer.main.get_command(app)
    found = set()
    for name in VERBS:
        children = getattr(command.get_command(None, name), "commands", None)
        found |= {f"{name} {child}" for child in children} if children else {name}
    return found


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_links_lead_somewhere(guide: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", guide.read_text())
    missing = [link for link in links if not (guide.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_paths_of_deploy_are_there(guide: Path) -> None:
    paths = re.findall(r"(?<![\w/])deploy/[\w./-]*\w", guide.read_text())
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_commands_that_are_shown_exist(guide: Path) -> None:
    shown = re.findall(r"(?:^|`|\()gatelift ([a-z][a-z-]*)(?: ([a-z-]+))?", guide.read_text(), re.MULTILINE)
    known = verbs()
    wrong = [words for words in shown if words[0] not in known and " ".join(words) not in known]
    assert wrong == []


def test_every_verb_is_in_the_list_of_verbs() -> None:
    told = " ".join(line for line in CLI.splitlines() if line.startswith("| `"))
    missing = [verb for verb in verbs() if not all(f"{word}" in told for word in verb.split())]
    assert missing == []


def test_every_exit_code_is_explained() -> None:
    names = ("FAILED", "USAGE", "NOT_FOUND", "UNREACHABLE", "TIMED_OUT", "STOPPED")
    assert [name for name in names if f"| {getattr(connection, name)} |" not in CLI] == []


def test_refusals_that_troubleshooting_explains_are_those_of_the_wire() -> None:
    section = (ROOT / "docs/troubleshooting.md").read_text().split("## Why a cluster refuses")[1].split("## ")[0]
    named = {
        word
        for line in section.splitlines()
        if line.startswith("| `")
        for word in re.findall(r"`([A-Z]\w+)`", line.split("|")[1])
    }
    assert named
    assert named <= {each.value for each in Refusal}
