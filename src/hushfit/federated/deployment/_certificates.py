"""Keys, requests and certificates of a federation, made with `cryptography`."""

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

from hushfit.errors import InvalidArgument

DAYS = 365


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2048)


def subject_of(name: str, organisation: str, role: str | None = None) -> x509.Name:
    parts = [
        x509.NameAttribute(NameOID.COMMON_NAME, name),
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, organisation),
    ]
    return x509.Name(
        parts if role is None else [*parts, x509.NameAttribute(NameOID.UNSTRUCTURED_NAME, role)]
    )


def alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def authority_of(key: rsa.RSAPrivateKey, name: str) -> x509.Certificate:
    usage = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False
    )
    only = dict.fromkeys(("encipher_only", "decipher_only"), False)
    builder = _builder(
        subject_of(name, "hushfit"),
        subject_of(name, "hushfit"),
        key.public_key(),
        key.public_key(),
        10 * DAYS,
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    signs = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, **usage, **only
    )
    return builder.add_extension(signs, critical=True).sign(key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public: Any, signer: Any, days: float
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(
            now - timedelta(days=max(1.0, 1.0 - days))
        )  # clocks differ; a negative age is for tests
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def issued_certificate(
    ca: Path, subject: x509.Name, public: Any, names: Sequence[x509.GeneralName], days: float
) -> x509.Certificate:
    try:
        key = serialization.load_pem_private_key((ca / "ca.key").read_bytes(), None)
        authority = x509.load_pem_x509_certificate((ca / "ca.crt").read_bytes())
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"{ca} holds no authority ({type(error).__name__}). Give the ca folder of `hushfit "
            "federate init`."
        ) from None
    assert isinstance(key, rsa.RSAPrivateKey)
    builder = _builder(subject, authority.subject, public, key.public_key(), days)
    certificate = builder.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(
        key, hashes.SHA256()
    )
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError):
        raise InvalidArgument(
            f"the key in {ca} is not the one of its certificate. Put the right key back."
        ) from None
    return certificate


def signed_request(key: rsa.RSAPrivateKey, subject: x509.Name) -> str:
    made = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


def pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def key_pem(key: rsa.RSAPrivateKey) -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(
        serialization.Encoding.PEM, form, serialization.NoEncryption()
    ).decode()
