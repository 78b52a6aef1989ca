import datetime as dt

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gatelift_wire.streams import identity
from gatelift_wire.streams.identity import IdentityError

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(*names: x509.GeneralName) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "another-name")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(NOW)
        .not_valid_after(NOW + dt.timedelta(days=1))
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256())


def pem(*names: x509.GeneralName) -> bytes:
    return certificate(*names).public_bytes(serialization.Encoding.PEM)


def uri(text: str) -> x509.UniformResourceIdentifier:
    return x509.UniformResourceIdentifier(text)


@pytest.mark.parametrize("name", ["a", "worker-1", "0", "x" * 63, "a--b"])
def test_a_dns_label_names_a_cluster(name: str) -> None:
    assert identity.cluster_of(identity.uri_of(name)) == name


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a_b", "a/b", "x" * 64, "a\n", "ä", "a b"])
def test_anything_else_is_refused_with_the_rule(name: str) -> None:
    with pytest.raises(IdentityError, match="must be a DNS label"):
        identity.check_cluster_name(name)


@pytest.mark.parametrize("text", ["gatelift://manager/a", "https://cluster/a", "", "gatelift://cluster/a/b"])
def test_another_uri_is_no_identity(text: str) -> None:
    with pytest.raises(IdentityError):
        identity.cluster_of(text)


def test_a_certificate_says_who_the_peer_is_as_pem_and_as_der() -> None:
    made = certificate(x509.DNSName("agent.example"), uri("spiffe://other/x"), uri("gatelift://cluster/east"))
    from_pem = identity.peer_of(made.public_bytes(serialization.Encoding.PEM))
    assert from_pem == identity.peer_of(made.public_bytes(serialization.Encoding.DER))
    assert (from_pem.cluster, from_pem.not_after) == ("east", NOW + dt.timedelta(days=1))
    assert len(from_pem.key_digest) == 64


def test_the_first_of_a_chain_counts() -> None:
    chain = pem(uri("gatelift://cluster/east")) + pem(uri("gatelift://cluster/ca"))
    assert identity.peer_of(chain).cluster == "east"


@pytest.mark.parametrize(
    "names",
    [
        (),
        (x509.DNSName("east"),),
        (uri("gatelift://cluster/a"), uri("gatelift://cluster/b")),
        (uri("gatelift://manager/a"),),
        (uri("gatelift://cluster/Not-A-Label"),),
    ],
)
def test_a_certificate_without_exactly_one_cluster_is_refused(names: tuple[x509.GeneralName, ...]) -> None:
    with pytest.raises(IdentityError):
        identity.peer_of(pem(*names))


@pytest.mark.parametrize("data", [b"", b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n", b"\x30\x00"])
def test_what_is_no_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(IdentityError, match="cannot be read"):
        identity.peer_of(data)


def test_a_certificate_over_the_limit_is_not_parsed() -> None:
    with pytest.raises(IdentityError, match="at most 65536 are read"):
        identity.peer_of(b"x" * 65537)


def test_grpcs_context_is_read() -> None:
    context = {"x509_pem_cert": [pem(uri("gatelift://cluster/east"))], "transport_security_type": [b"ssl"]}
    assert identity.peer_of_context(context).cluster == "east"


def test_a_client_without_a_certificate_is_refused() -> None:
    with pytest.raises(IdentityError, match="the client showed none"):
        identity.peer_of_context({"transport_security_type": [b"ssl"]})
