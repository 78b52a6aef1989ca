"""What providers share: names, all or none, the state directory, errors of missing tools and bad starts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
import yaml
from aiohttp import web

from gatelift_kube.process.tasks import spawn
from gatelift_sandbox import build, children, starting
from gatelift_sandbox.children import Child
from gatelift_sandbox.errors import (
    AlreadyThereError,
    MissingToolError,
    SandboxError,
    StartError,
    UnknownClusterError,
    UnsupportedError,
)
from gatelift_sandbox.k3s import K3sProvider
from gatelift_sandbox.k3s_engine import Started
from gatelift_sandbox.kind import KindProvider
from gatelift_sandbox.processes import LocalProvider
from gatelift_sandbox.provider import ApiServerAction, Capabilities, Cluster, ProviderSettings, default_home, load
from gatelift_sandbox.state import ClusterEntry, SandboxState
from support.until import until

GONE = Child(pid=1, started_ticks=-2)


def settings(tmp_path: Path, *, detached: bool = False) -> ProviderSettings:
    return ProviderSettings(home=tmp_path / "home", kubeconfigs=tmp_path / "kubeconfigs", detached=detached)


def an_entry(name: str, tmp_path: Path, *, starter: Child = GONE, detached: bool = False) -> ClusterEntry:
    kubeconfig = tmp_path / f"{name}.yaml"
    kubeconfig.touch()
    return ClusterEntry(
        name=name,
        provider="local",
        kubeconfig=str(kubeconfig),
        server="https://127.0.0.1:1",
        capabilities={
            "real_api_server": True,
            "real_scheduler": True,
            "real_kubelet": False,
            "resource_quota": True,
            "pausable_api_server": True,
        },
        starter=starter,
        detached=detached,
    )


# --- choosing a provider


@pytest.mark.parametrize("name", ["local", "kind", "k3s"])
def test_a_provider_is_loaded_by_its_name(name: str, tmp_path: Path) -> None:
    assert load(name, settings(tmp_path)).name == name


def test_an_unknown_provider_is_refused_with_the_choices() -> None:
    with pytest.raises(SandboxError, match="'minikube' is unknown: choose one of local, embedded, kind, k3s"):
        load("minikube")


def test_the_state_directory_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GATELIFT_HOME", raising=False)
    assert default_home() == tmp_path / ".gatelift"
    monkeypatch.setenv("GATELIFT_HOME", "/elsewhere")
    assert default_home() == Path("/elsewhere")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["Upper"], "'Upper': use at most 40 of a-z, 0-9 and '-'"),
        (["-x"], "'-x'"),
        (["../../etc"], "etc"),
        (["x" * 41], "at most 40"),
        (["a", "a"], "each may be given once"),
        ([f"c{number}" for number in range(9)], "9 clusters asked for: 8 at most"),
    ],
)
async def test_bad_names_are_refused(names: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match=says):
        await LocalProvider(settings(tmp_path)).up(names)


# --- all or none


def a_cluster(name: str) -> Cluster:
    return an_entry(name, Path("/nonexistent")).cluster()


class Starts:
    """Starts that succeed, fail, or find somebody else's cluster, by name."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []

    async def start(self, name: str) -> Cluster:
        self.begun.append(name)
        if name == "bad":
            raise StartError("bad did not start")
        if name == "taken":
            raise AlreadyThereError("taken is there already")
        if name == "slow":
            await asyncio.Event().wait()
        return Cluster(
            name=name,
            provider="p",
            kubeconfig=Path("k"),
            server="s",
            kubectl=None,
            capabilities=Capabilities(
                real_api_server=False,
                real_scheduler=False,
                real_kubelet=False,
                resource_quota=False,
                pausable_api_server=False,
            ),
        )

    async def end(self, names: Sequence[str]) -> list[str]:
        self.ended += names
        return list(names)


async def test_all_clusters_are_returned_in_the_order_asked_for() -> None:
    starts = Starts()
    found = await starting.all_or_none(["b", "a"], starts.start, starts.end)
    assert [cluster.name for cluster in found] == ["b", "a"]
    assert starts.ended == []


async def test_when_one_fails_the_others_are_ended() -> None:
    starts = Starts()
    with pytest.raises(StartError, match="bad did not start"):
        await starting.all_or_none(["good", "bad"], starts.start, starts.end)
    assert sorted(starts.ended) == ["bad", "good"]


async def test_a_cluster_that_was_there_before_is_not_ended() -> None:
    starts = Starts()
    with pytest.raises(AlreadyThereError):
        await starting.all_or_none(["good", "taken"], starts.start, starts.end)
    assert starts.ended == ["good"]


