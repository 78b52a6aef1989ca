"""HD-33: `gatelift recover` shows what was found by cluster, writes a person's word once, and follows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any, cast

import msgspec
import pytest

from gatelift.cli import recover
from gatelift.cli.connection import NOT_FOUND, TIMED_OUT, CliError
from gatelift.core.state.recovery_values import (
    ANNOTATION_RECOVER,
    ANNOTATION_RECOVERY,
    ANNOTATION_RESTORED,
    ANNOTATION_STOP_UNEXPLAINED,
    Finding,
    Found,
    RecoverWord,
    RecoveryStage,
    Told,
)
from gatelift_kube.api.client import Client
from gatelift_kube.decoding.decoding import Page, Served
from gatelift_kube.objects.gatelift import WorkerCluster
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import WORKER_CLUSTER, ObjectRef, Resource
from support.manager import cli_stage
from support.servers.fake_apiserver import merged

FINDING = Finding(why="cluster a brings back a number", since="2026-01-01T00:00:00Z", counter=7, term=3)
HALTED = Told(
    stage=RecoveryStage.HALTED,
    finding=FINDING,
    clusters={"a": Found(heard=True, listed=5, ahead=1, unexplained=2), "b": Found(), "local": Found(heard=True)},
)


def cluster(name: str, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "resourceVersion": "1", "annotations": annotations},
        "status": {"session": 4},
    }


def text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def local(told: Told, **annotations: str) -> dict[str, Any]:
    return cluster("local", **{ANNOTATION_RECOVERY: text(told), **annotations})


class Server:
    """A management cluster as the verb sees it; `lives` is what its manager does at each look, once it was told."""

    def __init__(self, told: Told, *lives: Callable[[Server], None]) -> None:
        self.clusters = {"a": cluster("a"), "b": cluster("b"), "local": local(told)}
        self.lives = list(lives)
        self.written: list[tuple[str, dict[str, Any]]] = []

    def tell(self, told: Told) -> None:
        self.clusters["local"]["metadata"]["annotations"][ANNOTATION_RECOVERY] = text(told)

    async def list(self, resource: Resource) -> AsyncGenerator[Page, None]:
        if resource != WORKER_CLUSTER:
            made = {"metadata": {"name": "w", "annotations": {"gatelift.dev/epoch": "40"}}}
            yield Page(items=[served(msgspec.convert(made, Workload))], next="", resource_version="1")
            return
        if self.lives and self.written:
            self.lives.pop(0)(self)
        found = [served(msgspec.convert(each, WorkerCluster)) for each in self.clusters.values()]
        yield Page(items=found, next="", resource_version="1")

    async def get(self, ref: ObjectRef) -> Served:
        return served(msgspec.convert(self.clusters[ref.key.name], WorkerCluster))

    async def patch(self, ref: ObjectRef, body: bytes) -> None:
        self.written.append((ref.key.name, json.loads(body)))
        self.clusters[ref.key.name] = merged(self.clusters[ref.key.name], json.loads(body))

    async def raw(self, _method: str, _path: str, *, body: bytes) -> bytes:
        del body
        return b'{"status": {"userInfo": {"username": "jane"}}}'


def served(found: Any) -> Served:
    return Served(found, b"{}")


def go_on(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recover, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(recover, "STILL_SECONDS", 0.01)
    asyncio.run(recover._go_on(cast("Client", server)))


def waiting(server: Server) -> None:
    server.tell(msgspec.structs.replace(HALTED, stage=RecoveryStage.WAITING))


def raising(server: Server) -> None:
    heard = {name: Found(heard=True) for name in server.clusters}
    server.tell(msgspec.structs.replace(HALTED, stage=RecoveryStage.RAISING, clusters=heard))


def done(server: Server) -> None:
    server.tell(Told())


def test_hd_33_going_on_is_a_word_about_that_finding_and_is_followed_until_it_is_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(HALTED, waiting, raising, done)
    go_on(server, monkeypatch)
    ((name, body),) = server.written
    said = msgspec.json.decode(body["metadata"]["annotations"][ANNOTATION_RECOVER], type=RecoverWord)
    assert (name, said) == ("local", RecoverWord(since=FINDING.since, epochs=40 + recover.EPOCHS_ABOVE, who="jane"))
    assert capsys.readouterr().out.splitlines() == [
        "epochs are raised to 1040, says jane; whoever leads next raises term and counter",
        "waiting: b",
        "raising: all clusters heard",
        "recovered: dispatch goes on",
    ]


def restored_anew(server: Server) -> None:
    later = msgspec.structs.replace(FINDING, why="cluster b brings back a number", since="2026-01-01T00:10:00Z")
    server.tell(msgspec.structs.replace(HALTED, finding=later))


def test_hd_190_a_second_restore_that_is_found_meanwhile_is_no_recovery(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """HD-190: it said that dispatch goes on, while all of it had just halted anew."""
    with pytest.raises(CliError, match="b brings back a number") as failed:
        go_on(Server(HALTED, waiting, restored_anew), monkeypatch)
    assert "found at 2026-01-01T00:10:00Z, after what you went on from: all dispatch has halted anew" in str(
        failed.value
    )
    assert "recovered" not in capsys.readouterr().out


def test_hd_33_said_again_it_writes_nothing_and_follows_on(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(HALTED)
    with pytest.raises(CliError, match="b did not say what runs there: mend it, or look there") as failed:
        go_on(server, monkeypatch)
    assert failed.value.code == TIMED_OUT
    server.lives = [waiting, done]
    go_on(server, monkeypatch)
    assert len(server.written) == 1


def test_hd_33_a_word_about_an_earlier_finding_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(HALTED, done)
    old = RecoverWord(since="2025-01-01T00:00:00Z", epochs=9)
    server.clusters["local"]["metadata"]["annotations"][ANNOTATION_RECOVER] = text(old)
    go_on(server, monkeypatch)
    assert len(server.written) == 1


def test_hd_33_with_nothing_found_there_is_nothing_to_go_on_with(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(Told())
    go_on(server, monkeypatch)
    assert "nothing to go on with" in capsys.readouterr().out
    assert not server.written


def test_hd_33_what_was_found_is_shown_by_cluster(stage: cli_stage.Stage) -> None:
    for name, told in (("a", None), ("b", None), ("local", HALTED)):
        annotations = {ANNOTATION_RECOVERY: text(told)} if told is not None else {}
        stage.server.put(WORKER_CLUSTER, name, "", metadata={"annotations": annotations}, status={"session": 4})
    said = stage.run("recover")
    assert said.code == 0
    rows = [line.split() for line in said.out.splitlines()[:4]]
    assert rows[0] == ["CLUSTER", "STATE", "HEARD", "PLACEMENTS", "LATER", "UNEXPLAINED"]
    assert rows[1] == ["a", "NeverConnected", "yes", "5", "1", "2"]
    assert "Then: gatelift recover --go-on" in said.out
    (first, *_) = json.loads(stage.run("recover", "-o", "json").out)
    assert (first["cluster"], first["unexplained"]) == ("a", 2)


def test_hd_168_people_read_of_whose_name_a_word_is_asked_and_what_to_type(
    stage: cli_stage.Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HD-168: another cluster has the name a since session 3; b has listed what it has."""
    heard = {name: Found(heard=True) for name in ("a", "b", "local")}
    waits = msgspec.structs.replace(HALTED, stage=RecoveryStage.WAITING, clusters=heard)
    replaced = {"session": 4, "replacedSession": 3, "settledSession": 3}
    for name, status in (("a", replaced), ("b", {"session": 4}), ("local", {"session": 4})):
        annotations = {ANNOTATION_RECOVERY: text(waits)} if name == "local" else {}
        stage.server.put(WORKER_CLUSTER, name, "", metadata={"annotations": annotations}, status=status)
    assert "runs: gatelift cluster fenced a\nThen: gatelift recover --go-on" in stage.run("recover").out

    server = Server(waits)
    server.clusters["a"]["status"] |= replaced
    with pytest.raises(CliError, match=r"; a did not say what runs there: .*gatelift cluster fenced NAME"):
        go_on(server, monkeypatch)
    server.clusters["a"]["status"] |= {"fencedAfterThrough": 2, "fencedAfter": FINDING.since}
    assert not asyncio.run(recover._look(cast("Client", server))).awaited


