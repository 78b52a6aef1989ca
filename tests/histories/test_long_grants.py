"""HD-261: a grant that is longer than the default counts on where the WorkerCluster that recorded it is made anew."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.config import Configuration
from gatelift_agent.core.values.events import ManagerStreamClosed
from gatelift_kube.values.resources import POD, WORKER_CLUSTER
from support.manager.builders import a_pod
from support.sim import manager as sim_manager
from support.sim.cluster import TEAM
from support.sim.history import History
from support.sim.switchboard import KEY_DIGEST

OURS = {"spec": {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}}


def keep_the_connection(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a be cut off behind a proxy that answers the pings of its agent, so that the agent notices nothing."""
    process = history.agent("a").process
    post = process.post
    monkeypatch.setattr(process, "post", lambda event: None if isinstance(event, ManagerStreamClosed) else post(event))


@pytest.mark.parametrize("made_anew", [False, True], ids=["as it was", "made anew"])
@pytest.mark.parametrize("lost_after", ["60s", "600s"])
def test_hd_261_a_right_to_start_outlives_no_word_though_its_record_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, lost_after: str, *, made_anew: bool
) -> None:
    """HD-261: the next leader counted with the default, a person truly said fenced, and the agent let it go as well."""
    settings: dict[str, Any] = {"gatelift": {"leases": {"lostAfter": lost_after}}}
    monkeypatch.setattr(sim_manager, "Configuration", lambda: Configuration.model_validate(settings))
    history = History(shown=False)
    settings.clear()  # the managers that come later have the default: 60 s
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": True}})
    history.passes(15.0)
    document = a_pod("one").asking(cpu="500m").gated_by("example.com/g").document()
    document["metadata"]["namespace"] = TEAM
    document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "travels"
    del document["status"]
    history.home.create(POD, document)
    history.until("it is placed on a, held back", lambda: history.cluster("a").look(POD, "one") is not None)
    history.passes(3.0)
    history.world.net.cut.add("a")
    keep_the_connection(history, monkeypatch)
    history.passes(1.0)
    if made_anew:
        history.delete("home", WORKER_CLUSTER, "a")
        history.passes(1.0)
        history.home.create(WORKER_CLUSTER, {"metadata": {"name": "a"}, "spec": {}})
        history.home.change(WORKER_CLUSTER, "a", {"status": {"keyDigest": KEY_DIGEST}}, "status")
        history.passes(3.0)
    history.kill_leader()
    history.until("another one leads", history.leads, 60.0)
    history.edit("home", WORKER_CLUSTER, "b", {"spec": {"cordoned": False}})
    history.until("a is lost", lambda: history.lost("a"), 700.0)
    assert history.containers("one") == 0
    history.say_fenced("a")  # true: nothing runs there, and a cluster that is shown as lost can start nothing any more
    history.passes(5.0)
    history.edit("home", POD, "one", OURS)  # its user lets it go, at home
    history.until("it runs on b", lambda: history.runs("one") == {"b"}, 60.0)
    history.edit("a", POD, "one", OURS)  # and somebody at a, where it was held back for that alone
    history.passes(120.0)  # TruthError: it may run more than once
