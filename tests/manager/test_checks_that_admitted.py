"""HD-209: what is admitted is ended only by checks of others that admitted it and that its queue still asks for."""

from __future__ import annotations

from typing import Any

import pytest

from gatelift.core.records.admitted_by import ADMITTED_BY
from gatelift_kube.values.resources import ADMISSION_CHECK, WORKLOAD, ObjectKey, ObjectRef
from gatelift_wire.values.messages import Offer
from manager.test_checks_nobody_asked_for import runs_on
from manager.test_checks_required import QUEUE, a_reserved_pod, foreign, require, say, states
from support.manager.builders import NAMESPACE, Doc, a_pod, a_setting
from support.manager.world import World, a_running_pod, a_world, workload_ref

CHECK = ObjectRef(ADMISSION_CHECK, ObjectKey("", "dispatch"))
AGAINST = ["Pending", "Retry", "Rejected"]
MARK = [{"name": "main", "annotations": {"gatelift.dev/term": "1"}}]


def add(world: World, name: str, state: str, *, first: bool = False, **more: Any) -> None:
    """Write the state of a check into the record, as whoever may write a status can."""

    def write(workload: Doc) -> None:
        checks = workload.setdefault("status", {}).setdefault("admissionChecks", [])
        said = {"name": name, "state": state, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", **more}
        checks.insert(0 if first else len(checks), said)

    world.api.edit(workload_ref(world), write)


def drop_queue(world: World) -> None:
    world.api.edit(QUEUE, lambda queue: queue["metadata"].update(finalizers=[]))
    world.api.objects.pop(QUEUE)


def an_admitted_pod(check: str = "budget") -> World:
    world = a_reserved_pod(check)
    say(world, check, "Ready")
    world.advance(10.0)
    assert world.condition(world.find("Workload"), "Admitted")["status"] == "True"
    return world


@pytest.mark.parametrize("state", AGAINST)
def test_hd_209_an_invented_check_ends_nothing_where_the_queue_is_gone(state: str) -> None:
    """The symptom: who led next took all checks of the record, and evicted or deactivated what ran."""
    world, _ = a_running_pod()
    add(world, "f0", state)
    world.advance(5.0)
    drop_queue(world)
    world.restart()
    world.advance(60.0)
    runs_on(world)


@pytest.mark.parametrize("state", AGAINST)
@pytest.mark.parametrize("restart", [False, True])
def test_hd_209_a_check_that_the_queue_asks_for_since_ends_nothing(state: str, *, restart: bool) -> None:
    """The symptom: whoever admitted it let it run, and whoever led next evicted it."""
    world, _ = a_running_pod()
    world.api.apply(foreign("license"))
    add(world, "license", state)
    world.advance(5.0)
    require(world, "dispatch", "license")
    if restart:
        world.restart()
    world.advance(60.0)
    runs_on(world)


@pytest.mark.parametrize("state", AGAINST)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dead", [False, True])
def test_hd_209_nor_does_one_that_bears_the_placements_mark(state: str, *, first: bool, dead: bool) -> None:
    """Around the policy, which refuses it. The symptom: who led next took it for the check that names the winner."""
    world, _ = a_running_pod()
    add(world, "f0", state, first=first, podSetUpdates=MARK)
    if not dead:
        world.advance(20.0)
    world.restart()
    world.advance(60.0)
    runs_on(world)


def say_for_us(world: World, state: str) -> None:
    def write(workload: Doc) -> None:
        next(one for one in workload["status"]["admissionChecks"] if one["name"] == "dispatch").update(state=state)

    world.api.edit(workload_ref(world), write)


@pytest.mark.parametrize("state", AGAINST)
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_hd_209_our_own_check_ends_nothing_by_its_state(state: str, *, restart: bool, gone: bool) -> None:
    world = an_admitted_pod()
    if gone:
        world.api.edit(CHECK, lambda check: check["metadata"].update(finalizers=[]))
        world.api.objects.pop(CHECK)
        world.advance(2.0)
    say_for_us(world, state)
    if restart:
        world.restart()
    world.advance(60.0)
    runs_on(world)


@pytest.mark.parametrize("state", ["Retry", "Rejected"])
def test_hd_209_nor_does_it_end_what_is_reserved(state: str) -> None:
    world = a_reserved_pod("budget")
    say_for_us(world, state)
    world.advance(10.0)
    workload = world.find("Workload")
    assert workload["spec"].get("active", True)
    assert world.condition(workload, "Evicted") == {}


@pytest.mark.parametrize("state", AGAINST)
@pytest.mark.parametrize("restart", [False, True])
def test_hd_209_nor_does_a_check_that_the_queue_has_dropped_since(state: str, *, restart: bool) -> None:
    """The symptom: it still evicted under the leader that had admitted by it, and not under the next."""
    world = an_admitted_pod()
    require(world, "dispatch")
    if restart:
        world.restart()
        world.advance(20.0)
    say(world, "budget", state)
    world.advance(60.0)
    runs_on(world)


@pytest.mark.parametrize("state", AGAINST)
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("clusters", [("a",), ()], ids=["travels", "local"])
def test_hd_209_a_check_that_admitted_it_goes_on_to_end_it(
    state: str, clusters: tuple[str, ...], *, restart: bool
) -> None:
    world = a_world([*a_setting(clusters=clusters), foreign("budget")], clusters=clusters or ("local",))
    require(world, *(["dispatch"] if clusters else []), "budget")
    world.api.apply(a_pod().document())
    world.advance(2.0)
    say(world, "budget", "Ready")
    world.advance(10.0)
    assert world.condition(world.find("Workload"), ADMITTED_BY)["message"] == "budget"
    if restart:
        world.restart()
        world.advance(20.0)
    say(world, "budget", state)
    world.advance(5.0)
    assert [event for event in world.emitted if event.reason.startswith("Evicted") and "budget" in event.message]
    if not clusters:
        assert not world.all("Workload"), "a pod at home is deleted to be stopped, and its Workload goes with it"
        return
    workload = world.find("Workload")
    assert "budget" in world.condition(workload, "Evicted").get("message", "")
    assert workload["spec"].get("active", True) is (state != "Rejected")


@pytest.mark.parametrize("restart", [False, True])
def test_hd_209_who_admitted_it_is_put_back_where_somebody_changes_it(*, restart: bool) -> None:
    world = an_admitted_pod()

    def write(workload: Doc) -> None:
        found = next(one for one in workload["status"]["conditions"] if one["type"] == ADMITTED_BY)
        found["message"] = "license"

    world.api.edit(workload_ref(world), write)
    world.advance(10.0)
    assert world.condition(world.find("Workload"), ADMITTED_BY)["message"] == "budget"
    if restart:
        world.restart()
        world.advance(10.0)
    say(world, "budget", "Retry")
    world.advance(5.0)
    assert world.condition(world.find("Workload"), "Evicted").get("status") is not None


def test_hd_209_what_is_given_back_names_no_check_any_more() -> None:
    world = an_admitted_pod()
    world.api.edit(workload_ref(world), lambda workload: workload["spec"].update(active=False))
    world.advance(30.0)
    workload = world.find("Workload")
    assert world.condition(workload, "QuotaReserved")["status"] == "False"
    assert world.condition(workload, ADMITTED_BY) == {}


def test_hd_209_what_is_admitted_again_without_checks_names_none() -> None:
    world = an_admitted_pod()
    require(world, "dispatch", "license", "budget")
    say(world, "budget", "Retry")
    require(world, "dispatch")
    world.advance(400.0)
    workload = world.find("Workload")
    assert world.condition(workload, "Admitted")["status"] == "True"
    assert [one["name"] for one in workload["status"]["admissionChecks"]] == ["dispatch"]
    assert world.condition(workload, ADMITTED_BY) == {}


def test_hd_209_what_was_reserved_in_a_queue_that_is_gone_is_not_run_at_home_by_who_leads_next() -> None:
    world = a_reserved_pod("budget")
    drop_queue(world)
    world.restart()
    world.connect("local")
    world.advance(60.0)
    assert not [one for one in world.messages(Offer) if one[0] == "local"]
    assert world.condition(world.find("Workload"), "Admitted").get("status") != "True"


def test_hd_209_what_waits_for_a_queue_that_is_not_known_keeps_what_checks_said() -> None:
    world = a_world([*a_setting(cpu=0), foreign("budget")])
    world.api.apply(a_pod().document())
    world.advance(5.0)
    drop_queue(world)
    world.advance(5.0)
    add(world, "budget", "Retry")
    world.advance(60.0)
    assert states(world)["budget"] == "Retry", "nobody can tell whether it is asked for"


def test_hd_209_an_invented_check_puts_off_no_return() -> None:
    world = a_reserved_pod("budget")
    add(world, "f0", "Retry", requeueAfterSeconds=86_400, lastTransitionTime="2036-01-01T00:00:00Z")
    ref = ObjectRef(WORKLOAD, ObjectKey(NAMESPACE, world.find("Workload")["metadata"]["name"]))

    def write(workload: Doc) -> None:
        found = next(one for one in workload["status"]["admissionChecks"] if one["name"] == "budget")
        found.update(state="Retry", requeueAfterSeconds=5)

    world.api.edit(ref, write)
    world.advance(120.0)
    assert world.condition(world.find("Workload"), "QuotaReserved")["status"] == "True"


def test_hd_202_an_invented_check_is_not_waited_for_by_who_leads_next() -> None:
    """The queue asks for it no more than before: it is neither waited for nor kept in the list."""
    world = a_reserved_pod("budget")
    add(world, "f0", "Pending")
    world.restart()
    say(world, "budget", "Ready")
    world.advance(10.0)
    assert world.condition(world.find("Workload"), "Admitted").get("status") == "True"


def test_hd_209_who_leads_next_asks_nothing_of_pods_for_a_check_that_did_not_admit() -> None:
    world, _ = a_running_pod()
    add(world, "f0", "Ready", podSetUpdates=[{"name": "main", "nodeSelector": {"zone": "x"}}])
    world.restart()
    world.advance(10.0)
    reserve = world.machine.core.attempts[world.find("Workload")["metadata"]["uid"]].reserve
    assert reserve is not None
    assert not reserve.checks, "what a Commit is made of"
    runs_on(world)
