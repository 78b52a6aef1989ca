"""A backend of the remote admission that takes its time: scripted histories on the real agent's machine.

Whatever happens while it is asked: nothing is let go without its grant, nor by its grant alone, its room is given back
exactly once, and what goes wrong in it concerns one placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from gatelift_agent.core.admission.backend import GRANTED, Request
from gatelift_agent.core.values import events
from gatelift_kube.deciding.contained import PAUSE_SECONDS_MAX, Contained
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, Patch, PatchKind, WriteError
from gatelift_kube.values.resources import CONFIG_MAP, JOB, POD, ObjectKey, ObjectRef
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.refusals import Refusal
from support.agent.drivers import Cluster, Manager, play
from support.agent.scripted_backend import NOBODY, NOT_YET, REFUSED, RETRY_SECONDS, Script, request_of
from support.agent.stage import Stage
from support.agent.values import KEY, NAMESPACE_NAME

OTHER = PlacementKey("w-2", 1)
KINDS = pytest.mark.parametrize(("kind", "name"), [("Pod", "p"), ("Job", "j")])


def asked(kind: str = "Pod", name: str = "p") -> tuple[Stage, Script]:
    """Return a stage on which a placement waits for its backend."""
    script = Script()
    stage = script.stage()
    stage.place(kind=kind, name=name)
    stage.settle()
    assert stage.state() == "Admitting"
    return stage, script


def let_go(stage: Stage) -> bool:
    """Say whether anything that was placed is let go."""
    jobs = stage.store.look_all(("batch", "jobs"))
    pods = stage.store.look_all(("", "pods"))
    return any(not job["spec"]["suspend"] for job in jobs) or any(
        not pod["spec"].get("schedulingGates") for pod in pods
    )


def live(stage: Stage) -> None:
    """Let the cluster's controllers do what there is to do."""
    cluster = Cluster(stage, finishes=False)
    for _ in range(50):
        while cluster.react():
            pass
        stage.pass_seconds(5.0)


def stops(stage: Stage) -> None:
    """Let what runs be stopped."""
    live(stage)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    if stage.document(JOB, "j") is not None:  # what its controller does to a Job that is suspended
        for pod in stage.store.look_all(("", "pods")):
            stage.remove(POD, pod["metadata"]["name"])
    live(stage)


def end(stage: Stage, script: Script) -> None:
    """Let the manager forget what has ended: its room was given back once, and nothing is left."""
    stage.send(m.Forget(key=KEY))
    live(stage)
    assert stage.placement() is None
    assert script.times("release") == 1
    assert KEY not in script.held


# --- its time ----------------------------------------------------------------------------------------------------


@KINDS
def test_what_waits_for_its_backend_is_applied_and_held_back_and_is_let_go_by_its_grant(kind: str, name: str) -> None:
    stage, script = asked(kind, name)
    stage.pass_seconds(3600.0)
    assert not let_go(stage)
    assert [each.key for each in stage.peer.of(m.Applied)] == [KEY]
    assert stage.peer.of(m.GatesLifted) == []
    assert stage.document(CONFIG_MAP, request_of(KEY, "").key.name) is not None
    script.say(stage, GRANTED)
    assert (stage.state(), let_go(stage)) == ("Running", True)
    assert len(stage.peer.of(m.GatesLifted)) == 1
    stops(stage)
    end(stage, script)


def test_the_log_says_once_what_it_waits_for() -> None:
    stage, script = asked()
    for _ in range(3):
        script.say(stage, NOT_YET)
    assert [dict(note.fields) for note in stage.notes if note.text == "waits for room"] == [{"why": NOT_YET.text}]


