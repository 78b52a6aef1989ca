"""`lastSeen` of a WorkerCluster: when its agent was last heard of, whoever writes the status."""

from __future__ import annotations

from gatelift_kube.values.timestamps import to_seconds
from gatelift_wire.values import limits
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api

STARTED = 1_800_000_000.0
"""The wall time at which every `Manager` begins."""


def test_the_last_sign_of_a_lost_cluster_is_its_last_renewal_and_no_write_of_ours() -> None:
    def shown() -> str:
        status = manager.api.get("w1").status
        (found,) = (each for each in status.conditions if each.type == "Connected")
        return f"{found.reason} {round((to_seconds(str(status.last_seen)) - STARTED) / limits.RENEW_SECONDS)}"

    manager = Manager(Api())
    manager.dial()
    manager.pass_time(600, agents=True)
    manager.pass_time(70)
    assert shown() == "Lost 60", "the renewal at 600 s"
    manager.dial(2)
    manager.pass_time(3, agents=True)
    assert shown() == "Connected 67", "its greeting at 670 s"
    manager = Manager(manager.api, term=2, instance="m2")
    manager.pass_time(70)
    assert shown() == "Lost 67", "a new leader has not heard of it"
