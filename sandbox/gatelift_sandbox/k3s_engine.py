"""The Docker engine behind provider `k3s`, by testcontainers and the Docker client that it brings. Blocking calls.

Both are development packages: they are imported on first use, and their absence is told in one line.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gatelift_sandbox.errors import MissingToolError, SandboxError, StartError

MESSAGE_MAX = 300
"""Engines answer with pages; the beginning says what is wrong."""


@dataclass(frozen=True, slots=True)
class Started:
    """A k3s container whose node is there, and its admin kubeconfig as reached from this machine."""

    container_id: str
    kubeconfig: str


class DockerEngine:
    """Starts, disturbs and removes k3s containers."""

    def __init__(self) -> None:
        try:
            docker = importlib.import_module("docker")
            self._k3s = importlib.import_module("testcontainers.community.k3s")
            configuration = importlib.import_module("testcontainers.core.config")
            exceptions = importlib.import_module("testcontainers.core.exceptions")
        except ImportError as failure:
            raise MissingToolError(f"provider k3s: {failure}: pip install 'testcontainers[k3s]'") from None
        self._errors = docker.errors
        self._failures = (docker.errors.DockerException, exceptions.ContainerStartException, OSError)
        self._configuration = configuration.testcontainers_config
        # K3SContainer asks for its address before it runs, which no other mode can answer
        self._configuration.connection_mode_override = configuration.ConnectionMode.docker_host
        self._client = self._connected(docker)

    def _connected(self, docker: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # a client that cannot connect leaves its socket open
            try:
                client = docker.from_env()
                client.ping()
            except self._failures as failure:
                problem = _line(failure)
            else:
                return client
            gc.collect()
        raise MissingToolError(f"provider k3s: Docker does not answer, start it or set DOCKER_HOST ({problem})")

    def start(self, image: str, *, detached: bool) -> Started:
        """Start a k3s container and wait until its node is there.

        A detached one must outlive this process, so testcontainers' reaper is not asked to watch it.
        """
        if detached:
            self._configuration.ryuk_disabled = True
        container: Any = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # K3SContainer waits in testcontainers' old way
                container = self._k3s.K3SContainer(image)
                container.start()
            return Started(str(container.get_wrapped_container().id), str(container.config_yaml()))
        except BaseException as failure:
            if container is not None:
                with contextlib.suppress(*self._failures):
                    container.stop()
            if isinstance(failure, self._failures):
                raise StartError(
                    f"provider k3s: {image} did not start; is it there (docker pull), or name another in "
                    f"GATELIFT_K3S_IMAGE? ({_line(failure)})"
                ) from None
            raise

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
        except self._failures as failure:
            raise SandboxError(f"provider k3s: Docker says: {_line(failure)}") from None


def _line(failure: BaseException) -> str:
    return " ".join(str(failure).split())[:MESSAGE_MAX]
