"""The traces of the model of sizes with the agent's own core: each rule is in force, and prevents it (SL-82)."""

from __future__ import annotations

import pytest

from support.agent import size_rules
from support.agent.size_account import SizeTruthError
from support.agent.size_traces import SizeTrace
from support.sizes_model.needed import NEEDED

WITHOUT: dict[str, size_rules.Take] = {
    "SL-41": size_rules.charged_by_the_wish,
    "SL-42": size_rules.a_deadline_takes_back,
    "SL-43": size_rules.numbers_are_not_compared,
    "SL-44": size_rules.any_answer_counts,
    "SL-45 pods": size_rules.answered_at_once,
    "SL-45 writes": size_rules.answered_before_the_mark,
    "SL-46 in flight": size_rules.lifts_in_flight_do_not_count,
    "SL-46 terminating": size_rules.who_stops_has_no_slot,
    "SL-47": size_rules.a_new_replica_starts_at_once,
    "SL-48": size_rules.slots_are_opened_without_a_word,
}


@pytest.mark.parametrize("name", WITHOUT)
def test_the_agent_keeps_the_promise_where_the_model_breaks_it_without_one_rule(name: str) -> None:
    """SL-82, SL-41, SL-42, SL-43, SL-44, SL-45, SL-46, SL-47, SL-48."""
    SizeTrace().play(NEEDED[name].lines())


@pytest.mark.parametrize("name", WITHOUT)
def test_without_that_rule_it_is_broken_as_in_the_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SL-82, SL-41, SL-42, SL-43, SL-44, SL-45, SL-46, SL-47, SL-48: else the trace would show nothing."""
    WITHOUT[name](monkeypatch)
    with pytest.raises(SizeTruthError):
        SizeTrace().play(NEEDED[name].lines())


def test_each_trace_is_played_to_an_agent_that_is_not_about_the_records_alone() -> None:
    assert {name for name in NEEDED if not name.startswith("SL-40")} == set(WITHOUT)