async def test_when_the_caller_is_cancelled_all_are_ended() -> None:
    starts = Starts()
    caller = spawn("caller", starting.all_or_none(["good", "slow"], starts.start, starts.end))
    await until(lambda: sorted(starts.begun) == ["good", "slow"])
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert sorted(starts.ended) == ["good", "slow"]


# --- the state directory


def test_what_is_saved_is_read_back_and_private(tmp_path: Path) -> None:
    state = SandboxState(tmp_path)
    folder = state.claim("one")
    entry = an_entry("one", tmp_path, starter=children.this_process())
    state.save(entry)
    assert state.entries("local") == [entry]
    assert state.entries("kind") == []
    assert (folder / "cluster.json").stat().st_mode & 0o777 == 0o600
    state.remove("one")
    assert state.entries() == []
    assert not Path(entry.kubeconfig).exists()


def test_a_name_is_claimed_once(tmp_path: Path) -> None:
    state = SandboxState(tmp_path)
    state.claim("one")
    with pytest.raises(AlreadyThereError, match="cluster one of no provider"):
        state.claim("one")


def test_a_damaged_record_names_its_file(tmp_path: Path) -> None:
    state = SandboxState(tmp_path)
    (state.claim("one") / "cluster.json").write_text("{")
    with pytest.raises(SandboxError, match=r"cluster\.json is damaged .* delete the folder"):
        state.entries()


def test_what_a_crash_left_is_told_apart_from_what_lives(tmp_path: Path) -> None:
    state = SandboxState(tmp_path)
    me = children.this_process()
    for name, starter, detached in (
        ("mine", me, False),
        ("orphan", GONE, False),
        ("starting", me, True),
        ("dead", GONE, True),
        ("living", GONE, True),
    ):
        state.claim(name)
        entry = an_entry(name, tmp_path, starter=starter, detached=detached)
        state.save(msgspec.structs.replace(entry, children={"etcd": me} if name == "living" else {}))
    assert [entry.name for entry in state.left_over("local")] == ["dead", "orphan"]


# --- programs that do not start


def a_control_plane(folder: Path, api_server: str) -> None:
    for program in build.PROGRAMS:
        path = folder / program
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\nexec sleep 60\n")
        path.chmod(0o755)
    (folder / "kube-apiserver").write_text(
        f'#!/bin/sh\n[ "$1" != --version ] || {{ echo Kubernetes v1.36.3; exit; }}\n{api_server}\n'
    )


async def test_a_process_that_ends_while_starting_is_named_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_control_plane(tmp_path / "bin", "echo 'unknown flag: --nonsense' >&2; exit 1")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "bin"))
    with pytest.raises(StartError) as told:
        await LocalProvider(settings(tmp_path)).up(["one"])
    assert str(told.value).startswith("one: kube-apiserver ended while starting: unknown flag: --nonsense (whole log: ")
    assert SandboxState(tmp_path / "home").entries() == []
    assert list((tmp_path / "kubeconfigs").iterdir()) == []


async def test_a_port_taken_by_somebody_else_is_tried_again_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = tmp_path / "tries"
    a_control_plane(tmp_path / "bin", f"echo try >> {tries}; echo 'bind: address already in use' >&2; exit 1")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "bin"))
    with pytest.raises(StartError, match="address already in use"):
        await LocalProvider(settings(tmp_path)).up(["one"])
    assert tries.read_text().count("try") == 3


# --- tools that are missing


async def test_without_kind_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"^`kind` is not on the PATH: provider kind needs it, see https://kind"):
        await KindProvider(settings(tmp_path)).up(["one"])


async def test_without_a_docker_engine_one_sentence_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program, text in (("kind", ""), ("docker", "echo 'Cannot connect to the Docker daemon' >&2; exit 1")):
        (tmp_path / program).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(
        MissingToolError, match=r"Docker does not answer, start it .*Cannot connect to the Docker daemon"
    ):
        await KindProvider(settings(tmp_path)).up(["one"])


def test_is_48_a_kind_cluster_has_an_address_on_its_network(tmp_path: Path) -> None:
    state = SandboxState(settings(tmp_path).home)
    state.claim("one")
    state.save(msgspec.structs.replace(an_entry("one", tmp_path), provider="kind", facts={"kind": "gl-1-one"}))
    provider = KindProvider(settings(tmp_path))
    assert provider.inside("one") == "https://gl-1-one-control-plane:6443"
    with pytest.raises(UnknownClusterError, match="no cluster two of provider kind"):
        provider.inside("two")


