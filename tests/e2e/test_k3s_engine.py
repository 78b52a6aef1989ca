"""The container engine behind provider `k3s`, with an image that says what k3s says: testcontainers' side is real."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gatelift_sandbox.errors import StartError
from gatelift_sandbox.k3s_engine import DockerEngine
from gatelift_sandbox.kind import pod_image

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

IMAGE = "gatelift.test/not-quite-k3s:1"
BUILD_SECONDS = 240.0
DOCKERFILE = f"""
FROM {pod_image()}
COPY k3s.yaml /etc/rancher/k3s/k3s.yaml
ENTRYPOINT ["/bin/sh", "-c", "echo Node controller sync successful; exec sleep 600"]
"""
KUBECONFIG = "clusters: [{cluster: {server: 'https://127.0.0.1:6443'}}]\n"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("image")
    (folder / "Dockerfile").write_text(DOCKERFILE)
    (folder / "k3s.yaml").write_text(KUBECONFIG)
    build = ["docker", "build", "--quiet", "--tag", IMAGE, str(folder)]
    subprocess.run(build, check=True, capture_output=True, timeout=BUILD_SECONDS)  # noqa: S603 (docker by PATH)
    yield IMAGE
    subprocess.run(["docker", "rmi", "--force", IMAGE], check=True, capture_output=True, timeout=BUILD_SECONDS)  # noqa: S603, S607 (docker by PATH)


async def test_a_container_starts_is_found_paused_and_removed(image: str) -> None:
    engine = DockerEngine()
    started = await asyncio.to_thread(engine.start, image, detached=True)
    try:
        server = yaml.safe_load(started.kubeconfig)["clusters"][0]["cluster"]["server"]
        assert server.startswith("https://localhost:")
        assert server != "https://localhost:6443", "the port as mapped on this machine"
        assert started.container_id in engine.running()
        assert engine.gateway(started.container_id).count(".") == 3
        engine.pause(started.container_id, paused=True)
        engine.pause(started.container_id, paused=False)
    finally:
        engine.remove(started.container_id)
    assert started.container_id not in engine.running()
    engine.remove(started.container_id)  # again: nothing to do


async def test_an_image_that_cannot_be_had_is_told_in_one_line() -> None:
    engine = DockerEngine()
    with pytest.raises(StartError) as told:
        await asyncio.to_thread(engine.start, "gatelift.test/nowhere:1", detached=True)
    assert str(told.value).startswith("provider k3s: ")
    assert "gatelift.test/nowhere:1" in str(told.value)
    assert "\n" not in str(told.value)
