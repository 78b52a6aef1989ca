"""What comes again and again is told once a minute, with how often it came; what is different is told at once."""

from __future__ import annotations

from gatelift_kube.process.repetitions import (
    KEPT_MAX,
    OTHERS,
    PEERS_MAX,
    REPEAT_SECONDS,
    PeerRepetitions,
    Repetitions,
    watch_problems,
)


class Time:
    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


class Lines:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    def warning(self, event: str, **fields: object) -> None:
        self.told.append((event, fields))


def test_the_same_is_told_at_once_then_once_a_minute_with_how_often_it_came_meanwhile() -> None:
    time = Time()
    repetitions = Repetitions(clock=time)
    assert [repetitions.untold("a") for _ in range(4)] == [0, None, None, None]
    assert repetitions.untold("b") == 0
    time.now += REPEAT_SECONDS
    assert [repetitions.untold("a"), repetitions.untold("a"), repetitions.untold("b")] == [3, None, 0]


def test_a_flood_of_different_facts_takes_bounded_room_and_forgets_the_oldest() -> None:
    repetitions = Repetitions(clock=Time())
    for number in range(KEPT_MAX + 1):
        assert repetitions.untold(number) == 0
    assert repetitions.untold(1) is None
    assert repetitions.untold(0) == 0, "told longest ago, so it was forgotten"


def test_is_12_of_a_crowd_some_are_named_and_all_the_others_are_one() -> None:
    time = Time()
    lines = PeerRepetitions(time)
    for _ in range(2):
        told = [lines.untold(f"10.0.0.{number}", "silent") for number in range(200)]
        assert [each[0] for each in told if each is not None] == [
            *(f"10.0.0.{number}" for number in range(PEERS_MAX)),
            OTHERS,
        ]
        assert lines.untold("10.0.0.1", "silent") is None
        assert lines.untold("10.0.0.199", "loud") is not None
        time.now += REPEAT_SECONDS
    assert lines.untold("10.0.1.1", "silent") == ("10.0.1.1", 0), "each minute names others"


def test_an_api_server_that_is_away_for_a_minute_is_two_lines_for_each_watch() -> None:
    time, log = Time(), Lines()
    told = watch_problems(log, time)
    for second in range(61):
        time.now = 5.0 + second
        told("pods: cannot connect: Connection refused")
    assert log.told == [
        ("watch interrupted", {"problem": "pods: cannot connect: Connection refused"}),
        ("watch interrupted", {"problem": "pods: cannot connect: Connection refused", "times_before": 59}),
    ]
