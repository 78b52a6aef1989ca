"""All of a group is looked at at a pause, not for each word of each member, and who needs a look gets it (PF-2)."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.pacing import KEPT_MAX, LOOK_SECONDS_MAX, LOOK_SECONDS_OF_ONE, LOOKS_AT_ONCE, Pacing
from gatelift.core.works import passes
from gatelift_kinds.registry import WITH_GROUPS
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import VERSION_OF_CHANGE
from gatelift_wire.values.messages import Change, ObjectReport, Stop
from support.manager.builders import a_setting
from support.manager.group_world import GROUP, a_member, join, pod_ref, says
from support.manager.world import RUNNING, a_world

MEMBERS = 100
PAUSE = MEMBERS * LOOK_SECONDS_OF_ONE
EVERY = 0.005
"""Seconds between two words."""
OF_ALL = (Look.WORK, Look.WORKLOAD)
SUCCEEDED = {"phase": "Succeeded"}


class Paced:
    """A group that was let go at worker `a`, whose agent says of one member after the other how it is."""

    def __init__(self, patch: pytest.MonkeyPatch, members: int = MEMBERS) -> None:
        self.looks: Counter[Look] = Counter()
        table: dict[Look, Any] = vars(passes)["_PASSES"]
        for look in OF_ALL:
            patch.setitem(table, look, self._counted(look, table[look]))
        self.world = a_world(a_setting(clusters=("a",)), clusters=("a",), kinds=WITH_GROUPS)
        self.agent = self.world.connect("a", version=VERSION_OF_CHANGE)
        join(self.world, *(a_member(f"p{n:03}", total=members, cpu="1m") for n in range(members)), seconds=5.0)
        self.uids = {each["metadata"]["name"]: each["metadata"]["uid"] for each in self.world.all("Pod")}
        self.looks.clear()

    def _counted(self, look: Look, of: Any) -> Any:
        def counted(*given: Any) -> None:
            self.looks[look] += 1
            of(*given)

        return counted

    def says(self, name: str, status: dict[str, Any], **said: Any) -> None:
        key, uid, body = self.agent.commits[-1], self.uids[name], json.dumps(status).encode()
        self.agent.say(
            ObjectReport(key=key, kind="PodGroup", name=name, uid=f"w-{name}", status=body, owner_uid=uid, **said)
        )

    def says_of_all(self, status: dict[str, Any]) -> float:
        """Say it of each, one after the other; return how long that took."""
        began = self.world.now
        for name in self.uids:
            self.says(name, status)
            self.world.advance(EVERY)
        return self.world.now - began

    def phases(self) -> set[str]:
        return {each["status"]["phase"] for each in self.world.all("Pod")}


def test_pf_2_words_of_a_hundred_members_have_all_of_them_looked_at_at_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each word was followed by two looks at all: as it came, and as its write was answered."""
    play = Paced(monkeypatch)
    took = play.says_of_all(RUNNING)
    most = LOOKS_AT_ONCE + took / PAUSE + 1
    assert all(play.looks[look] <= most < MEMBERS for look in OF_ALL), play.looks
    assert play.phases() == {"Running"}, "what concerns one of them alone waits for nothing"


def test_pf_2_the_last_of_many_words_is_followed_by_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Paced(monkeypatch)
    play.says_of_all(RUNNING)
    play.says_of_all(SUCCEEDED)
    play.world.advance(4 * PAUSE)
    assert play.phases() == {"Succeeded"}
    assert says(play.world, "Finished") == ("True", "Succeeded")


def test_pf_2_who_is_deleted_amid_many_words_is_told_to_leave_within_the_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Paced(monkeypatch)
    play.says_of_all(RUNNING)
    play.world.api.delete(pod_ref("p007"))
    play.world.advance(PAUSE)
    assert [one.name for _, each in play.world.messages(Change) for one in each.leave] == ["p007"]


def test_pf_2_what_is_news_of_all_waits_for_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Paced(monkeypatch)
    play.says_of_all(RUNNING)
    workload = next(ref for ref in play.world.api.objects if ref.key.name == GROUP)
    play.world.api.edit(workload, lambda document: document["spec"].update(active=False))
    play.world.settle()
    assert len(play.world.messages(Stop)) == 1


def test_pf_7_all_that_happens_to_a_small_group_is_looked_at_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    play = Paced(monkeypatch, members=4)
    for name in play.uids:
        play.says(name, RUNNING)
    play.world.settle()
    for name in play.uids:
        play.world.api.delete(pod_ref(name))
    play.world.settle()
    assert len([one for _, each in play.world.messages(Change) for one in each.leave]) == 4


KEY = Key(Look.WORK, ObjectKey("ns", "crew"))


def test_a_key_that_was_left_alone_is_looked_at_at_once_again() -> None:
    pacing = Pacing()
    for _ in range(LOOKS_AT_ONCE):
        assert pacing.due(KEY, 10.0) == 10.0
        pacing.looked(KEY, 100, 10.0)
    assert pacing.due(KEY, 10.0) == pytest.approx(10.0 + PAUSE)
    assert pacing.due(KEY, 11.0) == 11.0


def test_the_pause_is_bounded_however_many_there_are() -> None:
    pacing = Pacing()
    for _ in range(LOOKS_AT_ONCE):
        pacing.looked(KEY, 4096, 10.0)
    assert pacing.due(KEY, 10.0) == pytest.approx(10.0 + LOOK_SECONDS_MAX)


def test_keys_that_were_left_alone_are_forgotten() -> None:
    pacing = Pacing()
    for number in range(3 * KEPT_MAX):
        pacing.looked(Key(Look.WORK, ObjectKey("ns", f"g{number}")), 4, float(number))
    assert len(vars(type(pacing))["_of"].__get__(pacing)) <= KEPT_MAX + 1
