import pytest

from gatelift_wire.sessions.outbox import Outbox, OutboxFull
from gatelift_wire.values import limits
from gatelift_wire.values.keys import PlacementKey
from gatelift_wire.values.messages import Applied, Capacity, CountsReport, Message, ObjectReport


def applied(epoch: int) -> Applied:
    return Applied(key=PlacementKey("u", epoch))


def report(name: str, status: bytes = b"{}") -> ObjectReport:
    return ObjectReport(key=PlacementKey("u", 1), kind="Pod", name=name, uid="x", status=status)


def box_of(*messages: Message, weight: int = 10) -> Outbox:
    box = Outbox()
    for message in messages:
        box.append(message, weight)
    return box


def test_numbers_begin_at_one_and_only_grow() -> None:
    box = box_of(applied(1), applied(2))
    assert box.take_unsent() == (1, (applied(1), applied(2)))
    box.clear()
    assert box.append(applied(3), 10) == 3
    assert box.take_unsent() == (3, (applied(3),))


def test_an_acknowledgement_drops_all_up_to_its_number() -> None:
    box = box_of(applied(1), applied(2), applied(3))
    box.take_unsent()
    assert box.acknowledge(2)
    assert (len(box), box.weight, box.first) == (1, 10, 3)
    assert box.acknowledge(1)
    assert len(box) == 1


def test_an_acknowledgement_of_what_was_never_transmitted_is_told_and_changes_nothing() -> None:
    box = box_of(applied(1))
    assert not box.acknowledge(1)
    assert len(box) == 1


def test_a_newer_unsent_report_takes_the_place_of_the_older_one() -> None:
    box = box_of(report("p"), applied(1))
    assert box.append(report("p", b'{"phase":"Running"}'), 30) == 1
    assert box.append(report("q"), 10) == 3
    assert box.weight == 50
    assert box.take_unsent()[1] == (report("p", b'{"phase":"Running"}'), applied(1), report("q"))


def test_counts_and_capacity_are_replaced_too_and_other_placements_are_not() -> None:
    counts = CountsReport(key=PlacementKey("u", 1), pod_sets=())
    other = CountsReport(key=PlacementKey("u", 2), pod_sets=())
    newer = CountsReport(key=PlacementKey("u", 1), pod_sets=(), reclaimable=(("main", 1),))
    box = box_of(counts, other, Capacity(), newer, Capacity(namespaces=("n",)))
    assert box.take_unsent()[1] == (newer, other, Capacity(namespaces=("n",)))


def test_what_was_transmitted_never_changes_even_when_it_is_sent_again() -> None:
    box = box_of(report("p"))
    box.take_unsent()
    box.replay_from(1)
    assert box.append(report("p", b'{"a":1}'), 10) == 2
    assert box.take_unsent() == (1, (report("p"), report("p", b'{"a":1}')))


def test_a_report_after_an_acknowledged_one_is_a_new_message() -> None:
    box = box_of(report("p"))
    box.take_unsent()
    box.acknowledge(1)
    assert box.append(report("p"), 10) == 2


def test_replay_sends_again_what_the_peer_has_not_handled() -> None:
    box = box_of(applied(1), applied(2), applied(3))
    box.take_unsent()
    assert box.waiting == 0
    box.replay_from(2)
    assert box.waiting == 2
    assert box.take_unsent() == (2, (applied(2), applied(3)))


def test_replay_is_possible_only_within_the_window() -> None:
    box = box_of(applied(1), applied(2))
    box.take_unsent()
    box.acknowledge(1)
    assert [number for number in range(6) if box.can_replay_from(number)] == [2, 3]
    with pytest.raises(ValueError, match="cannot replay from 1: 2 to 2 are kept"):
        box.replay_from(1)


def test_no_more_is_in_flight_than_the_window_allows() -> None:
    box = box_of(*(applied(n) for n in range(1, limits.WINDOW_MESSAGES_MAX + 11)))
    taken = 0
    while batch := box.take_unsent()[1]:
        assert len(batch) <= limits.FRAME_MESSAGES_MAX
        taken += len(batch)
    assert taken == limits.WINDOW_MESSAGES_MAX
    box.acknowledge(5)
    assert len(box.take_unsent()[1]) == 5


def test_the_window_counts_bytes_too() -> None:
    heavy = limits.MESSAGE_BYTES_MAX
    box = box_of(*(applied(n) for n in range(1, 5)), weight=heavy)
    assert [len(box.take_unsent()[1]) for _ in range(4)] == [1, 1, 0, 0]
    box.acknowledge(1)
    assert len(box.take_unsent()[1]) == 1


def test_a_frame_holds_no_more_than_its_target_unless_one_message_is_larger() -> None:
    half = limits.FRAME_BYTES_TARGET // 2
    box = Outbox()
    for number, weight in enumerate((half, half, 10, limits.MESSAGE_BYTES_MAX, 10), start=1):
        box.append(applied(number), weight)
    assert [len(box.take_unsent()[1]) for _ in range(4)] == [2, 1, 1, 1]


def test_a_full_box_says_so_and_changes_nothing() -> None:
    box = box_of(*(applied(n) for n in range(1, limits.OUTBOX_MESSAGES_MAX)), report("p"))
    with pytest.raises(OutboxFull, match="holds 32768 messages"):
        box.append(applied(0), 10)
    assert box.append(report("p", b'{"a":1}'), 10) == limits.OUTBOX_MESSAGES_MAX
    assert box.last == limits.OUTBOX_MESSAGES_MAX


def test_a_box_full_of_bytes_says_so() -> None:
    box = Outbox()
    box.append(report("p"), limits.OUTBOX_BYTES_MAX)
    with pytest.raises(OutboxFull):
        box.append(applied(1), 1)
    with pytest.raises(OutboxFull):
        box.append(report("p"), limits.OUTBOX_BYTES_MAX + 1)
    assert (len(box), box.weight) == (1, limits.OUTBOX_BYTES_MAX)
