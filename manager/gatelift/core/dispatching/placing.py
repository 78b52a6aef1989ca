"""What the cluster of a placement is told: Commit, Confirm, Stop, Forget; and the adoption that comes first (R3).

Nothing is sent but from a record that this leader wrote in its own term. Whether something was sent already is judged
by sessions: a resync empties the outboxes, so it is said again; a resumed session keeps them, so it is only confirmed.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from gatelift.core import texts
from gatelift.core.api.agenda import Key, Look
from gatelift.core.api.purposes import Purpose
from gatelift.core.clusters.link_values import ClusterView
from gatelift.core.dispatching import fit, giving_back, membership, requests, user_gates
from gatelift.core.dispatching.several import order_of_all, why_not_live, with_needs
from gatelift.core.dispatching.unexplained import is_unexplained
from gatelift.core.records import admission_writes, given, record
from gatelift.core.records.attempt_states import LIVE, UNLIFTED, AttemptState, Internal, Wire
from gatelift.core.records.attempts import Attempt, Ending, Outcome
from gatelift.core.records.work import NOBODYS, Owner
from gatelift.core.rules import release
from gatelift.core.state import api_requests, predecessors
from gatelift.core.state.blobs import blob_hash
from gatelift.core.state.case import Case
from gatelift.core.state.core import Core
from gatelift.core.told import telling
from gatelift_kinds.shared.gathered import OVER_AT_HOME
from gatelift_kinds.shared.made_for import ANNOTATION_OWNER, owners_of
from gatelift_kinds.shared.values import KindError
from gatelift_kube.objects.gatelift import LOCAL_CLUSTER
from gatelift_kube.objects.kueue import Workload
from gatelift_kube.values.resources import ObjectKey
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Commit,
    Confirm,
    Forget,
    Message,
    ObjectTemplate,
    Stop,
    TemplateBlob,
)


def open_view(core: Core, cluster: str) -> ClusterView | None:
    """Return the view of a cluster that may be talked to now."""
    view = core.view(cluster)
    return view if view is not None and view.open else None


def converse(case: Case, owner: Owner) -> None:
    """Tell the cluster of a live placement, whose object is there, what it has to know in the present session."""
    core, known, attempt, now = case.core, case.known, case.attempt, case.now
    view = open_view(core, attempt.cluster)
    held = core.caution.halted or core.caution.holds(attempt.key.uid)
    if view is None or held or attempt.state is AttemptState.LOST:
        return
    if is_unexplained(attempt, view):
        lose(core, attempt)
        return
    anew = membership.is_elsewhere(case.work, attempt) and not _kept(core, attempt, attempt.commit_session)
    if requests.is_sized(core, attempt.uid) and fit.too_old(view):
        return  # its pods wait at a gate that nobody there would take off
    wants = attempt.state in UNLIFTED or attempt.wants_objects or attempt.wants_word or anew
    if wants and attempt.heard_session != view.session:
        if attempt.cluster != LOCAL_CLUSTER and case.rec.term != core.term:
            api_requests.patch_workload(core, known, admission_writes.adoption_write(known, core.term), Purpose.ADOPT)
            return
        fresh = attempt.state is AttemptState.CHOSEN and attempt.commit_session == 0
        fresh = fresh or (anew and attempt.state is not AttemptState.CHOSEN)  # who is of it is said in each session
        if fresh or (attempt.wants_objects and not _kept(core, attempt, attempt.commit_session)):
            _commit(case, owner)
            membership.tell(case, view)  # who has left since: what a Commit names anew goes on until it is told
        else:
            core.send(attempt.cluster, (Confirm(keys=(attempt.key,)),), now)
            attempt.confirmed(view.session)
            user_gates.tell(case, owner)
        return
    attempt.has_word()  # it has it in this session
    user_gates.tell(case, owner)
    membership.tell(case, view)


def _kept(core: Core, attempt: Attempt, session: int) -> bool:
    return core.sessions.keeps(attempt.cluster, session)


def _commit(case: Case, owner: Owner) -> None:
    core, attempt, now = case.core, case.attempt, case.now
    try:
        commit, specs = _order(core, attempt, owner)
    except KindError as error:
        _cannot_start(core, attempt, str(error), now)
        return
    view = open_view(core, attempt.cluster)
    if view is None:
        return
    blobs: tuple[TemplateBlob, ...] = ()
    if attempt.cluster != LOCAL_CLUSTER:
        blobs = core.sessions.new_blobs(attempt.cluster, view.session, specs)
    sent = core.send(attempt.cluster, (*blobs, commit), now)
    if not sent.session:
        core.sessions.blobs_unsent(attempt.cluster, view.session)
        return
    # That it was sent is said last: who was told by half is told all again, should one of these raise (HD-512).
    membership.committed(case, sent.session, tuple(one.uid or one.template for one in commit.objects))
    attempt.committed(sent.session, sent.first_sequence + len(blobs), user_gates.of(owner))
    attempt.size.says(commit.size, sent.session, {one.name: one.count for one in commit.pod_sets})
    giving_back.withdraw(core, attempt, now, but=attempt.cluster)


def _order(core: Core, attempt: Attempt, owner: Owner) -> tuple[Commit, tuple[bytes, ...]]:
    """Return the Commit and the templates that it names. KindError: the object cannot be started as it is."""
    known = core.knowledge.workloads[attempt.workload]
    local = attempt.cluster == LOCAL_CLUSTER
    work = core.knowledge.work_of(known)
    if work.gathered is not None:
        return order_of_all(core, attempt, work, work.gathered)
    asked = requests.said(core, attempt, owner.kind)
    counts = {one.name: one.count for one in asked} if requests.is_sized(core, attempt.uid) else record.granted(known)
    parts = owner.kind.parts(owner.object, owner.raw, counts)
    name = owner.object.metadata.name
    mark = "" if local else core.links.given(attempt.cluster, attempt.key, known.metadata.namespace, name)
    commit = Commit(
        key=attempt.key,
        kind=owner.kind.name,
        namespace=known.metadata.namespace,
        name=name,
        queue=known.spec.queue_name,
        objects=tuple(
            ObjectTemplate(
                name=part.name,
                pod_set=part.pod_set,
                template=owner.object.metadata.uid if local else blob_hash(part.spec),
                metadata=b"{}" if local else given.with_mark(part.metadata, mark),
            )
            for part in parts
        ),
        pod_sets=asked,
        policy=attempt.policy,
        release=release.rule_of(core, known, attempt).value,
        size=requests.number_of(core, attempt.uid),
    )
    return commit, tuple(part.spec for part in parts)


def _cannot_start(core: Core, attempt: Attempt, why: str, now: float) -> None:
    """End for good what can never be started as it is: nothing was told to any cluster (Kueue: FailedToStart)."""
    giving_back.withdraw(core, attempt, now)
    attempt.follow(Wire.FINISHED)
    attempt.ended_as(Outcome(how=Wire.FINISHED, reason=texts.FAILED_TO_START, message=why, cluster=attempt.cluster))
    leave(core, attempt)
    core.mark_attempt(attempt)


def stop(core: Core, attempt: Attempt, ending: Ending, now: float) -> None:
    """Ask the cluster to stop; again in each session that does not know it yet. A lost cluster is asked on return."""
    if attempt.state in {AttemptState.CHOSEN, AttemptState.PLACED, AttemptState.RUNNING}:
        if attempt.state is AttemptState.RUNNING:
            telling.stopped(core, attempt, ending)
        attempt.follow(Internal.END)
        core.ledger.drain(attempt.uid, now)
    if attempt.state is not AttemptState.ENDING or _kept(core, attempt, attempt.stop_session):
        return
    view = open_view(core, attempt.cluster)
    if view is None:
        return
    if is_unexplained(attempt, view):
        lose(core, attempt)  # that nothing of it is there, by the word of who never had it, would prove nothing
        return
    message = Stop(key=attempt.key, reason=ending.reason, message=ending.message)
    named = _named(core, attempt) or membership.all_leave(core, attempt, view)
    sent = core.send(attempt.cluster, (*named, message), now)
    if sent.session:
        attempt.asked_to_stop(sent.session)
        giving_back.withdraw(core, attempt, now, but=attempt.cluster)


def is_home(core: Core, attempt: Attempt) -> tuple[Workload, Owner] | None:
    """Return Workload and object of a placement at `local` whose object is there and not over; else None.

    Held back, it may still be let go by the write of a leader before this one: only its agent's write to it says no.
    """
    known = core.knowledge.workloads.get(attempt.workload)
    work = core.knowledge.work_of(known) if known is not None else NOBODYS
    owner = work.stands_for_all
    if attempt.cluster != LOCAL_CLUSTER or known is None or owner is None:
        return None
    if work.gathered is not None:
        return (known, owner) if work.gathered.outcome(known) is None else None
    return (known, owner) if owner.kind.outcome(owner.object) is None else None


def runs_here(core: Core, attempt: Attempt) -> bool:
    """Say whether the object of a placement at `local` was let go and is not over.

    The object is the user's own, so it is seen here; labels that somebody took off do not make it another one.
    """
    found = is_home(core, attempt)
    if found is None:
        return False
    gathered = core.knowledge.work_of(found[0]).gathered
    return found[1].kind.lifted(found[1].object) if gathered is None else gathered.may_run


def _named(core: Core, attempt: Attempt) -> tuple[Commit, ...]:
    """Return what names the user's object to `local`, which does not know of it: else it could not write to it (R7)."""
    told = max(attempt.commit_session, attempt.listed_session)
    known = core.knowledge.workloads.get(attempt.workload)
    knows = _kept(core, attempt, told) and not attempt.wants_objects
    if known is None or knows or attempt.cluster != LOCAL_CLUSTER:
        return ()
    if not core.knowledge.work_of(known).objects:
        return _maker_that_is_gone(core, known, attempt)
    found = is_home(core, attempt)
    try:
        commit = _order(core, attempt, found[1])[0] if found is not None else None
    except KindError:
        return ()
    return (commit,) if commit is not None and commit.objects else ()


