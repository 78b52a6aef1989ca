"""`gatelift cluster fenced`: said, answered, and waited for until nothing is placed there any more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import msgspec
import pytest

from gatelift.cli import fencing
from gatelift.cli.connection import FAILED, TIMED_OUT, CliError
from gatelift.core.clusters.fencing import (
    ANNOTATION_FENCE_REFUSED,
    ANNOTATION_FENCED_AFTER,
    ANNOTATION_FENCED_BY,
    ANNOTATION_FENCED_THROUGH,
)
from gatelift.core.state.recovery_values import ANNOTATION_RECOVERY
from gatelift_kube.api.client import Client
from gatelift_kube.decoding.decoding import Page, Served
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectRef, Resource
from support.manager.cli_stage import condition
from support.servers.fake_apiserver import merged

LOST = condition("Connected", "False", "Lost")


@dataclass
class Server:
    """A management cluster as the verb sees it; `lives` is what its manager does, looked at before each read."""

    lives: list[Callable[[Server], None]] = field(default_factory=list)
    cluster: dict[str, Any] = field(
        default_factory=lambda: {
            "metadata": {"name": "a", "resourceVersion": "3", "annotations": {}},
            "status": {"session": 7, "conditions": [LOST]},
        }
    )
    local: dict[str, Any] = field(default_factory=lambda: {"metadata": {"name": "local", "annotations": {}}})
    placed: int = 0
    written: list[dict[str, Any]] = field(default_factory=list)

    def _live(self) -> None:
        if self.lives and self.written:
            self.lives.pop(0)(self)

    async def get(self, ref: ObjectRef) -> Served:
        if ref.key.name == "local":
            return served(msgspec.convert(self.local, WorkerCluster))
        self._live()
        return served(msgspec.convert(self.cluster, WorkerCluster))

    async def patch(self, _ref: ObjectRef, body: bytes) -> None:
        document = json.loads(body)
        self.written.append(document)
        self.cluster = merged(self.cluster, document)

    async def list(self, _resource: Resource) -> AsyncGenerator[Page, None]:
        self._live()
        documents = [{"metadata": {"name": f"w{n}"}, "status": {"clusterName": "a"}} for n in range(self.placed)]
        yield Page(items=[served(msgspec.convert(each, Workload)) for each in documents], next="", resource_version="1")

    async def raw(self, _method: str, _path: str, *, body: bytes) -> bytes:
        assert body
        return b'{"status":{"userInfo":{"username":"ada"}}}'


def served(found: Any) -> Served:
    return Served(object=found, raw=b"")


def takes(server: Server) -> None:
    annotations = server.cluster["metadata"]["annotations"]
    through, by = annotations.pop(ANNOTATION_FENCED_THROUGH), annotations.pop(ANNOTATION_FENCED_BY)
    server.cluster["status"] |= {"fencedThroughSession": int(through), "fencedBy": by}
    after = annotations.pop(ANNOTATION_FENCED_AFTER, "")
    if after:
        server.cluster["status"] |= {"fencedAfter": after, "fencedAfterThrough": int(through)}


def ends_one(server: Server) -> None:
    server.placed -= 1


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_seconds: float) -> None:
        return

    monkeypatch.setattr(asyncio, "sleep", at_once)


def say(server: Server) -> tuple[fencing.Word, list[str]]:
    told: list[str] = []
    word = asyncio.run(fencing.declare_fenced(cast("Client", server), "a", told.append))
    return word, told


def test_hd_12_the_verb_waits_for_the_answer_and_until_nothing_is_left_and_says_how_many_are() -> None:
    idle = [lambda _server: None] * 3
    server = Server(lives=[*idle, takes, *idle, ends_one, *idle, ends_one], placed=2)
    word, told = say(server)
    assert word == fencing.Word(session=7, who="ada")
    assert told == ["2 placements on a are left", "1 placements on a are left"]
    metadata = server.written[0]["metadata"]
    assert metadata["resourceVersion"] == "3"
    assert metadata["annotations"][ANNOTATION_FENCED_THROUGH] == "7"


def test_hd_11_a_refused_word_is_told_with_the_reason_and_an_exit_code() -> None:
    def refuses(server: Server) -> None:
        server.cluster["metadata"]["annotations"] = {ANNOTATION_FENCE_REFUSED: "a is not lost"}

    with pytest.raises(CliError, match="refused: a is not lost") as error:
        say(Server(lives=[refuses], placed=1))
    assert error.value.code == FAILED


def test_hd_11_a_reason_of_an_earlier_word_is_not_taken_for_the_answer() -> None:
    server = Server(lives=[lambda _server: None, takes])
    server.cluster["metadata"]["annotations"] = {ANNOTATION_FENCE_REFUSED: "an old one"}
    word, _ = say(server)
    assert word.session == 7


def test_hd_12_the_verb_fails_when_no_manager_answers() -> None:
    with pytest.raises(CliError, match="no manager has answered") as error:
        say(Server())
    assert error.value.code == TIMED_OUT


def test_hd_12_the_verb_fails_when_nothing_moves_and_says_how_many_are_left() -> None:
    with pytest.raises(CliError, match="3 placements have not ended") as error:
        say(Server(lives=[takes], placed=3))
    assert error.value.code == TIMED_OUT


def test_hd_12_a_cluster_that_comes_back_tells_itself_of_what_was_left() -> None:
    def comes_back(server: Server) -> None:
        server.cluster["status"]["session"] = 8

    with pytest.raises(CliError, match="came back in session 8"):
        say(Server(lives=[takes, lambda _server: None, comes_back], placed=3))


def test_a_word_that_somebody_takes_back_before_the_answer_is_no_success() -> None:
    with pytest.raises(CliError, match="took the word back"):
        say(Server(lives=[lambda server: server.cluster["metadata"]["annotations"].clear()]))


def test_hd_20_of_another_cluster_under_the_name_the_word_is_about_what_was_placed_before_it() -> None:
    def settles(server: Server) -> None:
        takes(server)
        server.cluster["status"] |= {"settledSession": 8}

    def explains(server: Server) -> None:
        server.cluster["status"] |= {"unexplained": 0}

    server = Server(lives=[settles, lambda _server: None, explains])
    connected = condition("Connected", "True", "Connected")
    replaced = {"session": 9, "replacedSession": 8, "settledSession": 0, "unexplained": 2, "conditions": [connected]}
    server.cluster["status"] = replaced
    word, told = say(server)
    assert word == fencing.Word(session=7, who="ada", of_before=True)
    assert told == ["2 placements on a are left"]


WAITS = '{"stage":"waiting","finding":{"why":"w","since":"s","counter":1,"term":1}}'
REPLACED_LONG_AGO = {
    "session": 9,
    "replacedSession": 8,
    "settledSession": 8,
    "conditions": [condition("Connected", "True", "Connected")],
}


def test_hd_168_a_recovery_asks_for_a_word_about_who_had_the_name_before_though_nothing_was_missing() -> None:
    server = Server(lives=[takes])
    server.cluster["status"] = dict(REPLACED_LONG_AGO)
    server.local["metadata"]["annotations"][ANNOTATION_RECOVERY] = WAITS
    word, _ = say(server)
    assert word == fencing.Word(session=7, who="ada", of_before=True, after="s")


def test_hd_180_while_a_restore_is_not_over_a_word_of_before_it_is_said_again_and_names_it() -> None:
    server = Server(lives=[lambda _server: None, takes])
    server.cluster["status"] |= {"fencedThroughSession": 7, "fencedBy": "bob"}
    server.local["metadata"]["annotations"][ANNOTATION_RECOVERY] = WAITS
    word, _ = say(server)
    assert word == fencing.Word(session=7, who="ada", after="s")
    (body,) = server.written
    assert body["metadata"]["annotations"][ANNOTATION_FENCED_AFTER] == "s"
    say(server)
    assert len(server.written) == 1, "it stands now"


def test_hd_168_without_a_recovery_nobody_says_fenced_of_a_cluster_that_is_served() -> None:
    server = Server()
    server.cluster["status"] = dict(REPLACED_LONG_AGO)
    with pytest.raises(CliError, match="not lost"):
        say(server)
    assert not server.written
