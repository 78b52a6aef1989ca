"""Functions that have one object among their arguments, found by a census, and made to raise for it.

A function is raised in by exchanging its code, so that all who call it notice, by whatever name they know it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from gatelift.core.rules import invariants
from support.on_purpose import OnPurposeError
from support.sim.world import SimWorld

SIDES = {
    "manager": ("gatelift.core", "gatelift_admission"),
    "agent": ("gatelift_agent.core",),
    "kinds": ("gatelift_kinds",),
}
"""What is swept, by who calls it."""
_SWEPT = tuple(each.split(".")[0] for packages in SIDES.values() for each in packages)
BOUNDARIES = (
    "gatelift.core.machine:",
    "gatelift.core.works.passes:",
    "gatelift.core.conclusions.catching_up:CatchingUp.pass_on",
    "gatelift.core.rules.containment:",
    "gatelift.core.rules.invariants:",
    "gatelift.core.state.untaken:",
    "gatelift.core.api.agenda:",
    "gatelift.core.works.taking:take",
    "gatelift.core.works.taking:answered",
    "gatelift.core.works.taking:look_at",
    "gatelift.core.works.taking:tried",
    "gatelift.core.works.answers:written",
    "gatelift.core.works.answers:read",
    "gatelift_admission.engine:Engine.",
    "gatelift_admission.told.answers:EngineAnswers.",
    "gatelift_admission.feed.faults:",
    "gatelift_admission.demand.grants:of_record",
    "gatelift_agent.core.machine:",
    "gatelift_agent.core.advancing.answers:write_answered",
    "gatelift_agent.core.advancing.answers:read_answered",
    "gatelift_agent.core.advancing.answers:_of_placement",
    "gatelift_agent.core.advancing.outcomes:find",
    "gatelift_agent.core.watched.objects:ref_of",
    "gatelift_agent.core.state.untaken:",
    "gatelift_agent.core.seeing.taking:take",
    "gatelift_agent.core.seeing.taking:subject_of",
    "gatelift_agent.core.beginning.rebuilding:_Apart.",
    "gatelift_agent.core.state.world:World.look",
    "gatelift_agent.core.state.world:World.note",
    "gatelift_agent.core.values.wakes:Alarms.ask",
    "gatelift_agent.core.placement.placements:Placement.stirs",
    "gatelift_agent.core.placement.placements:Tracked.name",
    "gatelift_agent.core.state.containment:",
)
"""What contains, the path of few lines by which a record is charged, and what checks: nobody stands
above it."""
NAMED = ("uid", "name", "key", "metadata", "ref", "placement", "workload", "object")
"""Attributes by which something says what it is about."""
DEEP = 2
NOT_ABOUT = frozenset({"core", "world", "state", "now"})
"""Parameters that are about everything."""


class Place(NamedTuple):
    """A function: its module, and its name there."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}"


class About:
    """Tells whether a value is about the one object: it, its Workload, its pods, by name or UID."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._prefixes = (f"pod-{name}", f"job-{name}", f"{name}-")
        self.uids: set[str] = set()

    def __call__(self, value: Any, depth: int = 0) -> bool:
        """Say whether it is."""
        if isinstance(value, str):
            return value == self._name or value.startswith(self._prefixes) or value in self.uids
        if value is None or depth > DEEP or isinstance(value, int | float | bytes | ModuleType):
            return False
        return any(self(each, depth + 1) for each in _named(value))


def _named(value: Any) -> Iterator[Any]:
    for name in NAMED:
        found = getattr(value, name, None)
        if found is not None and not callable(found) and found is not value:
            yield found


def begin_anew() -> None:
    """Forget what functions remember of their last calls: what ran before in this process changes no count."""
    for module in [each for name, each in sys.modules.items() if name.startswith(_SWEPT)]:
        for value in [*vars(module).values()]:
            forget = getattr(value, "cache_clear", None)
            if callable(forget):
                forget()


def functions(side: str) -> dict[CodeType, tuple[Place, FunctionType]]:
    """Return all functions of a side's packages that can be raised in, by their code."""
    found: dict[CodeType, tuple[Place, FunctionType]] = {}
    for package in SIDES[side]:
        root = importlib.import_module(package)
        names = [package, *(each.name for each in pkgutil.walk_packages(root.__path__, f"{package}."))]
        for name in names:
            for function in _of_module(importlib.import_module(name)):
                if not (function.__code__.co_flags & inspect.CO_GENERATOR or function.__code__.co_freevars):
                    place = Place(name, function.__qualname__)
                    if not str(place).startswith(BOUNDARIES):
                        found[function.__code__] = place, function
    return found


