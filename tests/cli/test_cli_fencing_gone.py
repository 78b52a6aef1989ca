"""HD-184: `gatelift cluster fenced` of a cluster whose WorkerCluster is gone: written on `local`, and waited for."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

import msgspec
import pytest

from gatelift.cli.connection import TIMED_OUT, CliError
from gatelift.cli.fencing_gone import declare_gone
from gatelift.core.state.recovery_asked import ANNOTATION_FENCED_GONE, Without, without
from gatelift.core.state.recovery_values import ANNOTATION_RECOVERY, Finding, Found, RecoveryStage, Told
from gatelift_kube.api.client import Client
from gatelift_kube.deciding.errors import NotFoundError
from gatelift_kube.decoding.decoding import Served
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.values.resources import ObjectRef
from support.servers.fake_apiserver import merged

FINDING = Finding(why="cluster b brings back a number", since="2026-01-01T00:00:00Z", counter=7, term=3)
GONE = Found(gone=True, uid="a-1")


class Server:
    """The management cluster; its manager takes the word when it `answers`."""

    def __init__(self, clusters: dict[str, Found], *, answers: bool = True) -> None:
        told = Told(stage=RecoveryStage.WAITING, finding=FINDING, clusters=clusters)
        annotations = {ANNOTATION_RECOVERY: msgspec.json.encode(told).decode()}
        self.local: dict[str, Any] = {"metadata": {"name": "local", "resourceVersion": "3", "annotations": annotations}}
        self.answers = answers
        self.written: list[dict[str, Any]] = []

    async def get(self, ref: ObjectRef) -> Served:
        if ref.key.name != "local":
            raise NotFoundError(404, "NotFound", "no such WorkerCluster")
        return Served(object=msgspec.convert(self.local, WorkerCluster), raw=b"")

    async def patch(self, _ref: ObjectRef, body: bytes) -> None:
        self.written.append(json.loads(body))
        self.local = merged(self.local, self.written[-1])
        if self.answers:
            told = Told(stage=RecoveryStage.WAITING, finding=FINDING)
            self.local["metadata"]["annotations"][ANNOTATION_RECOVERY] = msgspec.json.encode(told).decode()

    async def raw(self, _method: str, _path: str, *, body: bytes) -> bytes:
        assert body
        return b'{"status":{"userInfo":{"username":"ada"}}}'


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_seconds: float) -> None:
        return

    monkeypatch.setattr(asyncio, "sleep", at_once)


def said(server: Server) -> Without:
    return without(msgspec.convert(server.local, WorkerCluster))


def test_hd_184_the_word_stands_on_local_names_the_finding_and_is_waited_for() -> None:
    server = Server({"a": GONE})
    word = asyncio.run(declare_gone(cast("Client", server), "a"))
    assert word is not None
    assert (word.session, word.who, word.after) == (0, "ada", FINDING.since)
    assert said(server) == Without(since=FINDING.since, names={"a": "ada"})
    assert server.written[0]["metadata"]["resourceVersion"] == "3", "another word may have been said meanwhile"


@pytest.mark.parametrize(("since", "kept"), [(FINDING.since, {"b": "eve"}), ("an earlier one", {})])
def test_hd_184_words_about_others_of_the_same_finding_stay(since: str, kept: dict[str, str]) -> None:
    server = Server({"a": GONE, "b": GONE})
    text = msgspec.json.encode(Without(since=since, names={"b": "eve"})).decode()
    server.local["metadata"]["annotations"][ANNOTATION_FENCED_GONE] = text
    asyncio.run(declare_gone(cast("Client", server), "a"))
    assert said(server) == Without(since=FINDING.since, names={**kept, "a": "ada"})


@pytest.mark.parametrize("found", [{}, {"a": Found(heard=True, uid="a-1")}], ids=["unknown", "not deleted"])
def test_hd_184_where_nobody_asks_nothing_is_written(found: dict[str, Found]) -> None:
    server = Server(found)
    assert asyncio.run(declare_gone(cast("Client", server), "a")) is None
    assert not server.written


def test_hd_184_a_word_that_nobody_answers_stands_and_the_verb_says_so() -> None:
    server = Server({"a": GONE}, answers=False)
    with pytest.raises(CliError, match="the word stands") as error:
        asyncio.run(declare_gone(cast("Client", server), "a"))
    assert error.value.code == TIMED_OUT
    assert "a" in said(server).names


@pytest.mark.parametrize("text", ["", "{", "[]", '{"since": 1}', "x" * 70_000])
def test_hd_184_what_is_no_such_word_is_none(text: str) -> None:
    local = WorkerCluster()
    local.metadata.annotations[ANNOTATION_FENCED_GONE] = text
    assert without(local) == Without("")
