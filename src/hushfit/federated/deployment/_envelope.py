"""End-to-end encrypted messages between two owners; no relay can read or forge them, the
coordinator included.

The engine's own end-to-end mode encrypts, but accepts a message that is marked as already
decrypted, so a relay could forge one. Here two owners exchange greetings with fresh keys, signed
with the keys of their certificates. From these they derive one key for each direction, and a
message is bound to its run, attempt, round, sender and receiver. Whoever holds the certificate
authority could still invent an owner, unless the certificate's fingerprint was compared over
another channel (``[peers]`` in owner.toml).
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from hushfit.errors import InvalidArgument

_NONCE = 12
_MAX_HELLO = 1 << 14
_GREETING_KEYS = {
    "run",
    "attempt",
    "settings",
    "to",
    "turns",
    "heard",
    "key",
    "certificate",
    "signature",
}
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)


@dataclass(frozen=True)
class Identity:
    """A private key, its certificate, and the certificate authority that all trust."""

    name: str
    key: rsa.RSAPrivateKey = field(repr=False)
    certificate: x509.Certificate
    authority: x509.Certificate

    @classmethod
    def read(cls, name: str, startup: Path) -> "Identity":
        """Read from the folder of a kit; a key that does not match, or a foreign or expired
        certificate, is refused.
        """
        try:
            key = serialization.load_pem_private_key((startup / "client.key").read_bytes(), None)
            certificate = x509.load_pem_x509_certificate((startup / "client.crt").read_bytes())
            authority = x509.load_pem_x509_certificate((startup / "rootCA.pem").read_bytes())
        except (OSError, ValueError, TypeError) as error:
            raise InvalidArgument(
                f"the kit of {name} has no readable key and certificate ({type(error).__name__}). "
                "Join again."
            ) from None
        if not isinstance(key, rsa.RSAPrivateKey) or key.public_key() != certificate.public_key():
            raise InvalidArgument(
                f"the private key in the kit of {name} is not the one of its certificate. Put the "
                "right key back."
            )
        check_certificate(certificate, authority, name)
        return cls(name, key, certificate, authority)


def fingerprint_of(certificate: x509.Certificate) -> str:
    """SHA-256 of a certificate, in hex."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def common_name(subject: x509.Name) -> str:
    """The one common name of a subject."""
    found = subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return str(found[0].value) if len(found) == 1 else ""


def check_certificate(
    certificate: x509.Certificate, authority: x509.Certificate, name: str
) -> None:
    """Refuse a certificate of another name or authority, or outside its validity period."""
    if common_name(certificate.subject) != name:
        raise InvalidArgument(
            f"the certificate names {common_name(certificate.subject)!r}, not {name!r}. Use the "
            "certificate of this owner."
        )
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        raise InvalidArgument(
            f"the certificate of {name} is not from this federation's authority. Join this "
            "federation."
        ) from None
    now = datetime.now(UTC)
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        until = certificate.not_valid_after_utc.date().isoformat()
        raise InvalidArgument(
            f"the certificate of {name} is not valid now (until {until}). Ask for a new one: "
            "hushfit federate join."
        )


@dataclass(frozen=True)
class Greeting:
    """A neighbour's signed greeting.

    Parameters
    ----------
    name : str
        As its certificate proves.
    turns : int
        Rounds that it has answered, according to its journal.
    heard : int
        The last round in which it has received this owner's message; -1 if none.
    secret : bytes
        Shared secret, from which keys are derived.
    """

    name: str
    turns: int
    heard: int
    secret: bytes = field(repr=False)


