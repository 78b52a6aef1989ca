"""What the manager commits: an attempt that was won is accepted with its objects, refused, or known already.

A refusal says that nothing of the attempt runs or can start (R7); whatever is refused has used its epoch (R5).
Neighbours: `orders` brings commits and confirmations, `offers` judges the room, `naming` and `late_lifts` say which
objects it is about, `stops` says the last word again.
"""

from __future__ import annotations

import re

from gatelift_agent.core.advancing import giving_up, holds
from gatelift_agent.core.leaving import retaking
from gatelift_agent.core.placement.placements import LIVE, STARTING, Move, Placement, PlacementState, Tracked
from gatelift_agent.core.refusing import policy
from gatelift_agent.core.session import late_commits, late_lifts, naming, offers, stops
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values import shapes
from gatelift_agent.core.values.texts import cut
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, DisconnectPolicy, ObjectTemplate, Refused
from gatelift_wire.values.refusals import Refusal

OBJECTS_MAX = 1000
"""Objects of one placement: more would need longer to stop than any grace allows."""

NAME_SHOWN_MAX = 80
"""Bytes of a name that cannot be one in a refusal."""

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
"""What the API server takes as a name of a Pod or Job; `..` would leave the collection in a URL."""


def answer_late(world: World, now: float) -> None:
    """Obey commits of this session that came while what they name could be here without being known."""
    for commit in late_commits.due(world):
        take(world, commit, now)


def take(world: World, commit: Commit, now: float) -> None:
    """Accept a commit, say why not, or confirm what it has made here before."""
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
        no = Refused(key=commit.key, refusal=refusal, text=cut(text))
        if not late_lifts.defeat_first(world, commit, no, now, unknown=unknown):
            world.say(no)
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
    judged = offers.judge(world, commit)
    if judged.refusal is not None:  # more than what the offer held
        return judged.refusal, judged.text
    return offers.why_not_there(world, commit.namespace)


def _why_no_objects(world: World, commit: Commit) -> tuple[Refusal, str] | None:
    if not commit.objects or len({one.name for one in commit.objects}) != len(commit.objects):
        return Refusal.INVALID, "objects: must be at least one, each with a name of its own"
    if len(commit.objects) > OBJECTS_MAX:
        return Refusal.TOO_LARGE, f"objects: {len(commit.objects)} of one placement, at most {OBJECTS_MAX} are taken"
    refused = _why_no_additions(commit)
    if refused is not None or world.local:
        return refused
    refused = _why_no_metadata(world, commit)
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


def _why_no_metadata(world: World, commit: Commit, *, again: bool = False) -> tuple[Refusal, str] | None:
    """Look at what each object is called and carries; what many have in common, once.

    `again`: what it may carry here was judged when it was taken, and is again before a create.
    """
    looked_at: set[str] = set()
    for one in commit.objects:
        if not _NAME.fullmatch(one.name):
            return _no_name(one)
        if one.marks in looked_at:
            continue
        looked_at |= {one.marks} if one.marks else set()
        metadata = _metadata(world, one)
        if metadata is None:
            return Refusal.TEMPLATE_MISSING, f"labels {one.marks[:12]} of {one.name} were not sent; send them again"
        refused = _why_no_marks(one.name, metadata)
        if refused is None and not again:
            refused = policy.marks_refusal(metadata, world.settings.policy)
        if refused is not None:
            return refused
    return None


def _metadata(world: World, one: ObjectTemplate) -> bytes | None:
    """Return the labels and annotations of an object: as they came with it, or as others have them, too."""
    return world.templates.get(one.marks) if one.marks else one.metadata


def _no_name(one: ObjectTemplate) -> tuple[Refusal, str]:
    return Refusal.INVALID, f"objects: name {one.name[:NAME_SHOWN_MAX]!r} is no DNS subdomain; rename the object"


def _why_no_additions(commit: Commit) -> tuple[Refusal, str] | None:
    for pod_set in commit.pod_sets:
        try:
            shapes.additions(pod_set.additions)
        except shapes.ShapeError as error:
            return Refusal.INVALID, f"pod set {pod_set.name}: {error}"
    return None


def _why_no_marks(name: str, metadata: bytes) -> tuple[Refusal, str] | None:
    try:
        shapes.marks(metadata)
    except shapes.ShapeError as error:
        return Refusal.INVALID, f"{name}: {error}"
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
        tracked = Tracked(ref=ref, pod_set=one.pod_set, template=one.template, user_uid=one.uid)
        tracked.metadata = _metadata(world, one) or b"{}"  # it was found when the commit was looked at
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
            no = Refused(key=commit.key, refusal=Refusal.EPOCH_STALE, text=text)
            if not late_lifts.defeat_first(world, commit, no, now):
                world.say(no)
            return
        refused = _why_no_metadata(world, commit, again=True) or _why_no_additions(commit)
        if refused is not None:
            if placement.state in STARTING:
                giving_up.refuse(world, placement, refused[0], cut(refused[1]))
            return
        resource = world.kind(placement).resource
        if commit.kind == placement.kind and commit.namespace == placement.namespace:
            placement.pod_sets = placement.pod_sets or commit.pod_sets
            for one in commit.objects:
                tracked = placement.objects.get(one.name)
                if tracked is None and len(placement.objects) < placement.objects_wanted:
                    ref = ObjectRef(resource, ObjectKey(commit.namespace, one.name))
                    tracked = Tracked(ref=ref, pod_set=one.pod_set, user_uid=one.uid)
                    world.track(placement, tracked)
                if tracked is not None and tracked.user_uid in {"", one.uid}:
                    tracked.template, tracked.metadata = one.template, _metadata(world, one) or tracked.metadata
        confirm(world, commit.key)
    elif placement.state is PlacementState.REPORTED:
        stops.say_final(world, placement)


def confirm(world: World, key: PlacementKey) -> None:
    """Let a placement start in the present session: the manager holds it for live (R1)."""
    placement = world.placements.get(key)
    if placement is None:
        return
    placement.confirmed_session = world.standing.session
    world.look(key)
