"""What the manager's core holds is changed by the class that holds it, and by nobody else."""

from __future__ import annotations

import dataclasses
import typing
from collections import deque
from pathlib import Path

import pytest

import gatelift.core
from gatelift.core.state.core import Core
from support.house.state_writes import state_classes, writes_of

CORE = Path(gatelift.core.__file__).parent
BARE = (dict, list, set, deque)
CLASSES = state_classes(Core)

PROBES = {
    "a field of the core": "def f(core: Core):\n    core.term = 1",
    "in a field of the core": "def f(core: Core):\n    core.attempts[1] = 2",
    "out of a field of the core": "def f(core: Core):\n    del core.attempts[1]",
    "a field of what the core holds": "def f(core: Core):\n    core.budget.tokens += 3",
    "a field that is held by that": "def f(core: Core):\n    core.caution.terms.why = 'x'",
    "by a method": "def f(core: Core):\n    core.caution.set_aside.add('x')",
    "by a method of what is found inside": "def f(core: Core):\n    core.predecessors.waiting.get('a').clear()",
    "by a name": "def f(core: Core):\n    state = core.caution.recovery\n    state.awaited |= {'a'}",
    "by a name for what is inside": "def f(core: Core):\n    left = core.out_of_sight.left\n    del left['a']",
    "of a parameter": "def f(attempt: Attempt | None):\n    attempt.cluster = 'a'",
    "of what a loop goes through": "def f(core: Core):\n    for one in core.attempts.values():\n        one.epoch = 2",
    "of what may be there": "def f(attempt: Attempt):\n    asked = attempt.round if 1 else None\n    asked.looks += 1",
    "by the machine": "class Machine:\n    def f(self):\n        self.core.knowledge.flavors['a'] = None",
}


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_rm_5_a_probe_that_changes_what_the_core_holds_is_seen(probe: str) -> None:
    assert writes_of(probe, CLASSES, Core)


def test_rm_5_what_is_no_state_and_what_a_class_does_by_its_methods_is_no_write() -> None:
    quiet = "def f(core: Core):\n    found = core.doubts.take('a')\n    found.clear()\n    core.not_ready.add('a')"
    assert writes_of(quiet, CLASSES, Core) == []


def test_rm_5_no_field_of_the_core_is_a_bare_container_that_anybody_could_change() -> None:
    hints = typing.get_type_hints(Core)
    fields = [field.name for field in dataclasses.fields(Core) if not field.name.startswith("_")]
    public = {name: typing.get_origin(hints[name]) or hints[name] for name in fields}
    assert {name for name, kind in public.items() if kind in BARE} == set()


def test_rm_5_only_the_module_of_a_state_object_writes_it() -> None:
    assert len(CLASSES) > 30
    found = []
    for path in sorted(CORE.rglob("*.py")):
        module = ".".join(("gatelift.core", *path.relative_to(CORE).with_suffix("").parts))
        writes = writes_of(path.read_text(encoding="utf-8"), CLASSES, Core)
        found += [f"{module}:{each.line}: {each.text}" for each in writes if each.of.__module__ != module]
    assert found == []
