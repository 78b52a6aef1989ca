"""Finds by names alone who changes the state of a package: no type is followed, so none is lost on the way.

A field of a class that can be changed is a name. Whoever assigns, deletes or changes in place something of that name
and is not `self` writes state, whatever the receiver is: `case.attempt.epoch = 2` as much as `anything().epoch = 2`.
Two classes that share a name share its writers: the stricter reading where types would have to be guessed.

Run: `python -m support.house.named_writes`; it prints the table of `tests/house/state_writers.yaml`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from scripts.rooms import ROOT, room_of

from support.house.state_writes import CHANGES

CONTAINERS = frozenset(("dict", "list", "set", "deque", "defaultdict", "OrderedDict", "Counter"))
FIXED = frozenset(("NamedTuple", "Enum", "IntEnum", "StrEnum", "Flag", "Protocol"))
"""Bases of classes that hold nothing that could be changed, or nothing at all."""
BEHIND = frozenset(("setattr", "delattr", "vars", "__setattr__", "__delattr__", "__dict__", "force_setattr"))
"""Ways to a field round its name: nobody in a core needs one."""
OF_ARGUMENT = frozenset(("heappush", "heappop", "heapify", "heapreplace", "heappushpop", "insort", "insort_left"))
"""Functions that change their first argument."""


class Named(NamedTuple):
    """A write: of which name, in which line, and what the text says."""

    name: str
    line: int
    text: str


@dataclass
class Fields:
    """The names of a package's state."""

    owners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Field -> the files (below the package) of the classes that have it."""
    containers: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """The same of those fields that are bare containers."""


def _said(node: ast.expr) -> str:
    """Return an annotation or a base without its module, its quotes and what stands in its brackets."""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    return text.partition("[")[0].rpartition(".")[2].partition(" |")[0]


def _is_fixed(node: ast.ClassDef) -> bool:
    calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
    words = [*node.keywords, *(word for call in calls for word in call.keywords)]
    frozen = any(word.arg == "frozen" and getattr(word.value, "value", False) is True for word in words)
    return frozen or any(_said(base) in FIXED for base in node.bases)


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def fields_of(texts: dict[str, str]) -> Fields:
    """Return the fields of all classes that can be changed; `texts`: files by their path below the package."""
    found = Fields()
    for path, text in texts.items():
        tree = ast.parse(text)
        for holder in (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and not _is_fixed(each)):
            for node in ast.walk(holder):
                if isinstance(node, ast.AnnAssign):
                    own = isinstance(node.target, ast.Attribute) and _is_self(node.target.value)
                    name = getattr(node.target, "attr" if own else "id", "")
                    if name:
                        found.owners[name].add(path)
                    if name and _said(node.annotation) in CONTAINERS:
                        found.containers[name].add(path)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                    found.owners[node.attr].add(path)
    return found


@dataclass
class _Reader(ast.NodeVisitor):
    """Reads one file."""

    fields: Fields
    found: list[Named] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    """Local name -> the field whose container it is."""
    methods: set[ast.AST] = field(default_factory=set)
    """Functions that stand in a class."""
    has_self: bool = False
    """Whether `self` is what it is called: a function beside the classes has none."""

    def _is_own(self, node: ast.expr) -> bool:
        return self.has_self and _is_self(node)

    def _write(self, name: str, node: ast.AST) -> None:
        self.found.append(Named(name, getattr(node, "lineno", 0), ast.unparse(node)))

    def _held(self, node: ast.expr) -> str:
        """Return the name of the field whose container an expression is, "" for others."""
        if isinstance(node, ast.Name):
            return self.aliases.get(node.id, "")
        if isinstance(node, ast.NamedExpr):
            return self._held(node.value)
        if isinstance(node, ast.IfExp):
            return self._held(node.body) or self._held(node.orelse)
        if isinstance(node, ast.BoolOp):
            return next(filter(None, map(self._held, node.values)), "")
        if isinstance(node, ast.Attribute) and node.attr in self.fields.containers and not self._is_own(node.value):
            return node.attr
        return ""

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        before = self.aliases, self.has_self
        self.aliases, self.has_self = dict(self.aliases), self.has_self or node in self.methods
        self.generic_visit(node)
        self.aliases, self.has_self = before

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Note who is a method."""
        self.methods.update(node.body)
        self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function  # noqa: N815 - the names that ast calls

    def visit_Assign(self, node: ast.Assign) -> None:
        """Note what a local name is from here on."""
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=False):
                    self._name(one, value)
            else:
                self._name(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Note what a local name is from here on."""
        self.generic_visit(node)
        if node.value is not None:
            self._name(node.target, node.value)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """Note what a local name is from here on."""
        self.generic_visit(node)
        self._name(node.target, node.value)

    def _name(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.aliases[target.id] = self._held(value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Find what changes a container in place by a local name."""
        if isinstance(node.target, ast.Name) and self.aliases.get(node.target.id):
            self._write(self.aliases[node.target.id], node)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Find an assignment, a deletion, a method that changes a container (called or not), and ways behind."""
        if isinstance(node.ctx, ast.Store | ast.Del):
            if not self._is_own(node.value):
                self._write(node.attr, node)
        elif node.attr in BEHIND:
            self._write("", node)
        elif node.attr in CHANGES:
            if held := self._held(node.value):
                self._write(held, node)
            elif isinstance(node.value, ast.Name) and node.value.id in CONTAINERS:
                self._write("", node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Find an assignment or a deletion in a container."""
        if isinstance(node.ctx, ast.Store | ast.Del) and (held := self._held(node.value)):
            self._write(held, node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Find functions that change what they are given, and ways behind a name."""
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if isinstance(node.func, ast.Name) and name in BEHIND:
            self._write("", node)
        if name in OF_ARGUMENT and node.args and (held := self._held(node.args[0])):
            self._write(held, node)
        self.generic_visit(node)


def named_writes(text: str, fields: Fields) -> list[Named]:
    """Return each write of a file that is not one of `self`."""
    reader = _Reader(fields)
    reader.visit(ast.parse(text))
    return reader.found


@cache
def texts_of(package: str) -> dict[str, str]:
    """Read the files of a package by their path below it; `package`: below the root of the repository."""
    folder = ROOT / package
    return {path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*.py"))}


@cache
def state_of(package: str) -> Fields:
    """Return the fields of a package."""
    return fields_of(texts_of(package))


def strangers(path: str, text: str, fields: Fields) -> Iterator[Named]:
    """Yield each write of a file whose room has no class with a field of that name."""
    room = room_of(Path(path))
    for write in named_writes(text, fields):
        if room not in {room_of(Path(each)) for each in fields.owners.get(write.name, ())}:
            yield write


def writers(package: str) -> dict[str, list[str]]:
    """Return each name that is written outside of the rooms that have it, with the rooms that write it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, text in texts_of(package).items():
        for write in strangers(path, text, state_of(package)):
            found[write.name].add(room_of(Path(path)))
    return {name: sorted(rooms) for name, rooms in sorted(found.items())}


PACKAGES = {
    "manager": "manager/gatelift/core",
    "agent": "worker_agent/gatelift_agent/core",
    "engine": "admission/gatelift_admission",
}


def main() -> None:
    """Print the table."""
    for short, package in PACKAGES.items():
        table = writers(package)
        print(f"{short}:" if table else f"{short}: {{}}")  # noqa: T201
        for name, rooms in table.items():
            print(f"  {name}: [{', '.join(rooms)}]")  # noqa: T201


if __name__ == "__main__":
    main()