def _of_module(module: ModuleType) -> Iterator[FunctionType]:
    for value in vars(module).values():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        if isinstance(value, FunctionType):
            yield value
        elif isinstance(value, type):
            for member in vars(value).values():
                inner = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
                if (
                    isinstance(inner, FunctionType)
                    and inner.__module__ == module.__name__
                    and "__" not in inner.__name__
                ):
                    yield inner


def _arguments(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


@contextmanager
def census(side: str, about: About) -> Iterator[Counter[Place]]:
    """Count how often each function is called about the object."""
    known, counted = functions(side), Counter[Place]()

    def called(frame: FrameType, event: str, _: Any) -> None:
        entry = known.get(frame.f_code) if event == "call" else None
        if entry is None:
            return
        local = frame.f_locals
        if any(_is_about(about, name, local.get(name)) for name in _arguments(frame.f_code)):
            counted[entry[0]] += 1

    sys.setprofile(called)
    try:
        yield counted
    finally:
        sys.setprofile(None)


def _is_about(about: About, name: str, value: Any) -> bool:
    return name not in NOT_ABOUT and about(value, 1 if name == "self" else 0)


class Raising:
    """Raises in one function, from its n-th call about the object on: once, or always until it is mended."""

    def __init__(self, place: Place, about: About, nth: int = 1, *, always: bool = False) -> None:
        self.place = place
        self.raised = 0
        self._about, self._nth, self._always = about, nth, always
        self._calls = 0
        self.mended = False

    def _meets(self, names: tuple[str, ...], args: tuple[Any, ...], named: dict[str, Any]) -> bool:
        """Count a call; say whether it raises."""
        if self.mended or not any(
            _is_about(self._about, *each) for each in (*zip(names, args, strict=False), *named.items())
        ):
            return False
        if _is_checked():
            return False
        self._calls += 1
        if self._calls < self._nth or (self.raised and not self._always):
            return False
        self.raised += 1
        return True

    @contextmanager
    def armed(self, side: str) -> Iterator[None]:
        """Exchange the function's code while this lasts."""
        function = dict(functions(side).values())[self.place]
        code = function.__code__
        original = FunctionType(code, function.__globals__, function.__name__, function.__defaults__)
        original.__kwdefaults__ = function.__kwdefaults__
        names = _arguments(code)

        def meets(args: tuple[Any, ...], named: dict[str, Any]) -> Any:
            if self._meets(names, args, named):
                raise OnPurposeError(f"on purpose, in {self.place}")
            return original(*args, **named)

        _MET[str(self.place)] = meets
        function.__code__ = _trampoline(str(self.place))
        try:
            yield
        finally:
            function.__code__ = code
            del _MET[str(self.place)]


_CHECKS = (invariants.check.__code__, SimWorld._check.__code__, SimWorld._check_shown.__code__)


def _is_checked() -> bool:
    """Say whether it is called by what only checks (`debug_invariants`, or from outside): nobody stands above that."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code in _CHECKS:
            return True
        frame = frame.f_back
    return False


_MET: dict[str, Callable[[tuple[Any, ...], dict[str, Any]], Any]] = {}
"""What is called in the place of a function whose code was exchanged."""


def _trampoline(key: str) -> CodeType:
    """Return code that knows nothing of the globals that it runs with."""
    text = f"def called(*args, **named):\n from {__name__} import _MET\n return _MET[{key!r}](args, named)\n"
    made: dict[str, Any] = {}
    exec(text, made)  # noqa: S102 - a function's code has to be one of its own
    code: CodeType = made["called"].__code__
    return code
