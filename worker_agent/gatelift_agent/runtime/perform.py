"""Hands a machine's commands to those who carry them out. Shared by the worker's agent and the agent of `local`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import structlog

from gatelift_agent.core.values import commands
from gatelift_kube.deciding.writes import ApiWrite, Create, Delete, EmitEvent, Patch
from gatelift_wire.values.messages import Frame


class Api(Protocol):
    """The cluster."""

    def write(self, command: ApiWrite | EmitEvent) -> None:
        """Carry out a write; its outcome comes as an event."""
        ...

    def watch_cluster(self) -> None:
        """List and watch anew what does not depend on a namespace."""
        ...

    def watch_namespaces(self, namespaces: Iterable[str]) -> None:
        """Watch Pods and Jobs in exactly these namespaces."""
        ...

    def read(self, command: commands.ReadPods | commands.ReadNamespace) -> None:
        """Read; the answer comes as an event."""
        ...

    def stop_watching(self) -> None:
        """End all watches."""
        ...


class ManagerStream(Protocol):
    """The way to the manager."""

    def dial(self, stream_id: int) -> None:
        """Open a stream; the outcome comes as an event."""
        ...

    def send(self, stream_id: int, frame: Frame) -> None:
        """Write a frame."""
        ...

    def close(self, stream_id: int, text: str = "") -> None:
        """End a stream."""
        ...


@dataclass(slots=True, kw_only=True)
class Performer:
    """Carries out commands, each at once or by handing it on; never waits."""

    api: Api
    stream: ManagerStream
    install: Callable[[commands.InstallCertificate], None]
    refused: Callable[[commands.IdentityRefused], None] = lambda _command: None
    observe: Callable[[commands.Command], None] = lambda _command: None
    log: Any = field(default_factory=lambda: structlog.get_logger("gatelift.agent"))

    def __call__(self, command: commands.Command) -> None:
        """Carry out one command."""
        self.observe(command)
        match command:
            case Create() | Patch() | Delete() | EmitEvent():
                self.api.write(command)
            case commands.SendToManager(stream_id=stream_id, frame=frame):
                self.stream.send(stream_id, frame)
            case commands.OpenManagerStream(stream_id=stream_id):
                self.stream.dial(stream_id)
            case commands.CloseManagerStream(stream_id=stream_id, text=text):
                self.stream.close(stream_id, text)
            case commands.WatchCluster():
                self.api.watch_cluster()
            case commands.WatchNamespaces(namespaces=namespaces):
                self.api.watch_namespaces(namespaces)
            case commands.ReadPods() | commands.ReadNamespace():
                self.api.read(command)
            case commands.StopWatching():
                self.api.stop_watching()
            case commands.InstallCertificate():
                self.install(command)
            case commands.IdentityRefused():
                self.refused(command)
            case commands.AgentNote():
                self._note(command)

    def _note(self, note: commands.AgentNote) -> None:
        log = self.log.warning if note.level == "warning" else self.log.info
        about = {"workload": note.workload, "epoch": note.epoch}
        log(note.text, **{key: value for key, value in about.items() if value}, **dict(note.fields))
