"""IS-45: pods of a Job that its controller does not make are told of, with what the API server says of one more."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift_agent.core.reporting.missing_pods import AGAIN_SECONDS, MISSING_SECONDS
from gatelift_agent.core.reporting.troubles import TROUBLE_SECONDS
from gatelift_agent.core.values.settings import AgentMode
from gatelift_kube.deciding.writes import ApiWrite, Create, WriteError, WriteFailed
from gatelift_kube.values.resources import JOB, POD
from gatelift_wire.values import messages as m
from support.agent.drivers import job_pod
from support.agent.stage import Stage
from support.agent.values import JOB_SPEC, KEY

SPEC = {**JOB_SPEC, "parallelism": 4, "completions": 8}
A_WHILE = MISSING_SECONDS + 1.0
WHY = "exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2"
SAID = f'pods "j-x9k2p" is forbidden: {WHY}'
TOLD = f"2 of 4 pods are not there; the API server there says no to one more: {WHY}"
SILENT = "2 of 4 pods are not there, and none is made: its events there say why"


class Short(Stage):
    """A cluster whose Job controller makes what a test says, and whose API server says `no` to one more, if it does."""

    no: tuple[WriteError, str] | None = WriteError.QUOTA, SAID
    asked = 0

    def _take_write(self, write: ApiWrite) -> None:
        runs = self.state() == "Running" and isinstance(write, Create) and write.dry_run
        self.asked += runs
        if runs and self.no is not None:
            error, message = self.no
            self._answer(WriteFailed(write_id=write.write_id, error=error, message=message))
        else:
            super()._take_write(write)

    def makes(self, *numbers: int) -> None:
        """Make pods as the Job controller does, and say so in the Job's status."""
        meta, spec = self.job()["metadata"], self.job()["spec"]
        for number in numbers:
            self.create(POD, job_pod(meta, spec, f"j-{number}"))
        self.settle()
        alive = [each for each in self.store.look_all(("", "pods")) if not each.get("status", {}).get("phase")]
        self.counts(active=len(alive))

    def counts(self, **status: Any) -> None:
        self.change(JOB, "j", {"status": status}, "status")


def lifted(*, no: tuple[WriteError, str] | None = Short.no, **spec: Any) -> Short:
    stage = Short()
    stage.no = no
    stage.start()
    stage.place(kind="Job", name="j", spec={**SPEC, **spec})
    stage.pass_seconds(1.0)
    assert stage.state() == "Running"
    return stage


def troubles(stage: Stage) -> list[tuple[str, str, str]]:
    told = stage.peer.of(m.CountsReport)
    return [(one.reason, one.pod, one.text) for one in told[-1].troubles] if told else []


def test_is_45_pods_that_a_quota_keeps_out_are_told_until_they_are_there() -> None:
    stage = lifted()
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == [("PodsMissing", "j", TOLD)]
    stage.no = None
    stage.makes(2, 3)
    stage.pass_seconds(TROUBLE_SECONDS + 2.0)
    assert troubles(stage) == []


def test_is_45_the_second_between_a_jobs_start_and_its_pods_is_no_trouble() -> None:
    stage = lifted()
    for number in range(4):
        stage.pass_seconds(MISSING_SECONDS - 2.0)
        assert (troubles(stage), stage.asked) == ([], 0), "a pod has come since"
        stage.makes(number)
    stage.pass_seconds(60.0)
    assert (troubles(stage), stage.asked) == ([], 0)


def test_is_45_no_pod_at_all_is_told_as_well() -> None:
    stage = lifted()
    stage.pass_seconds(A_WHILE)
    [(_, _, text)] = troubles(stage)
    assert text.startswith("4 of 4 pods are not there; ")


def test_is_45_what_lasts_asks_the_api_server_once_and_tells_the_manager_once() -> None:
    stage = lifted()
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    told = len(stage.peer.of(m.CountsReport))
    stage.pass_seconds(3600.0)
    assert (stage.asked, len(stage.peer.of(m.CountsReport))) == (1, told)


def test_is_45_it_is_asked_again_when_something_has_changed_but_not_each_time() -> None:
    stage = lifted()
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    stage.no = WriteError.DENIED, 'admission webhook "w" denied the request: not today'
    for ready in (1, 2) * 5:
        stage.counts(ready=ready)
    assert stage.asked == 1
    stage.pass_seconds(AGAIN_SECONDS)
    stage.counts(ready=0)
    stage.pass_seconds(2.0)
    assert stage.asked == 2
    [(_, _, text)] = troubles(stage)
    assert text.endswith('one more: admission webhook "w" denied the request: not today')


@pytest.mark.parametrize(
    "no",
    [None, (WriteError.UNKNOWN, "timeout"), (WriteError.FORBIDDEN, "User cannot"), (WriteError.INVALID, "no dry run")],
    ids=["it would be made", "nobody knows", "no right to ask", "no webhook for it"],
)
def test_is_45_without_a_word_about_the_pod_its_events_are_named(no: tuple[WriteError, str] | None) -> None:
    stage = lifted(no=no)
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == [("PodsMissing", "j", SILENT)]


