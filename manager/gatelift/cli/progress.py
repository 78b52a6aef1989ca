"""Progress of what takes more than a second: a spinner with the latest line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

Say = Callable[[str], None]


class Progress:
    """Tells a person what is being done and how long it took."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, title: str) -> Iterator[Say]:
        """Announce a step, show what it says meanwhile, and print how long it took when it went well.

        On a terminal only the latest line shows, beside a spinner; elsewhere every line is printed as it comes.
        """
        started = time.monotonic()
        if self._console.is_terminal:
            with self._console.status(escape(title)) as status:
                yield lambda text: status.update(f"{escape(title)}  [dim]{escape(text)}[/dim]")
        else:
            self._console.print(escape(title), soft_wrap=True)
            yield lambda text: self._console.print(f"  {escape(text)}", soft_wrap=True)
        took = time.monotonic() - started
        self._console.print(f"[green]done[/green]  {escape(title)} ({took:.1f} s)", soft_wrap=True)
