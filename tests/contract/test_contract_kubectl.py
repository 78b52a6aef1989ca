"""Plain kubectl on the embedded and the real control plane. Needs a kubectl (of provider `local`, or on the PATH)."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from gatelift_sandbox import build
from support.servers.contract_api import Api, job, pod
from support.servers.contract_crd import widgets

pytestmark = [pytest.mark.contract, pytest.mark.e2e, pytest.mark.timeout(600)]

CALL_SECONDS = 120.0


class Kubectl:
    """kubectl with the kubeconfig of an API server, in one namespace."""

    def __init__(self, api: Api, space: str, folder: Path) -> None:
        found = build.find()
        self.program = str(found.kubectl) if found else shutil.which("kubectl") or "kubectl"
        self.namespace = space.rpartition("/")[2]
        self.kubeconfig = folder / "kubeconfig"
        self.home = folder
        self.kubeconfig.write_text(api.kubeconfig)

    async def __call__(self, *arguments: str, given: Any = None, fails: bool = False) -> str:
        """Run it; return what it says."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            f"--kubeconfig={self.kubeconfig}",
            f"--cache-dir={self.home / 'cache'}",
            f"--namespace={self.namespace}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(CALL_SECONDS):
                out, err = await process.communicate(json.dumps(given).encode() if given is not None else None)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert bool(process.returncode) is fails, (arguments, out.decode(), err.decode())
        return (out + err).decode()


@pytest.fixture
async def space(api: Api) -> str:
    return await api.namespace()


@pytest.fixture
def kubectl(api: Api, space: str, tmp_path: Path) -> Kubectl:
    return Kubectl(api, space, tmp_path)


def gated(name: str) -> dict[str, Any]:
    """Return a gated pod with kind and version, as in a manifest."""
    return {"apiVersion": "v1", "kind": "Pod", **pod(name, schedulingGates=[{"name": "example.com/gate"}])}


async def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    manifest = gated("a")
    assert "pod/a created" in await kubectl("apply", "-f", "-", given=manifest)
    assert "pod/a unchanged" in await kubectl("apply", "-f", "-", given=manifest)
    manifest["metadata"]["labels"] = {"x": "y"}
    assert "pod/a configured" in await kubectl("apply", "-f", "-", given=manifest)
    del manifest["metadata"]["labels"]
    assert "pod/a configured" in await kubectl("apply", "-f", "-", given=manifest)
    assert "labels" not in json.loads(await kubectl("get", "pod", "a", "-o", "json"))["metadata"]


async def test_get_shows_columns_and_describe_shows_conditions_and_events(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=gated("a"))
    lines = (await kubectl("get", "pods")).splitlines()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert lines[1].split()[:4] == ["a", "0/1", "SchedulingGated", "0"]
    described = await kubectl("describe", "pod", "a")
    assert "PodScheduled" in described
    assert "Events:" in described
    assert "pod/a" in await kubectl("get", "all", "-o", "name")


async def test_patch_label_and_annotate_change_an_object(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=gated("a"))
    assert "pod/a patched" in await kubectl("patch", "pod", "a", "-p", '{"metadata":{"labels":{"x":"y"}}}')
    assert "pod/a labeled" in await kubectl("label", "pod", "a", "z=1")
    assert "pod/a annotated" in await kubectl("annotate", "pod", "a", "note=1")
    lift = '[{"op":"remove","path":"/spec/schedulingGates/0"}]'
    await kubectl("patch", "pod", "a", "--type=json", "-p", lift)
    found = json.loads(await kubectl("get", "pod", "a", "-o", "json"))
    assert found["metadata"]["labels"] == {"x": "y", "z": "1"}
    assert "schedulingGates" not in found["spec"]
    assert "pod/a" in await kubectl("get", "pods", "-l", "x=y", "-o", "name")


async def test_wait_returns_when_the_condition_is_there(api: Api, kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given={"apiVersion": "batch/v1", "kind": "Job", **job("j", suspend=True)})
    assert "condition met" in await kubectl("wait", "--for=condition=suspended", "job/j", "--timeout=90s")
    said = await kubectl("wait", "--for=condition=complete", "job/j", "--timeout=1s", fails=True)
    assert "timed out waiting for the condition" in said


async def test_delete_waits_until_the_object_is_gone(api: Api, space: str, kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=gated("a"))
    assert 'pod "a" deleted' in await kubectl("delete", "pod", "a")
    assert (await api.get(f"{space}/pods/a")).code == 404
    await kubectl("apply", "-f", "-", given={"apiVersion": "batch/v1", "kind": "Job", **job("j")})
    await api.until(f"{space}/pods", lambda found: found["items"])
    assert 'job.batch "j" deleted' in await kubectl("delete", "job", "j")
    await api.until(f"{space}/pods", lambda found: not found["items"])


async def test_a_missing_object_is_an_error(kubectl: Kubectl) -> None:
    said = await kubectl("get", "pod", "a", fails=True)
    assert 'Error from server (NotFound): pods "a" not found' in said


async def test_an_invalid_object_is_an_error_that_names_the_field(kubectl: Kubectl) -> None:
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": []}}
    said = await kubectl("apply", "-f", "-", given=manifest, fails=True)
    assert "spec.containers" in said


async def test_custom_objects_are_known_by_kind_and_short_name(api: Api, kubectl: Kubectl) -> None:
    async with widgets(api) as custom:
        assert "created" in await kubectl("apply", "-f", "-", given=custom.object("a", size=3))
        lines = (await kubectl("get", "wd")).splitlines()
        assert lines[0].split() == ["NAME", "SIZE", "READY", "AGE"]
        assert lines[1].split()[:2] == ["a", "3"]
        assert "MODE" in (await kubectl("get", f"widgets.{custom.group}", "-o", "wide")).splitlines()[0]
        said = await kubectl("apply", "-f", "-", given=custom.object("b", size=3, bogus=1), fails=True)
        assert 'unknown field "spec.bogus"' in said
        await api.until("/openapi/v3", lambda found: f"apis/{custom.group}/v1" in openapi(found)["paths"])
        assert "mode" in await kubectl("explain", "widget.spec", f"--api-version={custom.group}/v1")


def openapi(body: Any) -> Any:
    """Return a document that is not everywhere sent as JSON."""
    return json.loads(body) if isinstance(body, str) else body


async def test_explain_knows_pods(kubectl: Kubectl) -> None:
    assert "spec" in await kubectl("explain", "pod")
