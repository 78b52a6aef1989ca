"""What a worker says of sizes of elastic work (KEP-77) that nobody has said: no charge and no session ends by it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.state.words import cleaned
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Drained, SizeRefused, SizeWanted, SliceFinished
from support.manager.builders import a_pod, a_setting
from support.manager.world import RUNNING, SUCCEEDED, a_world

Word = SliceFinished | Drained | SizeRefused | SizeWanted


@pytest.mark.parametrize(
    "word",
    [
        lambda key: SliceFinished(key=key, number=1),
        lambda key: SliceFinished(key=key, number=2**63 - 1),
        lambda key: Drained(key=key, number=1, remaining=(("main", 0),)),
        lambda key: SizeRefused(key=key, number=1, refusal=Refusal.DENIED, text="no"),
        lambda key: SizeWanted(key=key, counts=(("main", 0),)),
    ],
    ids=["SliceFinished", "SliceFinished of a high number", "Drained", "SizeRefused", "SizeWanted"],
)
def test_sl_75_a_word_about_a_size_that_nobody_said_changes_nothing(word: Callable[[PlacementKey], Word]) -> None:
    """SL-75: of what runs and of a placement that is not there."""
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    (key,) = agent.commits
    agent.show(key, RUNNING)
    world.settle()
    ledger, sent, workload = world.machine.core.ledger.engine, len(world.links.log), world.find("Workload")
    before = ledger.charged(key.uid)
    assert before
    for each in (key, PlacementKey("nobody", 1)):
        agent.say(word(each))
        world.advance(30.0)
    assert ledger.charged(key.uid) == before
    assert world.find("Workload") == workload
    assert len(world.links.log) == sent
    assert world.machine.core.links.state("a") is not None
    agent.finish(key, SUCCEEDED)
    world.settle()
    assert world.condition(world.find("Workload"), "Finished")["status"] == "True"


def test_is_23_the_text_of_a_refused_size_is_cleaned() -> None:
    """IS-23: control characters of a worker reach nobody's terminal."""
    said = SizeRefused(key=PlacementKey("u", 1), number=1, refusal=Refusal.DENIED, text="no\x1b[31m\u202e room")
    assert cleaned(said).text.isprintable()
