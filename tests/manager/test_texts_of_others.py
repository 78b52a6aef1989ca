"""What workers say, in texts of ours (HD-93, HD-96), and in a status that is mirrored (HD-97)."""

from __future__ import annotations

import pytest

from gatelift.cli import render
from gatelift.core import texts
from gatelift.core.told import mirror
from gatelift_kube.objects.conditions import MESSAGE_CHARS_MAX

ESCAPE = "\x1b]0;owned\x07\r\nforged line\u202e"


@pytest.mark.parametrize("said", [texts.refused_by("w1", "Denied", ESCAPE), texts.evicted_on("w1", ESCAPE, "")])
def test_hd_93_a_workers_text_is_one_plain_line(said: str) -> None:
    assert not {"\x1b", "\x07", "\r", "\n", "\u202e"} & {*said}


def test_hd_93_a_cell_of_a_table_is_plain() -> None:
    (_, line) = render.lines(["name"], [[ESCAPE]])
    assert not {"\x1b", "\x07", "\r", "\n", "\u202e"} & {*line}


LONG = "x" * 32768


@pytest.mark.parametrize("said", [texts.refused_by("w1", "Denied", LONG), texts.evicted_on("w1", "E", LONG)])
def test_hd_96_the_longest_text_of_a_worker_fits_into_what_can_be_written(said: str) -> None:
    assert len(said) < MESSAGE_CHARS_MAX


@pytest.mark.parametrize("status", [b'{"failed":-1}', b'{"succeeded":-1}', b'{"active":-2}', b'{"ready":-1}'])
def test_hd_97_a_count_below_zero_cannot_be_shown(status: bytes) -> None:
    assert "must not be negative" in mirror.unreadable(status)


@pytest.mark.parametrize("status", [b"", b"{}", b'{"failed":0,"ready":null}', b'{"phase":"Running"}'])
def test_hd_97_what_a_kubelet_or_controller_says_can(status: bytes) -> None:
    assert mirror.unreadable(status) == ""


def test_hd_97_a_status_that_is_nested_too_deep_cannot_be_shown() -> None:
    assert mirror.unreadable(b'{"x":' + b"[" * 5000) != ""
