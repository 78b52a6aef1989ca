"""That others go on, in histories about one who is set aside."""

from __future__ import annotations

from gatelift_kube.deciding.contained import PAUSE_SECONDS_MAX
from support.sim.history import History

REST_SECONDS = PAUSE_SECONDS_MAX + 100.0
"""Longer than anything rests."""


def others_go_on(history: History, name: str = "good") -> None:
    """Let another pod run from its beginning to its end, within a minute."""
    history.pod(name, seconds=5.0)
    history.until(f"{name} runs", lambda: history.containers(name) == 1, 45.0)
    history.until(f"{name} is finished", lambda: history.shows(name, "Finished"), 15.0)