@pytest.mark.parametrize("failures", [0, 2, 3, 4, 9])
async def test_is_48_a_cluster_that_cannot_be_deleted_at_once_is_tried_four_times(
    failures: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = tmp_path / "tries"
    text = f"#!/bin/sh\necho try >> {tries}\ntest $(wc -l < {tries}) -gt {failures} || {{ echo busy >&2; exit 1; }}\n"
    (tmp_path / "kind").write_text(text)
    (tmp_path / "kind").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("gatelift_sandbox.kind.DELETE_PAUSE_SECONDS", 0.0)
    state = SandboxState(settings(tmp_path).home)
    state.claim("one")
    state.save(msgspec.structs.replace(an_entry("one", tmp_path), provider="kind", facts={"kind": "gl-1-one"}))
    provider = KindProvider(settings(tmp_path))
    if failures < 4:
        assert await provider.down() == ["one"]
        assert state.entries("kind") == []
    else:
        with pytest.raises(SandboxError, match="`kind delete cluster` failed: busy"):
            await provider.down()
        assert len(state.entries("kind")) == 1
    assert tries.read_text().count("try") == min(failures + 1, 4)


@pytest.mark.parametrize("kind", [LocalProvider, KindProvider, K3sProvider])
async def test_a_cluster_that_is_not_there_is_said_not_to_be(
    kind: type[LocalProvider | KindProvider | K3sProvider], tmp_path: Path
) -> None:
    provider = kind(settings(tmp_path))
    with pytest.raises(UnknownClusterError, match="no cluster x of provider"):
        await provider.api_server("x", ApiServerAction.PAUSE)
    assert await provider.running() == []
    assert await provider.down() == []


# --- k3s with an engine of our own


@pytest.fixture
async def api_server() -> AsyncIterator[str]:
    """Serve an API that knows one ServiceAccount and one node."""
    ready = {"type": "Ready", "status": "True"}
    app = web.Application()
    answers = {
        "/api/v1/namespaces/default/serviceaccounts/default": {"metadata": {"name": "default"}},
        "/api/v1/nodes": {"items": [{"spec": {}, "status": {"conditions": [ready]}}]},
    }

    async def answer(request: web.Request) -> web.Response:
        return web.json_response(answers[request.path])

    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site.name
    await runner.cleanup()


class FakeEngine:
    """Containers in memory; all are reached at one API server."""

    def __init__(self, server: str) -> None:
        self.server = server
        self.containers: set[str] = set()
        self.paused: list[bool] = []
        self.images: list[tuple[str, bool]] = []

    def start(self, image: str, *, detached: bool) -> Started:
        self.images.append((image, detached))
        container = f"id-{len(self.images)}"
        self.containers.add(container)
        document = {"clusters": [{"cluster": {"server": self.server}}], "users": [{"user": {}}]}
        return Started(container, yaml.safe_dump(document))

    def gateway(self, container_id: str) -> str:
        return "172.17.0.1"

    def running(self) -> set[str]:
        return self.containers

    def pause(self, container_id: str, *, paused: bool) -> None:
        self.paused.append(paused)

    def remove(self, container_id: str) -> None:
        self.containers.discard(container_id)


@pytest.fixture
def engine(api_server: str) -> FakeEngine:
    return FakeEngine(api_server.rstrip("/"))


async def test_a_k3s_cluster_is_a_container_with_a_private_kubeconfig(
    tmp_path: Path, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATELIFT_K3S_IMAGE", "mine:1")
    provider = K3sProvider(settings(tmp_path, detached=True), lambda: engine)
    (cluster,) = await provider.up(["one"])
    assert engine.images == [("mine:1", True)]
    assert (cluster.server, cluster.host_address) == (engine.server, "172.17.0.1")
    assert cluster.kubeconfig.stat().st_mode & 0o777 == 0o600
    other = K3sProvider(settings(tmp_path), lambda: engine)
    assert await other.running() == [cluster]
    await other.api_server("one", ApiServerAction.PAUSE)
    await other.api_server("one", ApiServerAction.RESUME)
    assert engine.paused == [True, False]
    with pytest.raises(UnsupportedError, match="cannot stop an API server alone: use local or kind"):
        await other.api_server("one", ApiServerAction.STOP)
    assert await other.down() == ["one"]
    assert engine.containers == set()
    assert not cluster.kubeconfig.exists()


async def test_a_k3s_container_whose_owner_crashed_is_removed_by_the_next_start(
    tmp_path: Path, engine: FakeEngine
) -> None:
    provider = K3sProvider(settings(tmp_path), lambda: engine)
    await provider.up(["one"])
    record = tmp_path / "home" / "clusters" / "one" / "cluster.json"
    document = json.loads(record.read_text())
    document["starter"] = {"pid": 1, "started_ticks": -2}
    record.write_text(json.dumps(document))
    await provider.up(["two"])
    assert engine.containers == {"id-2"}
    assert [cluster.name for cluster in await provider.running()] == ["two"]


async def test_without_docker_provider_k3s_says_so_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    with pytest.raises(MissingToolError, match=r"^provider k3s: Docker does not answer, start it or set DOCKER_HOST"):
        await K3sProvider(settings(tmp_path)).up(["one"])
