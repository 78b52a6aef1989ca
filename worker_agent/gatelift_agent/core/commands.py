"""All that the agent's machine can want, as values. Imperative. Adapters carry them out; outcomes come as events."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_kube.writes import ApiWrite, EmitEvent
from gatelift_wire.messages import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStream:
    """Dial the manager; the outcome is `StreamOpened` or `StreamClosed` with this `stream_id`."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFrame:
    """Write a frame to the stream."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseStream:
    """End the stream."""

    stream_id: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallCertificate:
    """Use this chain and trust this bundle from the next dial on (kept in a Secret that only the agent reads)."""

    certificate: bytes
    ca_bundle: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A fact for the log and the metrics, with the workload and epoch it is about."""

    level: str  # "info" or "warning"
    text: str
    workload: str = ""
    epoch: int = 0
    fields: tuple[tuple[str, str], ...] = ()


Command = ApiWrite | EmitEvent | OpenStream | SendFrame | CloseStream | InstallCertificate | Note
