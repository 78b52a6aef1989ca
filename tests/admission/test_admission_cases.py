"""Plays every table case of tests/admission/cases; `support.twin.admission_cases` describes their form."""

from __future__ import annotations

from copy import deepcopy

import pytest

from support.twin.admission_cases import Case, Player, all_cases

ALL = list(all_cases())


@pytest.mark.parametrize("case", ALL, ids=[case["sentence"].replace(" ", "-") for case in ALL])
def test_case(case: Case) -> None:
    """What a case says holds; a sentence may begin with an id (IS-30, IS-31, IS-39).

    Those of slices (SL-81): EJ-013, EJ-023, EJ-024, EJ-025, EJ-026, EJ-027, EJ-028, EJ-030, SL-30, SL-31, SL-32, SL-34,
    SL-36.
    """
    player = Player(deepcopy(case))
    player.play()
    found = player.outcome()
    expected = case["expect"]
    for what, value in expected.items():
        if what in {"reserved", "conditions", "evicted", "unreserved", "checks", "preempted"}:
            assert found[what] == value, what
        else:
            assert {name: found[what][name] for name in value} == value, what
    if "conditions" not in expected and "preempted" not in expected:
        assert found["conditions"] == {}
    if "preempted" not in expected:
        assert found["preempted"] == {}


def test_every_sentence_is_said_once() -> None:
    sentences = [case["sentence"] for case in ALL]
    assert sorted(set(sentences)) == sorted(sentences)
    assert len(sentences) >= 350
