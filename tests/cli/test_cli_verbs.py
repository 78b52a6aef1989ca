"""The verbs of the command line: found by name, and each imports only what it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gatelift.cli.verbs import VERBS
from support.cli_stage import say

HEAVY = (
    "aiohttp",
    "gatelift.config",
    "gatelift_admission",
    "gatelift_agent",
    "gatelift_sandbox",
    "grpc",
    "rich",
    "structlog",
)
_RUN = """
import sys
from gatelift.cli.main import app
app(sys.argv[2:], standalone_mode=False)
print(" ".join(name for name in sys.argv[1].split(",") if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("verb", "loads"),
    [
        (("version",), set()),
        (("agent", "--help"), {"aiohttp"}),
        (("webhooks", "--help"), {"aiohttp"}),
        (("cluster", "--help"), {"aiohttp", "rich"}),
    ],
)
def test_a_verb_loads_only_what_it_runs(verb: tuple[str, ...], loads: set[str]) -> None:
    done = subprocess.run(  # noqa: S603 (our own interpreter and program)
        [sys.executable, "-c", _RUN, ",".join(HEAVY), *verb], check=True, capture_output=True, text=True
    )
    assert set(done.stderr.split()) == loads


def test_the_help_names_every_verb_and_what_it_does() -> None:
    lines = say("--help").out.partition("Commands:\n")[2].splitlines()
    named = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    assert list(named) == list(VERBS)
    assert all(named.values())


def test_the_nearest_verb_is_named_to_who_mistypes_one() -> None:
    said = say("clustr", "list")
    assert said.code == 2
    assert "No such command 'clustr'. Did you mean 'cluster'?" in said.err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_own_help(verb: str) -> None:
    said = say(verb, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: gatelift {verb}") or f" {verb} " in said.out.splitlines()[0]
