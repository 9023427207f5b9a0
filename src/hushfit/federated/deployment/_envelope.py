"""Words between two owners, closed for everybody in between, the coordinator included.

The engine's own end-to-end mode encrypts, but takes a message that is marked as already decrypted
at its word, so whoever relays it could forge one. Here two owners greet each other with fresh keys,
signed with the keys of their certificates; from these they derive one key for each direction; and a
word is bound to its run, attempt, round, sender and receiver. Who holds the certificate authority
could still invent an owner, unless the certificate's fingerprint was told on another way
(``[peers]`` in owner.toml).
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
_MOST_HELLO = 1 << 14
_SAID = {"run", "attempt", "settings", "to", "turns", "heard", "key", "certificate", "signature"}
_PSS = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=32)


@dataclass(frozen=True)
class Identity:
    """A private key, the certificate that names its holder, and the authority that everybody
    trusts.
    """

    name: str
    key: rsa.RSAPrivateKey = field(repr=False)
    certificate: x509.Certificate
    authority: x509.Certificate

    @classmethod
    def read(cls, name: str, startup: Path) -> "Identity":
        """From the folder of a kit; a key that does not fit, a stranger's or an old certificate
        is refused.
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
    """Refuse a certificate of another name or authority, or out of its time."""
    if common_name(certificate.subject) != name:
        raise InvalidArgument(
            f"the certificate names {common_name(certificate.subject)!r}, not {name!r}. An owner "
            "speaks for itself only."
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
    """What a neighbour has said of itself under its signature.

    Parameters
    ----------
    name : str
        As its certificate proves.
    turns : int
        Rounds that it has answered, by its own journal.
    heard : int
        The last round of which it has heard this owner; -1 if none.
    secret : bytes
        Shared with it, for keys.
    """

    name: str
    turns: int
    heard: int
    secret: bytes = field(repr=False)


@dataclass(eq=False)
class Envelopes:
    """One owner's closed envelopes to and from its neighbours, for one attempt at a run.

    Parameters
    ----------
    me : Identity
    run : str
    attempt : int
    neighbours : tuple of str
    pins : mapping from name to str
        Fingerprints of certificates.
    settings : str
        Hash of all that this owner was told about the attempt; greetings with another one are
        refused.
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
        """A signed greeting with this attempt's public key, and how far this owner's journal has
        come.
        """
        said = {
            "run": self.run,
            "attempt": self.attempt,
            "settings": self.settings,
            "to": receiver,
            "turns": turns,
            "heard": heard,
            "key": self._ephemeral.public_key().public_bytes_raw().hex(),
            "certificate": self.me.certificate.public_bytes(serialization.Encoding.PEM).decode(),
        }
        signature = self.me.key.sign(_canonical(said), _PSS, hashes.SHA256())
        return json.dumps({**said, "signature": signature.hex()}).encode()

    def greeted(self, raw: bytes) -> Greeting:
        """Read a neighbour's greeting, which its signature proves; nothing is opened with it
        before `accept`.
        """
        said, certificate, name = self._parsed(raw)
        check_certificate(certificate, self.me.authority, name)
        public = certificate.public_key()
        try:
            if not isinstance(public, rsa.RSAPublicKey):
                raise ValueError
            public.verify(
                bytes.fromhex(said.pop("signature")), _canonical(said), _PSS, hashes.SHA256()
            )
            theirs = X25519PublicKey.from_public_bytes(bytes.fromhex(said["key"]))
        except (InvalidSignature, ValueError, TypeError):
            raise InvalidArgument(
                f"a greeting in the name of {name} is not signed with its key. It was refused."
            ) from None
        if (said["run"], said["attempt"]) != (self.run, self.attempt):
            raise InvalidArgument(
                f"{name} greets for run {said['run']!r}, attempt {said['attempt']!r}: an old "
                "greeting. It was refused."
            )
        if said["to"] != self.me.name:
            raise InvalidArgument(f"{name} greets somebody else. It was refused.")
        if said["settings"] != self.settings:
            raise InvalidArgument(
                f"{name} was told other settings for run {self.run}, attempt {self.attempt}: the "
                "coordinator has described it "
                "differently to different owners. It was refused."
            )
        try:
            shared = self._ephemeral.exchange(theirs)
        except ValueError:  # a point of low order
            raise InvalidArgument(
                f"{name} greets with a key that hides nothing. It was refused."
            ) from None
        return Greeting(name, said["turns"], said["heard"], shared)

    def accept(self, greeting: Greeting) -> None:
        """From now on envelopes to and from this neighbour are closed with the keys of its
        greeting.
        """
        name, mine = greeting.name, self.me.name
        self._keys[name] = (
            self._derived(greeting.secret, mine, name),
            self._derived(greeting.secret, name, mine),
        )

    def _parsed(self, raw: bytes) -> tuple[dict[str, Any], x509.Certificate, str]:
        try:
            if len(raw) > _MOST_HELLO:
                raise ValueError
            said = json.loads(raw)
            certificate = x509.load_pem_x509_certificate(said["certificate"].encode())
            if set(said) != _SAID or not all(type(said[key]) is int for key in ("turns", "heard")):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise InvalidArgument("a greeting cannot be read. It was refused.") from None
        name = common_name(certificate.subject)
        if name not in self.neighbours:
            raise InvalidArgument(
                f"{name!r} greets, but is no neighbour of {self.me.name} in this run. It was "
                "refused."
            )
        pinned = self.pins.get(name)
        if pinned is not None and pinned.lower().replace(":", "") != fingerprint_of(certificate):
            raise InvalidArgument(
                f"the certificate of {name} is not the one whose fingerprint is in owner.toml. "
                f"Call {name}, and ask."
            )
        return said, certificate, name

    def _derived(self, shared: bytes, sender: str, receiver: str) -> AESGCM:
        about = {"run": self.run, "attempt": self.attempt, "settings": self.settings}
        info = _canonical({**about, "from": sender, "to": receiver})
        return AESGCM(HKDF(hashes.SHA256(), 32, None, info).derive(shared))

    def closed(self, receiver: str, number: int, word: bytes) -> bytes:
        """A word in an envelope that only its receiver can open."""
        nonce = os.urandom(_NONCE)
        sealed = self._keys[receiver][0].encrypt(
            nonce, word, _about(self.run, self.attempt, number, self.me.name, receiver)
        )
        head = json.dumps({"from": self.me.name, "round": number}).encode()
        return len(head).to_bytes(2, "big") + head + nonce + sealed

    def opened(self, raw: bytes) -> tuple[str, int, bytes]:
        """Sender, round and word; refuses whatever is not exactly what a neighbour closed for
        this owner.
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
                f"an envelope claims to be from {sender!r}, who has not greeted. It was refused."
            )
        try:
            word = self._keys[sender][1].decrypt(
                rest[:_NONCE],
                rest[_NONCE:],
                _about(self.run, self.attempt, number, sender, self.me.name),
            )
        except (InvalidTag, ValueError):
            raise InvalidArgument(
                f"an envelope in the name of {sender} was not closed by it for this round. It was "
                "refused."
            ) from None
        return sender, number, word


def _canonical(said: Mapping[str, Any]) -> bytes:
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def _about(run: str, attempt: int, number: int, sender: str, receiver: str) -> bytes:
    return _canonical(
        {"run": run, "attempt": attempt, "round": number, "from": sender, "to": receiver}
    )
