"""Scripted histories (IS-46): what failed stays at its worker to be looked at, and is over all the same."""

from __future__ import annotations

import pytest

from gatelift_agent.core.session import stops
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.settings import KeepFinished
from gatelift_kube.values.resources import JOB, NAMESPACE, POD
from gatelift_wire.values.messages import Forget
from support.sim.cluster import TEAM
from support.sim.history import History

KEPT = 1000.0
KEEP = KeepFinished(failed_seconds=KEPT)


def failed(kind: str = "Job", *, keep: KeepFinished = KEEP, shown: bool = True) -> tuple[History, str]:
    """Return a history in which the user's `one` has failed on a worker, and the name of that."""
    history = History(keep=keep, shown=shown)
    return history, fails(history, "one", kind)


def fails(history: History, name: str, kind: str = "Job") -> str:
    """Let a user make something that fails; return where it did, once its quota is free."""
    if kind == "Job":
        history.job(name, seconds=3.0, exit_code=1)
    else:
        history.pod(name, seconds=3.0, exit_code=1)
    cluster = history.until_runs(name, kind)
    history.until(f"{name} is finished", lambda: history.shows(name, "Finished", kind))
    history.passes(5.0)
    return cluster


def there(history: History, cluster: str) -> list[tuple[str, bool]]:
    """Return which Jobs and pods of their own are at a worker, and whether our finalizer is on them."""
    found = [*history.objects(cluster, JOB), *history.objects(cluster, POD)]
    alone = [each["metadata"] for each in found if not each["metadata"].get("ownerReferences")]
    return sorted((meta["name"], "gatelift.dev/report" in meta.get("finalizers", [])) for meta in alone)


@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_is_46_what_failed_is_there_for_its_time_with_its_quota_free_and_goes_then(kind: str) -> None:
    history, cluster = failed(kind)
    assert there(history, cluster) == [("one", False)]
    assert any("exitCode" in str(pod["status"]) for pod in history.objects(cluster))
    assert history.world.truth.used()["travels"] == 0
    history.passes(KEPT - 60.0)
    assert there(history, cluster) == [("one", False)]
    history.until("it is gone", lambda: not history.objects(cluster) and not there(history, cluster), 120.0)
    assert history.shows("one", "Finished", kind)


def test_is_46_an_agent_that_dies_and_a_manager_that_dies_change_nothing_of_that() -> None:
    history, cluster = failed()
    history.passes(300.0)
    history.kill_agent(cluster)
    history.kill_leader()
    history.until_connected(cluster)
    history.passes(300.0)
    history.kill_agent(cluster)
    history.passes(200.0)
    assert there(history, cluster) == [("one", False)]
    assert history.shows("one", "Finished", "Job")
    history.until("it is gone", lambda: there(history, cluster) == [], 250.0)


def test_is_46_it_goes_with_the_users_object_whoever_leads_by_then() -> None:
    history, cluster = failed()
    history.kill_leader()
    history.until("somebody leads", history.leads)
    history.until_connected(cluster)
    assert there(history, cluster) == [("one", False)]
    history.delete("home", JOB, "one")
    history.until("it is gone", lambda: not history.objects(cluster) and not there(history, cluster), 60.0)


@pytest.mark.parametrize("leader_dies", [False, True])
@pytest.mark.parametrize("kind", ["Job", "Pod"])
def test_is_46_an_agent_that_dies_with_the_word_that_the_users_object_is_gone_hears_it_again(
    monkeypatch: pytest.MonkeyPatch, kind: str, *, leader_dies: bool
) -> None:
    history, cluster = failed(kind)
    agent, forget = history.agent(cluster), stops.forget
    heard: list[bool] = []

    def dies_of_it(world: World, said: Forget, now: float) -> None:
        forget(world, said, now)
        if not heard and world is agent.machine.world:
            heard.append(said.gone)
            agent.kill()
            if leader_dies:
                history.kill_leader()
            history.world.time.after(1.0, lambda: history.world.start_agent(cluster))

    monkeypatch.setattr(stops, "forget", dies_of_it)
    history.delete("home", JOB if kind == "Job" else POD, "one")
    history.passes(10.0)
    assert heard == [True]
    history.until("it is gone", lambda: not history.objects(cluster) and not there(history, cluster), 120.0)


