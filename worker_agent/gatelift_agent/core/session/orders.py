"""What the manager asks, message by message. Total: every command in every state has an entry or is a typed no-op (P8).

Commands come through the session, in order, once, and only in the session they belong to (R6). Nothing is written here:
an order changes what is wanted of a placement, `progress` does the rest.
"""

from __future__ import annotations

import re

from gatelift_agent.core.admission.backend import Judgement, Request
from gatelift_agent.core.advancing import holds, progress
from gatelift_agent.core.changes import edits
from gatelift_agent.core.leaving import kept, retaking
from gatelift_agent.core.placement.placements import (
    ENDED,
    ENDING,
    LIVE,
    STARTING,
    EndingKind,
    Move,
    Placement,
    PlacementEnding,
    PlacementState,
    Tracked,
)
from gatelift_agent.core.refusing import policy
from gatelift_agent.core.reporting import reports
from gatelift_agent.core.seeing import observing, unlisted
from gatelift_agent.core.session import late_commits, late_lifts, late_stops, naming
from gatelift_agent.core.state import containment, unknowns
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.commands import InstallCertificate
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values import limits
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import (
    Bid,
    BidKind,
    CertificateRenewed,
    Commit,
    Confirm,
    Cordon,
    DeleteObject,
    DisconnectPolicy,
    Forget,
    Message,
    ObjectTemplate,
    Offer,
    Refused,
    SetUserGates,
    Stop,
    Stopped,
    TemplateBlob,
    Withdraw,
)
from gatelift_wire.values.refusals import Refusal

OBJECTS_MAX = 1000
"""Objects of one placement: more would need longer to stop than any grace allows."""

NAME_SHOWN_MAX = 80
"""Bytes of a name that cannot be one in a refusal."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What the API server takes as a name of a Pod or Job; `..` would leave the collection in a URL."""


def obey(world: World, message: Message, now: float) -> None:
    """Take one message of the present session."""
    match message:
        case Offer():
            _offer(world, message, now)
        case TemplateBlob():
            _keep_template(world, message)
        case Commit():
            _commit(world, message, now)
        case Confirm(keys=keys):
            for key in keys:
                _confirm(world, key)
        case Withdraw():
            _withdraw(world, message)
        case Stop():
            _stop(world, message, now)
        case Forget():
            _forget(world, message, now)
        case _:
            _obey_rarer(world, message)


def _obey_rarer(world: World, message: Message) -> None:
    match message:
        case DeleteObject():
            _delete_object(world, message)
        case SetUserGates():
            _set_user_gates(world, message)
        case Cordon(cordoned=cordoned):
            world.cordoned = cordoned
        case CertificateRenewed(certificate=certificate, ca_bundle=ca_bundle):
            world.commands.append(InstallCertificate(certificate=certificate, ca_bundle=ca_bundle))
        case _:
            world.note("warning", f"{type(message).__name__} is not the manager's to send; it is dropped")


def _keep_template(world: World, blob: TemplateBlob) -> None:
    if not world.templates.put(blob.hash, blob.content):
        world.note("warning", f"template {blob.hash[:12]}: its content does not match its hash; it is dropped")


def _withdraw(world: World, order: Withdraw) -> None:
    placement = world.placements.get(order.key)
    if placement is not None and placement.state is PlacementState.HELD:
        holds.let_go(world, placement)


# --- offers ------------------------------------------------------------------------------------------------------


def _offer(world: World, offer: Offer, now: float) -> None:
    refused = _why_no_bid(world, offer, now)
    if refused is not None:
        refusal, text = refused
        world.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=refusal, text=cut(text)))
        return
    judged = _judge(world, offer)
    if judged.refusal is not None:
        world.say(Bid(key=offer.key, kind=BidKind.REFUSED, refusal=judged.refusal, text=cut(judged.text)))
        return
    seconds = holds.hold(world, offer, now)
    world.say(Bid(key=offer.key, kind=BidKind.HELD, cost=judged.cost, hold_seconds=seconds))


def _judge(world: World, wanted: Offer | Commit) -> Judgement:
    """Ask whether the remote admission serves this here, with room as far as is known by now."""
    request = Request(key=wanted.key, namespace=wanted.namespace, name=wanted.name, pod_sets=wanted.pod_sets)
    return world.admission.judge(request)