def _maker_that_is_gone(core: Core, known: Workload, attempt: Attempt) -> tuple[Commit, ...]:
    """Return what names a Job that is gone: its pods may outlive it, also those of a lift that landed late.

    By what the manager itself wrote on the Workload, which nobody else may change.
    """
    kind, _ = core.knowledge.readings[attempt.workload]
    makers = owners_of(known) if ANNOTATION_OWNER in known.metadata.annotations else ()
    if kind is None or not kind.pods_are_children or not makers:
        return ()
    pod_sets = with_needs(fit.pod_set_requests(attempt, known), known)
    first = pod_sets[0].name if pod_sets else ""
    commit = Commit(
        key=attempt.key,
        kind=kind.name,
        namespace=known.metadata.namespace,
        name=makers[0].name,
        queue=known.spec.queue_name,
        objects=(ObjectTemplate(name=makers[0].name, pod_set=first, template=makers[0].uid, metadata=b"{}"),),
        pod_sets=pod_sets,
        policy=attempt.policy,
    )
    return (commit,)


def forget(core: Core, attempt: Attempt, now: float, *, gone: bool = False) -> None:
    """Acknowledge the final state, once. Where the link is down it is owed until the session goes on.

    `gone`: the user's object is gone, so that its cluster keeps nothing of it, either.
    """
    if attempt.forgotten or not attempt.cluster:
        return
    if not attempt.unreported:
        _tell(core, attempt.cluster, attempt.key, Forget(key=attempt.key, gone=gone), now)
    attempt.forget()