def test_is_45_where_nobody_could_tell_it_is_asked_again() -> None:
    stage = lifted(no=(WriteError.UNKNOWN, "timeout"))
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE + 10 * AGAIN_SECONDS)
    assert stage.asked == 11
    stage.no = WriteError.QUOTA, SAID
    stage.pass_seconds(AGAIN_SECONDS)
    assert troubles(stage) == [("PodsMissing", "j", TOLD)]
    asked = stage.asked
    stage.pass_seconds(3600.0)
    assert stage.asked == asked


def test_is_45_the_pause_before_a_pod_in_the_place_of_one_that_failed_is_no_trouble() -> None:
    stage = lifted(no=None)
    stage.makes(0, 1, 2, 3)
    stage.pass_seconds(A_WHILE)
    stage.change(POD, "j-0", {"status": {"phase": "Failed"}}, "status")
    ready = [{"type": "Ready", "status": "True"}]
    stage.change(POD, "j-1", {"status": {"phase": "Running", "conditions": ready}}, "status")
    stage.counts(active=3, failed=1)
    stage.pass_seconds(300.0)
    assert troubles(stage) == []
    stage.no = WriteError.QUOTA, SAID
    stage.counts(ready=1)
    stage.pass_seconds(2.0)
    [(reason, _, text)] = troubles(stage)
    assert (reason, text.partition(";")[0]) == ("PodsMissing", "1 of 4 pods is not there")


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({}, {"succeeded": 6}),
        ({"completionMode": "Indexed"}, {"succeeded": 6, "completedIndexes": "0-5"}),
        ({"completionMode": "Indexed", "backoffLimitPerIndex": 1}, {"completedIndexes": "0-3", "failedIndexes": "4,5"}),
        ({"completions": None}, {"succeeded": 1}),
        ({}, {"conditions": [{"type": "FailureTarget", "status": "True", "reason": "BackoffLimitExceeded"}]}),
        ({}, {"active": 4}),
    ],
    ids=["two are left", "two indexes are left", "failed indexes", "a queue of work ends", "it fails", "its own word"],
)
def test_is_45_pods_that_nobody_is_to_make_are_not_missing(spec: dict[str, Any], status: dict[str, Any]) -> None:
    stage = lifted(**spec)
    stage.makes(0, 1)
    stage.counts(**status)
    stage.pass_seconds(60.0)
    assert (troubles(stage), stage.asked) == ([], 0)


def test_is_45_pods_that_end_before_they_are_counted_are_not_missing() -> None:
    stage = lifted(completions=4)
    stage.makes(0, 1, 2, 3)
    for number in range(4):
        stage.finish(f"j-{number}")
    stage.pass_seconds(60.0)
    assert troubles(stage) == []


def test_is_45_nothing_is_asked_without_the_right_to_start() -> None:
    stage = lifted()
    stage.cut_stream()
    stage.pass_seconds(600.0)
    assert stage.asked == 0
    stage.mend(resume=False)
    stage.confirm()
    stage.pass_seconds(A_WHILE)
    assert stage.asked == 1
    assert [reason for reason, _, _ in troubles(stage)] == ["PodsMissing"]


def test_is_45_the_question_keeps_no_stop_waiting() -> None:
    stage = lifted()
    stage.makes(0, 1)
    stage.hold = lambda write: isinstance(write, Create) and write.dry_run
    stage.no = None
    stage.pass_seconds(A_WHILE)
    assert len(stage.held) == 1
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    assert stage.job()["spec"]["suspend"] is True
    stage.land()
    assert stage.state() == "Draining"


def test_is_45_a_foreign_text_is_cut_and_made_plain() -> None:
    stage = lifted(no=(WriteError.DENIED, "no\x1b[2J " + "x" * 5000))
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    [(_, _, text)] = troubles(stage)
    assert len(text) <= 400
    assert text.isprintable()


def test_is_45_an_agent_that_starts_again_tells_it_before_the_manager_takes_it_back() -> None:
    stage = lifted()
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    stage.restart()
    stage.confirm()
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == [("PodsMissing", "j", TOLD)]


def test_is_45_at_home_no_pod_is_asked_for() -> None:
    stage = Short(mode=AgentMode.LOCAL)
    stage.start()
    labels = {"kueue.x-k8s.io/queue-name": "q"}
    stage.create(JOB, {"metadata": {"name": "j", "namespace": "team-a", "labels": labels}, "spec": SPEC})
    stage.settle()
    stage.place(kind="Job", name="j", pod_sets=(m.PodSetRequest(name="main", count=4),))
    stage.pass_seconds(1.0)
    assert stage.state() == "Running"
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    assert troubles(stage) == [("PodsMissing", "j", SILENT)]
    assert stage.asked == 0


def test_hd_562_while_it_may_not_ask_again_it_does_not_look_without_end() -> None:
    """Nobody could tell, and then the worker is cut off: its time to ask again passes, and comes no more by itself."""
    stage = lifted(no=(WriteError.UNKNOWN, "timeout"))
    stage.makes(0, 1)
    stage.pass_seconds(A_WHILE)
    stage.cut_stream()
    stage.pass_seconds(10 * AGAIN_SECONDS)
    asked = stage.asked
    stage.no = Short.no
    stage.mend(resume=False)
    stage.confirm()
    stage.pass_seconds(TROUBLE_SECONDS + 2.0)
    assert (stage.asked, troubles(stage)) == (asked + 1, [("PodsMissing", "j", TOLD)])
