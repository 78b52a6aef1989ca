"""Every annotation, label, spec and status field and every message, hostile, through both cores (IS-4): a small share.

`make simulate` lives through 200,000 cases (`support.fuzz.many`).
"""

from __future__ import annotations

import typing
from typing import Any

import pytest

from gatelift.core.works import following
from gatelift_agent.core.advancing import progress
from gatelift_wire.values import messages
from support.fuzz import agent, many
from support.fuzz.many import CORES, lived, marks

SEEDS = 12


def test_is_4_every_mark_and_message_is_drawn() -> None:
    assert {"gatelift.dev/template-before", "gatelift.dev/epoch", "kueue.x-k8s.io/queue-name"} <= {*marks()}
    not_drawn = {each.__name__ for each in typing.get_args(messages.Command)} - {
        each.__name__ for each in agent.COMMANDS
    }
    assert not_drawn == {"Cordon", "Confirm", "CertificateRenewed"}


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_is_4_hostile_values_spoil_their_own_work_at_most(core: str, seed: int) -> None:
    """IS-4: nothing leaves `handle`, the books of the others end alike, and only the culprit is set aside."""
    found = lived(core, seed)
    assert found.failed == []
    assert found.cases == many.CASES
    assert found.refused < found.cases


def test_is_4_a_mistake_that_touches_one_object_is_set_aside_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself sees what is set aside: a mistake that only the tenant's objects meet."""
    _break(monkeypatch, following, "case_of", lambda args: "bad" in args[1].metadata.name)
    _break(monkeypatch, progress, "drive", lambda args: args[1].key.uid.startswith("bad"))
    for core in CORES:
        found = many.CORES[core](3, 40, marks())
        assert found.aside
        assert found.books == many.CORES[core](3, 40, marks(), hostile=False).books


@pytest.mark.parametrize("core", CORES)
def test_is_4_a_mistake_that_touches_others_is_seen_by_the_check(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, following, "case_of", lambda args: "good" in args[1].metadata.name)
    _break(monkeypatch, progress, "drive", lambda args: args[1].key.uid.startswith("good"))
    assert lived(core, 3, 40).failed


def _break(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, hits: Any) -> None:
    """Let a function raise for some of its calls."""
    function = getattr(module, name)

    def faulty(*args: Any, **named: Any) -> Any:
        if hits(args):
            raise LookupError("on purpose")
        return function(*args, **named)

    monkeypatch.setattr(module, name, faulty)