def _why_no_bid(world: World, offer: Offer, now: float) -> tuple[Refusal, str] | None:
    held = world.placements.get(offer.key)
    if world.epochs.is_used(offer.key) or (held is not None and held.state is not PlacementState.HELD):
        return Refusal.EPOCH_STALE, f"epoch {offer.key.epoch} was used here already; offer a higher one"
    if not holds.serves(world, offer.kind):
        kinds = ", ".join(world.settings.kinds)
        return Refusal.KIND_NOT_SERVED, f"kind {offer.kind} is not served here; this agent serves {kinds}"
    if world.cordoned:
        return Refusal.CORDONED, "the cluster is cordoned; uncordon it"
    if not world.api.reachable:
        return Refusal.API_UNREACHABLE, "the agent does not reach its API server; wait until it does"
    if not world.leadership.acts(now):
        return Refusal.NOT_RESYNCED, "this replica of the agent does not lead; wait for the one that does"
    if world.standing.lease_until <= now:
        return Refusal.LEASE_NOT_VALID, "the agent's lease has run out; wait for its renewal"
    if held is None and holds.is_full(world):
        return Refusal.QUOTA_BUSY, f"{holds.HOLDS_MAX} offers are held already; wait until some are taken"
    return _why_not_there(world, offer.namespace)


def _why_not_there(world: World, name: str) -> tuple[Refusal, str] | None:
    refused = policy.namespace_refusal(name, world.namespaces.get(name), world.settings.policy)
    return refused or unlisted.why_not(world, name)


# --- commits -----------------------------------------------------------------------------------------------------


def _commit(world: World, commit: Commit, now: float) -> None:
    placement = world.placements.get(commit.key)
    if placement is None and late_commits.waits(world, commit):  # it may run, which a refusal would deny
        world.note("warning", f"{commit.key}: not answered before all that may be of it could be read")
        late_commits.keep(world, commit)
        return
    if placement is not None and placement.state is PlacementState.KEPT:
        placement = None  # it is over, as one of which nothing is left
    if placement is not None and placement.state is not PlacementState.HELD:
        _commit_again(world, placement, commit, now)
        return
    if world.local and retaking.takes(world, commit):
        if placement is not None:
            holds.let_go(world, placement)
        _accept(world, retaking.runs_already(world, commit), commit, now)
        return
    refused = _why_no_commit(world, placement, commit, now)
    if refused is None:
        refused = _why_no_objects(world, commit)
    if refused is not None:
        refusal, text = refused
        world.epochs.use(commit.key)
        if placement is not None:
            placement.move(Move.REFUSE)
            world.remove(placement)
        unknown = refusal is not Refusal.EPOCH_STALE  # of an attempt that ended here, that end was the proof (R5)
        if not late_lifts.defeat_first(world, commit, refusal, cut(text), now, unknown=unknown):
            world.say(Refused(key=commit.key, refusal=refusal, text=cut(text)))
        return
    if placement is None:
        raise LookupError(f"commit of {commit.key} was accepted without a hold")
    _accept(world, placement, commit, now)


def _why_no_commit(world: World, placement: Placement | None, commit: Commit, now: float) -> tuple[Refusal, str] | None:
    if world.epochs.is_used(commit.key):
        return Refusal.EPOCH_STALE, f"epoch {commit.key.epoch} was used here already; commit a higher one"
    if placement is None or placement.hold_until <= now:
        return Refusal.HOLD_EXPIRED, "no room is held for this commit any more; offer it again"
    if world.standing.lease_until <= now:
        return Refusal.LEASE_NOT_VALID, "the agent's lease has run out; offer it again after its renewal"
    if not holds.serves(world, commit.kind):
        return Refusal.KIND_NOT_SERVED, f"kind {commit.kind} is not served here"
    if commit.policy is DisconnectPolicy.FAILOVER:  # P2: the manager would count on our clock
        return Refusal.POLICY, "disconnect policy failover is not carried out by this agent; use wait"
    judged = _judge(world, commit)
    if judged.refusal is not None:  # more than what the offer held
        return judged.refusal, judged.text
    return _why_not_there(world, commit.namespace)