def test_what_is_refused_after_a_while_is_refused_with_its_text_once_nothing_of_it_is_left() -> None:
    stage, script = asked()
    stage.pass_seconds(100.0)
    script.say(stage, REFUSED)
    stage.pass_seconds(1.0)
    [refused] = stage.peer.of(m.Refused)
    assert (refused.refusal, refused.text) == (Refusal.QUOTA_NEVER_FITS, REFUSED.text)
    assert stage.peer.of(m.GatesLifted) == []
    script.say(stage, GRANTED)
    assert not let_go(stage)
    end(stage, script)


def test_a_write_of_the_backend_that_fails_is_asked_for_again_at_the_time_that_it_names() -> None:
    script = Script(grants_at_once=True)
    stage = script.stage()
    stage.fail = lambda write: WriteError.FORBIDDEN if write.ref == request_of(KEY, NAMESPACE_NAME) else None
    stage.place()
    stage.pass_seconds(RETRY_SECONDS * 3.5)
    tried = [write for write in stage.writes if write.ref == request_of(KEY, NAMESPACE_NAME)]
    assert (len(tried), stage.state()) == (4, "Admitting")
    stage.fail = lambda _write: None
    stage.pass_seconds(RETRY_SECONDS)
    assert stage.state() == "Running"


def test_an_offer_that_is_not_committed_gives_its_room_back_once() -> None:
    script = Script()
    stage = script.stage()
    stage.offer(hold_seconds=10.0)
    assert (script.times("ask"), script.times("ask placed")) == (1, 0)
    stage.pass_seconds(60.0)
    assert stage.placement() is None
    assert script.times("release") == 1


# --- what happens while it is asked ------------------------------------------------------------------------------


@KINDS
def test_a_stop_while_it_is_asked_ends_it_and_a_grant_that_comes_later_lifts_nothing(kind: str, name: str) -> None:
    stage, script = asked(kind, name)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(5.0)
    assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]
    assert script.times("release") == 1, "before anybody forgets it"
    script.say(stage, GRANTED)
    stage.pass_seconds(60.0)
    assert not let_go(stage)
    end(stage, script)


def test_a_stop_before_the_request_has_landed_gives_its_room_back_and_the_late_answer_is_heard() -> None:
    script = Script()
    stage = script.stage()
    stage.hold = lambda write: write.ref == request_of(KEY, NAMESPACE_NAME)
    stage.place()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(5.0)
    end(stage, script)
    stage.land()
    assert script.times("hear") == 1, "so that the backend takes back what it has asked for"
    assert stage.placement() is None


@KINDS
def test_an_agent_that_restarts_while_it_is_asked_asks_again_once_it_is_confirmed(kind: str, name: str) -> None:
    stage, script = asked(kind, name)
    stage.crash()
    script.said[KEY] = GRANTED
    before = script.times("ask placed")
    stage.start()
    stage.pass_seconds(30.0)
    assert (stage.state(), let_go(stage)) == ("Gated", False), "not confirmed in this session"
    assert script.times("ask placed") == before
    stage.confirm()
    assert script.times("ask placed") > before
    assert (stage.state(), let_go(stage)) == ("Running", True)
    stops(stage)
    end(stage, script)


def test_what_a_restarted_agent_is_told_to_stop_gives_back_what_the_process_before_it_asked_for() -> None:
    stage, script = asked()
    stage.restart()
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(5.0)
    assert script.times("release") == 1
    end(stage, script)


def test_a_grant_that_comes_after_the_lease_has_run_out_lifts_nothing_before_it_is_renewed() -> None:
    stage, script = asked()
    stage.peer.grants = False
    stage.pass_seconds(40.0)
    assert stage.machine.world.standing.lease_until <= stage.now
    asks = script.times("ask placed")
    script.say(stage, GRANTED)
    stage.pass_seconds(1.0)
    assert (stage.state(), let_go(stage)) == ("Admitting", False)
    assert script.times("ask placed") == asks, "nothing is asked for what may not start"
    stage.peer.grants = True
    stage.mend()
    stage.confirm()
    stage.pass_seconds(20.0)
    assert (stage.state(), let_go(stage)) == ("Running", True)


