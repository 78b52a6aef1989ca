"""State is written in the rooms that own its name, whatever the receiver is: held for all three cores (RM-5)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from scripts.rooms import room_of

import gatelift.core
from gatelift.core.state.core import Core
from support.house.named_writes import PACKAGES, Named, named_writes, state_of, strangers, texts_of, writers
from support.house.state_writes import state_classes, writes_of

TABLE = Path(__file__).with_name("state_writers.yaml")
CLASSES = state_classes(Core)
FIELDS = state_of(PACKAGES["manager"])

PROBES = {
    "of a case": "def f(case: Case):\n    case.attempt.epoch = 2",
    "the core of a case": "def f(case: Case):\n    case.core.term = 2",
    "by a name for what a case has": "def f(case: Case):\n    a = case.attempt\n    a.epoch = 2",
    "of items": "def f(core: Core):\n    for uid, one in core.attempts.items():\n        one.epoch = 2",
    "of a list": "def f(core: Core):\n    for one in list(core.attempts.values()):\n        one.epoch = 2",
    "of what is sorted": (
        "def f(core: Core):\n    for one in sorted(core.attempts.values(), key=str):\n        one.epoch = 2"
    ),
    "of the next one": "def f(core: Core):\n    one = next(iter(core.attempts.values()))\n    one.epoch = 2",
    "of what a function returns": "def f(core: Core):\n    one = find(core)\n    one.epoch = 2",
    "by setattr": "def f(core: Core):\n    setattr(core, 'term', 1)",
    "by an annotated name": "def f(core: Core):\n    one: Attempt = core.attempts['a']\n    one.epoch = 2",
    "by an annotated name of anything": "def f(core: Core):\n    one: Attempt = g()\n    one.epoch = 2",
    "by an annotation in quotes": "def f(core: 'Core'):\n    core.term = 1",
    "in a coroutine": "async def f(core: Core):\n    core.term = 1",
    "in a comprehension": "def f(core: Core):\n    [one.asked.clear() for one in core.attempts.values()]",
    "of many parameters": "def f(*cores: Core):\n    cores[0].term = 1",
    "of a list that is a parameter": "def f(ones: list[Attempt]):\n    for one in ones:\n        one.epoch = 2",
    "by a qualified annotation": "def f(core: core_module.Core):\n    core.term = 1",
    "by a method with a name": "def f(core: Core):\n    put = core.caution.set_aside.add\n    put('x')",
    "by a method of the class": "def f(core: Core):\n    set.add(core.caution.set_aside, 'x')",
    "in a tuple": "def f(core: Core):\n    core.term, x = 1, 2",
    "by with": "def f(core: Core):\n    with x() as core.term: pass",
    "by a loop": "def f(core: Core):\n    for core.term in range(3): pass",
    "in a function inside": "def f(core: Core):\n    def g():\n        core.term = 1",
    "of what is matched": (
        "def f(core: Core):\n    match core.attempts['a']:\n        case Attempt() as one:\n            one.epoch = 2"
    ),
    "by a function that calls it self": "def f(self: Core):\n    self.term = 1",
    "by a dictionary of the object": "def f(core: Core):\n    vars(core).update(term=1)",
    "by a heap": "def f(core: Core):\n    heapq.heappush(core.caution.set_aside, 'x')",
    "by a name for a container": "def f(case: Case):\n    aside = case.core.caution.set_aside\n    aside |= {'x'}",
}


def held_by_modules() -> list[tuple[str, Named]]:
    """Return what is written in the manager's core outside of the modules whose state has a field of that name."""
    prefix = f"{gatelift.core.__name__}."
    state = {each.__module__.removeprefix(prefix).replace(".", "/") + ".py" for each in CLASSES.values()}
    found = []
    for path, text in texts_of(PACKAGES["manager"]).items():
        for write in named_writes(text, FIELDS):
            owners = FIELDS.owners[write.name]
            others = {room_of(Path(each)) for each in owners - state}
            if path not in owners and room_of(Path(path)) not in others:
                found.append((path, write))
    return found


@pytest.mark.parametrize("probe", PROBES.values(), ids=PROBES.keys())
def test_rm_5_a_probe_that_writes_state_past_its_type_is_seen_by_its_name(probe: str) -> None:
    assert list(strangers("works/probe.py", probe, FIELDS))


def test_rm_5_following_types_alone_missed_them() -> None:
    missed = [name for name, probe in PROBES.items() if not writes_of(probe, CLASSES, Core)]
    assert len(missed) >= 19


def test_rm_5_a_class_that_writes_itself_or_is_asked_by_a_method_writes_nobody() -> None:
    asked = "def f(core):\n    core.not_ready.add('a')\n    core.lead(1)"
    quiet = f"class A:\n    def f(self):\n        self.term = 1\n\n\n{asked}"
    assert named_writes(quiet, FIELDS) == []


def test_rm_5_in_the_managers_core_only_the_module_that_has_a_field_writes_that_name() -> None:
    assert [f"{path}:{write.line}: {write.text}" for path, write in held_by_modules()] == []


@pytest.mark.parametrize("short", PACKAGES)
def test_rm_5_each_name_is_written_in_the_rooms_that_own_it_and_no_other(short: str) -> None:
    table = yaml.safe_load(TABLE.read_text())
    assert writers(PACKAGES[short]) == table[short]


def test_rm_5_the_managers_rooms_write_nothing_of_each_other() -> None:
    assert yaml.safe_load(TABLE.read_text())["manager"] == {}


@pytest.mark.parametrize(("short", "room"), [("agent", "values"), ("engine", "texts"), ("manager", "rules")])
def test_rm_5_a_room_that_is_not_named_is_seen_in_each_core(short: str, room: str) -> None:
    name = {"agent": "ending", "engine": "held_counts", "manager": "epoch"}[short]
    probe = f"def f(one):\n    one.{name} = 1\n"
    assert [write.name for write in strangers(f"{room}/probe.py", probe, state_of(PACKAGES[short]))] == [name]
    assert room not in yaml.safe_load(TABLE.read_text())[short].get(name, ())
