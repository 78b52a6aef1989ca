"""Logs: one JSON object a line with workload and epoch, and no secret, not even in what is told of a failure."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from gatelift import logs
from gatelift.core.api.events import EnrolmentAsked
from gatelift_agent.adapters.identity_store import Identity
from gatelift_kube.serving.certificates import Material

SECRET = "-----BEGIN PRIVATE KEY-----"


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.reset_defaults()
    structlog.configure(**before)


def _fail(key: str) -> None:
    raise ValueError(f"a key of {len(key)} characters cannot be used")


def _log_a_failure() -> None:
    log = structlog.get_logger("test")
    try:
        _fail(SECRET)
    except ValueError as error:
        log.exception("task failed", task="authority", exc_info=error)


def test_a_line_is_one_json_object_with_time_level_workload_and_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure()
    structlog.get_logger("test").info("admitted", workload="team/pod-one", epoch=2, cluster="a")
    [line] = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert {key: said[key] for key in ("event", "level", "workload", "epoch", "cluster")} == {
        "event": "admitted",
        "level": "info",
        "workload": "team/pod-one",
        "epoch": 2,
        "cluster": "a",
    }
    assert said["timestamp"].endswith("Z")


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(level=logging.WARNING)
    structlog.get_logger("test").info("quiet")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("human", [False, True], ids=["json", "for people"])
def test_a_traceback_shows_no_values_of_local_variables(human: bool, capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(human=human)
    _log_a_failure()
    said = capsys.readouterr().err
    assert "a key of 27 characters cannot be used" in said
    assert SECRET not in said


def test_values_that_hold_secrets_do_not_show_them() -> None:
    key = SECRET.encode()
    asked = EnrolmentAsked(request_id=1, cluster="w1", token=SECRET, key_digest="d", request=b"r")
    material = Material(bundle=b"b", authority_key=key, certificate=b"c", key=key)
    for value in (asked, material, Identity(key=key)):
        assert SECRET not in repr(value), type(value).__name__


def test_is_23_what_steers_a_terminal_is_in_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure(human=True)
    structlog.get_logger("test").warning("says \x1b]0;owned\x07\r\nforged", cluster="a\u202eb", traceback="one\ntwo")
    said = capsys.readouterr().err
    assert not {"\x07", "\r", "\u202e"} & {*said}
    assert "]0;owned" in said
    assert "\x1b]0" not in said
    assert not any(line.startswith("forged") for line in said.splitlines())


@pytest.mark.parametrize("human", [True, False])
def test_is_23_nothing_in_a_list_or_a_map_of_a_line_steers_a_terminal(
    capsys: pytest.CaptureFixture[str], human: bool
) -> None:
    """IS-23: lists and maps were printed as they came."""
    logs.configure(human=human)
    said = {"na\u202eme": ["\x1b]0;owned\x07", ("a\u202eb", 7)]}
    structlog.get_logger("test").info("found", said=said, count=3, ratio=0.5, none=None)
    line = capsys.readouterr().err
    for one in ("\u202e", "\x1b]0", "\x07", "\\u202e", "\\u001b]0", "\\u0007"):
        assert one not in line, one
    assert "owned" in line
    if not human:
        told = json.loads(line)
        assert told["count"] == 3
        assert told["none"] is None
