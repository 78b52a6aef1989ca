"""What one event enters in the manager's core: files, functions, rooms, how deep, and which calls go back (RM-2).

A scripted history is lived with both real cores: pods and a Job are made, placed on workers, run and are reported; one
is deleted. Of each kind of event the one that entered most is told. A call goes *back* where it enters a room that
already waits for an answer further out: machine -> works -> told -> works.

Run: `python -m support.sim.walks`, or with `--rooms FOLDER` the rooms of another tree's core: a file belongs where the
file of its name lies there, so that a tree before a move can be compared with one after it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import gatelift.core
from gatelift.core.machine import Machine
from gatelift_kube.values.resources import POD
from support.sim.history import History

CORE = Path(gatelift.core.__file__).parent
COLUMNS = ("event", "files", "functions", "rooms", "depth", "crossings", "back")


@dataclass
class Walk:
    """What one event has entered."""

    files: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)
    rooms: set[str] = field(default_factory=set)
    depth: int = 0
    crossings: int = 0
    """Calls from one room into another."""
    back: Counter[str] = field(default_factory=Counter)
    """Those into a room that waits further out, by the rooms on the way."""

    def row(self, event: str) -> tuple[str, ...]:
        """Return what is told of it."""
        sizes = len(self.files), len(self.functions), len(self.rooms)
        return event, *map(str, (*sizes, self.depth, self.crossings, self.back.total()))


class Walker:
    """Follows the calls of one event at a time."""

    def __init__(self, rooms: Path) -> None:
        self._room_of = {path.name: room_of(path, rooms) for path in sorted(rooms.rglob("*.py"))}
        self._walk = Walk()
        self._stack: list[str] = []
        self.longest: dict[str, Walk] = {}
        """By the name of the event's type."""

    def name_room(self, file: str, room: str) -> None:
        """Count a file as one of another room."""
        self._room_of[file] = room

    @contextmanager
    def follows(self, event: Any) -> Iterator[None]:
        """Follow all calls until the end of the block."""
        self._walk, self._stack = Walk(), []
        before = sys.getprofile()
        sys.setprofile(self._call)
        try:
            yield
        finally:
            sys.setprofile(before)
        name, known = type(event).__name__, self.longest.get(type(event).__name__)
        if known is None or len(self._walk.functions) > len(known.functions):
            self.longest[name] = self._walk

    def _call(self, frame: FrameType, kind: str, _argument: Any) -> None:
        if kind not in {"call", "return"} or not frame.f_code.co_filename.startswith(str(CORE)):
            return
        if kind == "return":
            if self._stack:
                self._stack.pop()
            return
        path = Path(frame.f_code.co_filename)
        room, walk = self._room_of.get(path.name, path.stem), self._walk
        walk.files.add(str(path))
        walk.functions.add((str(path), frame.f_code.co_qualname))
        walk.rooms.add(room)
        if self._stack and self._stack[-1] != room:
            walk.crossings += 1
            if room in self._stack:
                outer = len(self._stack) - 1 - self._stack[::-1].index(room)
                walk.back[" > ".join(_without_repeats([*self._stack[outer:], room]))] += 1
        self._stack.append(room)
        walk.depth = max(walk.depth, len(self._stack))


def room_of(path: Path, core: Path) -> str:
    """Return the room of a file: its folder below the core, or its own name."""
    return path.relative_to(core).parts[0].removesuffix(".py")


def _without_repeats(rooms: list[str]) -> list[str]:
    return [room for at, room in enumerate(rooms) if not at or rooms[at - 1] != room]


@contextmanager
def _each_followed(walker: Walker) -> Iterator[None]:
    handle = Machine.handle

    def followed(machine: Machine, event: Any, now: float) -> Any:
        with walker.follows(event):
            return handle(machine, event, now)

    Machine.handle = followed  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Machine.handle = handle  # type: ignore[method-assign]


def live(walker: Walker) -> None:
    """Live through the history with each event of the manager followed."""
    with _each_followed(walker):
        _live()


def _live() -> None:
    history = History(shown=False)
    history.pod("one", seconds=60.0)
    history.job("many", pods=2, seconds=60.0)
    history.until_runs("one")
    history.until_runs("many", "Job")
    history.passes(90.0)
    history.pod("other")
    history.until_runs("other")
    history.delete("home", POD, "other")
    history.passes(60.0)


def main() -> None:
    """Print a table, and what goes back."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rooms", type=Path, default=CORE)
    walker = Walker(parser.parse_args().rooms.resolve())
    live(walker)
    rows = [COLUMNS, *(walk.row(event) for event, walk in sorted(walker.longest.items()))]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        sys.stdout.write("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n")
    ways: Counter[str] = Counter()
    for walk in walker.longest.values():
        ways += walk.back
    for way, count in ways.most_common():
        sys.stdout.write(f"back {count:4} {way}\n")


if __name__ == "__main__":
    main()