def forget_kept(case: Case) -> None:
    """Say, once, that the user's object of what has finished is gone: what its cluster keeps of it is to go, too.

    Nobody waits for a cluster that is away, or for an end of what halts all dispatch: it is told after that, unless
    another leads by then, and what it keeps goes when its time is over (decision 72).
    """
    core, rec, attempt = case.core, case.rec, case.attempt
    if not rec.finished or attempt.forgotten or rec.cluster in {"", LOCAL_CLUSTER}:
        return
    attempt.forget()
    message = Forget(key=attempt.key, gone=True)
    if core.caution.halted:
        _owe(core, rec.cluster, attempt.key, message)
    else:
        _tell(core, rec.cluster, attempt.key, message, case.now)


def of_what_is_kept(owed: Mapping[PlacementKey, Message], listed: Container[PlacementKey]) -> tuple[PlacementKey, ...]:
    """Return of what a cluster is owed that a user's object is gone, and an inventory does not say itself.

    That names nothing that is kept. What it does name is told by the comparison.
    """
    gone = (key for key, message in owed.items() if isinstance(message, Forget) and message.gone)
    return tuple(key for key in gone if key not in listed)


def forget_unlisted(core: Core, cluster: str, keys: Iterable[PlacementKey]) -> None:
    """See that it is said of each that its user's object is gone: nothing of it is there but what is kept."""
    for key in keys:
        _owe(core, cluster, key, Forget(key=key, gone=True))


