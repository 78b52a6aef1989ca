"""What one member costs an agent does not grow with its group, while that is made, let go and ended (PF-2)."""

from __future__ import annotations

from bench.group_agent import GOAL, apart

FEW, MANY = 50, 400


def test_hd_530_what_a_member_costs_as_its_group_starts_or_ends_does_not_grow_with_the_others() -> None:
    """HD-530: each look went through all of the group, and with each word of a member there was one."""
    few, many = (apart(members, "calls", 0) for members in (FEW, MANY))
    ratios = {name: many[name] / few[name] for name in few}
    assert max(ratios.values()) <= GOAL, ratios