def test_what_was_granted_without_a_lease_and_is_taken_back_is_not_let_go() -> None:
    stage, script = asked()
    stage.peer.grants = False
    stage.pass_seconds(40.0)
    script.say(stage, GRANTED)
    script.say(stage, NOT_YET)
    stage.peer.grants = True
    stage.mend()
    stage.confirm()
    stage.pass_seconds(20.0)
    assert (stage.state(), let_go(stage)) == ("Admitting", False)
    script.say(stage, GRANTED)
    assert stage.state() == "Running"


@pytest.mark.parametrize("resume", [True, False])
def test_a_new_session_while_it_is_asked_has_to_confirm_it(resume: bool) -> None:
    stage, script = asked()
    stage.cut_stream()
    script.say(stage, GRANTED)
    stage.mend(resume=resume)
    stage.pass_seconds(30.0)
    assert not let_go(stage)
    if not resume:
        assert [(entry.state, entry.lifted) for entry in stage.peer.inventories[-1]] == [("Admitting", False)]
        assert len(stage.peer.of(m.Applied)) == 2, "and it is told anew"
    stage.confirm()
    assert let_go(stage)


def test_a_replica_that_does_not_lead_any_more_lifts_nothing_by_a_grant() -> None:
    stage, script = asked()
    stage.post(events.AgentLeadershipLost())
    script.say(stage, GRANTED)
    stage.pass_seconds(30.0)
    assert not let_go(stage)
    assert script.times("release") == 0, "the next one asks for it, or gives it back"


def test_what_is_forgotten_while_it_is_asked_is_stopped_and_gives_its_room_back_once() -> None:
    stage, script = asked()
    end(stage, script)
    assert stage.document(POD, "p") is None


def test_an_object_that_somebody_deletes_while_it_is_asked_ends_it() -> None:
    stage, script = asked()
    stage.remove(POD, "p")
    stage.pass_seconds(5.0)
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectDeleted"]
    end(stage, script)


@KINDS
def test_what_somebody_else_lets_go_while_the_backend_has_not_granted_it_is_ended(kind: str, name: str) -> None:
    stage, script = asked(kind, name)
    if kind == "Pod":
        stage.change(POD, name, {"spec": {"schedulingGates": []}})
    else:
        stage.change(JOB, name, {"spec": {"suspend": False}})
    live(stage)
    assert [each.reason for each in stage.peer.of(m.Evicted)] == ["WorkerObjectStarted"]
    end(stage, script)


def test_room_that_is_taken_back_before_a_lift_is_tried_again_is_waited_for_anew() -> None:
    stage, script = asked()
    lifts: list[ApiWrite] = []

    def fail(write: ApiWrite) -> WriteError | None:
        if isinstance(write, Patch) and write.ref.resource == POD:
            lifts.append(write)
            return WriteError.UNKNOWN
        return None

    stage.fail = fail
    script.say(stage, GRANTED)
    assert (stage.state(), len(lifts)) == ("Gated", 1)
    script.said[KEY] = NOT_YET
    stage.fail = lambda _write: None
    stage.pass_seconds(60.0)
    assert (stage.state(), let_go(stage)) == ("Admitting", False)


def test_a_lift_that_lands_after_its_room_was_taken_back_is_no_stranger_s() -> None:
    stage, script = asked()
    stage.hold = lambda write: isinstance(write, Patch) and write.ref.resource == POD
    script.say(stage, GRANTED)
    [held] = stage.held
    script.said[KEY] = NOT_YET
    stage.lose()  # nobody knows what became of it
    stage.hold = lambda _write: False
    stage.pass_seconds(5.0)
    assert stage.state() == "Admitting"
    stage._take_write(held.command)
    stage.settle()
    assert (stage.state(), stage.peer.of(m.Evicted)) == ("Running", [])