def test_hd_180_people_read_that_a_word_of_before_the_restore_is_to_be_said_again(stage: cli_stage.Stage) -> None:
    """HD-180: b was declared fenced in the record that was restored."""
    statuses = {"a": {"session": 4}, "b": {"session": 4, "fencedThroughSession": 4}, "local": {"session": 4}}
    for name, status in statuses.items():
        annotations = {ANNOTATION_RECOVERY: text(HALTED)} if name == "local" else {}
        stage.server.put(WORKER_CLUSTER, name, "", metadata={"annotations": annotations}, status=status)
    said = stage.run("recover").out
    assert "b was declared fenced before the restore was found" in said
    assert "runs: gatelift cluster fenced b\nThen: gatelift recover --go-on" in said
    server = Server(HALTED)
    server.clusters["b"]["status"] |= {"fencedThroughSession": 4}
    assert asyncio.run(recover._look(cast("Client", server))).awaited == ("b",)
    server.clusters["b"]["status"] |= {"fencedAfterThrough": 4, "fencedAfter": FINDING.since}
    assert not asyncio.run(recover._look(cast("Client", server))).awaited


def test_hd_183_a_revoked_cluster_is_awaited_like_any_other() -> None:
    """HD-183: it may have been taken in again since the backup."""
    server = Server(HALTED)
    server.clusters["b"]["spec"] = {"revoked": True}
    assert asyncio.run(recover._look(cast("Client", server))).awaited == ("b",)


