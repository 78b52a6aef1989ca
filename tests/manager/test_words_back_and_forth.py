"""HD-291, HD-292, HD-293, HD-295 (IS-10, IS-11): what a worker says back and forth is written at a pace, in its share.

All of it is legal: a pod that is over and runs again, counts that go up and down, an API server that is reached and is
not. A worker that says so as fast as it can gets no write, and no line of the log, for each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from gatelift.core.api.agenda import LATE_EVERY, Key, Look
from gatelift.core.api.asks import WriteAsk
from gatelift.core.api.inflight import ClusterWord, Outstanding
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import Reported
from gatelift.core.conclusions import reports
from gatelift.core.records.shown_objects import ShownObjects
from gatelift.core.state.few_lines import LINES_MAX
from gatelift.core.state.word_writes import OUT_MAX, OUT_SHARED_MAX, SHARED_SECONDS, may_write
from gatelift_kube.deciding.writes import WriteError
from gatelift_kube.values.resources import POD, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import ObjectReport
from support.manager.builders import a_job, a_pod, a_setting
from support.manager.links_bench import Manager
from support.manager.worker_cluster_api import Api
from support.manager.world import RUNNING, SUCCEEDED, World, a_running_pod, a_world

PENDING = {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}]}


def pod_writes(world: World, since: int) -> int:
    return sum(ref.resource == POD for _, ref, _ in world.api.writes[since:])


def test_hd_291_the_first_run_and_the_first_end_are_shown_at_once() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    agent.show(agent.commits[0], RUNNING)
    world.settle()
    assert world.find("Pod")["status"]["phase"] == "Running"
    agent.show(agent.commits[0], SUCCEEDED)
    world.settle()
    assert world.find("Pod")["status"]["phase"] == "Succeeded"


@pytest.mark.parametrize("other", [SUCCEEDED, PENDING], ids=["over", "pending"])
def test_hd_291_after_that_each_object_gets_one_write_a_second(other: dict[str, Any]) -> None:
    world, agent = a_running_pod()
    world.advance(5.0)
    before = len(world.api.writes)
    for number in range(500):
        agent.show(agent.commits[0], {**(RUNNING if number % 2 else other), "reason": f"R{number}"})
        world.advance(0.02)
    assert 5 <= pod_writes(world, before) <= 12
    agent.show(agent.commits[0], RUNNING)
    world.advance(2.0)
    assert world.find("Pod")["status"]["phase"] == "Running", "what it says last is shown"


def back_and_forth(seconds: float, *, others: bool) -> int:
    """Return how many writes a pod got of which its worker says one and the other in turn for so long."""
    world, agent = a_running_pod()
    world.advance(5.0)
    before = len(world.api.writes)
    for number in range(round(seconds / 0.1)):
        world.machine.core.words.shares("a", world.now, others=others)
        agent.show(agent.commits[0], {**(PENDING, RUNNING)[number % 2], "reason": f"R{number}"})
        world.advance(0.1)
    agent.show(agent.commits[0], RUNNING)
    written = pod_writes(world, before)
    world.advance(8.0)
    assert world.find("Pod")["status"]["phase"] == "Running", "what it says last is shown"
    return written


def test_is_10_what_goes_back_and_forth_is_written_at_growing_pauses_while_others_write() -> None:
    assert back_and_forth(40.0, others=False) >= 30
    assert 5 <= back_and_forth(40.0, others=True) <= 9


def test_is_10_what_had_rested_is_written_at_once_again() -> None:
    objects = ShownObjects()
    paused = []
    for now in (10.0, 11.0, 13.0, 17.0, 25.0, 33.0, 43.0, 44.0):
        objects.mirrors("p", now)
        paused.append(objects.rests_until("p") - now)
    assert paused == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 1.0, 2.0]
    assert objects.rests_until("q") == 0.0


def test_hd_291_a_write_that_is_refused_leaves_the_first_run_urgent() -> None:
    world = a_world(a_setting())
    world.api.apply(a_pod().document())
    world.settle()
    agent = world.agents["a"]
    refused: list[Any] = []

    def fail(command: Any) -> Any:
        if command.ref.resource == POD and not refused:
            world.api.edit(command.ref, lambda one: one["metadata"].setdefault("labels", {}).update(x="y"))
            refused.append(command)

    world.fail = fail
    agent.show(agent.commits[0], RUNNING)
    world.settle()
    assert refused
    assert world.find("Pod")["status"]["phase"] == "Running"


# --- what is over needs no quota -------------------------------------------------------------------------------------


def a_job_that_runs(pods: int = 8) -> World:
    world = a_world(a_setting(cpu=pods))
    world.api.apply(a_job(parallelism=pods, completions=pods))
    world.settle()
    return world


def counts(world: World, over: int, pods: int = 8) -> None:
    agent = world.agents["a"]
    agent.count(agent.commits[0], remaining=pods - over, succeeded=over, reclaimable=over)
    world.settle()


def charged(world: World) -> int:
    uid = world.find("Workload")["metadata"]["uid"]
    return sum(world.machine.core.ledger.engine.charged(uid).values())


def workload_writes(world: World, since: int) -> int:
    return sum(ref.resource.kind == "Workload" for _, ref, _ in world.api.writes[since:])


def test_hd_291_counts_that_go_up_and_down_are_written_once_a_second() -> None:
    world = a_job_that_runs()
    counts(world, 1)
    before = len(world.api.writes)
    for over in (2, 1, 3, 2, 4, 3, 5, 4):
        counts(world, over)
        world.advance(0.05)
    assert workload_writes(world, before) == 0, "within the second"
    world.advance(1.0)
    assert workload_writes(world, before) == 1


def test_hd_500_what_is_over_is_written_at_pauses_that_grow_and_at_once_after_a_rest() -> None:
    """HD-500: while the pods of a Job or a group ended one after the other, its Workload was written each second."""
    world = a_job_that_runs(48)
    before = len(world.api.writes)
    for over in range(1, 41):
        counts(world, over, 48)
        world.advance(1.0)
    assert workload_writes(world, before) <= 8, "after 0, 1, 3, 7, 15, 23, 31 and 39 seconds"
    world.advance(20.0)
    assert world.find("Workload")["status"]["reclaimablePods"] == [{"name": "main", "count": 40}]
    before = len(world.api.writes)
    counts(world, 41, 48)
    assert workload_writes(world, before) == 1


def test_hd_291_quota_is_given_by_the_word_and_stays_given_while_words_go_back_and_forth() -> None:
    world = a_job_that_runs()
    whole = charged(world)
    counts(world, 4)
    assert charged(world) == whole // 2
    counts(world, 2)
    assert charged(world) == whole // 2, "others may hold that quota by now (HD-276)"
    counts(world, 6)
    assert charged(world) == whole // 4, "and what is written of it comes later"
    world.advance(1.0)
    counts(world, 3)
    world.advance(2.0)
    assert world.find("Workload")["status"]["reclaimablePods"] == [{"name": "main", "count": 6}]


# --- the share of a cluster ------------------------------------------------------------------------------------------


def sharing(per_second: float) -> World:
    world = a_world(a_setting())
    core = world.machine.core
    core.settings = replace(core.settings, words_per_second=per_second)
    return world


def others_write(world: World) -> None:
    ref = ObjectRef(POD, ObjectKey("team", "another"))
    world.machine.core.inflight.begin(1, Outstanding(ref=ref, purpose=Purpose.RELEASE_OWNER))


def written(world: World, seconds: float, cluster: str = "a") -> int:
    """Return how many of a thousand objects, of which each asks when it is its turn, may be written in so many s."""
    core, count = world.machine.core, 0
    keys = [Key(Look.OWNER, ObjectKey("team", f"{cluster}-{number}"), POD) for number in range(1000)]
    waiting = [key for key in keys if not may_write(core, ClusterWord(cluster), key, world.now)]
    count = len(keys) - len(waiting)
    end = world.now + seconds
    while world.now < end:
        world.now += 0.1
        core.agenda.ring(world.now)
        while (key := core.agenda.take()) is not None:
            if key.look is Look.WORDS:
                machine_pass(world, key)
            else:
                count += may_write(core, ClusterWord(cluster), key, world.now)
    return count


def machine_pass(world: World, key: Key) -> None:
    world.machine._passes._pass(key, world.now)


def test_hd_292_what_one_cluster_says_has_its_share_while_others_write() -> None:
    world = sharing(20.0)
    others_write(world)
    assert 20 * 6 - 1 <= written(world, 5.0) <= 20 * 6 + 1, "a second's at once, and then its share"


def test_hd_292_who_alone_writes_is_not_slowed() -> None:
    assert written(sharing(20.0), 0.1) == 1000


def test_hd_292_the_share_ends_when_others_have_not_written_for_a_while() -> None:
    world = sharing(20.0)
    others_write(world)
    key = Key(Look.OWNER, ObjectKey("team", "p"), POD)
    may_write(world.machine.core, ClusterWord("a"), key, world.now)
    world.machine.core.inflight.end(1)
    world.now += SHARED_SECONDS - 1.0
    assert written(world, 0.1) < 100
    world = sharing(20.0)
    others_write(world)
    may_write(world.machine.core, ClusterWord("a"), key, world.now)
    world.machine.core.inflight.end(1)
    world.now += SHARED_SECONDS
    assert written(world, 0.1) == 1000


def test_hd_292_each_cluster_has_its_own_share() -> None:
    world = sharing(20.0)
    others_write(world)
    assert written(world, 0.1) < 30
    assert written(world, 0.1, cluster="b") > 19


def test_hd_292_writes_under_way_are_bounded_as_well_and_nobody_else_waits_for_them() -> None:
    world = sharing(10_000.0)
    core = world.machine.core
    for number in range(OUT_MAX):
        ref = ObjectRef(POD, ObjectKey("team", f"p-{number}"))
        core.inflight.begin(10 + number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=ClusterWord("a")))
    key = Key(Look.OWNER, ObjectKey("team", "p"), POD)
    assert not may_write(core, ClusterWord("a"), key, world.now)
    assert may_write(core, ClusterWord("b"), key, world.now)
    core.inflight.end(10)
    world.now += 1.0
    machine_pass(world, Key(Look.WORDS, ObjectKey("", "a")))
    assert may_write(core, ClusterWord("a"), key, world.now)


def test_is_10_what_falls_due_at_once_is_given_to_the_api_server_a_few_at_a_time_while_others_write() -> None:
    world = sharing(10_000.0)
    others_write(world)
    core = world.machine.core
    keys = [Key(Look.OWNER, ObjectKey("team", f"p-{number}"), POD) for number in range(100)]

    def write(asking: list[Key]) -> list[int]:
        sent = [100 + keys.index(key) for key in asking if may_write(core, ClusterWord("a"), key, world.now)]
        for request in sent:
            ref = ObjectRef(POD, ObjectKey("team", f"p-{request - 100}"))
            core.inflight.begin(request, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=ClusterWord("a")))
        return sent

    under_way = [request for key in keys for request in write([key])]
    assert len(under_way) == OUT_SHARED_MAX
    for request in under_way[:3]:
        core.inflight.end(request)
    world.now += 1.0
    machine_pass(world, Key(Look.WORDS, ObjectKey("", "a")))
    called = [key for key in iter(core.agenda.take, None) if key.look is Look.OWNER]
    assert len(write(called)) == 3, "as many as have ended"


def test_is_10_what_is_said_again_is_written_one_at_a_time_while_others_write_and_holds_up_no_first_run() -> None:
    world = sharing(10_000.0)
    others_write(world)
    core, again = world.machine.core, ClusterWord("a", again=True)
    keys = [Key(Look.OWNER, ObjectKey("team", f"p-{number}"), POD) for number in range(3)]
    assert may_write(core, again, keys[0], world.now)
    ref = ObjectRef(POD, keys[0].object)
    core.inflight.begin(100, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=again))
    assert not may_write(core, again, keys[1], world.now)
    assert may_write(core, ClusterWord("a"), keys[2], world.now)
    core.inflight.end(100)
    world.now += 1.0
    machine_pass(world, Key(Look.WORDS, ObjectKey("", "a")))
    assert may_write(core, again, keys[1], world.now)


@pytest.mark.parametrize("what", ["mirror", "counts"])
def test_hd_292_what_follows_a_report_is_counted_for_its_cluster(what: str) -> None:
    world = a_job_that_runs()
    outstanding: list[Outstanding] = []

    class Watched(type(world.machine.core.inflight)):  # type: ignore[misc]
        __slots__ = ()

        def begin(self, request_id: int, one: Outstanding) -> None:
            outstanding.append(one)
            super().begin(request_id, one)

    world.machine.core.inflight.__class__ = Watched
    agent = world.agents["a"]
    if what == "mirror":
        agent.show(agent.commits[0], {"active": 8, "ready": 8})
    else:
        counts(world, 2)
    world.advance(3.0)
    seen = [one.word_of for one in outstanding if one.purpose in {Purpose.MIRROR, Purpose.RECLAIM}]
    assert seen
    assert {word.cluster for word in seen if word is not None} == {"a"}
    assert not world.machine.core.inflight.by_word


# --- reached and not reached -----------------------------------------------------------------------------------------


def test_hd_293_who_reaches_its_api_server_and_does_not_in_turn_gets_one_write_a_second() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3)
    before = manager.writes
    for number in range(100):
        reach(manager, reachable=bool(number % 2))
        manager.pass_time(0.1, step=0.1)
    assert 5 <= manager.writes - before <= 11


def test_hd_293_the_first_is_written_at_once_and_nothing_is_granted_before_what_it_says_is_written() -> None:
    manager = Manager(Api())
    manager.dial()
    manager.pass_time(3)
    reach(manager, reachable=False)
    assert manager.api.get("w1").status.api_reachable is False
    manager.now += 0.2
    granted = manager.agents[1].lease_acknowledged_at
    reach(manager, reachable=True)
    assert manager.api.get("w1").status.api_reachable is False
    assert manager.agents[1].lease_acknowledged_at == granted
    manager.pass_time(1.0, step=0.1)
    assert manager.api.get("w1").status.api_reachable is not False
    assert manager.agents[1].lease_acknowledged_at != granted


def reach(manager: Manager, *, reachable: bool) -> None:
    said = manager.agents[1].set_facts(credits_=5, api_reachable=reachable, replicas=1, kinds=("Pod",), now=manager.now)
    manager.agent_says(1, said)


# --- lines -----------------------------------------------------------------------------------------------------------


def test_hd_295_statuses_that_cannot_be_read_leave_a_few_lines() -> None:
    world, agent = a_running_pod()
    for number in range(200):
        status = b'{"phase":"x%d"}' % number
        agent.say(ObjectReport(key=agent.commits[0], kind="Pod", name="one", uid="w", status=status))
    world.settle()
    assert len([note for note in world.notes if "is not shown" in note.text]) == LINES_MAX


# --- who stands in a line is called, and nobody stands there who has gone ---------------------------------------------


@pytest.mark.parametrize("waits", ["again", "first"])
def test_hd_470_who_waits_for_all_that_is_under_way_is_called_as_that_ends(waits: str) -> None:
    """How many may be under way was worked out as somebody asked: who found none was never called again."""
    world = sharing(10_000.0)
    core = world.machine.core
    other, own = ClusterWord("a", again=waits == "first"), ClusterWord("a", again=waits == "again")
    for number in range(OUT_MAX):
        ref = ObjectRef(POD, ObjectKey("team", f"p-{number}"))
        core.inflight.begin(10 + number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=other))
    key = Key(Look.OWNER, ObjectKey("team", "p"), POD)
    assert not may_write(core, own, key, world.now)
    for number in range(OUT_MAX):
        core.inflight.end(10 + number)
    world.now += 1.0
    machine_pass(world, Key(Look.WORDS, ObjectKey("", "a")))
    assert key in list(iter(core.agenda.take, None))
    assert may_write(core, own, key, world.now)


def test_hd_470_what_is_said_again_leaves_room_for_first_words() -> None:
    world = sharing(10_000.0)
    core = world.machine.core
    again = ClusterWord("a", again=True)
    for number in range(OUT_MAX):
        key = Key(Look.OWNER, ObjectKey("team", f"p-{number}"), POD)
        if may_write(core, again, key, world.now):
            ref = ObjectRef(POD, key.object)
            core.inflight.begin(10 + number, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=again))
    assert core.inflight.by_word[again] == OUT_MAX - OUT_SHARED_MAX
    assert may_write(core, ClusterWord("a"), Key(Look.OWNER, ObjectKey("team", "q"), POD), world.now)


@pytest.mark.parametrize("called", [True, False])
def test_hd_471_who_ends_while_it_stands_in_a_line_or_was_just_called_is_forgotten(*, called: bool) -> None:
    world, _ = a_running_pod()
    core = world.machine.core
    (attempt,) = core.attempts.values()
    line = core.words.line(ClusterWord("a", again=True), 10.0)
    key = Key(Look.OWNER, ObjectKey("team", *attempt.reports), POD)
    line.stand(WriteAsk(key, Purpose.MIRROR, "a"))
    if called:
        assert [asks.key for asks in line.call(world.now)] == [key]
    core.end_attempt(attempt.uid)
    line.tokens = 0.0
    assert (line.waiting, line.ask(WriteAsk(key, Purpose.MIRROR, "a"), line.at)) == (0, False)


def test_hd_453_who_is_evicted_while_its_word_stands_in_a_line_is_forgotten_there() -> None:
    """The next attempt took the place of this one, which nothing ended: its place took a turn, and then was kept."""
    world, agent = a_running_pod()
    others_write(world)
    core, again = world.machine.core, ClusterWord("a", again=True)
    ref = ObjectRef(POD, ObjectKey("team", "another-of-a"))
    core.inflight.begin(2, Outstanding(ref=ref, purpose=Purpose.MIRROR, word_of=again))
    agent.show(agent.commits[0], PENDING)
    world.advance(3.0)
    line = core.words.line(again, 10.0)
    assert line.waiting == 1
    (workload,) = (one for one in world.api.objects if one.resource == WORKLOAD)
    world.api.edit(workload, lambda one: one["spec"].update(active=False))
    world.advance(3.0)
    (attempt,) = core.attempts.values()
    assert (attempt.epoch, line.waiting) == (2, 0)


def test_hd_472_a_first_run_is_looked_at_before_what_others_say_again() -> None:
    """The late line is one for all clusters: their first words would wait behind a hostile one's thousands."""
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_pod("second").document())
    world.settle()
    core, agent = world.machine.core, world.agents["a"]
    (second,) = core.attempts.values()
    for number in range(100):
        core.agenda.mark_late(Key(Look.OWNER, ObjectKey("team", f"flips-{number}"), POD))
    report = ObjectReport(key=second.key, kind="Pod", name="second", uid="w", status=msgspec.json.encode(RUNNING))
    reports.reported(core, Reported(cluster="a", session=agent.session, sequence=10, message=report), world.now)
    order = list(iter(core.agenda.take, None))
    assert order.index(Key(Look.OWNER, ObjectKey("team", "second"), POD)) < LATE_EVERY


@pytest.mark.parametrize("between", [RUNNING, PENDING], ids=["the-same", "another"])
def test_hd_454_a_first_run_that_cannot_be_shown_is_news_once(between: dict[str, Any]) -> None:
    """Refused at home for what else stands there, each word of it was looked at in front of everybody's next pod."""
    world = a_world(a_setting(cpu=8))
    world.api.apply(a_pod("second").document())
    world.settle()
    world.fail = lambda command: WriteError.INVALID if command.ref.resource == POD else None
    core, agent = world.machine.core, world.agents["a"]
    (second,) = core.attempts.values()
    late = []
    for number, status in enumerate((RUNNING, between, RUNNING)):
        said = msgspec.json.encode({**status, "reason": f"R{number}"})
        report = ObjectReport(key=second.key, kind="Pod", name="second", uid="w", status=said)
        reports.reported(core, Reported(cluster="a", session=agent.session, sequence=10, message=report), world.now)
        late.append([core.agenda.was_late for key in iter(core.agenda.take, None) if key.look is Look.OWNER])
    assert late == [[False], [True], [True]]
