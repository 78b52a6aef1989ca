"""The outside check of the simulation itself: what it knows, what it notices, that it shares no code."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from gatelift_kube.deciding.writes import Delete, Patch, PatchKind, WriteFailed
from gatelift_kube.values.resources import CLUSTER_QUEUE, JOB, POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_sandbox.embedded.store import Copy
from gatelift_sandbox.records import RunRecord
from support.sim.attribution import Work
from support.sim.cluster import TEAM, Doc
from support.sim.crowds import Crowds
from support.sim.disasters import home_put_back
from support.sim.history import History, as_a_process_of_ours
from support.sim.truth import TruthError

JUDGED = ("gatelift", "gatelift_agent", "gatelift_kinds", "gatelift_admission", "gatelift_wire")
NEVER = "2026-01-01T00:00:00Z"
_IMPORT = "import sys, support.sim.{module}; print(*sorted({{each.partition('.')[0] for each in sys.modules}}))"


@pytest.mark.parametrize("module", ["truth", "attribution", "account", "asked", "objects", "crowds", "charges"])
def test_hd_50_the_outside_check_imports_nothing_of_what_it_judges(module: str) -> None:
    tests = Path(__file__).parent.parent
    done = subprocess.run(  # noqa: S603 (our own interpreter and program)
        [sys.executable, "-c", _IMPORT.format(module=module)],
        env={**os.environ, "PYTHONPATH": f"{tests}:{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert not {*done.stdout.split()} & {*JUDGED}


def a_second(name: str, workload: Doc, **labels: str) -> Doc:
    own = {"gatelift.dev/workload-uid": workload["metadata"]["uid"], "gatelift.dev/epoch": "1"}
    return {
        "metadata": {"name": name, "namespace": TEAM, "labels": {**own, **labels}},
        "spec": {"containers": [{"name": "main", "image": "work"}]},
    }


def other(cluster: str) -> str:
    return "a" if cluster == "b" else "b"


def test_the_outside_check_notices_a_second_run() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None

    with pytest.raises(TruthError, match=r"Pod team/one may run more than once"):
        history.workers[other(cluster)].create(POD, a_second("one", workload))


def test_hd_50_a_run_is_the_users_objects_whatever_becomes_of_its_labels() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    kubelet = history.workers[cluster]
    (pod,) = kubelet.all(POD)
    for agent in history.world.alive(cluster):
        agent.pause()  # it would put them back, and that is not asked here
    off: Doc = {"metadata": {"labels": dict.fromkeys(pod["metadata"]["labels"])}}
    history.edit(cluster, POD, "one", off)
    assert history.runs("one") == {cluster}
    assert history.world.truth.live(history.workload("one")["metadata"]["uid"])  # type: ignore[index]


def test_hd_50_two_workloads_of_one_object_are_one_run_too_many() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None
    truth = history.world.truth
    second = {**workload, "metadata": {**workload["metadata"], "uid": "second", "name": "second"}}
    truth.whose.workload(second)  # another Workload of the same pod, as one made anew is

    with pytest.raises(TruthError, match=r"Pod team/one may run more than once"):
        history.workers[other(cluster)].create(POD, a_second("one", second))


def test_hd_50_a_jobs_pods_are_the_jobs_by_their_controller() -> None:
    history = History()
    history.job("many", pods=2)
    cluster = history.until_runs("many", "Job")
    history.until("both run", lambda: history.containers("many", "Job") == 2)
    (job,) = history.objects(cluster, JOB)
    truth = history.world.truth
    found = [truth.whose.of(cluster, each["metadata"]["uid"]) for each in history.objects(cluster)]
    assert {(each.work, each.root) for each in found if each is not None} == {
        (Work("Job", TEAM, "many"), job["metadata"]["uid"])
    }
    assert None not in found


def test_hd_50_the_same_name_made_anew_is_the_same_work() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None
    owner = {"kind": "Pod", "name": "one", "uid": "another-user-object", "apiVersion": "v1"}
    second = {**workload, "metadata": {**workload["metadata"], "uid": "second", "ownerReferences": [owner]}}
    history.world.truth.whose.workload(second)

    with pytest.raises(TruthError, match=r"Pod team/one may run more than once"):
        history.workers[other(cluster)].create(POD, a_second("one", second))


def test_hd_50_what_a_tenant_made_with_our_labels_is_the_tenants() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None
    history.workers[other(cluster)].create(POD, a_second("tenants", workload))
    assert history.runs("one") == {cluster}


def test_hd_50_a_container_that_outlives_its_objects_and_its_workload_counts() -> None:
    history = History()
    history.pod("one")
    cluster = history.until_runs("one")
    (pod,) = history.objects(cluster)
    truth = history.world.truth
    uid = pod["metadata"]["uid"]
    history.workers[cluster].delete(POD, "one", grace_seconds=0)
    ran = RunRecord(cluster=cluster, node="n", namespace=TEAM, name="one", pod_uid=uid, started=0.0)
    truth.noted(cluster, ran)
    assert history.runs("one") == {cluster}


def test_hd_50_a_pod_that_a_backup_brings_back_before_its_start_counts_once_it_is_let_go() -> None:
    history = History()
    copies: dict[str, Copy] = {}

    def keep(cluster: str) -> None:
        if history.objects(cluster) and cluster not in copies:
            copies[cluster] = history.workers[cluster].store.copy()

    for name, worker in history.workers.items():
        worker.store.listen(functools.partial(lambda cluster, _storage, _change: keep(cluster), name))
    history.pod("one")
    cluster = history.until_runs("one")
    history.agent(cluster).pause()
    history.workers[cluster].delete(POD, "one", grace_seconds=0)
    history.until("it has stopped", lambda: not history.runs("one"))
    history.workers[cluster].restore(copies[cluster])
    assert not history.runs("one"), "its backup knows it as gated"
    history.edit(cluster, POD, "one", {"spec": {"schedulingGates": None}})
    assert history.runs("one") == {cluster}


def test_hd_120_a_workload_that_is_finished_while_its_containers_run_is_noticed() -> None:
    history = History()
    history.pod("one")
    history.until_runs("one")
    workload = history.workload("one")
    assert workload is not None
    done = {"type": "Finished", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": NEVER}
    status = {"status": {**workload["status"], "conditions": [*workload["status"]["conditions"], done]}}
    kind, name = history.home.store.kinds.of(WORKLOAD), workload["metadata"]["name"]
    body, media = msgspec.json.encode(status), "application/merge-patch+json"
    with pytest.raises(TruthError, match=r"is finished while containers of container [ab]/.* run"):
        history.home.store.patch(kind, TEAM, name, body, media, 0.0, subresource="status")


def test_hd_120_one_container_too_many_of_a_job_is_noticed_whoever_is_charged() -> None:
    crowds = Crowds()
    crowds.job("job", 2)
    crowds.started("job", "one")
    crowds.started("job", "two")
    with pytest.raises(TruthError, match="3 pods whose containers run"):
        crowds.started("job", "three")


def test_hd_120_what_is_going_or_was_allowed_once_is_not_too_many() -> None:
    crowds = Crowds()
    crowds.job("job", 2)
    crowds.started("job", "one")
    crowds.pod("one", going=True)
    crowds.started("job", "two")
    crowds.started("job", "three")
    crowds.stopped("job", "two")
    crowds.job("job", 1)  # the surplus is deleted in a moment
    crowds.started("job", "four")
    with pytest.raises(TruthError, match="at most 2"):
        crowds.started("job", "five")


def test_hd_132_a_pod_that_stops_counts_where_its_job_waits_for_it() -> None:
    history = History(shown=False)
    history.job("one", pods=2, stops_in=25.0)
    cluster = history.until_runs("one", "Job")
    history.until("both run", lambda: history.containers("one", "Job") == 2)
    pod = history.objects(cluster, POD)[0]
    history.delete(cluster, POD, pod["metadata"]["name"])
    pod["metadata"] = {key: pod["metadata"][key] for key in ("labels", "annotations", "ownerReferences", "namespace")}
    pod["metadata"]["name"], pod["status"] = "one-too-many", {}
    history.cluster(cluster).create(POD, pod)
    with pytest.raises(TruthError, match="3 pods whose containers run"):
        history.passes(5.0)


def test_hd_120_a_container_is_counted_for_the_job_that_its_pod_was_made_for() -> None:
    history = History(shown=False)
    history.job("many", pods=1)
    cluster = history.until_runs("many", "Job")
    (pod,) = history.objects(cluster)
    twin = {"name": "twin", "namespace": TEAM, "labels": {}, "ownerReferences": pod["metadata"]["ownerReferences"]}
    history.world.truth.whose.seen(cluster, "Pod", {"metadata": {**twin, "uid": "twin"}})
    ran = RunRecord(cluster=cluster, node="n", namespace=TEAM, name="twin", pod_uid="twin", started=0.0)
    with pytest.raises(TruthError, match="2 pods whose containers run"):
        history.world.truth.noted(cluster, ran)


def test_hd_98_a_pod_of_a_user_that_is_deleted_though_nobody_asked_for_that_is_noticed() -> None:
    """HD-98: at home a run is stopped by deleting the user's own pod, so each such deletion has to say why."""
    history = History(shown=False)
    history.pod("one", queue="stays")
    history.until_runs("one")
    meta = (history.home.look(POD, "one") or {})["metadata"]
    ref = ObjectRef(POD, ObjectKey(TEAM, "one"))
    with pytest.raises(TruthError, match="nobody has asked for that"):
        history.home.carry_out(Delete(write_id=1, ref=ref, uid=meta["uid"]))


