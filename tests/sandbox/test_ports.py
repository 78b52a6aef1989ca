"""Ports for servers that are started a moment later."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from gatelift_sandbox import ports
from gatelift_sandbox.errors import StartError

FIRST_OF_CONNECTIONS = 32_768
"""Of Linux, unless it was told otherwise."""


def test_no_port_is_handed_out_twice() -> None:
    found = [ports.free() for _ in range(50)]
    assert len(set(found)) == 50


def test_no_outgoing_connection_is_given_such_a_port() -> None:
    assert ports.FIRST <= ports.free() <= ports.LAST < FIRST_OF_CONNECTIONS


def test_a_port_on_which_somebody_listens_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = server.getsockname()[1]
        monkeypatch.setattr(ports, "FIRST", taken)
        monkeypatch.setattr(ports, "LAST", taken)
        with pytest.raises(StartError, match="no free port"):
            ports.free()


def test_a_port_that_another_living_process_was_given_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "from gatelift_sandbox import ports; print(ports.free(), flush=True); input()"
    with subprocess.Popen(  # noqa: S603 (our own interpreter)
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        given = int(other.stdout.readline())
        monkeypatch.setattr(ports, "FIRST", given)
        monkeypatch.setattr(ports, "LAST", given)
        with pytest.raises(StartError, match="no free port"):
            ports.free()
        other.communicate("\n")
    assert ports.free() == given, "it is free again when that process has ended"
