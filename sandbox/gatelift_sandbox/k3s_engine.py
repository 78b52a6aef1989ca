"""The Docker engine behind provider `k3s`, by testcontainers and the Docker client that it brings. Blocking calls.

Both are development packages: they are imported on first use, and their absence is told in one line.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from gatelift_sandbox.errors import MissingToolError, SandboxError, StartError

MESSAGE_MAX = 300
"""Engines answer with pages; the beginning says what is wrong."""
STOP_SECONDS = 2


class DockerEngine:
    """Starts, disturbs and removes k3s containers."""

    def __init__(self) -> None:
        try:
            docker = importlib.import_module("docker")
            self._k3s = importlib.import_module("testcontainers.community.k3s")
            self._configuration = importlib.import_module("testcontainers.core.config").testcontainers_config
        except ImportError as failure:
            raise MissingToolError(f"provider k3s: {failure}: pip install 'testcontainers[k3s]'") from None
        self._errors = docker.errors
        try:
            self._client = docker.from_env()
            self._client.ping()
        except (docker.errors.DockerException, OSError) as failure:
            text = str(failure)[:MESSAGE_MAX]
            raise MissingToolError(
                f"provider k3s: Docker does not answer, start it or set DOCKER_HOST ({text})"
            ) from None

    def start(self, image: str, *, detached: bool) -> str:
        """Start a k3s container, wait until its node is there, and return its id.

        A detached one must outlive this process, so testcontainers' reaper is not asked to watch it.
        """
        if detached:
            self._configuration.ryuk_disabled = True
        container: Any = None
        try:
            container = self._k3s.K3SContainer(image)
            container.start()
        except self._errors.ImageNotFound:
            raise MissingToolError(
                f"provider k3s: there is no image {image}: docker pull it, or name another in GATELIFT_K3S_IMAGE"
            ) from None
        except (self._errors.DockerException, OSError) as failure:  # TimeoutError is an OSError
            if container is not None:
                with contextlib.suppress(self._errors.DockerException, OSError):
                    container.stop()
            raise StartError(f"provider k3s: {image} did not start: {str(failure)[:MESSAGE_MAX]}") from None
        return str(container.get_wrapped_container().id)

    def kubeconfig(self, container_id: str) -> str:
        """Return the admin kubeconfig of a container as reached from this machine."""
        port = self._k3s.K3SContainer.KUBE_SECURE_PORT
        with self._told():
            found = self._client.containers.get(container_id)
            text = found.exec_run(["cat", "/etc/rancher/k3s/k3s.yaml"]).output.decode()
            outside = found.attrs["NetworkSettings"]["Ports"][f"{port}/tcp"][0]["HostPort"]
        return str(text).replace(f"https://127.0.0.1:{port}", f"https://127.0.0.1:{outside}")

    def gateway(self, container_id: str) -> str:
        """Return the address at which a container reaches this machine."""
        with self._told():
            networks = self._client.containers.get(container_id).attrs["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["Gateway"])

    def running(self) -> set[str]:
        """Return the ids of the running containers."""
        with self._told():
            return {str(container.id) for container in self._client.containers.list()}

    def pause(self, container_id: str, *, paused: bool) -> None:
        """Freeze a container or let it go on."""
        with self._told():
            found = self._client.containers.get(container_id)
            (found.pause if paused else found.unpause)()

    def remove(self, container_id: str) -> None:
        """End and remove a container with its volumes; one that is not there is fine."""
        with self._told(), contextlib.suppress(self._errors.NotFound):
            self._client.containers.get(container_id).remove(force=True, v=True)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (self._errors.DockerException, OSError) as failure:
            raise SandboxError(f"provider k3s: Docker says: {str(failure)[:MESSAGE_MAX]}") from None
