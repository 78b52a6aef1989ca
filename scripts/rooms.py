"""Rooms of a package: how many there are, how large, and who imports whom; fails beyond the limits of `HOUSES`.

A room is a folder of the package, or a file beside the folders. Counted are pairs of rooms of which one imports the
other, also inside a function, for types alone, or through a room's `__init__`. No rooms may import each other in a
circle, and none imports one that `.importlinter` places above it.

Run: `python scripts/rooms.py [-v]`; `-v` prints each room with what it imports.
"""

from __future__ import annotations

import ast
import configparser
import sys
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class House:
    """A package and its limits."""

    package: str
    folder: str
    """Below the root of the repository."""
    imports_max: int
    """Pairs of rooms, one of which imports the other."""
    rooms_min: int = 10
    share_max: float = 0.25
    """Of all lines, in one room."""


HOUSES = (
    House("gatelift_admission", "admission/gatelift_admission", imports_max=90),
    House("gatelift.core", "manager/gatelift/core", imports_max=60),
    House("gatelift_agent.core", "worker_agent/gatelift_agent/core", imports_max=72),
    House("gatelift_kinds", "kinds/gatelift_kinds", imports_max=18, rooms_min=6, share_max=0.5),
)


@dataclass
class Plan:
    """What was measured of a package."""

    lines: dict[str, int] = field(default_factory=dict)
    """By room."""
    imports: dict[str, dict[str, int]] = field(default_factory=dict)
    """By room, then by the room that it imports: in how many files."""

    def pairs(self) -> int:
        """Count the pairs of rooms of which one imports the other."""
        return sum(len(each) for each in self.imports.values())


def room_of(path: Path) -> str:
    """Return the room of a file, by its path inside the package."""
    return path.parts[0].removesuffix(".py")


def imported_names(tree: ast.AST) -> set[str]:
    """Return the dotted names of the modules that a file imports, and of what it takes from them."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def imported(tree: ast.AST, package: str) -> set[str]:
    """Return the rooms of `package` that a file imports."""
    depth = package.count(".") + 1
    return {name.split(".")[depth] for name in imported_names(tree) if name.startswith(f"{package}.")}


def measure(folder: Path, package: str) -> Plan:
    """Measure a package as it lies in `folder`."""
    plan = Plan()
    files = sorted(path for path in folder.rglob("*.py") if path != folder / "__init__.py")
    for path in files:
        text, room = path.read_text(), room_of(path.relative_to(folder))
        plan.lines[room] = plan.lines.get(room, 0) + len(text.splitlines())
        into = plan.imports.setdefault(room, {})
        for other in imported(ast.parse(text), package) - {room}:
            into[other] = into.get(other, 0) + 1
    return plan


def layers_of(package: str) -> list[set[str]]:
    """Return the layers of a package, the highest first, as `.importlinter` lists them."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter")
    for name in parser.sections():
        if parser.get(name, "type", fallback="") == "layers" and package in parser.get(name, "containers").split():
            rows = parser.get(name, "layers").splitlines()
            return [{each.strip() for each in row.split("|")} for row in rows if row.strip()]
    return []


def circle(plan: Plan) -> list[str]:
    """Return rooms that import each other in a circle; empty for none."""
    try:
        TopologicalSorter({room: set(others) for room, others in plan.imports.items()}).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def upward(plan: Plan, layers: list[set[str]]) -> list[str]:
    """Name each import of a room that stands above, or beside, and each room without a place."""
    place = {room: at for at, layer in enumerate(layers) for room in layer}
    homeless = [room for room in plan.lines if room not in place]
    return [f"room {room} has no place among the layers of .importlinter" for room in homeless] + [
        f"room {room} imports {other}, which does not stand below it"
        for room, others in sorted(plan.imports.items())
        for other in sorted(others)
        if room in place and other in place and place[other] <= place[room]
    ]


def problems(house: House, plan: Plan, layers: list[set[str]]) -> list[str]:
    """Say in what a package is beyond its limits."""
    found = upward(plan, layers)
    if len(plan.lines) < house.rooms_min:
        found.append(f"{len(plan.lines)} rooms, at least {house.rooms_min} wanted")
    if plan.pairs() > house.imports_max:
        found.append(f"{plan.pairs()} imports between rooms, {house.imports_max} allowed")
    whole = sum(plan.lines.values())
    for room, lines in sorted(plan.lines.items()):
        if lines > house.share_max * whole:
            found.append(f"room {room} has {lines} of {whole} lines, at most {house.share_max:.0%} allowed")
    if around := circle(plan):
        found.append("a circle of rooms: " + " -> ".join(around))
    return [f"{house.package}: {each}" for each in found]


def main() -> int:
    """Measure each house; return 1 if one is beyond its limits."""
    failed = False
    for house in HOUSES:
        plan = measure(ROOT / house.folder, house.package)
        found = problems(house, plan, layers_of(house.package))
        failed = failed or bool(found)
        largest = max(plan.lines, key=lambda room: plan.lines[room])
        print(
            f"{house.package}: {len(plan.lines)} rooms, {plan.pairs()} imports between them, "
            f"the largest is {largest} with {plan.lines[largest]} of {sum(plan.lines.values())} lines"
        )
        if "-v" in sys.argv:
            for room, others in sorted(plan.imports.items()):
                print(f"  {room} ({plan.lines[room]}): {', '.join(sorted(others)) or 'nothing'}")
        print("\n".join(found), end="\n" if found else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