def _why_no_objects(world: World, commit: Commit) -> tuple[Refusal, str] | None:
    if not commit.objects or len({one.name for one in commit.objects}) != len(commit.objects):
        return Refusal.INVALID, "objects: must be at least one, each with a name of its own"
    if len(commit.objects) > OBJECTS_MAX:
        return Refusal.TOO_LARGE, f"objects: {len(commit.objects)} of one placement, at most {OBJECTS_MAX} are taken"
    refused = _why_no_additions(commit)
    if refused is not None or world.local:
        return refused
    for one in commit.objects:
        refused = _why_no_object(one)
        if refused is not None:
            return refused
        refused = policy.marks_refusal(one.metadata, world.settings.policy)
        if refused is not None:
            return refused
    kind = world.kinds.named(commit.kind)
    if kind is None:
        return Refusal.KIND_NOT_SERVED, f"nothing is known of {commit.kind}"
    checked: set[str] = set()
    for one in commit.objects:
        if one.template in checked:
            continue
        checked.add(one.template)
        content = world.templates.get(one.template)
        if content is None:
            return Refusal.TEMPLATE_MISSING, f"template {one.template[:12]} of {one.name} was not sent; send it again"
        refused = policy.spec_refusal(kind, content, world.settings.policy)
        if refused is not None:
            return refused
    return policy.additions_refusal(commit.pod_sets, world.settings.policy)


def _why_no_additions(commit: Commit) -> tuple[Refusal, str] | None:
    for pod_set in commit.pod_sets:
        try:
            shapes.additions(pod_set.additions)
        except shapes.ShapeError as error:
            return Refusal.INVALID, f"pod set {pod_set.name}: {error}"
    return None


def _why_no_object(one: ObjectTemplate) -> tuple[Refusal, str] | None:
    if not _NAME.fullmatch(one.name):
        return Refusal.INVALID, f"objects: name {one.name[:NAME_SHOWN_MAX]!r} is no DNS subdomain; rename the object"
    try:
        shapes.marks(one.metadata)
    except shapes.ShapeError as error:
        return Refusal.INVALID, f"{one.name}: {error}"
    return None


def _accept(world: World, placement: Placement, commit: Commit, now: float) -> None:
    world.epochs.use(commit.key)
    naming.take_terms(world, placement, commit, now)
    if placement.state is PlacementState.HELD:
        placement.move(Move.COMMIT)
    try:
        world.ask_room(placement, now, placed=placement.state is PlacementState.RUNNING)
    except Exception as error:  # noqa: BLE001 (containment: it is asked for again before anything is let go)
        containment.placement_failed(world, placement, error, now)
    world.wakes.drop(placement.key)
    world.note("info", "accepted", placement, kind=commit.kind, name=f"{commit.namespace}/{commit.name}")
    resource = world.kind(placement).resource
    for one in commit.objects:
        ref = ObjectRef(resource, ObjectKey(commit.namespace, one.name))
        tracked = Tracked(ref=ref, pod_set=one.pod_set, template=one.template, metadata=one.metadata)
        if world.local:
            tracked.uid = one.template  # another object may have its name by now, and is not admitted
        world.track(placement, tracked)
    if placement.state is PlacementState.RUNNING:
        retaking.retake(world, placement)
    world.look(placement.key)


def _commit_again(world: World, placement: Placement, commit: Commit, now: float) -> None:
    """Confirm what is here already; the commit brings the templates that a restart lost."""
    if placement.state in LIVE:
        if not naming.keep_named(world, placement, commit):
            world.remove(placement)
            text = f"epoch {commit.key.epoch} was used here already and nothing of it is left; commit a higher one"
            if not late_lifts.defeat_first(world, commit, Refusal.EPOCH_STALE, text, now):
                world.say(Refused(key=commit.key, refusal=Refusal.EPOCH_STALE, text=text))
            return
        refused = next(filter(None, map(_why_no_object, commit.objects)), None) or _why_no_additions(commit)
        if refused is not None:
            if placement.state in STARTING:
                progress.refuse(world, placement, refused[0], cut(refused[1]))
            return
        resource = world.kind(placement).resource
        if commit.kind == placement.kind and commit.namespace == placement.namespace:
            placement.pod_sets = placement.pod_sets or commit.pod_sets
            for one in commit.objects:
                tracked = placement.objects.get(one.name)
                if tracked is None and len(placement.objects) < placement.objects_wanted:
                    ref = ObjectRef(resource, ObjectKey(commit.namespace, one.name))
                    tracked = Tracked(ref=ref, pod_set=one.pod_set)
                    world.track(placement, tracked)
                if tracked is not None:
                    tracked.template, tracked.metadata = one.template, one.metadata
        _confirm(world, commit.key)
    elif placement.state is PlacementState.REPORTED:
        _say_final(world, placement)


def _confirm(world: World, key: PlacementKey) -> None:
    placement = world.placements.get(key)
    if placement is None:
        return
    placement.confirmed_session = world.standing.session
    world.look(key)


# --- the end -----------------------------------------------------------------------------------------------------


