"""SL-70: how long pods of elastic work waited at their gate, and how many do, as the agent shows it."""

from __future__ import annotations

from gatelift_agent.adapters.metrics import AgentMetrics
from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.waits import BOUNDS, Waits
from support.agent.size_stage import SizeStage, is_ungate

REMOVAL = "kueue_pod_scheduling_gate_removal_seconds"
OF = {"name": "kueue.x-k8s.io/elastic-job", "cluster_queue": "", "is_group": "false", "replica_role": "leader"}


def shown(stage: SizeStage, metric: str, **labels: str) -> float:
    metrics = AgentMetrics()
    health = {"latency_seconds": 0.0, "reachable": True, "writes_held": 0, "waiting": 0}
    metrics.refresh(stage.machine, **health)  # type: ignore[arg-type]  # a table of both
    return metrics.registry.get_sample_value(metric, labels) or 0


def removals(stage: SizeStage) -> tuple[float, float]:
    """Return how many pods were let go, and how long all of them had waited."""
    return shown(stage, f"{REMOVAL}_count", **OF), shown(stage, f"{REMOVAL}_sum", **OF)


def gated(stage: SizeStage) -> float:
    return shown(stage, "gatelift_agent_elastic_pods_gated")


def test_sl_70_each_pod_that_is_let_go_is_counted_once_with_how_long_it_waited() -> None:
    stage = SizeStage()
    stage.begin(2)
    stage.run_all()
    assert removals(stage) == (2, 0)
    stage.make_pod()
    stage.pass_seconds(30.0)
    assert (removals(stage), gated(stage)) == ((2, 0), 1), "one more than its size grants"
    stage.resize(2, main=4)
    stage.react()
    count, seconds = removals(stage)
    assert (count, gated(stage)) == (4, 0)
    assert seconds < 1.0, "what waited for its size waits from then on that this is known"


def test_sl_70_a_lift_that_fails_is_counted_when_it_has_gone_with_all_of_its_wait() -> None:
    stage = SizeStage()
    stage.begin(1)
    stage.run_all()
    stage.fail = lambda write: WriteError.DENIED if is_ungate(write) else None
    stage.resize(2, main=2)
    stage.react()
    stage.pass_seconds(20.0)
    assert (removals(stage), gated(stage)) == ((1, 0), 1)
    stage.fail = lambda _write: None
    stage.pass_seconds(300.0)
    count, seconds = removals(stage)
    assert (count, gated(stage)) == (2, 0)
    assert seconds > 20.0


def test_sl_70_waits_add_up_over_queues_in_kueues_buckets() -> None:
    one, other = Waits(), Waits()
    for seconds in (0.5, 3.0):
        one.add(seconds)
    other.add(20_000.0)
    one.take(other)
    assert (one.count, one.total) == (3, 20_003.5)
    found = dict(one.up_to())
    assert [found[name] for name in ("1.0", "2.5", "5.0", "10240.0", "+Inf")] == [1, 1, 2, 2, 3]
    assert len(found) == len(BOUNDS) + 1
