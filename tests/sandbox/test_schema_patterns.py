"""Patterns of custom resources, which are RE2's and not Python's."""

from __future__ import annotations

from gatelift_sandbox.embedded.schema import Schema, validate


def errors_of(value: str) -> int:
    schema = Schema({"type": "object", "properties": {"kind": {"type": "string", "pattern": "^(?i)[a-z]+$"}}})
    return len(validate({"kind": value}, schema))


def test_a_flag_inside_a_pattern_holds_for_the_whole_pattern() -> None:
    assert errors_of("multikueueconfig") == 0
    assert errors_of("MultiKueueConfig") == 0


def test_a_text_that_does_not_match_is_refused() -> None:
    assert errors_of("no spaces") == 1
