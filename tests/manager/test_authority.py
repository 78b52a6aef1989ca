"""The certificate authority: what it signs, what it refuses, and a rotation that drops nobody."""

from __future__ import annotations

import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gatelift.adapters import authority

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
URI = "gatelift://cluster/w1"


def a_request(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | None = None) -> bytes:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "somebody-else")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    request = builder.sign(key or ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    return request.public_bytes(serialization.Encoding.PEM)


def verified(state: authority.AuthorityState, certificate: bytes, at: dt.datetime) -> bool:
    store = Store(x509.load_pem_x509_certificates(state.bundle))
    verifier = PolicyBuilder().store(store).time(at).build_client_verifier()
    try:
        verifier.verify(x509.load_pem_x509_certificate(certificate), [])
    except VerificationError:
        return False
    return True


def test_the_identity_is_the_uri_given_and_not_the_name_in_the_request() -> None:
    state = authority.new_state(NOW)
    certificate = x509.load_pem_x509_certificate(authority.sign_agent(state, a_request(), URI, DAY, NOW))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == [URI]
    assert "somebody-else" not in certificate.subject.rfc4514_string()


def test_a_signed_certificate_is_trusted_until_its_lifetime_ends() -> None:
    state = authority.new_state(NOW)
    certificate = authority.sign_agent(state, a_request(), URI, DAY, NOW)
    assert verified(state, certificate, NOW + dt.timedelta(hours=23))
    assert not verified(state, certificate, NOW + dt.timedelta(hours=25))


def test_a_certificate_of_another_authority_is_not_trusted() -> None:
    other = authority.sign_agent(authority.new_state(NOW), a_request(), URI, DAY, NOW)
    assert not verified(authority.new_state(NOW), other, NOW)


def test_a_rotation_keeps_old_and_new_certificates_trusted_until_the_old_ca_is_retired() -> None:
    first = authority.new_state(NOW)
    before = authority.sign_agent(first, a_request(), URI, DAY, NOW)
    announced = authority.announce(first, NOW)
    switched = authority.switch(announced)
    after = authority.sign_agent(switched, a_request(), URI, DAY, NOW)
    assert verified(announced, before, NOW)
    assert verified(announced, after, NOW), "who has the announced bundle trusts the next CA before it signs"
    assert verified(switched, before, NOW)
    retired = authority.retire(switched)
    assert not verified(retired, before, NOW)
    assert verified(retired, after, NOW)


@pytest.mark.parametrize("step", [authority.switch, authority.retire])
def test_a_rotation_step_out_of_order_is_refused_with_the_way_out(
    step: object,
) -> None:
    with pytest.raises(authority.AuthorityError, match="run '"):
        step(authority.new_state(NOW))  # type: ignore[operator]  # both are functions of one state


def test_a_second_rotation_waits_for_the_first() -> None:
    with pytest.raises(authority.AuthorityError, match="under way"):
        authority.announce(authority.announce(authority.new_state(NOW), NOW), NOW)


def test_the_secret_brings_the_state_back() -> None:
    state = authority.announce(authority.new_state(NOW), NOW)
    assert authority.AuthorityState.from_secret(state.to_secret()) == state


@pytest.mark.parametrize("data", [{}, {"ca.crt": "!!"}, {"ca.crt": "YQ==", "ca.key": "YQ=="}])
def test_a_broken_secret_says_so_in_one_line(data: dict[str, str]) -> None:
    with pytest.raises(authority.AuthorityError, match="incomplete or broken"):
        authority.AuthorityState.from_secret(data)


BAD_REQUESTS = {
    "no PEM at all": (b"hello", "is no PEM certificate signing request"),
    "too large": (b"x" * 20_000, "20000 bytes, 16384 allowed"),
    "an RSA key": (a_request(rsa.generate_private_key(65537, 2048)), "is not an elliptic-curve key"),
}


@pytest.mark.parametrize(("request_bytes", "text"), BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_bad_signing_request_is_refused_in_one_line(request_bytes: bytes, text: str) -> None:
    with pytest.raises(authority.AuthorityError, match=text):
        authority.sign_agent(authority.new_state(NOW), request_bytes, URI, DAY, NOW)


class DearRequest:
    """A signing request for a key of another kind, whose signature costs more to check than it does to make."""

    def public_key(self) -> rsa.RSAPublicKey:
        return rsa.generate_private_key(65537, 2048).public_key()

    @property
    def is_signature_valid(self) -> bool:
        pytest.fail("its signature was checked")


def test_hd_118_the_signature_of_a_key_that_is_not_taken_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(x509, "load_pem_x509_csr", lambda _pem: DearRequest())
    with pytest.raises(authority.AuthorityError, match="is not an elliptic-curve key"):
        authority.request_digest(a_request())


def test_private_keys_do_not_show_in_a_repr() -> None:
    assert "PRIVATE" not in repr(authority.new_state(NOW))


def test_the_servers_certificate_names_hosts_and_addresses() -> None:
    state = authority.new_state(NOW)
    pair = authority.new_server(state, ("manager.example", "127.0.0.1"), DAY, NOW)
    names = x509.load_pem_x509_certificate(pair.certificate).extensions.get_extension_for_class(
        x509.SubjectAlternativeName
    )
    assert [str(name.value) for name in names.value] == ["manager.example", "127.0.0.1"]
