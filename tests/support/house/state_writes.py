"""Finds in the text of a core who changes a state object: by assignment, `del` or a method that changes a container.

Types are followed from annotations: of parameters, of the fields and properties of state objects, through containers,
loops and local names. So `for one in core.attempts.values(): one.epoch = 2` is found as a write to an Attempt.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, NamedTuple

CONTAINERS = (dict, list, set, deque)
CHANGES = frozenset(
    {
        *("add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert"),
        *("intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "rotate", "setdefault", "sort"),
        *("symmetric_difference_update", "update"),
    }
)
"""Methods that change a container in place."""
ELEMENTS = frozenset(("get", "pop", "setdefault", "values"))
"""Methods of containers that return what stands in them."""


class Of(NamedTuple):
    """What an expression is: its type, and which class holds it in a field, where it is a container."""

    type: Any
    holder: type | None = None


class Write(NamedTuple):
    """A class whose state is changed, in which line, and what the text says."""

    of: type
    line: int
    text: str


def state_classes(root: type) -> dict[str, type]:
    """Return the mutable dataclasses of the same package that are reached by the fields of one, itself included."""
    package = root.__module__.split(".")[0]
    found: dict[str, type] = {}
    left = [root]
    while left:
        one = left.pop()
        if one.__name__ in found or one.__module__.split(".")[0] != package or not dataclasses.is_dataclass(one):
            continue
        if not vars(one)["__dataclass_params__"].frozen:
            found[one.__name__] = one
            for hint in _hints(one).values():
                left += [each for each in _parts(hint) if inspect.isclass(each)]
    return found


def _hints(one: type) -> dict[str, Any]:
    """Return the types of the fields and properties of a class."""
    hints = typing.get_type_hints(one)
    for name, member in inspect.getmembers(one, lambda each: isinstance(each, property)):
        hints[name] = typing.get_type_hints(member.fget).get("return", Any)
    return hints


def _parts(hint: Any) -> Iterator[Any]:
    yield typing.get_origin(hint) or hint
    for each in typing.get_args(hint):
        yield from _parts(each)


def _plain(hint: Any) -> Any:
    """Return a type without None."""
    if isinstance(hint, UnionType) or typing.get_origin(hint) is typing.Union:
        left = [each for each in typing.get_args(hint) if each is not type(None)]
        return left[0] if len(left) == 1 else Any
    return hint


def _element(hint: Any) -> Any:
    """Return what stands in a container, of a mapping its values."""
    arguments = typing.get_args(hint)
    if not arguments:
        return Any
    origin = typing.get_origin(hint)
    is_mapping = inspect.isclass(origin) and issubclass(origin, Mapping)
    return _plain(arguments[-1] if is_mapping else arguments[0])


@dataclass
class Writes(ast.NodeVisitor):
    """The writes of one module."""

    classes: dict[str, type]
    core: type
    found: list[Write] = field(default_factory=list)
    _names: dict[str, Of] = field(default_factory=dict)
    _within: type | None = None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Take `self` as what it is, in a state object."""
        before, self._within = self._within, self.classes.get(node.name)
        self.generic_visit(node)
        self._within = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Take parameters as what they are said to be, then local names in the order of the text."""
        before, self._names = self._names, dict(self._names)
        for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            said = ast.unparse(each.annotation).replace(" | None", "") if each.annotation is not None else ""
            if said in self.classes:
                self._names[each.arg] = Of(self.classes[said])
            elif each.arg == "self" and self._within is not None:
                self._names["self"] = Of(self._within)
            else:
                self._names.pop(each.arg, None)
        self.generic_visit(node)
        self._names = before

    def visit_Assign(self, node: ast.Assign) -> None:
        """Take what is assigned, then what a name is from here on."""
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for one, value in zip(target.elts, node.value.elts, strict=False):
                    self._name(one, self._of(value))
            else:
                self._name(target, self._of(node.value))

    def visit_For(self, node: ast.For) -> None:
        """Take what a loop goes through."""
        walked = self._of(node.iter)
        if walked is not None:
            self._name(node.target, Of(_element(walked.type)))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Find an assignment or a deletion of a field."""
        holder = self._of(node.value)
        if isinstance(node.ctx, ast.Store | ast.Del) and holder is not None:
            self._write(holder.type, node)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """Find an assignment or a deletion in a container."""
        container = self._of(node.value)
        if isinstance(node.ctx, ast.Store | ast.Del) and container is not None:
            self._write(container.holder, node)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Find what a local name for a container is changed by, too: `|=` changes it in place."""
        changed = self._of(node.target) if isinstance(node.target, ast.Name) else None
        if changed is not None:
            self._write(changed.holder, node)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """Find a call that changes a container."""
        if isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            container = self._of(node.func.value)
            if container is not None and typing.get_origin(container.type) in CONTAINERS:
                self._write(container.holder, node)
        self.generic_visit(node)

    def _write(self, of: Any, node: ast.expr | ast.stmt) -> None:
        if inspect.isclass(of) and of in self.classes.values():
            self.found.append(Write(of, node.lineno, ast.unparse(node)))

    def _name(self, target: ast.expr, of: Of | None) -> None:
        if isinstance(target, ast.Name):
            self._names.pop(target.id, None)
            if of is not None:
                self._names[target.id] = of

    def _of(self, node: ast.expr) -> Of | None:
        """Return what an expression is, None for what nothing is known of."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name)
            case ast.Attribute(value=value, attr=name):
                if name == "core" and isinstance(value, ast.Name) and value.id == "self" and self._within is None:
                    return Of(self.core)
                return self._member(self._of(value), name)
            case ast.IfExp(body=one, orelse=other):
                return self._of(one) or self._of(other)
            case ast.BoolOp(values=values):
                return next(filter(None, map(self._of, values)), None)
            case ast.NamedExpr(target=target, value=value):
                self._name(target, self._of(value))
                return self._of(value)
            case ast.Subscript(value=value):
                container = self._of(value)
                return Of(_element(container.type), container.holder) if container is not None else None
            case ast.Call(func=ast.Attribute(value=value, attr=name)):
                container = self._of(value)
                if container is None:
                    return None
                if typing.get_origin(container.type) is None:
                    return self._returned(container.type, name)
                if name == "values":
                    return container
                return Of(_element(container.type), container.holder) if name in ELEMENTS else None
        return None

    def _member(self, of: Of | None, name: str) -> Of | None:
        if of is None or not inspect.isclass(of.type) or of.type not in self.classes.values():
            return None
        hint = _hints(of.type).get(name)
        return Of(_plain(hint), of.type) if hint is not None else None

    def _returned(self, of: Any, name: str) -> Of | None:
        method = getattr(of, name, None) if inspect.isclass(of) and of in self.classes.values() else None
        hint = typing.get_type_hints(method).get("return") if inspect.isfunction(method) else None
        return Of(_plain(hint)) if hint is not None else None


def writes_of(text: str, classes: dict[str, type], core: type) -> list[Write]:
    """Return the writes of a module."""
    found = Writes(classes, core)
    found.visit(ast.parse(text))
    return found.found