def test_a_used_epoch_asks_for_nothing() -> None:
    stage, script = asked()
    end(stage, script)
    stage.commit()
    assert stage.peer.of(m.Refused)[-1].refusal is Refusal.EPOCH_STALE
    assert script.held == set()


# --- at every point ----------------------------------------------------------------------------------------------

NEVER: Mapping[str, int] = MappingProxyType({})


def run(kind: str, crash: Mapping[str, int] = NEVER) -> tuple[Stage, Manager, Script]:
    script = Script(grants_at_once=True)
    stage = Stage(backend=script.backend)
    stage.crash_before, stage.crash_after = crash.get("before"), crash.get("after")
    manager = Manager(stage, kind, "p" if kind == "Pod" else "j")
    play(stage, manager, Cluster(stage))
    return stage, manager, script


def points(kind: str) -> Iterator[dict[str, int]]:
    for point in range(1, run(kind)[0].performed + 1):
        yield {"before": point}
        yield {"after": point}


@pytest.mark.parametrize("kind", ["Pod", "Job"])
def test_a_crash_at_any_point_with_a_backend_that_takes_its_time_is_survived(kind: str) -> None:
    for crash in points(kind):
        stage, manager, script = run(kind, crash)
        assert stage.process > 1, "it has crashed"
        assert [each.succeeded for each in manager.finished[:1]] == [True]
        assert stage.machine.world.placements == {}
        assert script.held == set(), f"room is left after {crash}"
        assert all(script.times("release", key) <= stage.process for _, key in script.calls)


# --- a backend that raises ---------------------------------------------------------------------------------------


@pytest.fixture
def _contained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Contained, "surfaces", False)


def others_go_on(stage: Stage, script: Script) -> None:
    """Let another placement come, be granted, and end."""
    script.said[OTHER] = GRANTED
    stage.place(OTHER, name="q")
    assert stage.state(OTHER) == "Running"
    stage.run("q")
    stage.finish("q")
    stage.send(m.Forget(key=OTHER))
    stage.pass_seconds(1.0)
    assert stage.placement(OTHER) is None
    assert script.times("release", OTHER) == 1


@pytest.mark.usefixtures("_contained")
@pytest.mark.parametrize("name", ["ask placed", "verdict", "hear"])
def test_a_backend_that_raises_for_one_placement_lets_the_others_go_on(name: str) -> None:
    script = Script(said={KEY: GRANTED}, raises={(name, KEY)})
    stage = script.stage()
    stage.place()
    session = stage.machine.world.standing.session
    others_go_on(stage, script)
    if name != "hear":  # what it grants it grants, whatever it makes of the answer to its write
        stage.pass_seconds(60.0)
        assert not let_go(stage)
        assert stage.peer.of(m.Refused) == []
    script.raises.clear()
    stage.pass_seconds(PAUSE_SECONDS_MAX + 1.0)
    assert stage.state() == "Running"
    assert stage.machine.world.standing.session == session, "no session ends for it"
    stage.finish()
    end(stage, script)


@pytest.mark.usefixtures("_contained")
@pytest.mark.parametrize("name", ["ask placed", "verdict"])
def test_a_placement_whose_backend_raises_obeys_its_stop(name: str) -> None:
    script = Script(raises={(name, KEY)})
    stage = script.stage()
    stage.place()
    stage.pass_seconds(10.0)
    stage.send(m.Stop(key=KEY, reason="Evicted"))
    stage.pass_seconds(PAUSE_SECONDS_MAX)
    assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]
    end(stage, script)


@pytest.mark.usefixtures("_contained")
def test_an_offer_that_its_backend_cannot_judge_is_refused() -> None:
    script = Script(raises={("judge", KEY)})
    stage = script.stage()
    stage.offer()
    [bid] = stage.peer.of(m.Bid)
    assert (bid.kind, bid.refusal) == (m.BidKind.REFUSED, Refusal.INVALID)
    others_go_on(stage, script)