def drop_stray(core: Core, cluster: str, key: PlacementKey, *, over: bool, gone: bool | None = None) -> None:
    """Answer a placement that is not live (P7): Forget when it is over there, else Stop. Once per session.

    `gone`: whether its Workload is, where more is known of that than that it is not there.
    """
    if core.caution.halted:
        return
    gone = core.knowledge.placed_workload(key.uid) is None if gone is None else gone
    message = Forget(key=key, gone=gone) if over else Stop(key=key, reason=why_not_live(core, cluster, key))
    view = open_view(core, cluster)
    if view is None or core.sessions.tells_stray(cluster, view.session, key, over=over):
        _tell(core, cluster, key, message, core.now)


def over_at_home(core: Core, cluster: str, key: PlacementKey) -> None:
    """Say at `local` that a placement is over by the user's own objects: none of them is ended, each is forgotten."""
    _tell(core, cluster, key, Stop(key=key, reason=OVER_AT_HOME), core.now)


def _tell(core: Core, cluster: str, key: PlacementKey, message: Message, now: float) -> None:
    """Say that a placement is to end or to be forgotten; what cannot be said now is owed.

    A session that is resumed asks for no inventory, so nobody else would notice that it was not said.
    """
    if open_view(core, cluster) is not None and core.send(cluster, (message,), now).session:
        return
    _owe(core, cluster, key, message)


def _owe(core: Core, cluster: str, key: PlacementKey, message: Message) -> None:
    """Remember what could not be said."""
    if core.links.state(cluster) is None:
        return  # nobody is expected there; who takes it in again starts with a resync
    core.sessions.owe(cluster, key, message)
    core.agenda.mark(Key(Look.CLUSTER, ObjectKey("", cluster)))


def pay(core: Core, cluster: str, now: float) -> None:
    """Say what is owed to a cluster that can be talked to again."""
    if core.caution.halted or open_view(core, cluster) is None:
        return
    for key, message in core.sessions.take_owed(cluster).items():
        _tell(core, cluster, key, message, now)


def leave(core: Core, attempt: Attempt) -> None:
    """Take an attempt off all lists of its cluster: it is over, or a newer epoch has taken its place."""
    core.placements.leave(attempt.cluster, attempt.uid)
    giving_back.free_room(core, attempt.uid, attempt.cluster)
    core.cluster_waiters.wants_no_room(attempt.uid)
    predecessors.ended_for(core, attempt)


def lose(core: Core, attempt: Attempt, text: str = "") -> None:
    """Show that the cluster of a placement is unreachable, or is not the one that was placed on, or has forgotten it.

    It keeps its charge, nothing is moved (policy wait). `text`: why, where it is not that the cluster is unreachable.
    """
    if attempt.state is AttemptState.LOST:
        return
    attempt.follow(Internal.LOSE)
    core.placements.note(attempt.cluster)
    telling.unreachable(core, attempt, text or texts.unreachable(attempt.cluster))


def is_live_at(attempt: Attempt, cluster: str) -> bool:
    """Say whether the attempt's placement lives on this cluster (P7)."""
    return attempt.cluster == cluster and attempt.state in LIVE
