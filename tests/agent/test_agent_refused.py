"""What the core makes of a manager that takes the agent's key no more."""

from __future__ import annotations

import pytest

from gatelift_agent.core.values import commands, events
from gatelift_wire.sessions import session as wire
from gatelift_wire.values.refusals import CloseReason
from support.agent.stage import Stage


def _close(stage: Stage, reason: CloseReason) -> None:
    """Let the manager end the session in words."""
    assert stage.stream is not None
    bad = wire.BadFrame(stream_id=stage.stream, reason=reason, text="by a person")
    stage._peer_outputs(stage.peer.session.handle(bad, stage.now))
    stage.settle()


def test_a_refused_identity_is_told_once_and_another_one_is_dialled_with_at_once() -> None:
    stage = Stage()
    stage.start()
    _close(stage, CloseReason.REVOKED)
    [refused] = stage.identity
    assert isinstance(refused, commands.IdentityRefused)
    assert "by a person" in refused.text
    stage.pass_seconds(6)
    waiting = stage.stream
    stage.post(events.IdentityReplaced())
    assert (waiting, stage.stream is not None) == (None, True)


@pytest.mark.parametrize("reason", [CloseReason.NOT_LEADER, CloseReason.UNKNOWN_CLUSTER, CloseReason.SHUTTING_DOWN])
def test_other_endings_say_nothing_of_the_identity(reason: CloseReason) -> None:
    stage = Stage()
    stage.start()
    _close(stage, reason)
    assert stage.identity == []
