import dataclasses
import hashlib
import inspect
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gatelift_wire.encoding import codec
from gatelift_wire.sessions.cutting import split
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import inventory, limits, messages, rules, single, sizes, told
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Frame, ObjectReport, Stop, TemplateBlob, Withdraw
from gatelift_wire.values.refusals import CloseReason
from gatelift_wire.values.violations import TooLarge, WireViolation
from support.wire.values import AGENT_FRAMES, MANAGER_FRAMES

KEY = PlacementKey("u", 1)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
VALUES = {
    thing
    for module in (messages, inventory, single, sizes, told)
    for _, thing in inspect.getmembers(module, inspect.isclass)
    if dataclasses.is_dataclass(thing)
}


@QUICK
@given(AGENT_FRAMES)
def test_a_frame_of_an_agent_comes_back_as_it_was(frame: Frame) -> None:
    assert codec.decode_from_agent(codec.encode_from_agent(frame)) == frame


@QUICK
@given(MANAGER_FRAMES)
def test_a_frame_of_the_manager_comes_back_as_it_was(frame: Frame) -> None:
    assert codec.decode_from_manager(codec.encode_from_manager(frame)) == frame


@QUICK
@given(MANAGER_FRAMES | AGENT_FRAMES)
def test_the_weight_of_a_frame_is_an_upper_bound_of_its_bytes(frame: Frame) -> None:
    encode = codec.encode_from_agent if frame.term == 0 and not _from_manager(frame) else codec.encode_from_manager
    assert len(encode(frame)) <= rules.measure(frame)


def _from_manager(frame: Frame) -> bool:
    try:
        codec.encode_from_agent(frame)
    except WireViolation:
        return True
    return False


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_one_typed_violation(data: bytes) -> None:
    for decode in (codec.decode_from_agent, codec.decode_from_manager):
        assert _told(decode, data)


@QUICK
@given(AGENT_FRAMES, st.data())
def test_a_damaged_frame_is_a_frame_or_one_typed_violation(frame: Frame, data: st.DataObject) -> None:
    good = bytearray(codec.encode_from_agent(frame))
    for _ in range(data.draw(st.integers(1, 3))):
        if good:
            good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    assert _told(codec.decode_from_agent, bytes(good))


def _told(decode: Callable[[bytes], Frame], data: bytes) -> bool:
    """Say whether decoding ended in a frame or in a violation that names field and rule; anything else raises."""
    try:
        return isinstance(decode(data), Frame)
    except WireViolation as violation:
        return bool(violation.field and violation.rule)


def test_every_value_has_a_converter_and_a_rule_for_each_field() -> None:
    assert {*VALUES, PlacementKey} == codec.KNOWN
    for kind in VALUES:
        assert set(rules.RULES[kind]) == {field.name for field in dataclasses.fields(kind)}, kind
    assert set(rules.RULES[PlacementKey]) == set(PlacementKey._fields)


def _key(epoch: int = 1, uid: str = "u") -> "pb.PlacementKey":
    return pb.PlacementKey(uid=uid, epoch=epoch)


def test_is_46_an_end_of_an_agent_that_names_no_container_is_taken() -> None:
    data = pb.AgentMessage(session=1, sequence=1, reports=[pb.Report(finished=pb.Finished(key=_key()))])
    (said,) = codec.decode_from_agent(data.SerializeToString()).messages
    assert isinstance(said, messages.Finished)
    assert said.failed is None


