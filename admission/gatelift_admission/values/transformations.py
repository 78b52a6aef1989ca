"""Resource transformations: counting what pods request in other terms than they ask for it (KEP-2937).

A transformation takes one resource and yields amounts of others; several may yield the same one, which adds up. Values
come from the configuration. Neighbour: `requests` applies them after excluded prefixes, before counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gatelift_admission.values import amounts

Amounts = dict[str, int]
REPLACE: Final = "Replace"
RETAIN: Final = "Retain"
_BILLION: Final = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """One entry of `resources.transformations`.

    `outputs`: resource -> quantity for each unit of the input. `multiply_by`: a resource of the same pod by whose
    quantity the input is multiplied first, if the pod has it. `strategy`: whether the input is counted, too.
    """

    input: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    strategy: str = RETAIN
    multiply_by: str = ""


def transformed(requests: Amounts, rules: Iterable[Transformation]) -> Amounts:
    """Return what one pod is counted for; raises `amounts.QuantityError` on a factor that is no quantity.

    What is generated for a resource, all inputs together, counts as 0 if it is negative, before it is added to what the
    pod itself requests of it. Inputs count in whole units, rounded up, as Kueue counts them.
    """
    by_input = {rule.input: rule for rule in rules}
    kept: Amounts = {}
    made: Amounts = {}
    for name, amount in requests.items():
        rule = by_input.get(name)
        if rule is None or rule.strategy != REPLACE:
            kept[name] = amount
        if rule is None:
            continue
        units = _units(name, amount)
        if rule.multiply_by in requests:
            units *= _units(rule.multiply_by, requests[rule.multiply_by])
        for output, factor in rule.outputs.items():
            made[output] = made.get(output, 0) + _times(factor, output, units)
    for name, amount in made.items():
        kept[name] = amounts.add(kept.get(name, 0), amounts.clamp(max(0, amount)))
    return kept


def _units(name: str, amount: int) -> int:
    """Return an amount in whole units, rounded up."""
    return -(-amount // 1000) if name == "cpu" else amount


def _times(factor: str, resource: str, units: int) -> int:
    """Return the amount of so many times `factor`, rounded up once, at the end."""
    billionths = amounts.nano(factor)
    if abs(billionths) >= amounts.AMOUNT_MAX:  # too large for billionths: then it has no fraction that counts
        return amounts.parse(factor, resource) * units
    return -(-billionths * units * (1000 if resource == "cpu" else 1) // _BILLION)
