"""What the manager asks, message by message. Total: every command in every state has an entry or is a typed no-op (P8).

Commands come through the session, in order, once, and only in the session they belong to (R6). Nothing is written here:
an order changes what is wanted of a placement, `progress` does the rest. Neighbours: `offers` answers what is asked
first, `commits` takes what was won, `stops` ends it, `sizes` resizes it, `link` brings the messages.
"""

from __future__ import annotations

from gatelift_agent.core.session import commits, members, offers, sizes, stops
from gatelift_agent.core.state.world import World
from gatelift_agent.core.values.commands import InstallCertificate
from gatelift_wire.values.messages import (
    CertificateRenewed,
    Change,
    Commit,
    Confirm,
    Cordon,
    Forget,
    Message,
    Offer,
    Stop,
    TemplateBlob,
    Withdraw,
)
from gatelift_wire.values.single import DeleteObject, SetUserGates
from gatelift_wire.values.sizes import PlacementSize, Resize


def obey(world: World, message: Message, now: float) -> None:
    """Take one message of the present session."""
    match message:
        case Offer():
            (sizes.bid if message.size else offers.bid)(world, message, now)
        case TemplateBlob():
            _keep_template(world, message)
        case Commit():
            commits.take(world, message, now)
        case Confirm(keys=keys, sizes=confirmed):
            for key in keys:
                commits.confirm(world, key)
            for one in confirmed:
                sizes.confirm(world, one)
        case Withdraw(size=0):
            offers.withdraw(world, message)
        case Stop():
            stops.stop(world, message, now)
        case Forget():
            stops.forget(world, message, now)
        case _:
            _obey_rarer(world, message, now)


def _obey_rarer(world: World, message: Message, now: float) -> None:
    match message:
        case Resize():
            sizes.resize(world, message, now)
        case Withdraw(key=key, size=size):
            sizes.withdraw(world, PlacementSize(key=key, number=size), now)
        case Change():
            members.change(world, message)
        case DeleteObject():
            stops.delete_object(world, message)
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


def _set_user_gates(world: World, order: SetUserGates) -> None:
    placement = world.placements.get(order.key)
    named = (
        (placement.came_and_went.heirs.get(order.name) or placement.objects.get(order.name))
        if placement is not None
        else None
    )
    if named is not None:
        named.user_gates = order.gates
        world.look(order.key)