def test_hd_184_people_read_of_a_cluster_that_was_deleted_meanwhile(stage: cli_stage.Stage) -> None:
    told = msgspec.structs.replace(HALTED, clusters={**HALTED.clusters, "c": Found(gone=True, uid="c-1")})
    for name in ("a", "b", "local"):
        annotations = {ANNOTATION_RECOVERY: text(told)} if name == "local" else {}
        stage.server.put(WORKER_CLUSTER, name, "", metadata={"annotations": annotations}, status={"session": 4})
    said = stage.run("recover").out
    assert "the WorkerCluster c was deleted, or made anew, while the recovery waits" in said
    assert any(line.split()[:2] == ["c", "Deleted"] for line in said.splitlines())
    server = Server(told)
    assert asyncio.run(recover._look(cast("Client", server))).awaited == ("b", "c")


def test_hd_185_people_read_of_whom_another_list_is_awaited_and_why(stage: cli_stage.Stage) -> None:
    told = msgspec.structs.replace(HALTED, clusters={**HALTED.clusters, "b": Found(listed=3, unproven=True)})
    for name in ("a", "b", "local"):
        annotations = {ANNOTATION_RECOVERY: text(told)} if name == "local" else {}
        stage.server.put(WORKER_CLUSTER, name, "", metadata={"annotations": annotations}, status={"session": 4})
    said = stage.run("recover").out
    assert "b lists what it has, and its agent says that there may be more" in said
    assert "a lists what it has" not in said


def test_hd_244_who_restores_says_so_also_while_no_manager_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """HD-244: each time another text, since each is a finding of its own."""
    server, moments = Server(Told()), iter((1.5, 2.25))
    monkeypatch.setattr(recover, "wall", lambda: next(moments))
    for _ in range(2):
        asyncio.run(recover._say_restored(cast("Client", server)))
    said = [body["metadata"]["annotations"][ANNOTATION_RESTORED] for _, body in server.written]
    assert [name for name, _ in server.written] == ["local", "local"]
    assert said == ["jane at 1970-01-01T00:00:01.500000Z", "jane at 1970-01-01T00:00:02.250000Z"]
    del server.clusters["local"]
    with pytest.raises(CliError, match="no WorkerCluster local"):
        asyncio.run(recover._say_restored(cast("Client", server)))


def test_hd_244_the_verb_says_what_comes_next(stage: cli_stage.Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def jane(_client: Client) -> str:
        return "jane"

    monkeypatch.setattr(recover, "who_am_i", jane)
    stage.server.put(WORKER_CLUSTER, "local", "", status={"session": 4})
    told = stage.run("recover", "--restored")
    assert told.code == 0
    assert "gatelift recover --go-on" in told.out
    written = stage.server.find(WORKER_CLUSTER, "local")
    assert written is not None
    assert written["metadata"]["annotations"][ANNOTATION_RESTORED].startswith("jane at ")


def test_hd_33_a_word_to_stop_is_about_the_session_that_listed_it(stage: cli_stage.Stage) -> None:
    stage.server.put(WORKER_CLUSTER, "a", "", status={"session": 4})
    assert stage.run("recover", "--stop", "a").code == 0
    written = stage.server.find(WORKER_CLUSTER, "a")
    assert written is not None
    assert written["metadata"]["annotations"][ANNOTATION_STOP_UNEXPLAINED] == "4"
    assert stage.run("recover", "--stop", "nobody").code == NOT_FOUND


@pytest.mark.parametrize(
    "written", ["", "x", "{}", '{"stage":"halted","finding":{"why":"w","since":"s","counter":-1,"term":0}}']
)
def test_hd_33_what_is_no_finding_is_none(written: str) -> None:
    server = Server(Told())
    server.clusters["local"]["metadata"]["annotations"][ANNOTATION_RECOVERY] = written
    assert asyncio.run(recover._look(cast("Client", server))).finding is None
