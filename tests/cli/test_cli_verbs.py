"""The verbs of the command line: found by name, and each imports only what it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gatelift.cli.verbs import VERBS
from gatelift_wire.values import tokens
from support.manager.cli_stage import say

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
        (("version",), {"gatelift_admission"}),
        (("agent", "--help"), {"aiohttp"}),
        (("webhooks", "--help"), {"aiohttp"}),
        (("cluster", "--help"), {"aiohttp", "gatelift_admission", "rich"}),  # quantities
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


def test_a_wrong_value_of_an_option_is_told_with_the_right_ones() -> None:
    said = say("get", "workloads", "-o", "wide")
    assert said.code == 2
    last = said.err.splitlines()[-1]
    assert last == "Error: Invalid value for '--output' / '-o': 'wide' is not one of 'table', 'json', 'yaml'."


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_own_help(verb: str) -> None:
    said = say(verb, "--help")
    assert said.code == 0
    assert said.out.startswith(f"Usage: gatelift {verb}") or f" {verb} " in said.out.splitlines()[0]


def test_the_version_is_an_option_too() -> None:
    assert say("--version").out == say("version").out
    assert say("version").out.startswith("gatelift ")


def test_the_file_of_an_agent_is_checked_as_one_and_its_token_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    token = tokens.compose("gpu-west", bytes(tokens.SECRET_BYTES), b"bundle")
    text = "cluster: gpu-west\nmanager: m.example.org:7443\nenrol: m.example.org:7444\ntoken: "
    file.write_text(f"{text}{token}\n")
    said = say("check-config", "--agent", str(file))
    assert said.code == 0
    assert "cluster: gpu-west\n" in said.out
    assert "token: (set)\n" in said.out
    assert token not in said.out
    file.write_text(f"{text}{token[4:]}\n")
    wrong = say("check-config", "--agent", str(file))
    assert wrong.line == "gatelift: token: is not one of ours; copy it whole from 'gatelift cluster add NAME'"
    as_manager = say("check-config", str(file))
    assert as_manager.code == 2
    assert as_manager.err.splitlines()[-1].startswith("gatelift: this looks like the file of an agent: ")


def test_a_mistake_in_the_file_of_an_agent_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("cluster: gpu-west\nmanager: m.example.org:99999\nenrol: m.example.org:7444\n")
    said = say("check-config", "--agent", str(file))
    assert said.code == 2
    assert said.line == "gatelift: manager: 'm.example.org:99999' is no address; write host:port"


def test_the_effective_values_are_a_file_of_the_same_values(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("waitForPodsReady:\n  timeout: 5m\ngatelift:\n  advertise: m.example.org:7443\n")
    second.write_text(say("check-config", str(first)).out)
    assert say("check-config", str(second)).out == second.read_text()