def test_is_54_a_write_to_what_was_never_queued_is_noticed() -> None:
    """IS-54: on a real API server a policy refuses it; a history that needs one would come to rest there."""
    history = History(shown=False)
    plain = {"containers": [{"name": "c", "image": "i"}]}
    pod = history.home.create(POD, {"metadata": {"name": "plain", "namespace": TEAM}, "spec": plain})
    ref = ObjectRef(POD, ObjectKey(TEAM, "plain"))
    with pytest.raises(AssertionError, match="bears no mark of ours"):
        history.home.carry_out(Delete(write_id=1, ref=ref, uid=pod.uid))


def test_is_54_no_policy_hears_of_a_write_that_was_decided_on_an_earlier_version() -> None:
    """Drawn seed 8918124: the marks were taken off since, so the API server refuses it before that."""
    history = History(shown=False)
    plain = {"containers": [{"name": "c", "image": "i"}]}
    history.home.create(POD, {"metadata": {"name": "plain", "namespace": TEAM}, "spec": plain})
    ref = ObjectRef(POD, ObjectKey(TEAM, "plain"))
    body = b'{"metadata":{"resourceVersion":"1","labels":{"kueue.x-k8s.io/queue-name":"stays"}}}'
    late = Patch(write_id=1, ref=ref, body=body, kind=PatchKind.MERGE)
    answer = history.home.carry_out(late)
    assert isinstance(answer, WriteFailed)


