"""Quantities: what the API server accepts, how it rounds, and how amounts print."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatelift_admission.values.amounts import (
    AMOUNT_MAX,
    AMOUNT_MIN,
    UNLIMITED,
    QuantityError,
    add,
    multiply,
    nano,
    parse,
    sub,
    to_text,
)


@pytest.mark.parametrize(
    ("quantity", "resource", "amount"),
    [
        ("1", "cpu", 1000),
        ("100m", "cpu", 100),
        ("0.1", "cpu", 100),
        (".5", "cpu", 500),
        ("5.", "cpu", 5000),
        (2, "cpu", 2000),
        (0.25, "cpu", 250),
        ("1n", "cpu", 1),
        ("1500u", "cpu", 2),
        ("1.0001", "cpu", 1001),
        ("1e3", "cpu", 1_000_000),
        ("1E3", "cpu", 1_000_000),
        ("1e-3", "cpu", 1),
        ("+2", "cpu", 2000),
        ("-1.5m", "cpu", -2),
        ("1Gi", "memory", 2**30),
        ("1.5Gi", "memory", 3 * 2**29),
        ("1G", "memory", 10**9),
        ("1E", "memory", 10**18),
        ("1100m", "memory", 2),
        ("0.5", "nvidia.com/gpu", 1),
        ("10E", "memory", AMOUNT_MAX),
        ("16Ei", "memory", AMOUNT_MAX),
        ("-10E", "memory", AMOUNT_MIN),
        ("1e999999999", "memory", AMOUNT_MAX),
        ("1e-999999999", "memory", 1),
        ("0e999999999", "memory", 0),
        (1e16, "memory", 10**16),
    ],
)
def test_a_quantity_is_read_as_the_api_server_reads_it(quantity: str | float, resource: str, amount: int) -> None:
    assert parse(quantity, resource) == amount


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "1 Gi",
        "1e3Mi",
        "1gi",
        "1K",
        "1KiB",
        "0x10",
        "1e",
        "1e1.5",
        "--1",
        "NaN",
        "inf",
        "\u0661",
        "1" * 200,
        "1\n",
    ],
)
def test_what_the_api_server_refuses_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(QuantityError, match="is not a quantity"):
        parse(text, "memory")


@pytest.mark.parametrize(
    ("amount", "resource", "text"),
    [
        (0, "cpu", "0"),
        (100, "cpu", "100m"),
        (1500, "cpu", "1500m"),
        (2000, "cpu", "2"),
        (1_000_000, "cpu", "1k"),
        (1000, "memory", "1k"),
        (1023, "memory", "1023"),
        (1024, "memory", "1Ki"),
        (2000, "memory", "2000"),
        (3 * 2**30, "memory", "3Gi"),
        (3 * 2**29, "memory", "1536Mi"),
        (2**20, "hugepages-2Mi", "1Mi"),
        (5, "nvidia.com/gpu", "5"),
        (4000, "nvidia.com/gpu", "4k"),
        (-500, "cpu", "-500m"),
        (UNLIMITED, "memory", "<unlimited>"),
    ],
)
def test_an_amount_prints_canonically(amount: int, resource: str, text: str) -> None:
    assert to_text(amount, resource) == text


@given(st.integers(AMOUNT_MIN, AMOUNT_MAX - 1), st.sampled_from(["cpu", "memory", "pods"]))
def test_what_is_printed_reads_back_as_the_same_amount(amount: int, resource: str) -> None:
    assert parse(to_text(amount, resource), resource) == amount


def test_unlimited_absorbs_and_bounded_sums_saturate() -> None:
    assert add(UNLIMITED, -5) == UNLIMITED
    assert sub(UNLIMITED, 5) == UNLIMITED
    assert sub(UNLIMITED, UNLIMITED) == 0
    assert sub(5, UNLIMITED) == AMOUNT_MIN
    assert add(AMOUNT_MAX - 1, 5) == AMOUNT_MAX
    assert sub(AMOUNT_MIN, 5) == AMOUNT_MIN
    assert multiply(2**62, 4) == AMOUNT_MAX


def test_weights_are_compared_in_billionths() -> None:
    assert (nano("1n"), nano("1"), nano(0)) == (1, 10**9, 0)
