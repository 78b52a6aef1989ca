"""Sizes of elastic work on the wire: frames of version 3, those of before as they were, and bad input (SL-75)."""

from __future__ import annotations

import pytest

from gatelift_wire.encoding import codec
from gatelift_wire.sessions import cutting
from gatelift_wire.sessions.outbox import Outbox
from gatelift_wire.v1 import agent_pb2 as pb
from gatelift_wire.values import inventory, limits, rules, single
from gatelift_wire.values import messages as m
from gatelift_wire.values.keys import PROTOCOL_VERSION, VERSION_OF_SIZES, PlacementKey
from gatelift_wire.values.refusals import Refusal
from gatelift_wire.values.sizes import Drained, PlacementSize, Resize, SizeRefused, SizeWanted, SliceFinished
from gatelift_wire.values.violations import TooLarge, WireViolation

KEY = PlacementKey("w-1", 2)
MAIN = m.PodSetRequest(name="main", count=3, requests=(("cpu", 3000),), flavors=(("cpu", "default"),))
PART = m.ObjectTemplate(name="j", pod_set="main", template="t")
OFFER = m.Offer(key=KEY, kind="Job", namespace="ns", name="j", queue="q", priority=-1, pod_sets=(MAIN,))
COMMIT = m.Commit(key=KEY, kind="Job", namespace="ns", name="j", queue="q", objects=(PART,), pod_sets=(MAIN,))
ENTRY = inventory.InventoryEntry(
    key=KEY, namespace="ns", name="j", state="Running", lifted=True, counts=(("main", 1),), digest="d", given="g"
)


def from_manager(*messages: m.Message) -> m.Frame:
    return m.Frame(session=1, term=1, sequence=1, messages=messages)


def from_agent(*messages: m.Message) -> m.Frame:
    return m.Frame(session=1, sequence=1, messages=messages)


def listed(entry: inventory.InventoryEntry) -> m.Frame:
    return m.Frame(session=1, control=(inventory.InventoryChunk(request=1, applied=4, last=True, entries=(entry,)),))


