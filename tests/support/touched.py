"""How much of the code a core goes through: lines executed, which are the same on each machine and at each load.

Who goes through all members of a group as one of them changes executes some lines for each of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


class Counted:
    """A machine whose door is counted; all else is the machine's own."""

    def __init__(self, machine: Any, touched: Touched) -> None:
        self._machine = machine
        self.handle = touched.counting(machine.handle)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)


class Touched:
    """Counts the lines that are executed inside of the functions that it wraps."""

    def __init__(self) -> None:
        self._lines = 0

    def taken(self) -> int:
        """Return how many lines were executed since that was asked last."""
        lines, self._lines = self._lines, 0
        return lines

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function, counted."""

        def counted(*args: Any, **more: Any) -> Any:
            before = sys.gettrace()
            sys.settrace(self._called)
            try:
                return function(*args, **more)
            finally:
                sys.settrace(before)

        return counted

    def _called(self, _frame: FrameType, _event: str, _arg: Any) -> Any:
        return self._went_on

    def _went_on(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        self._lines += event == "line"
        return self._went_on
