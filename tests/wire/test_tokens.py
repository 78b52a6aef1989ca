"""Bootstrap tokens."""

from __future__ import annotations

import pytest

from gatelift_wire.values import tokens

BUNDLE = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
SECRET = bytes(range(24))


def test_a_token_names_its_cluster_and_the_ca() -> None:
    parsed = tokens.parse(tokens.compose("w1", SECRET, BUNDLE))
    assert parsed == tokens.Token("w1", tokens.ca_hash(BUNDLE))


def test_only_the_whole_token_matches_its_digest() -> None:
    token = tokens.compose("w1", SECRET, BUNDLE)
    assert tokens.matches(token, tokens.digest(token))
    assert not tokens.matches(token[:-1], tokens.digest(token))
    assert not tokens.matches(token, "")


def test_the_ca_hash_is_that_of_the_first_certificate_so_a_grown_bundle_still_matches() -> None:
    assert tokens.ca_hash(BUNDLE) == tokens.ca_hash(BUNDLE + BUNDLE.replace(b"AAAA", b"BBBB"))


@pytest.mark.parametrize("text", ["", "gl1.w1", "gl1..00.11", "gl2.w1." + "00" * 24 + ".aa", "x" * 5000])
def test_what_is_no_token_says_where_to_get_one(text: str) -> None:
    with pytest.raises(ValueError, match="gatelift cluster add NAME"):
        tokens.parse(text)
