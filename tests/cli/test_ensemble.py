"""`up` and `down` without clusters: plans, sample queues, manifests of the demo, ending what another process left."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from gatelift.cli.demo import ENDLESS, PIECES
from gatelift.cli.manifests import deploy_folder
from gatelift_admission.values import amounts
from gatelift_kube.api.client import Client
from gatelift_sandbox import applying, children, ensemble
from gatelift_sandbox.ensemble import EnsemblePlan, Standing
from gatelift_sandbox.errors import SandboxError
from support.manager.cli_stage import say
from support.servers.fake_apiserver import FakeApiServer

SLEEPER = [sys.executable, "-c", "import signal; signal.pause()"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GATELIFT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def amount(text: object) -> int:
    return amounts.parse(str(text), "cpu")


def test_down_with_nothing_up_is_fine_and_says_where_it_looked(home: Path) -> None:
    said = say("down")
    assert said.code == 0
    assert said.out.strip() == f"nothing is up (looked in {home})"


def test_down_ends_the_daemons_that_another_process_left(home: Path) -> None:
    folder = ensemble.folder_of(home)
    folder.mkdir()
    left = children.start(SLEEPER, log=folder / "manager.log", detached=True)
    try:
        (folder / ensemble.DAEMONS).write_bytes(msgspec.json.encode(Standing(daemons={"manager": left})))
        said = say("down")
        assert (said.code, said.out.splitlines()[-1]) == (0, "ended: the daemons")
        assert not children.alive(left)
        assert not ensemble.is_up(home)
    finally:
        children.signal_child(left, signal.SIGKILL)


async def test_ending_says_what_it_ends(home: Path) -> None:
    folder = ensemble.folder_of(home)
    folder.mkdir()
    left = children.start(SLEEPER, log=folder / "agent.log", detached=True)
    (folder / ensemble.DAEMONS).write_bytes(msgspec.json.encode(Standing(daemons={"agent-worker-1": left})))
    told: list[str] = []
    assert await ensemble.end(home, home, told.append) == []
    assert told == ["ending agent-worker-1"]
    assert not children.alive(left)


def test_a_damaged_state_file_is_named(home: Path) -> None:
    folder = ensemble.folder_of(home)
    folder.mkdir()
    (folder / ensemble.DAEMONS).write_text("{")
    said = say("down")
    assert said.code == 1
    assert str(folder / ensemble.DAEMONS) in said.line


async def test_a_plan_with_too_many_workers_starts_nothing(home: Path) -> None:
    with pytest.raises(SandboxError, match="workers: 6 is not from 1 to 5"):
        await ensemble.up(EnsemblePlan(provider="embedded", workers=6, home=home))
    assert not ensemble.is_up(home)


def test_the_sample_queues_dispatch_to_the_plans_workers() -> None:
    (config,) = [
        each
        for each in ensemble.queues(EnsemblePlan(provider="embedded", workers=3))
        if "clusters" in each.get("spec", {})
    ]
    assert config["spec"]["clusters"] == ["worker-1", "worker-2", "worker-3"]


def test_the_sample_queue_has_room_for_more_than_one_worker_and_less_than_two() -> None:
    for millicores in (1000, 50):
        quotas = {
            each["metadata"]["name"]: each["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"]
            for each in ensemble.queues(EnsemblePlan(provider="embedded", pod_millicores=millicores))
            if each["kind"] == "ClusterQueue"
        }
        worker = ensemble.WORKER_PODS * millicores
        assert worker < amount(quotas["everywhere"]) < 2 * worker


async def test_what_the_sandbox_applies_of_kueue_can_be_applied_by_kubectl_and_the_rest_is_as_it_stands() -> None:
    server = FakeApiServer()
    await server.start()
    try:
        queues = applying.documents((deploy_folder() / "samples/queues.yaml").read_text())
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "r"}}
        async with Client.connect(server.config, user_agent="test") as client:
            await applying.apply(client, [*queues, role])
        sent = [json.loads(each.body) for each in server.asked("POST")]
    finally:
        await server.stop()
    (queue,) = [each for each in queues if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == "at-home"]
    (made,) = [each for each in sent if each["kind"] == "ClusterQueue" and each["metadata"]["name"] == "at-home"]
    annotations = made["metadata"]["annotations"]
    assert json.loads(annotations["kubectl.kubernetes.io/last-applied-configuration"]) == queue
    assert role in sent


def test_the_samples_are_for_queues_that_exist() -> None:
    folder = deploy_folder() / "samples"
    queues = {
        each["metadata"]["name"]
        for each in applying.documents((folder / "queues.yaml").read_text())
        if each["kind"] == "LocalQueue"
    }
    samples = [each for path in sorted(folder.glob("*.yaml")) for each in applying.documents(path.read_text())]
    work = [each for each in samples if each["kind"] in {"Pod", "Job"}]
    assert len(work) == 4
    assert {each["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] for each in work} == queues


def test_the_demos_work_is_what_a_user_would_write() -> None:
    for piece in PIECES:
        document = piece.manifest(pod_millicores=50, real_kubelet=False, image="i")
        assert document["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": piece.queue}
        template = document["spec"]["template"] if piece.pods else document
        assert template["spec"]["containers"][0]["resources"]["requests"]["cpu"] == f"{piece.size * 50}m"
        runs = "sandbox.gatelift.dev/run-seconds" in template["metadata"].get("annotations", {})
        assert runs is (piece.name not in ENDLESS)
