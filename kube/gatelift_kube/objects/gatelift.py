"""gatelift.dev/v1alpha1: WorkerCluster."""

from __future__ import annotations

import msgspec

from gatelift_kube.objects.core import Quantity
from gatelift_kube.objects.meta import Condition, ObjectMeta, Struct


class WorkerClusterSpec(Struct, frozen=True, gc=False):
    """What a person says about a worker cluster."""

    cordoned: bool = False
    drain: bool = False
    weight: int = 1
    allowed_namespaces: tuple[str, ...] = ()
    disconnect_policy: str = ""
    approved_request: str = ""
    """Digest of the key of the certificate request that a person has approved (`gatelift cluster approve`)."""
    revoked: bool = False
    token_digest: str = ""
    """SHA-256 of the bootstrap token that `gatelift cluster add` printed."""
    token_expires_at: str | None = None


class FlavorCapacity(Struct, frozen=True, gc=False):
    """Capacity of one flavor and resource at the worker, as its agent last said."""

    flavor: str
    resource: str
    nominal: Quantity = 0
    used: Quantity = 0
    largest_fit: Quantity = 0


class EnrolmentRequest(Struct, frozen=True, gc=False):
    """The certificate request that a bootstrap token was used for; a token is used up by its first key."""

    key_digest: str = ""
    requested_at: str | None = None
    token_digest: str = ""


class Predecessor(Struct, frozen=True, gc=False):
    """A placement that may run though its Workload is gone: who takes its object's place has to wait for its end.

    `kind`, `namespace`, `name` are the user's object's; `*` stands for all, where there were too many to remember.
    `session` is the last one in which the cluster is known to have had it, 0 where that is not known. `given`: it names
    no kind, and its cluster lists it with the mark with which it was given there.
    """

    kind: str
    namespace: str
    name: str
    workload_uid: str = msgspec.field(name="workloadUID")
    epoch: int
    session: int = 0
    given: bool = False


class ForeignRun(Struct, frozen=True, gc=False):
    """What another management cluster left at the worker and may run; without a name: so many more (see the wire)."""

    origin: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    count: int = 0


class WorkerClusterStatus(Struct, frozen=True, gc=False):
    """What the manager records of a worker cluster. `term`, `session` and `fenced_through_session` are rule R2's."""

    connected: bool = False
    term: int = 0
    session: int = 0
    opened_session: int = 0
    """The last session that the agent answered in: an agent that greets below it lost its memory (restored worker)."""
    restored_session: int = 0
    """The session in which the worker was last found to have lost its memory; placed on only when a person agrees."""
    replaced_session: int = 0
    """The session in which the agent was last found to be of another cluster than the one recorded."""
    taken_over_session: int = 0
    """The session in which an agent was last found to lead by another Lease than the one recorded."""
    settled_session: int = 0
    """A doubt of a session up to this one is over: a person said what became of the former work, or none is left."""
    cluster_uid: str = ""
    """UID of the worker's namespace kube-system, as its agent said in the last session that was written."""
    agent_lease: str = ""
    """Namespace and name of the Lease by which that agent's replicas take turns: another one is another agent."""
    mark: int = 0
    """What the agent's own Lease counted when it was last heard: one that comes back with less is restored."""
    unexplained: int = 0
    """Placements charged here that the present cluster does not list, while its absence proves nothing."""
    fenced_through_session: int = 0
    fenced_by: str = ""
    fenced_at: str | None = None
    fenced_after: str = ""
    """The restore that was known to who said *fenced* last while one was (`since` of the finding on `local`)."""
    fenced_after_through: int = 0
    """Through which session that word goes: of what a restored record has lost, a word of before says nothing."""
    agent_version: str = ""
    agent_instance: str = ""
    agent_replicas: int = 0
    api_reachable: bool | None = None
    last_seen: str | None = None
    """When its agent was last heard of, as known when the status was last written: later while it is connected."""
    lease_seconds: int = 0
    placements: int = 0
    offers: int = 0
    predecessors: tuple[Predecessor, ...] = ()
    foreign: tuple[ForeignRun, ...] = ()
    capacity: tuple[FlavorCapacity, ...] = ()
    enrolment: EnrolmentRequest | None = None
    key_digest: str = ""
    """Digest of the key whose certificates open sessions."""
    certificate_issued_at: str | None = None
    conditions: tuple[Condition, ...] = ()


class WorkerCluster(Struct, frozen=True, gc=False):
    """WorkerCluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkerClusterSpec = WorkerClusterSpec()
    status: WorkerClusterStatus = WorkerClusterStatus()
