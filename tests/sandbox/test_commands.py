"""A command of somebody else's tool that fails is told in one line."""

from __future__ import annotations

import pytest

from gatelift_sandbox import commands
from gatelift_sandbox.errors import StartError


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("ERROR: no cluster: too slow\\nStack Trace:\\nruntime.main\\n\\tproc.go:1", "ERROR: no cluster: too slow"),
        ("one\\ntwo\\nthree\\nfour", "two | three | four"),
        ("", "exit code 3"),
    ],
    ids=["an error with a stack", "the last lines", "nothing"],
)
async def test_a_command_that_fails_is_told_by_its_errors_or_its_last_lines(said: str, told: str) -> None:
    with pytest.raises(StartError) as raised:
        await commands.run(("sh", "-c", f"printf '{said}' >&2; exit 3"), 20.0)
    assert str(raised.value).endswith(f" failed: {told}")