def test_hd_98_a_pod_whose_queue_is_drained_is_deleted_rightly() -> None:
    history = History(shown=False)
    history.pod("one", queue="stays")
    history.until_runs("one")
    history.edit("home", CLUSTER_QUEUE, "stays", {"spec": {"stopPolicy": "HoldAndDrain"}})
    history.until("it has stopped", lambda: not history.runs("one"))


def test_hd_50_what_a_restored_record_does_not_know_has_its_time_to_stop() -> None:
    history = History(shown=False)
    for agent in ("a", "b"):
        history.cut(agent)
    history.job("one", stops_in=25.0)
    history.until("it has a Workload", lambda: history.workload("one", "Job") is not None)
    copy, lease = history.home.store.copy(), replace(history.world.manager_lease)
    for agent in ("a", "b"):
        history.mend(agent)
    cluster = history.until_runs("one", "Job")
    history.leader.kill()
    home_put_back(history.world, copy, lease)
    history.cut(cluster)
    as_a_process_of_ours(history.workers[cluster], JOB, "one", {"spec": {"suspend": True}})
    history.until("its pod is being stopped", lambda: "deletionTimestamp" in history.objects(cluster)[0]["metadata"])
    workload = history.workload("one", "Job")
    assert workload is not None
    touched = {"metadata": {"annotations": {"a-note": "of somebody"}}}
    as_a_process_of_ours(history.home, WORKLOAD, workload["metadata"]["name"], touched)
    assert history.containers("one", "Job") == 1, "its container has not stopped yet"


def test_what_a_restore_has_lost_is_granted_by_a_winner_that_is_written_anew_and_by_no_raised_number() -> None:
    """A recovery raises the epoch of a record beside its placement, perhaps to the very one that was lost."""
    history = History(shown=False)
    history.pod("one")
    cluster = history.until_runs("one")
    workload, truth = history.workload("one"), history.world.truth
    assert workload is not None
    name, uid, status = workload["metadata"]["name"], workload["metadata"]["uid"], workload["status"]
    (lost, *_) = (replace(each, epoch=2) for each in truth.lives(Work("Pod", TEAM, "one")))
    history.leader.kill()
    truth.restored({(uid, 2, cluster)})
    truth.recovered(2)
    raised = {"metadata": {"annotations": {"gatelift.dev/epoch": "2"}}}
    as_a_process_of_ours(history.home, WORKLOAD, name, raised)
    assert truth.is_unrecorded(lost)

    for each in history.objects(cluster):
        history.edit(cluster, POD, each["metadata"]["name"], {"metadata": {"finalizers": None}})
        history.delete(cluster, POD, each["metadata"]["name"])
    history.cut(cluster)
    history.until("its containers have stopped", lambda: not history.runs("one"))
    others = [each for each in status["conditions"] if each["type"] not in {"QuotaReserved", "Admitted"}]
    released = {"conditions": others, "clusterName": None, "admission": None}
    as_a_process_of_ours(history.home, WORKLOAD, name, {"status": released}, "status")
    assert truth.is_unrecorded(lost)
    granted = {key: status[key] for key in ("conditions", "clusterName", "admission")}
    as_a_process_of_ours(history.home, WORKLOAD, name, {"status": granted}, "status")
    assert not truth.is_unrecorded(lost), "now it runs as recorded, or not at all"


