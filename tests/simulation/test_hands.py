"""What its user lets go at home may run uncharged for seconds, and only that: the check sees all beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gatelift.core.works import owners
from gatelift_agent.core.changes import edits
from gatelift_kube.deciding.writes import ApiWrite, Patch
from gatelift_kube.values.resources import JOB, POD, WORKLOAD
from support.sim.attribution import QUEUE
from support.sim.endings import unsettled
from support.sim.hands import PUT_BACK_SECONDS_MAX, STOP_SECONDS_MAX, UNHEARD_SECONDS, Hands
from support.sim.history import History, as_a_process_of_ours
from support.sim.objects import holds
from support.sim.truth import TruthError


def waiting_and_let_go(history: History) -> None:
    """Let a Job wait for a queue that is too small for it, and its user let it go."""
    history.job("work", "stays", cpu="1", pods=5)
    history.passes(10.0)
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})


def test_hd_1_what_is_let_go_by_hand_and_put_back_is_no_violation() -> None:
    history = History()
    waiting_and_let_go(history)
    history.passes(PUT_BACK_SECONDS_MAX + STOP_SECONDS_MAX)
    assert not history.runs("work", "Job")


def test_hd_1_what_nobody_puts_back_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "hold_back", lambda *_: False)
    history = History()
    waiting_and_let_go(history)
    with pytest.raises(TruthError, match="a person let it go, and nobody has put it back"):
        history.passes(PUT_BACK_SECONDS_MAX + 5.0)


def test_hd_1_what_is_taken_out_of_its_queue_after_it_was_let_go_is_an_object_as_anybody_makes_them() -> None:
    history = History()
    history.job("work", "stays", cpu="1", pods=5, seconds=300.0)
    history.passes(10.0)
    history.leader.kill()
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})
    history.passes(1.0)
    history.edit("home", JOB, "work", {"metadata": {"labels": {QUEUE: None}}})
    history.world.start_manager()
    history.until("nothing is recorded of it", lambda: history.workload("work", "Job") is None, 60.0)
    history.passes(PUT_BACK_SECONDS_MAX + STOP_SECONDS_MAX)
    assert len(history.objects("home", POD)) == 5
    assert not [each for each in unsettled(history.world) if "work" in each]


def test_hd_1_the_seconds_begin_when_somebody_leads_who_could() -> None:
    history = History()
    history.job("work", "stays", cpu="1", pods=5)
    history.passes(10.0)
    history.leader.port.down = True
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})
    history.world.pass_seconds(PUT_BACK_SECONDS_MAX + 5.0)
    assert history.containers("work", "Job") == 5


def test_hd_8_another_object_that_is_let_go_beside_it_is_noticed() -> None:
    history = History()
    waiting_and_let_go(history)
    history.job("other", "stays", cpu="1", pods=5)
    history.passes(0.5)
    with pytest.raises(TruthError, match=r"\(other\) is let go"):
        as_a_process_of_ours(history.home, JOB, "other", {"spec": {"suspend": False}})


def test_hd_8_what_was_put_back_and_is_let_go_by_a_process_of_ours_is_noticed() -> None:
    history = History()
    waiting_and_let_go(history)
    history.passes(PUT_BACK_SECONDS_MAX)
    history.until("nothing of it runs", lambda: not history.objects("home", POD), 60.0)
    with pytest.raises(TruthError, match=r"\(work\) is let go"):
        as_a_process_of_ours(history.home, JOB, "work", {"spec": {"suspend": False}})


def test_hd_8_the_charge_of_a_run_is_asked_for_as_ever_after_it_was_let_go_by_hand_once() -> None:
    history = History()
    history.job("work", "stays", cpu="1", pods=2)
    history.passes(1.0)
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})
    history.until("it runs as admitted", lambda: history.shows("work", "Admitted", "Job"))
    history.until("all is as it was placed", lambda: history.containers("work", "Job") == 2, 60.0)
    history.passes(STOP_SECONDS_MAX)
    workload = history.workload("work", "Job")
    assert workload is not None
    kept = [one for one in workload["status"]["conditions"] if one["type"] != "QuotaReserved"]
    with pytest.raises(TruthError, match="may run and is not charged"):
        as_a_process_of_ours(
            history.home, WORKLOAD, workload["metadata"]["name"], {"status": {"conditions": kept}}, "status"
        )
    assert holds(workload, "QuotaReserved")


def test_hd_72_at_a_worker_nothing_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edits, "ending", lambda *_: None)
    history = History()
    history.job("work", pods=2)
    cluster = history.until_runs("work", "Job")
    workload = history.workload("work", "Job")
    assert workload is not None
    history.edit(cluster, JOB, "work", {"spec": {"suspend": True}})
    history.until("nothing of it runs", lambda: not history.runs("work", "Job"), 60.0)
    history.edit("home", WORKLOAD, workload["metadata"]["name"], {"status": {"clusterName": None}}, "status")
    with pytest.raises(TruthError, match=r"\(work\) is let go with epoch 1"):
        history.edit(cluster, JOB, "work", {"spec": {"suspend": False}})


def test_hd_1_pods_that_do_not_stop_are_noticed_and_those_made_later_are_not_exempt() -> None:
    hands = Hands()
    hands.let_go("job", "Job work")
    hands.made("job", "pod")
    hands.put_back("job")
    hands.made("job", "later")
    assert ("job" in hands, "pod" in hands, "later" in hands) == (False, True, False)
    hands.look(0.0, able=True, runs=lambda uid: uid == "pod", unheard=lambda _: 0)
    with pytest.raises(TruthError, match="pod pod of job, which was put back, runs"):
        hands.look(STOP_SECONDS_MAX + 1.0, able=False, runs=lambda uid: uid == "pod", unheard=lambda _: 0)


def test_hd_1_a_pod_that_is_gone_is_exempt_no_more_and_no_earlier() -> None:
    hands = Hands()
    hands.let_go("job", "Job work")
    hands.made("job", "pod")
    hands.put_back("job")
    hands.look(1.0, able=True, runs=lambda _: False, unheard=lambda _: 0)
    assert "pod" in hands, "its Workload may be made only now: until then nothing is known to run of it"
    hands.gone("pod")
    assert "pod" not in hands


def test_hd_1_each_write_of_it_that_nobody_answers_after_the_first_gives_one_more_time_limit() -> None:
    lost = {"Job work": 3}
    hands = Hands()
    hands.let_go("job", "Job work")
    hands.look(0.0, able=True, runs=lambda _: False, unheard=lost.__getitem__)
    lost["Job work"] += 2
    hands.look(PUT_BACK_SECONDS_MAX + UNHEARD_SECONDS, able=True, runs=lambda _: False, unheard=lost.__getitem__)
    with pytest.raises(TruthError, match="a person let it go"):
        hands.look(
            PUT_BACK_SECONDS_MAX + UNHEARD_SECONDS + 1.0, able=True, runs=lambda _: False, unheard=lost.__getitem__
        )


def test_hd_50_containers_that_ran_before_their_workload_was_made_are_counted_from_then_on() -> None:
    history = History()
    history.leader.kill()
    history.job("work", "stays", cpu="1", pods=2, stops_in=20.0)
    history.edit("home", JOB, "work", {"spec": {"suspend": False}})
    history.passes(5.0)
    assert (len(history.objects("home", POD)), history.containers("work", "Job")) == (2, 0)
    history.until("it has a Workload", lambda: history.workload("work", "Job") is not None)
    assert history.containers("work", "Job") == 2


def test_what_a_person_lets_go_after_its_end_takes_nothing_from_others() -> None:
    """Seed 8915324: its Workload was being deleted, its quota free and given to others; the write was on its way."""
    history, held = History(shown=False), list[Callable[[], None]]()
    history.job("one", "stays", cpu="2")
    history.until_runs("one", "Job")
    workload = (history.workload("one", "Job") or {})["metadata"]
    port = history.leader.port
    send = port._send

    def slow(command: ApiWrite, deadline: float) -> None:
        if isinstance(command, Patch) and command.ref.key.name == workload["name"]:
            held.append(lambda: send(command, deadline))
        else:
            send(command, deadline)

    history.job("other", "stays", cpu="2")
    port._send = slow  # type: ignore[method-assign]
    history.delete("home", WORKLOAD, workload["name"])
    history.until("the other one is admitted", lambda: history.shows("other", "Admitted", "Job"))
    history.edit("home", JOB, "one", {"spec": {"suspend": False}})
    assert held
    port._send = send  # type: ignore[method-assign]
    held[0]()
    history.passes(60.0)