def _stop(world: World, stop: Stop, now: float) -> None:
    placement = world.placements.get(stop.key)
    if placement is None and world.unlisted:
        late_stops.keep(world, stop)
        return
    world.epochs.use(stop.key)  # also of what was never seen: an offer or commit behind it comes too late (R5)
    if placement is None:
        ending = PlacementEnding(kind=EndingKind.STOPPED, reason=stop.reason, message=cut(stop.message))
        observing.strays_of(world, stop.key, now, ending=ending)
        if stop.key in world.placements:
            return  # it says so when nothing of it is left
        if unknowns.may_be_of(world, stop.key, all_of_it=True):
            late_stops.keep(world, stop)
            return
    if placement is None or placement.state in {PlacementState.HELD, PlacementState.KEPT}:
        if placement is not None and placement.state is PlacementState.KEPT:
            kept.let_go(world, placement)
        elif placement is not None:
            holds.let_go(world, placement)
        world.say(Stopped(key=stop.key, reason=stop.reason, message=cut(stop.message)))
        return
    if placement.state is PlacementState.REPORTED:
        _say_final(world, placement, stopped=stop)
        return
    if placement.state in LIVE or placement.state in ENDING:
        _end_for(world, placement, stop)


def answer_late(world: World, now: float) -> None:
    """Obey stops and commits of this session that came while what they name could be here without being known."""
    for commit in late_commits.due(world):
        _commit(world, commit, now)
    for stop in late_stops.due(world, now):
        _stop(world, stop, now)


def _end_for(world: World, placement: Placement, stop: Stop) -> None:
    ending = PlacementEnding(
        kind=EndingKind.STOPPED,
        reason=stop.reason,
        message=cut(stop.message),
        grace_seconds=stop.grace_seconds,
    )
    if placement.ending is not None and _is_provisional(world, placement.ending):
        placement.ending = ending
        world.look(placement.key)
        return
    if placement.ending is not None:
        placement.stop_asked = stop.reason
    progress.end(world, placement, ending)


def _is_provisional(world: World, ending: PlacementEnding) -> bool:
    """Say whether the manager's cause stands for what was begun without it.

    A stop of before a restart; at `local` what became of the commit that only names what is to be stopped.
    """
    return ending.reason == edits.STOPPED or (world.local and ending.kind is EndingKind.REFUSED)


def _say_final(world: World, placement: Placement, stopped: Stop | None = None) -> None:
    """Say the last word again; to a stop, that it is stopped, whatever ended it."""
    final = reports.final_message(placement)
    if final is not None:
        world.say(final)
    if stopped is not None and not isinstance(final, Stopped):
        world.say(Stopped(key=placement.key, reason=stopped.reason, message=cut(stopped.message)))


def _forget(world: World, order: Forget, now: float) -> None:
    key, placement = order.key, world.placements.get(order.key)
    if placement is None:
        world.epochs.use(key)
        if not order.gone:  # said of each that goes at home, and nearly always nothing of it is left
            observing.strays_of(world, key, now)
        return
    if placement.state is PlacementState.HELD:
        holds.let_go(world, placement)
        return
    if order.gone:
        kept.let_go(world, placement)
    if placement.state not in LIVE | ENDING | ENDED:
        return
    placement.forget = True
    if placement.state in LIVE:
        # Not ended here, but the manager is done with it: it is stopped first, whatever the manager thought.
        progress.end(world, placement, PlacementEnding(kind=EndingKind.STOPPED, reason="Forgotten"))
    world.look(key)


def _delete_object(world: World, order: DeleteObject) -> None:
    placement = world.placements.get(order.key)
    tracked = placement.objects.get(order.name) if placement is not None else None
    if placement is None or tracked is None or placement.state not in LIVE:
        return
    if len(placement.objects) == 1:
        _end_for(world, placement, Stop(key=order.key, reason="Deleted", grace_seconds=order.grace_seconds))
        return
    tracked.delete_asked = True
    tracked.grace_seconds = order.grace_seconds
    world.look(order.key)


def _set_user_gates(world: World, order: SetUserGates) -> None:
    placement = world.placements.get(order.key)
    tracked = placement.objects.get(order.name) if placement is not None else None
    if tracked is not None:
        tracked.user_gates = order.gates
        world.look(order.key)


def cut(text: str) -> str:
    """Return a text that the wire takes; API servers may say more than a condition holds."""
    data = text.encode(errors="replace")
    return text if len(data) <= limits.TEXT_MAX else data[: limits.TEXT_MAX - 4].decode(errors="ignore") + " ..."
