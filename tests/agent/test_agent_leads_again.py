"""A replica that leads again after another one has: it greets with what the other one has kept."""

from __future__ import annotations

import msgspec

from gatelift_agent.core.memory.keeper import STATE_NAME
from gatelift_agent.core.values import events
from gatelift_kube.values.resources import CONFIG_MAP
from support.agent.stage import Stage

SYSTEM = "gatelift-system"


def led_by_another_meanwhile(session: int, term: int) -> Stage:
    """Return a replica that has led, and leads again; another one has kept so much meanwhile."""
    stage = Stage()
    stage.start()
    stage.post(events.AgentLeadershipLost())
    found = stage.document(CONFIG_MAP, STATE_NAME, SYSTEM)
    assert found is not None
    state = {**msgspec.json.decode(found["data"]["state"]), "session": session, "term": term}
    body = msgspec.json.encode({"data": {"state": msgspec.json.encode(state).decode()}})
    media = "application/merge-patch+json"
    stage.store.patch(stage.store.kinds.of(CONFIG_MAP), SYSTEM, STATE_NAME, body, media, stage.now)
    stage.peer.number = session
    stage.post(events.AgentLeadershipGained(term=5, settle_seconds=0.0))
    stage.lead()
    stage.pass_seconds(5.0)
    return stage


def test_it_does_not_pass_for_a_worker_restored_from_a_backup() -> None:
    stage = led_by_another_meanwhile(session=7, term=1)
    assert [hello.last_session for hello in stage.peer.greetings] == [0, 7]


def test_it_knows_the_latest_manager_that_the_other_one_served() -> None:
    stage = led_by_another_meanwhile(session=7, term=9)
    assert not stage.peer.open, "the manager of term 1 is not obeyed any more (R3)"