@pytest.mark.parametrize("leader_dies", [False, True])
def test_is_46_its_users_deletion_waits_for_no_cluster_that_is_away(*, leader_dies: bool) -> None:
    history, cluster = failed()
    history.cut(cluster)
    history.until_lost(cluster)
    history.delete("home", JOB, "one")
    history.until("nothing is left at home", lambda: history.workload("one", "Job") is None, 60.0)
    if leader_dies:
        history.kill_leader()
        history.until("somebody leads", history.leads)
    history.mend(cluster)
    history.until_connected(cluster)
    history.passes(60.0)
    assert there(history, cluster) == ([("one", False)] if leader_dies else [])  # nobody is left who knows of it
    history.until("it is gone", lambda: there(history, cluster) == [], KEPT)


def test_is_46_what_its_user_makes_anew_under_its_name_takes_its_place() -> None:
    history, cluster = failed()
    first = history.objects(cluster, JOB)[0]["metadata"]["uid"]
    history.cut(cluster)
    history.until_lost(cluster)
    history.delete("home", JOB, "one")
    history.until("nothing is left at home", lambda: history.workload("one", "Job") is None, 60.0)
    history.kill_leader()  # so that nobody knows of the deletion
    history.until("somebody leads", history.leads)
    history.mend(cluster)
    history.until_connected(cluster)
    assert there(history, cluster) == [("one", False)]
    for other in history.workers:
        if other != cluster:
            history.cut(other)
    history.job("one")
    assert history.until_runs("one", "Job") == cluster
    (job,) = history.objects(cluster, JOB)
    assert job["metadata"]["uid"] != first


def test_is_46_so_much_is_kept_and_no_more() -> None:
    history = History(keep=KeepFinished(failed_seconds=KEPT, objects_max=4))
    where = [fails(history, name) for name in ("one", "two", "three", "four", "five")]
    for cluster in history.workers:
        names = [name for name, at in zip(("one", "two", "three", "four", "five"), where, strict=True) if at == cluster]
        assert [name for name, _ in there(history, cluster)] == sorted(names[-2:])


def test_is_46_a_job_counts_with_its_pods() -> None:
    """The symptom: two Jobs of six pods were two of two, and fourteen objects stayed."""
    history = History(keep=KeepFinished(failed_seconds=KEPT, objects_max=8))
    for number in range(3):
        name = f"many-{number}"
        history.job(name, cpu="100m", pods=3, completions=3, seconds=3.0, exit_code=1)
        history.until(f"{name} is finished", lambda name=name: history.shows(name, "Finished", "Job"))  # type: ignore[misc]
        history.passes(10.0)
    for cluster in history.workers:
        assert len(history.objects(cluster, JOB)) + len(history.objects(cluster, POD)) <= 8
    assert sum(len(history.objects(cluster, JOB)) for cluster in history.workers) > 0


def test_is_46_a_manager_that_is_away_has_its_end_later_and_what_failed_is_there_until_then() -> None:
    history = History(keep=KEEP)
    history.job("one", seconds=20.0, exit_code=1)
    cluster = history.until_runs("one", "Job")
    history.cut(cluster)
    history.until("it is over", lambda: not history.containers("one", "Job"), 60.0)
    history.passes(300.0)
    assert there(history, cluster) == [("one", True)]
    history.mend(cluster)
    history.until("its end is known", lambda: history.shows("one", "Finished", "Job"))
    history.passes(5.0)
    assert there(history, cluster) == [("one", False)]
    history.until("it is gone", lambda: there(history, cluster) == [], KEPT - 300.0)


def test_is_46_what_is_kept_holds_up_no_namespace() -> None:
    history, cluster = failed()
    worker = history.cluster(cluster)
    worker.delete(JOB, "one")
    history.delete(cluster, NAMESPACE, TEAM)
    history.until("it is gone", lambda: there(history, cluster) == [], 60.0)
    history.passes(60.0)
    assert history.agent(cluster).machine.world.placements == {}


def test_is_46_a_pod_that_runs_is_listed_though_somebody_took_our_finalizer_off() -> None:
    history = History(keep=KEEP)
    history.pod("one")
    cluster = history.until_runs("one")
    history.edit(cluster, POD, "one", {"metadata": {"finalizers": None}})
    history.kill_agent(cluster)
    history.until_connected(cluster)
    history.passes(60.0)
    assert history.runs("one") == {cluster}
    assert history.containers("one") == 1
