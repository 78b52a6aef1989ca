"""What the manager commits: an attempt that was won is accepted with its objects, refused, or known already.

A refusal says that nothing of the attempt runs or can start (R7); whatever is refused has used its epoch (R5).
Neighbours: `orders` brings commits and confirmations, `offers` judges the room, `naming` and `late_lifts` say which
objects it is about, `stops` says the last word again.
"""

from __future__ import annotations

from gatelift_agent.core.advancing import giving_up, holds, resting
from gatelift_agent.core.leaving import retaking
from gatelift_agent.core.placement.placements import LIVE, STARTING, Move, Placement, PlacementState, Tracked
from gatelift_agent.core.session import late_commits, late_lifts, members, naming, objects, offers, sizes, stops
from gatelift_agent.core.state import containment
from gatelift_agent.core.state.world import MANY_OBJECTS, World
from gatelift_agent.core.values.texts import cut
from gatelift_kube.values.resources import ObjectKey, ObjectRef
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Commit, DisconnectPolicy, Refused
from gatelift_wire.values.refusals import Refusal


def answer_late(world: World, now: float) -> None:
    """Obey commits of this session that came while what they name could be here without being known."""
    for late in late_commits.due(world):
        take(world, late.commit, now)
        members.leave(world, late.commit.key, late.left)


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
        refused = objects.why_not(world, commit) or sizes.why_no_commit(world, commit)
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
        tracked.metadata = objects.metadata(world, one) or b"{}"  # it was found when the commit was looked at
        if world.local:
            tracked.uid = one.template  # another object may have its name by now, and is not admitted
        world.track(placement, tracked)
    if placement.state is PlacementState.RUNNING:
        retaking.retake(world, placement)
    sizes.begin(world, placement, commit, now)
    if len(placement.objects) > MANY_OBJECTS:  # the first of them are looked at in this call (HD-692)
        resting.begin(world, placement)
        world.look_on(placement.key)
    else:
        world.look(placement.key)


def _commit_again(world: World, placement: Placement, commit: Commit, now: float) -> None:
    """Confirm what is here already; the commit brings the templates that a restart lost."""
    if placement.state in LIVE:
        gathers = _gathers(world, placement, commit)
        if not (members.keep if gathers else naming.keep_named)(world, placement, commit):
            world.remove(placement)
            text = f"epoch {commit.key.epoch} was used here already and nothing of it is left; commit a higher one"
            no = Refused(key=commit.key, refusal=Refusal.EPOCH_STALE, text=text)
            if not late_lifts.defeat_first(world, commit, no, now):
                world.say(no)
            return
        refused = objects.why_no_metadata(world, commit.objects, again=True) or objects.why_no_additions(commit)
        if refused is not None:
            if placement.state in STARTING:
                giving_up.refuse(world, placement, refused[0], cut(refused[1]))
            return
        resource = world.kind(placement).resource
        if gathers:
            members.name(world, placement, commit)
        elif commit.kind == placement.kind and commit.namespace == placement.namespace:
            placement.pod_sets = placement.pod_sets or commit.pod_sets
            for one in commit.objects:
                tracked = placement.objects.get(one.name)
                if tracked is None and len(placement.objects) < placement.objects_wanted:
                    ref = ObjectRef(resource, ObjectKey(commit.namespace, one.name))
                    tracked = Tracked(ref=ref, pod_set=one.pod_set, user_uid=one.uid)
                    world.track(placement, tracked)
                if tracked is not None and tracked.user_uid in {"", one.uid}:
                    tracked.template, tracked.metadata = one.template, objects.metadata(world, one) or tracked.metadata
        confirm(world, commit.key)
        sizes.again(world, placement, commit, now)
    elif placement.state is PlacementState.REPORTED:
        stops.say_final(world, placement)


def confirm(world: World, key: PlacementKey) -> None:
    """Let a placement start in the present session: the manager holds it for live (R1)."""
    placement = world.placements.get(key)
    if placement is None:
        return
    placement.confirmed_session = world.standing.session
    world.look(key)


def _gathers(world: World, placement: Placement, commit: Commit) -> bool:
    """Say whether a commit that is said again names members. By one of a kind that is not served nothing is known."""
    kind = world.kinds.named(commit.kind)
    return kind is not None and (kind.gathers or world.kind(placement).gathers)