@dataclass(eq=False)
class Envelopes:
    """Encrypted envelopes between an owner and its neighbours, for one attempt at a run.

    Parameters
    ----------
    me : Identity
    run : str
    attempt : int
    neighbours : tuple of str
    pins : mapping from name to str
        Fingerprints of certificates.
    settings : str
        Hash of the description of the attempt that this owner received; greetings with another one
        are refused.
    """

    me: Identity
    run: str
    attempt: int
    neighbours: tuple[str, ...]
    pins: Mapping[str, str] = field(default_factory=dict)
    settings: str = ""

    def __post_init__(self) -> None:
        self._ephemeral = X25519PrivateKey.generate()
        self._keys: dict[str, tuple[AESGCM, AESGCM]] = {}

    def hello(self, receiver: str, turns: int = 0, heard: int = -1) -> bytes:
        """A signed greeting with this attempt's public key and the position of this owner's
        journal.
        """
        fields = {
            "run": self.run,
            "attempt": self.attempt,
            "settings": self.settings,
            "to": receiver,
            "turns": turns,
            "heard": heard,
            "key": self._ephemeral.public_key().public_bytes_raw().hex(),
            "certificate": self.me.certificate.public_bytes(serialization.Encoding.PEM).decode(),
        }
        signature = self.me.key.sign(_canonical(fields), _PSS, hashes.SHA256())
        return json.dumps({**fields, "signature": signature.hex()}).encode()

    def greeted(self, raw: bytes) -> Greeting:
        """Read and verify a neighbour's greeting; its keys are not used before `accept`."""
        fields, certificate, name = self._parsed(raw)
        check_certificate(certificate, self.me.authority, name)
        public = certificate.public_key()
        try:
            if not isinstance(public, rsa.RSAPublicKey):
                raise ValueError
            public.verify(
                bytes.fromhex(fields.pop("signature")), _canonical(fields), _PSS, hashes.SHA256()
            )
            theirs = X25519PublicKey.from_public_bytes(bytes.fromhex(fields["key"]))
        except (InvalidSignature, ValueError, TypeError):
            raise InvalidArgument(
                f"a greeting in the name of {name} is not signed with its key. It was refused."
            ) from None
        if (fields["run"], fields["attempt"]) != (self.run, self.attempt):
            raise InvalidArgument(
                f"the greeting of {name} is for run {fields['run']!r}, attempt "
                f"{fields['attempt']!r}: it is an old greeting. It was refused."
            )
        if fields["to"] != self.me.name:
            raise InvalidArgument(f"the greeting of {name} is for another owner. It was refused.")
        if fields["settings"] != self.settings:
            raise InvalidArgument(
                f"{name} received other settings for run {self.run}, attempt {self.attempt}: the "
                "coordinator has described it differently to different owners. It was refused."
            )
        try:
            shared = self._ephemeral.exchange(theirs)
        except ValueError:  # a point of low order
            raise InvalidArgument(
                f"the greeting of {name} has a key that gives no secrecy. It was refused."
            ) from None
        return Greeting(name, fields["turns"], fields["heard"], shared)

    def accept(self, greeting: Greeting) -> None:
        """Use the keys of this greeting for all envelopes to and from its sender."""
        name, mine = greeting.name, self.me.name
        self._keys[name] = (
            self._derived(greeting.secret, mine, name),
            self._derived(greeting.secret, name, mine),
        )

    def _parsed(self, raw: bytes) -> tuple[dict[str, Any], x509.Certificate, str]:
        try:
            if len(raw) > _MAX_HELLO:
                raise ValueError
            fields = json.loads(raw)
            certificate = x509.load_pem_x509_certificate(fields["certificate"].encode())
            if set(fields) != _GREETING_KEYS or not all(
                type(fields[key]) is int for key in ("turns", "heard")
            ):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidArgument("a greeting cannot be read. It was refused.") from None
        name = common_name(certificate.subject)
        if name not in self.neighbours:
            raise InvalidArgument(
                f"a greeting is from {name!r}, which is no neighbour of {self.me.name} in this "
                "run. It was refused."
            )
        pinned = self.pins.get(name)
        if pinned is not None and pinned.lower().replace(":", "") != fingerprint_of(certificate):
            raise InvalidArgument(
                f"the certificate of {name} is not the one whose fingerprint is in owner.toml. "
                f"Call {name} and compare."
            )
        return fields, certificate, name

    def _derived(self, shared: bytes, sender: str, receiver: str) -> AESGCM:
        about = {"run": self.run, "attempt": self.attempt, "settings": self.settings}
        info = _canonical({**about, "from": sender, "to": receiver})
        return AESGCM(HKDF(hashes.SHA256(), 32, None, info).derive(shared))

    def closed(self, receiver: str, number: int, message: bytes) -> bytes:
        """Encrypt a message for one receiver."""
        nonce = os.urandom(_NONCE)
        sealed = self._keys[receiver][0].encrypt(
            nonce, message, _about(self.run, self.attempt, number, self.me.name, receiver)
        )
        head = json.dumps({"from": self.me.name, "round": number}).encode()
        return len(head).to_bytes(2, "big") + head + nonce + sealed

    def opened(self, raw: bytes) -> tuple[str, int, bytes]:
        """Sender, round and message; refuses everything that a neighbour did not encrypt for this
        owner and round.
        """
        try:
            size = int.from_bytes(raw[:2], "big")
            head, rest = json.loads(raw[2 : 2 + size]), raw[2 + size :]
            sender, number = head["from"], head["round"]
            if (
                not isinstance(sender, str)
                or not isinstance(number, int)
                or isinstance(number, bool)
            ):
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise InvalidArgument("an envelope cannot be read. It was refused.") from None
        if sender not in self._keys:
            raise InvalidArgument(
                f"an envelope claims to be from {sender!r}, which has sent no greeting. It was "
                "refused."
            )
        try:
            message = self._keys[sender][1].decrypt(
                rest[:_NONCE],
                rest[_NONCE:],
                _about(self.run, self.attempt, number, sender, self.me.name),
            )
        except (InvalidTag, ValueError):
            raise InvalidArgument(
                f"an envelope in the name of {sender} was not encrypted by it for this round. It "
                "was refused."
            ) from None
        return sender, number, message


def _canonical(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()


def _about(run: str, attempt: int, number: int, sender: str, receiver: str) -> bytes:
    return _canonical(
        {"run": run, "attempt": attempt, "round": number, "from": sender, "to": receiver}
    )
