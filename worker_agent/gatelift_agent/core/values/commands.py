"""All that the agent's machine can want, as values. Imperative. Adapters carry them out; outcomes come as events."""

from __future__ import annotations

from dataclasses import dataclass

from gatelift_kube.deciding.writes import ApiWrite, EmitEvent
from gatelift_wire.values.messages import Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenManagerStream:
    """Dial the manager; the outcome is `StreamOpened` or `StreamClosed` with this `stream_id`."""

    stream_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SendToManager:
    """Write a frame to the stream."""

    stream_id: int
    frame: Frame


@dataclass(frozen=True, slots=True, kw_only=True)
class CloseManagerStream:
    """End the stream."""

    stream_id: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchCluster:
    """List and watch anew what does not depend on a namespace: namespaces, nodes, flavors, the own ConfigMaps.

    Given once after each LeadershipGained, when a list shows all that the predecessor wrote (R8). What was watched
    before is dropped. Each kind ends its first list with `Synced`; a kind that the cluster does not serve is empty.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchNamespaces:
    """List and watch Pods and Jobs of ours in exactly these namespaces; each ends its lists with `NamespaceSynced`.

    "" means all namespaces (`local`). Watches of namespaces not named any more end; those named already go on.
    """

    namespaces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPods:
    """List the pods with all of these labels by a quorum read; answered once by `PodsRead` or `PodsNotRead`.

    Asked for before it is said that nothing of a Job runs (R7): the watch of pods may be behind that of Jobs. Without
    labels all of the namespace are meant.
    """

    read_id: int
    namespace: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNamespace:
    """Read one Namespace by a quorum read; answered once by `NamespaceRead` or `NamespaceNotRead`.

    Asked for when the objects in it say nothing: a namespace that is gone took our rights to ask for them along.
    """

    read_id: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWatching:
    """End all watches: this replica does not lead any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallCertificate:
    """Use this chain and trust this bundle from the next dial on (kept in a Secret that only the agent reads)."""

    certificate: bytes
    ca_bundle: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRefused:
    """The manager does not take this agent's key any more; `text` is its word, one line."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNote:
    """A fact for the log and the metrics, with the workload and epoch it is about."""

    level: str  # "info" or "warning"
    text: str
    workload: str = ""
    epoch: int = 0
    fields: tuple[tuple[str, str], ...] = ()


Command = (
    ApiWrite
    | EmitEvent
    | WatchCluster
    | WatchNamespaces
    | ReadPods
    | ReadNamespace
    | StopWatching
    | OpenManagerStream
    | SendToManager
    | CloseManagerStream
    | InstallCertificate
    | IdentityRefused
    | AgentNote
)
