"""gatelift.dev/v1alpha1: WorkerCluster."""

from __future__ import annotations

import msgspec

from gatelift_kube.objects.core import Quantity
from gatelift_kube.objects.meta import Condition, ObjectMeta, Struct

LOCAL_CLUSTER = "local"
"""Name of the WorkerCluster of the management cluster itself, served by an agent in the manager's process."""


class WorkerClusterSpec(Struct, frozen=True, gc=False):
    """What a person says about a worker cluster."""

    cordoned: bool = False
    """It gets no new work; what runs there goes on."""
    drain: bool = False
    """Like cordoned; what runs there is not moved in this version."""
    weight: int = 1
    """Among clusters that suit as well, heavier ones are asked first."""
    allowed_namespaces: tuple[str, ...] = ()
    """Namespaces whose work may go there; none: all that the cluster itself accepts."""
    disconnect_policy: str = ""
    """What becomes of its work when it is lost; only wait is acted on in this version."""
    approved_request: str = ""
    """Digest of the key of the certificate request that a person has approved (`gatelift cluster approve`)."""
    revoked: bool = False
    """Its certificates count no more; cannot be taken back."""
    token_digest: str = ""
    """SHA-256 of the bootstrap token that `gatelift cluster add` printed."""
    token_expires_at: str | None = None
    """Until when that token is taken."""


class FlavorCapacity(Struct, frozen=True, gc=False):
    """Capacity of one flavor and resource at the worker, as its agent last said."""

    flavor: str
    """The flavor."""
    resource: str
    """The resource."""
    nominal: Quantity = 0
    """What there is."""
    used: Quantity = 0
    """What is in use."""
    largest_fit: Quantity = 0
    """The largest request that fits now."""


class EnrolmentRequest(Struct, frozen=True, gc=False):
    """The certificate request that a bootstrap token was used for; a token is used up by its first key."""

    key_digest: str = ""
    """SHA-256 of the key that asks for a certificate."""
    requested_at: str | None = None
    """When it asked."""
    token_digest: str = ""
    """SHA-256 of the token that it came with."""


class Predecessor(Struct, frozen=True, gc=False):
    """A placement that may run though its Workload is gone: who takes its object's place has to wait for its end.

    `kind`, `namespace`, `name` are the user's object's; `*` stands for all, where there were too many to remember.
    `session` is the last one in which the cluster is known to have had it, 0 where that is not known. `given`: it names
    no kind, and its cluster lists it with the mark with which it was given there. `cluster_queue`: in which it is
    charged to its Workload, which is there and does not place it.
    """

    kind: str
    """Kind of the user's object."""
    namespace: str
    """Namespace of the user's object."""
    name: str
    """Name of the user's object."""
    workload_uid: str = msgspec.field(name="workloadUID")
    """UID of the Workload that is gone."""
    epoch: int
    """Which attempt of it."""
    session: int = 0
    """The last session in which the cluster is known to have had it."""
    given: bool = False
    """Known by the mark with which it was given there."""
    cluster_queue: str = ""
    """The ClusterQueue in which it is charged beside its record, "" where it is not."""


class ForeignRunStatus(Struct, frozen=True, gc=False):
    """What another management cluster left at the worker and may run; without a name: so many more (see the wire)."""

    origin: str = ""
    """The other management cluster: UID of its namespace kube-system."""
    kind: str = ""
    """Kind of the object; empty: so many more."""
    namespace: str = ""
    """Namespace of the object."""
    name: str = ""
    """Name of the object."""
    count: int = 0
    """How many objects."""


class WorkerClusterStatus(Struct, frozen=True, gc=False):
    """What the manager records of a worker cluster. `term`, `session` and `fenced_through_session` are rule R2's."""

    connected: bool = False
    """An agent of it has a session."""
    term: int = 0
    """Of the leader that wrote its session last."""
    session: int = 0
    """The number of its last session; never goes back."""
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
    """A person said that nothing of sessions up to this one runs."""
    fenced_by: str = ""
    """Who said so."""
    fenced_at: str | None = None
    """When it was said."""
    fenced_after: str = ""
    """The restore that was known to who said *fenced* last while one was (`since` of the finding on `local`)."""
    fenced_after_through: int = 0
    """Through which session that word goes: of what a restored record has lost, a word of before says nothing."""
    agent_version: str = ""
    """The version of its agent."""
    agent_instance: str = ""
    """The process of its agent that leads."""
    agent_replicas: int = 0
    """How many of its agent's replicas there are."""
    api_reachable: bool | None = None
    """Its agent reaches its API server."""
    last_seen: str | None = None
    """When its agent was last heard of, as known when the status was last written: later while it is connected."""
    lease_seconds: int = 0
    """How long the lease is that its agent starts work by."""
    placements: int = 0
    """How many placements are there."""
    offers: int = 0
    """How many offers are open there."""
    predecessors: tuple[Predecessor, ...] = ()
    foreign: tuple[ForeignRunStatus, ...] = ()
    capacity: tuple[FlavorCapacity, ...] = ()
    enrolment: EnrolmentRequest | None = None
    key_digest: str = ""
    """Digest of the key whose certificates open sessions."""
    certificate_issued_at: str | None = None
    """When the certificate was issued that its agent has greeted with last."""
    conditions: tuple[Condition, ...] = ()


class WorkerCluster(Struct, frozen=True, gc=False):
    """WorkerCluster."""

    metadata: ObjectMeta = ObjectMeta()
    spec: WorkerClusterSpec = WorkerClusterSpec()
    status: WorkerClusterStatus = WorkerClusterStatus()