def test_what_a_backup_brings_back_without_its_owner_is_collected() -> None:
    """The garbage collector is begun anew with its API server; as drawn (seed 9600237) it had forgotten the owner."""
    history = History()

    def made(name: str, **meta: object) -> str:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        return history.home.create(POD, {"metadata": {"name": name, "namespace": TEAM, **meta}, "spec": spec}).uid

    def is_collected() -> bool:
        return "deletionTimestamp" in (history.home.look(POD, "owned") or {})["metadata"]

    owner = {"apiVersion": "v1", "kind": "Pod", "name": "owner", "uid": made("owner")}
    made("owned", ownerReferences=[owner], finalizers=["example.com/held"])
    history.home.delete(POD, "owner", grace_seconds=0)
    copy = history.home.store.copy()  # before the collector has heard of that
    history.until("it is collected", is_collected)
    history.home.restore(copy)
    assert not is_collected()
    history.until("it is collected again", is_collected)


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_a_person_takes_off_a_job_may_be_used_again_after_others_got_it(
    by_hand: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Job makes another pod beside the one that still runs, and the room that was reclaimed is others' by then."""
    history = History(shown=False)
    history.job("many", "stays", "1000m", pods=2)
    history.until("both run", lambda: history.containers("many", "Job") == 2)
    workload, truth, pod = history.workload("many", "Job"), history.world.truth, history.objects("home")[0]
    assert workload is not None
    name, sets = workload["metadata"]["name"], workload["status"]["admission"]["podSetAssignments"]
    history.leader.kill()
    monkeypatch.setattr(history.world.account, "_bears", float("inf"))  # both pods run: that judge would end it

    def reclaimed(count: int) -> None:
        told = {"reclaimablePods": [{"name": sets[0]["name"], "count": count}]}
        as_a_process_of_ours(history.home, WORKLOAD, name, {"status": told}, "status")

    assert truth.used()["stays"] == 2000
    if by_hand:
        history.edit("home", POD, pod["metadata"]["name"], {"metadata": {"ownerReferences": None}})
        assert truth.used()["stays"] == 2000, "it runs, and is charged"
    reclaimed(1)
    assert truth.used()["stays"] == 1000
    reclaimed(0)
    assert truth.used()["stays"] == (1000 if by_hand else 2000)


class _Charged:
    """One pod in `travels`, the only one, with its record as it was written; nobody leads from then on."""

    def __init__(self) -> None:
        self.history = History(shown=False)
        self.history.pod("one")
        self.cluster = self.history.until_runs("one")
        self.history.leader.kill()
        self.history.workers[self.cluster].delete(POD, "one", grace_seconds=0)
        for _ in range(3):
            for each in self.history.world.managers:
                each.kill()
            self.history.passes(1.0)
        self.workload = self.history.workload("one") or {}
        self.stood = {key: self.workload["status"][key] for key in ("conditions", "clusterName", "admission")}

    def give_back(self, *, late: bool) -> None:
        others = [each for each in self.stood["conditions"] if each["type"] not in {"QuotaReserved", "Admitted"}]
        self.history.home.late = late
        self.write({"conditions": others, "clusterName": None, "admission": None})
        self.history.home.late = False

    def write(self, status: Doc) -> None:
        name = self.workload["metadata"]["name"]
        as_a_process_of_ours(self.history.home, WORKLOAD, name, {"status": status}, "status")


def test_hd_179_a_dead_leaders_late_end_may_be_undone_and_done_again_once_each_time() -> None:
    charged = _Charged()
    for _ in range(2):
        charged.give_back(late=True)
        charged.write(charged.stood)
    charged.give_back(late=False)
    with pytest.raises(TruthError, match="epoch 1 is charged twice"):
        charged.write(charged.stood)


def test_hd_179_an_end_that_the_leader_wrote_itself_is_never_undone() -> None:
    charged = _Charged()
    charged.give_back(late=False)
    with pytest.raises(TruthError, match="epoch 1 is charged twice"):
        charged.write(charged.stood)


@pytest.mark.parametrize("other", ["cluster", "moment", "grant"])
def test_hd_179_what_is_granted_anew_after_a_dead_leaders_late_end_is_a_second_charge(other: str) -> None:
    charged = _Charged()
    charged.give_back(late=True)
    if other == "cluster":
        anew = {**charged.stood, "clusterName": "b" if charged.cluster == "a" else "a"}
    elif other == "grant":
        anew = {**charged.stood, "admission": {**charged.stood["admission"], "clusterQueue": "stays"}}
    else:
        said = [{**each, "lastTransitionTime": NEVER} for each in charged.stood["conditions"]]
        anew = {**charged.stood, "conditions": said}
    with pytest.raises(TruthError, match="epoch 1 is charged twice"):
        charged.write(anew)
