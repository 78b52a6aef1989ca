"""What joins and leaves a live placement, on the wire: its bounds, and how large the largest group is."""

from __future__ import annotations

import pytest

from gatelift_wire.encoding import codec
from gatelift_wire.sessions import session as wire
from gatelift_wire.sessions.session_manager import ManagerSession
from gatelift_wire.values import limits, rules
from gatelift_wire.values.keys import PROTOCOL_VERSION, VERSION_OF_CHANGE, PlacementKey
from gatelift_wire.values.messages import Change, Commit, Frame, Hello, Message, ObjectTemplate
from gatelift_wire.values.single import Leaver
from gatelift_wire.values.violations import TooLarge, WireViolation

KEY = PlacementKey("0" * 36, 1)
MEMBERS_MAX = 4096
DIGEST = "0" * 64


def a_member(at: int) -> ObjectTemplate:
    """Return a member with the longest name, UID and pod set that an API server lets it have."""
    return ObjectTemplate(
        name=f"{at:0{limits.NAME_MAX}}", pod_set="s" * limits.LABEL_MAX, template=DIGEST, uid="0" * 36, marks=DIGEST
    )


def the_largest_commit() -> Commit:
    name = "g" * limits.NAME_MAX
    members = tuple(map(a_member, range(MEMBERS_MAX)))
    return Commit(key=KEY, kind="PodGroup", namespace="n" * limits.LABEL_MAX, name=name, queue=name, objects=members)


@pytest.mark.parametrize(
    "message",
    [
        the_largest_commit(),
        Change(key=KEY, number=1, join=tuple(map(a_member, range(MEMBERS_MAX)))),
        Change(
            key=KEY,
            number=1,
            leave=tuple(Leaver(name=a_member(at).name, uid="0" * 36, grace_seconds=30.0) for at in range(MEMBERS_MAX)),
        ),
    ],
    ids=["a commit", "all join", "all leave"],
)
def test_a_group_of_4096_members_travels_in_one_message(message: Message) -> None:
    assert rules.check_message(message) <= limits.MESSAGE_BYTES_MAX
    frame = Frame(session=1, term=1, sequence=1, messages=(message,))
    data = codec.encode_from_manager(frame)
    assert len(data) <= 2_400_000 < limits.FRAME_BYTES_MAX
    assert codec.decode_from_manager(data) == frame


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (Change(key=KEY, number=0), "Change.number"),
        (Change(key=KEY, number=1, leave=(Leaver(name="a", uid=""),)), "Change.leave[0].uid"),
        (Change(key=KEY, number=1, leave=(Leaver(name="..", uid="u"),)), "Change.leave[0].name"),
        (Change(key=KEY, number=1, leave=(Leaver(name="a", uid="u", grace_seconds=-1.0),)), "grace_seconds"),
        (Change(key=KEY, number=1, join=(ObjectTemplate(name="", pod_set="", template=""),)), "Change.join[0].name"),
    ],
)
def test_a_change_that_says_nothing_is_a_violation_that_names_the_field(change: Change, field: str) -> None:
    with pytest.raises(WireViolation) as caught:
        rules.check_message(change)
    assert field in caught.value.field


def test_more_than_a_placement_may_have_do_not_join_at_once() -> None:
    many = tuple(map(a_member, range(limits.OBJECTS_MAX + 1)))
    with pytest.raises(TooLarge, match=r"Change\.join"):
        rules.check_message(Change(key=KEY, number=1, join=many))


@pytest.mark.parametrize(
    ("newest", "spoken"), [(PROTOCOL_VERSION + 1, PROTOCOL_VERSION), (VERSION_OF_CHANGE, VERSION_OF_CHANGE), (1, 1)]
)
def test_an_agent_of_before_is_welcomed_in_its_version_and_that_is_told(newest: int, spoken: int) -> None:
    manager = ManagerSession(instance="manager-1")
    manager.lead(1, 0.0)
    manager.handle(wire.StreamOpened(stream_id=1), 0.0)
    hello = Hello(instance="agent-1", version_min=1, version_max=newest)
    manager.handle(wire.FrameReceived(stream_id=1, frame=Frame(session=0, control=(hello,))), 0.0)
    outputs = manager.welcome(1, 1, "origin-1", 0.0)
    assert [each.version for each in outputs if isinstance(each, wire.Welcomed)] == [spoken]