GOLDEN = {
    "version 1, commands": (
        from_manager(OFFER, COMMIT, m.Confirm(keys=(KEY,)), m.Withdraw(key=KEY), m.Stop(key=KEY, reason="Evicted")),
        (
            "08011001180132490a470a070a03772d31100212034a6f621a026e7322016a2a017130013a220a046d61696e10031a080a0363707510b8"
            "17220e0a03637075120764656661756c74410000000000003e4032671a650a070a03772d31100212034a6f621a026e7322016a2a017132"
            "100a016a12046d61696e1a017422027b7d3a220a046d61696e10031a080a0363707510b817220e0a03637075120764656661756c744001"
            "490000000000c0a240520a4f6e5465726d696e616c320b22090a070a03772d311002320b2a090a070a03772d311002321432120a070a03"
            "772d311002120745766963746564"
        ),
    ),
    "version 2, a change": (
        from_manager(m.Change(key=KEY, number=1, leave=(single.Leaver(name="p", uid="u"),))),
        "080110011801321562130a070a03772d311002100122060a0170120175",
    ),
    "version 1, reports": (
        from_agent(
            m.Bid(key=KEY, kind=m.BidKind.REFUSED, refusal=Refusal.QUOTA_BUSY, text="full", cost=0.5),
            m.Applied(key=KEY, waits=True),
            m.CountsReport(key=KEY, pod_sets=(m.PodSetCounts(name="main", active=2, remaining=2),)),
        ),
        (
            "080110012a1e0a1c0a070a03772d3110021004180a220466756c6c29000000000000e03f2a0d120b0a070a03772d31100210012a172a15"
            "0a070a03772d311002120a0a046d61696e10023802"
        ),
    ),
    "version 1, an inventory": (
        listed(ENTRY),
        (
            "080122352233080110041801222b0a070a03772d31100212026e731a016a220752756e6e696e67280132080a046d61696e10013a016442"
            "0167"
        ),
    ),
    "version 3, commands": (
        from_manager(
            m.Offer(key=KEY, kind="Job", namespace="ns", name="j", queue="q", size=5),
            m.Commit(key=KEY, kind="Job", namespace="ns", name="j", queue="q", objects=(PART,), size=1),
            Resize(key=KEY, number=5, pod_sets=(MAIN, m.PodSetRequest(name="more", count=0))),
            m.Confirm(keys=(KEY,), sizes=(PlacementSize(key=KEY, number=5),)),
            m.Withdraw(key=KEY, size=5),
        ),
        (
            "08011001180132250a230a070a03772d31100212034a6f621a026e7322016a2a0171410000000000003e40480532451a430a070a03772d"
            "31100212034a6f621a026e7322016a2a017132100a016a12046d61696e1a017422027b7d4001490000000000c0a240520a4f6e5465726d"
            "696e616c580132396a370a070a03772d31100210051a220a046d61696e10031a080a0363707510b817220e0a0363707512076465666175"
            "6c741a060a046d6f7265321822160a070a03772d311002120b0a070a03772d3110021005320d2a0b0a070a03772d3110021005"
        ),
    ),
    "version 3, reports": (
        from_agent(
            m.Bid(key=KEY, kind=m.BidKind.HELD, size=5),
            SliceFinished(key=KEY, number=5, ended=(m.PodSetCounts(name="main", succeeded=2, failed=1),)),
            Drained(key=KEY, number=5, remaining=(("main", 2), ("more", 0))),
            SizeRefused(key=KEY, number=6, refusal=Refusal.INVALID, text="pod set x is not known"),
            SizeWanted(key=KEY, counts=(("main", 4),)),
        ),
        (
            "080110012a0f0a0d0a070a03772d311002100138052a1962170a070a03772d31100210051a0a0a046d61696e200228012a1f6a1d0a070a"
            "03772d31100210051a080a046d61696e10021a060a046d6f72652a2772250a070a03772d311002100618142216706f6420736574207820"
            "6973206e6f74206b6e6f776e2a157a130a070a03772d31100212080a046d61696e1004"
        ),
    ),
    "version 3, an inventory": (
        listed(
            inventory.InventoryEntry(
                key=KEY,
                namespace="ns",
                name="j",
                state="Running",
                lifted=True,
                size=5,
                granted=(("main", 3),),
                running=(("main", 2),),
            )
        ),
        (
            "0801223b223908011004180122310a070a03772d31100212026e731a016a220752756e6e696e67280150055a080a046d61696e10036208"
            "0a046d61696e1002"
        ),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_frames_are_these_bytes_for_ever(name: str) -> None:
    """Frames of versions 1 and 2 were recorded before there were sizes."""
    frame, said = GOLDEN[name]
    agents = any(isinstance(one, inventory.InventoryChunk) for one in frame.control) or frame.term == 0
    encode, decode = (
        (codec.encode_from_agent, codec.decode_from_agent)
        if agents
        else (codec.encode_from_manager, codec.decode_from_manager)
    )
    assert encode(frame).hex() == said
    assert decode(bytes.fromhex(said)) == frame


def test_what_says_no_size_takes_no_byte_for_it() -> None:
    """SL-03: without elastic work nothing of what is said is otherwise than before."""
    for value, field in ((OFFER, "size"), (COMMIT, "size"), (m.Confirm(keys=(KEY,)), "sizes"), (ENTRY, "running")):
        assert not getattr(value, field)
    assert VERSION_OF_SIZES == PROTOCOL_VERSION


COUNT = limits.COUNT_MAX + 1
BAD: dict[str, tuple[m.Message, str]] = {
    "the number 0": (Resize(key=KEY, number=0, pod_sets=(MAIN,)), "Resize.number"),
    "a number below 0": (Resize(key=KEY, number=-1, pod_sets=(MAIN,)), "Resize.number"),
    "a number of 64 bits": (Resize(key=KEY, number=2**63, pod_sets=(MAIN,)), "Resize.number"),
    "a pod set twice": (Resize(key=KEY, number=2, pod_sets=(MAIN, MAIN)), "Resize.pod_sets[1]"),
    "a count below 0": (
        Resize(key=KEY, number=2, pod_sets=(m.PodSetRequest(name="main", count=-1),)),
        "Resize.pod_sets[0].count",
    ),
    "a huge count": (
        Resize(key=KEY, number=2, pod_sets=(m.PodSetRequest(name="main", count=COUNT),)),
        "Resize.pod_sets[0].count",
    ),
    "no name": (Resize(key=KEY, number=2, pod_sets=(m.PodSetRequest(name="", count=1),)), "Resize.pod_sets[0].name"),
    "no epoch": (Resize(key=PlacementKey("w", 0), number=2, pod_sets=(MAIN,)), "Resize.key.epoch"),
    "a size of an offer below 0": (m.Offer(key=KEY, kind="Job", namespace="ns", name="j", queue="q", size=-1), "size"),
    "a size of a commit of 64 bits": (
        m.Commit(key=KEY, kind="Job", namespace="ns", name="j", queue="q", objects=(PART,), size=2**63),
        "Commit.size",
    ),
    "a confirmation of the number 0": (
        m.Confirm(keys=(), sizes=(PlacementSize(key=KEY, number=0),)),
        "Confirm.sizes[0].number",
    ),
    "an answer to the number 0": (SliceFinished(key=KEY, number=0), "SliceFinished.number"),
    "ended twice": (
        SliceFinished(key=KEY, number=2, ended=(m.PodSetCounts(name="a"), m.PodSetCounts(name="a"))),
        "SliceFinished.ended[1]",
    ),
    "remaining twice": (Drained(key=KEY, number=2, remaining=(("a", 1), ("a", 2))), "Drained.remaining[1]"),
    "remaining below 0": (Drained(key=KEY, number=2, remaining=(("a", -1),)), "Drained.remaining[0]"),
    "wanted a huge count": (SizeWanted(key=KEY, counts=(("a", COUNT),)), "SizeWanted.counts[0]"),
    "wanted twice": (SizeWanted(key=KEY, counts=(("a", 1), ("a", 1))), "SizeWanted.counts[1]"),
}


@pytest.mark.parametrize("name", BAD)
def test_sl_75_a_size_that_says_nonsense_is_a_violation_that_names_the_field(name: str) -> None:
    message, field = BAD[name]
    with pytest.raises(WireViolation) as caught:
        rules.check_message(message)
    assert field in caught.value.field
    assert caught.value.rule


def test_sl_75_what_a_peer_writes_in_spite_of_that_ends_its_session_with_the_field() -> None:
    twice = [pb.PodSetRequest(name="main", count=1), pb.PodSetRequest(name="main", count=2)]
    key = pb.PlacementKey(uid="w-1", epoch=1)
    resize = pb.Resize(key=key, number=2, pod_sets=twice)
    frame = pb.ManagerMessage(session=1, term=1, sequence=1, commands=[pb.Command(resize=resize)])
    with pytest.raises(WireViolation, match=r"Resize\.pod_sets\[1\]: must name what no other one names"):
        codec.decode_from_manager(frame.SerializeToString())
    none = pb.SizeRefused(key=key, number=2)
    report = pb.AgentMessage(session=1, sequence=1, reports=[pb.Report(size_refused=none)])
    with pytest.raises(WireViolation, match=r"SizeRefused\.refusal: must be one of"):
        codec.decode_from_agent(report.SerializeToString())


def test_sl_75_more_pod_sets_than_a_workload_may_have_are_too_many() -> None:
    many = tuple(m.PodSetRequest(name=f"s{at}", count=1) for at in range(limits.POD_SETS_MAX + 1))
    with pytest.raises(TooLarge, match=r"Resize\.pod_sets"):
        rules.check_message(Resize(key=KEY, number=2, pod_sets=many))
    with pytest.raises(TooLarge, match=r"InventoryEntry\.running"):
        rules.measure(
            inventory.InventoryEntry(
                key=KEY, namespace="", name="", state="s", lifted=True, running=tuple((one.name, 1) for one in many)
            )
        )


def test_a_long_confirmation_of_sizes_is_cut() -> None:
    keys = tuple(PlacementKey("w", number) for number in range(1, limits.KEYS_MAX + 11))
    whole = m.Confirm(keys=keys[:5], sizes=tuple(PlacementSize(key=key, number=1) for key in keys))
    parts = [part for part, _ in cutting.fit(whole) if isinstance(part, m.Confirm)]
    assert [(len(one.keys), len(one.sizes)) for one in parts] == [(5, limits.KEYS_MAX), (0, 10)]


def test_newer_progress_takes_the_place_of_older_and_an_answer_of_nothing() -> None:
    box = Outbox()
    first = box.append(Drained(key=KEY, number=2, remaining=(("main", 2),)), 10)
    assert box.append(Drained(key=KEY, number=2, remaining=(("main", 1),)), 10) == first
    assert box.append(Drained(key=KEY, number=3, remaining=(("main", 1),)), 10) == first + 1
    answers = [box.append(SliceFinished(key=KEY, number=2), 10) for _ in range(2)]
    assert answers == [first + 2, first + 3]