WRONG = {
    "no member of the oneof": (pb.ManagerMessage(commands=[pb.Command()]), "Frame.messages[0]: must be one of offer"),
    "no key": (pb.ManagerMessage(commands=[pb.Command(stop=pb.Stop())]), "Stop.key: must be there"),
    "an empty uid": (
        pb.ManagerMessage(commands=[pb.Command(stop=pb.Stop(key=_key(uid="")))]),
        "Stop.key.uid: must not be empty",
    ),
    "epoch zero": (
        pb.ManagerMessage(commands=[pb.Command(withdraw=pb.Withdraw(key=_key(0)))]),
        "Withdraw.key.epoch: must be between 1 and 9223372036854775807, is 0",
    ),
    "a name that is too long": (
        pb.ManagerMessage(commands=[pb.Command(delete_object=pb.DeleteObject(key=_key(), name="n" * 254))]),
        "DeleteObject.name: must have at most 253 bytes, has 254",
    ),
    "a name that is missing": (
        pb.ManagerMessage(commands=[pb.Command(delete_object=pb.DeleteObject(key=_key()))]),
        "DeleteObject.name: must not be empty",
    ),
    "an enum without a value": (
        pb.ManagerMessage(
            commands=[pb.Command(commit=pb.Commit(key=_key(), kind="Pod", namespace="n", name="p", queue="q"))]
        ),
        "Commit.policy: must be one of wait, failover, unfenced; number 0 came",
    ),
    "an enum of the future": (
        pb.ManagerMessage(control=[pb.ManagerControl(close=pb.Close(reason=cast("Any", 99)))]),
        "Close.reason: must be one of NotLeader",
    ),
    "a time that is no number": (
        pb.ManagerMessage(control=[pb.ManagerControl(lease_granted=pb.LeaseGranted(sent_at=float("nan")))]),
        "LeaseGranted.sent_at: must be between 0 and",
    ),
    "a negative time": (
        pb.ManagerMessage(commands=[pb.Command(stop=pb.Stop(key=_key(), grace_seconds=-1))]),
        "Stop.grace_seconds: must be between 0 and",
    ),
    "a session number that does not fit": (
        pb.ManagerMessage(session=2**64 - 1),
        "Frame.session: must be between 0 and 9223372036854775807, is 18446744073709551615",
    ),
    "a template that is no JSON": (
        pb.ManagerMessage(commands=[pb.Command(template_blob=pb.TemplateBlob(hash="a" * 64, content=b"{"))]),
        "TemplateBlob.content: must be empty or a JSON object",
    ),
    "a template with another hash": (
        pb.ManagerMessage(commands=[pb.Command(template_blob=pb.TemplateBlob(hash="a" * 64, content=b"{}"))]),
        "TemplateBlob.hash: must be the SHA-256 of content in hexadecimal",
    ),
    "too many controls": (
        pb.ManagerMessage(control=[pb.ManagerControl(inventory_request=pb.InventoryRequest())] * 17),
        "Frame.control: must have at most 16 items, has 17",
    ),
    "too many messages": (
        pb.ManagerMessage(commands=[pb.Command(cordon=pb.Cordon())] * 257),
        "Frame.messages: must have at most 256 items, has 257",
    ),
    "a bad item of a list": (
        pb.ManagerMessage(commands=[pb.Command(confirm=pb.Confirm(keys=[_key(), _key(0)]))]),
        "Confirm.keys[1].epoch: must be between 1 and",
    ),
    "a text that is too long": (
        pb.ManagerMessage(commands=[pb.Command(stop=pb.Stop(key=_key(), message="x" * 32769))]),
        "Stop.message: must have at most 32768 bytes, has 32769",
    ),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_is_wrong_is_named_by_field_and_rule(sentence: str) -> None:
    message, text = WRONG[sentence]
    with pytest.raises(WireViolation) as caught:
        codec.decode_from_manager(message.SerializeToString())
    assert str(caught.value).startswith(text)


def test_a_status_that_is_no_json_is_refused_from_an_agent() -> None:
    report = pb.ObjectReport(key=_key(), kind="Pod", name="p", uid="x", status=b"[1]")
    with pytest.raises(WireViolation, match=r"ObjectReport\.status: must be empty or a JSON object"):
        codec.decode_from_agent(pb.AgentMessage(reports=[pb.Report(object_report=report)]).SerializeToString())


def test_a_bid_with_an_unknown_refusal_is_refused() -> None:
    bid = pb.Bid(key=_key(), kind=pb.BID_KIND_HELD, refusal=cast("Any", 77))
    with pytest.raises(WireViolation, match=r"Bid\.refusal: must be one of NamespaceMissing"):
        codec.decode_from_agent(pb.AgentMessage(reports=[pb.Report(bid=bid)]).SerializeToString())


def test_an_item_of_an_item_is_named_by_its_path() -> None:
    chunk = pb.InventoryChunk(request=1, entries=[pb.InventoryEntry(key=_key()), pb.InventoryEntry()])
    data = pb.AgentMessage(control=[pb.AgentControl(inventory_chunk=chunk)]).SerializeToString()
    with pytest.raises(WireViolation, match=r"InventoryChunk\.entries\[1\]\.key: must be there"):
        codec.decode_from_agent(data)


def test_bytes_over_the_limit_are_not_looked_at() -> None:
    with pytest.raises(TooLarge, match=r"Frame: must have at most 4194304 bytes, has 4194305") as caught:
        codec.decode_from_agent(b"\0" * (limits.FRAME_BYTES_MAX + 1))
    assert caught.value.reason is CloseReason.TOO_LARGE


def test_a_command_does_not_travel_from_an_agent() -> None:
    with pytest.raises(WireViolation, match="Withdraw: has no place in Report"):
        codec.encode_from_agent(Frame(session=1, sequence=1, messages=(Withdraw(key=KEY),)))


def test_an_agent_states_no_term() -> None:
    with pytest.raises(WireViolation, match=r"Frame\.term: must be 0 in a frame of an agent"):
        codec.encode_from_agent(Frame(session=1, term=2))


def test_a_number_that_does_not_fit_is_named() -> None:
    with pytest.raises(WireViolation, match=r"Frame\.session: must be between 0 and"):
        codec.encode_from_manager(Frame(session=-1))


def test_a_text_that_is_not_unicode_is_named() -> None:
    with pytest.raises(WireViolation, match=r"Frame\.messages\[0\]\.reason: must be valid Unicode text"):
        codec.encode_from_manager(Frame(session=1, messages=(Stop(key=KEY, reason="\ud800"),)))


def test_a_frame_over_the_limit_is_not_encoded() -> None:
    status = b'{"a":"' + b"x" * (1 << 20) + b'"}'
    reports = tuple(ObjectReport(key=KEY, kind="Pod", name=f"p{i}", uid="", status=status) for i in range(5))
    with pytest.raises(TooLarge, match="Frame: must have at most 4194304 bytes"):
        codec.encode_from_agent(Frame(session=1, sequence=1, messages=reports))


def test_a_field_of_a_newer_peer_is_ignored() -> None:
    data = codec.encode_from_manager(Frame(session=1, messages=(Withdraw(key=KEY),))) + b"\xfa\x3e\x01x"
    assert codec.decode_from_manager(data).messages == (Withdraw(key=KEY),)


@QUICK
@given(st.lists(st.integers(0, 400_000), max_size=12))
def test_split_frames_are_below_the_target_and_hold_everything_in_order(sizes: list[int]) -> None:
    reports = tuple(
        ObjectReport(key=KEY, kind="Pod", name=f"p{i}", uid="", status=b'{"a":"' + b"x" * size + b'"}')
        for i, size in enumerate(sizes)
    )
    frame = Frame(session=3, sequence=7, control=(messages.CreditGrant(credits=1),), messages=reports)
    parts = split(frame)
    assert tuple(one for part in parts for one in part.messages) == reports
    assert [part.control for part in parts] == [frame.control, *([()] * (len(parts) - 1))]
    following = 7
    for part in parts:
        assert part.sequence == following
        assert len(codec.encode_from_agent(part)) <= limits.FRAME_BYTES_TARGET
        following += len(part.messages)


def test_an_object_as_large_as_the_api_server_takes_travels_alone() -> None:
    content = b'{"a":"' + b"x" * (limits.STATUS_BYTES_MAX - 8) + b'"}'
    blob = blob_of(content)
    parts = split(Frame(session=1, term=1, sequence=1, messages=(Withdraw(key=KEY), blob, Withdraw(key=KEY))))
    assert [len(part.messages) for part in parts] == [1, 1, 1]
    assert codec.decode_from_manager(codec.encode_from_manager(parts[1])).messages == (blob,)


def test_a_larger_one_is_refused_before_it_is_sent() -> None:
    blob = blob_of(b'{"a":"' + b"x" * limits.STATUS_BYTES_MAX + b'"}')
    with pytest.raises(TooLarge, match=r"TemplateBlob\.content: must have at most 1572864 bytes, has 1572872"):
        split(Frame(session=1, term=1, sequence=1, messages=(blob,)))


def blob_of(content: bytes) -> TemplateBlob:
    return TemplateBlob(hash=hashlib.sha256(content).hexdigest(), content=content)