@pytest.mark.usefixtures("_contained")
@pytest.mark.parametrize("ends", ["stop", "hold"])
def test_a_release_that_raises_keeps_nothing_from_ending_and_is_tried_again_until_it_is_done(ends: str) -> None:
    script = Script(raises={("release", KEY)})
    stage = script.stage()
    if ends == "stop":
        stage.place()
        stage.send(m.Stop(key=KEY, reason="Evicted"))
        stage.pass_seconds(5.0)
        assert [each.key for each in stage.peer.of(m.Stopped)] == [KEY]
        stage.send(m.Forget(key=KEY))
    else:
        stage.offer(hold_seconds=5.0)
    stage.pass_seconds(60.0)
    assert stage.placement() is None
    others_go_on(stage, script)
    assert script.times("release") == 0
    assert 1 <= sum(note.text.startswith(f"room of {KEY}") for note in stage.notes) <= 8, "told, with growing pauses"
    script.raises.clear()
    stage.pass_seconds(PAUSE_SECONDS_MAX + 1.0)
    assert (script.held, script.times("release")) == (set(), 1)
    stage.pass_seconds(PAUSE_SECONDS_MAX * 3)
    assert script.times("release") == 1


@pytest.mark.usefixtures("_contained")
def test_room_that_is_asked_for_again_is_not_taken_by_a_release_of_before() -> None:
    script = Script(raises={("release", KEY)})
    stage = script.stage()
    stage.offer(hold_seconds=5.0)
    stage.pass_seconds(10.0)
    script.raises.clear()
    stage.offer(hold_seconds=1000.0)
    stage.pass_seconds(900.0)
    assert script.times("release") == 1, "of the hold that came last, when its time was over (300 s)"
    assert stage.placement() is None


@pytest.mark.usefixtures("_contained")
@pytest.mark.parametrize("name", ["entries", "hear"])
def test_a_backend_that_raises_about_itself_ends_no_process(name: str) -> None:
    script = Script(said={KEY: GRANTED}, raises={(name, NOBODY)})
    stage = script.stage()
    stage.place()
    script.say(stage, GRANTED)
    assert stage.state() == "Running"
    assert any(note.text.startswith("remote admission: OnPurposeError") for note in stage.notes)


# --- it starts nothing -------------------------------------------------------------------------------------------

POD_REF = ObjectRef(POD, ObjectKey(NAMESPACE_NAME, "p"))
LIFT = b'[{"op":"remove","path":"/spec/schedulingGates"}]'


@pytest.mark.usefixtures("_contained")
@pytest.mark.parametrize(
    "write",
    [
        Create(write_id=0, ref=POD_REF, body=b"{}"),
        Patch(write_id=0, ref=POD_REF, body=LIFT, kind=PatchKind.JSON),
        Delete(write_id=0, ref=ObjectRef(JOB, ObjectKey(NAMESPACE_NAME, "j")), uid="x"),
    ],
    ids=lambda write: type(write).__name__,
)
def test_r1_no_write_of_a_backend_to_what_is_placed_is_carried_out(write: ApiWrite) -> None:
    def wanted(request: Request) -> ApiWrite | None:
        return write if request.key == KEY else None

    script = Script(writes=wanted)
    stage = script.stage()
    stage.place()
    stage.pass_seconds(60.0)
    assert not let_go(stage)
    assert all(isinstance(each, Create) for each in stage.writes if each.ref.resource in {POD, JOB})
    assert any("NotABackendsWriteError" in note.text for note in stage.notes)
    others_go_on(stage, script)


def test_each_write_of_a_backend_has_a_number_of_its_own() -> None:
    script = Script()
    stage = script.stage()
    stage.place()
    stage.place(OTHER, name="q")
    numbers = [write.write_id for write in stage.writes]
    assert len(numbers) == len(set(numbers))
    assert 0 not in numbers
