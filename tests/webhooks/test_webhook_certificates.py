"""The daemon's own certificates: made, renewed in time, overlapping, read back, and refused when broken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

from gatelift_kube.serving import certificates
from gatelift_kube.serving.certificates import Material, MaterialError

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("gatelift-webhooks.gatelift-system.svc", "127.0.0.1")


def leaf(material: Material) -> x509.Certificate:
    return x509.load_pem_x509_certificate(material.certificate)


def authorities(material: Material) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(material.bundle)


def trusted(material: Material) -> bool:
    """Return whether an authority of the bundle signed the serving certificate."""
    for authority in authorities(material):
        if authority.subject == leaf(material).issuer:
            leaf(material).verify_directly_issued_by(authority)
            return True
    return False


def test_new_material_serves_its_names_and_is_trusted() -> None:
    material = certificates.make(NAMES, NOW)
    names = leaf(material).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [NAMES[0]]
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == [NAMES[1]]
    assert trusted(material)


def test_fresh_material_is_left_alone() -> None:
    assert certificates.renewed(certificates.make(NAMES, NOW), NAMES, NOW) is None


def test_material_survives_the_secret() -> None:
    material = certificates.make(NAMES, NOW)
    assert Material.from_data(material.to_data()) == material


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"ca.key": None}, "ca.key is missing", id="a part is missing"),
        pytest.param({"tls.crt": "AAAA"}, "no certificate material", id="no certificate"),
        pytest.param({"tls.key": "*"}, "no certificate material", id="no base64"),
        pytest.param({"ca.crt": ""}, "no certificate material", id="an empty bundle"),
    ],
)
def test_broken_material_is_told(change: dict[str, str | None], text: str) -> None:
    data = {**certificates.make(NAMES, NOW).to_data(), **change}
    with pytest.raises(MaterialError, match=text):
        Material.from_data({key: value for key, value in data.items() if value is not None})


def test_a_serving_certificate_is_renewed_before_it_ends_by_the_same_authority() -> None:
    material = certificates.make(NAMES, NOW)
    due = NOW + certificates.SERVING_LIFETIME - certificates.SERVING_RENEWED_BEFORE + timedelta(hours=1)
    renewed = certificates.renewed(material, NAMES, due)
    assert renewed is not None
    assert renewed.bundle == material.bundle
    assert leaf(renewed).not_valid_after_utc > leaf(material).not_valid_after_utc
    assert trusted(renewed)


def test_another_name_is_a_reason_to_renew() -> None:
    renewed = certificates.renewed(certificates.make(NAMES, NOW), (*NAMES, "other.example"), NOW)
    assert renewed is not None
    assert certificates.renewed(renewed, NAMES, NOW) is None


def test_authorities_overlap_for_years_without_a_moment_of_distrust() -> None:
    material, seen = certificates.make(NAMES, NOW), set[str]()
    for day in range(0, 15 * 365, 10):
        now = NOW + timedelta(days=day)
        while (renewed := certificates.renewed(material, NAMES, now)) is not None:
            assert {one.subject for one in authorities(renewed)} & {one.subject for one in authorities(material)}
            material = renewed
        assert leaf(material).not_valid_after_utc > now
        assert trusted(material)
        assert 1 <= len(authorities(material)) <= certificates.AUTHORITIES_MAX
        seen |= {one.subject.rfc4514_string() for one in authorities(material)}
    assert len(seen) >= 3


def test_material_that_has_ended_altogether_is_made_anew() -> None:
    material = certificates.make(NAMES, NOW)
    late = NOW + certificates.AUTHORITY_LIFETIME + timedelta(days=1)
    renewed = certificates.renewed(material, NAMES, late)
    assert renewed is not None
    assert leaf(renewed).not_valid_after_utc > late
    assert authorities(renewed)[0].subject != authorities(material)[0].subject
