"""Functions of ours that raise on purpose, in tests of what becomes of an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

FOR_GOOD = 10_000
"""Times that are not lived to."""


class OnPurposeError(Exception):
    """What a mistake of ours would raise."""


class Broken:
    """A function that raises so many times for what it is about, or until it is mended."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, where: tuple[Any, str], hits: Callable[..., Any], times: int = FOR_GOOD
    ) -> None:
        self.raised = 0
        self._times = times
        function = getattr(*where)

        def faulty(*args: Any, **named: Any) -> Any:
            if self.raised < self._times and hits(*args, **named):
                self.raised += 1
                raise OnPurposeError("on purpose")
            return function(*args, **named)

        monkeypatch.setattr(*where, faulty)

    @property
    def mended(self) -> bool:
        """Say whether it raises no more."""
        return self.raised >= self._times

    def mend(self) -> None:
        """Raise no more."""
        self._times = 0
