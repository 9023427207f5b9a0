"""Exports of a ledger for auditors: every entry as a line of JSON, with a signature at the end.

An auditor who has the public key needs neither the ledger nor its secrets: hashes, rules and totals
are checked from the export alone.
"""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushfit._json import no_key_twice
from hushfit.errors import InvalidArgument, LedgerError
from hushfit.privacy.ledger._chain import Entry, canonical, link_of

Chains = Mapping[str, tuple[Entry, ...]]
_ADDED = ("dataset", "number", "hash")


@dataclass(frozen=True)
class Export:
    """An export that was read.

    Parameters
    ----------
    chains : mapping of str to tuple of Entry
        Entries of each data set.
    text : str
        All lines without the signature.
    signature : str, optional
        Ed25519 signature of the text, in Base64.
    """

    chains: Chains
    text: str
    signature: str | None = None

    def refuse_unless_signed(self, public_key: str | os.PathLike[str]) -> None:
        """Refuse an export that the holder of a key has not signed.

        Parameters
        ----------
        public_key : path
            Ed25519 public key (PEM).
        """
        from cryptography.exceptions import InvalidSignature

        key = _key(public_key, public=True)
        if self.signature is None:
            raise LedgerError(
                "the export has no signature. Ask for one that was written with `hushfit ledger "
                "export --sign`."
            )
        try:
            key.verify(base64.b64decode(self.signature), self.text.encode())
        except (InvalidSignature, ValueError):
            raise LedgerError(
                f"the export was not signed with the key of {os.fspath(public_key)}, or was "
                "changed afterwards. Ask for another one, or check the key."
            ) from None

    def hash_problems(self) -> dict[str, list[str]]:
        """Problems of the numbers and hashes of each data set; empty lists if there are none."""
        return {name: _hash_problems(name, chain) for name, chain in self.chains.items()}


def export_text(chains: Chains, private_key: str | os.PathLike[str] | None = None) -> str:
    """Every entry as a line of JSON, and a signature if a key is given.

    Parameters
    ----------
    chains : mapping of str to tuple of Entry
        Entries of each data set.
    private_key : path, optional
        Ed25519 private key (PEM).

    Returns
    -------
    str
    """
    lines = [
        json.dumps(
            {**entry.body, "dataset": name, "number": entry.number, "hash": entry.hash},
            sort_keys=True,
        )
        for name, chain in chains.items()
        for entry in chain
    ]
    text = "".join(line + "\n" for line in lines)
    if private_key is None:
        return text
    signature = base64.b64encode(_key(private_key).sign(text.encode())).decode()
    stated = {"signature": signature, "algorithm": "ed25519", "entries": len(lines)}
    return text + json.dumps(stated, sort_keys=True) + "\n"


def read_export(path: str | os.PathLike[str]) -> Export:
    """Read what `hushfit ledger export` wrote.

    Parameters
    ----------
    path : path

    Returns
    -------
    Export
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
        written = [line for line in lines if line.strip()]
        parsed = [json.loads(line, object_pairs_hook=no_key_twice) for line in written]
        signature = parsed.pop()["signature"] if parsed and "signature" in parsed[-1] else None
        chains: dict[str, list[Entry]] = {}
        for entry in parsed:
            body = {name: value for name, value in entry.items() if name not in _ADDED}
            own = {"dataset": entry["dataset"]} if entry["kind"] == "open" else {}
            chain = chains.setdefault(str(entry["dataset"]), [])
            chain.append(Entry(int(entry["number"]), {**body, **own}, str(entry["hash"])))
    except OSError as error:
        raise InvalidArgument(
            f"the export {os.fspath(path)} cannot be read ({error.strerror}). Check the path."
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        raise InvalidArgument(
            f"{os.fspath(path)} is not what `hushfit ledger export` wrote. Check the path."
        ) from None
    if not chains:
        raise InvalidArgument(
            f"the export {os.fspath(path)} has no entries. Give one with entries."
        )
    text = "".join(lines[:-1] if signature is not None else lines)
    return Export({name: tuple(chain) for name, chain in chains.items()}, text, signature)


def _hash_problems(name: str, chain: tuple[Entry, ...]) -> list[str]:
    for place, entry in enumerate(chain):
        if entry.number != place:
            return [f"entry {place} is missing"]
        if link_of(chain[max(place - 1, 0) : place], canonical(entry.body)) != entry.hash:
            return [f"entry {place} was edited, or the one before it was"]
    return []


def _key(path: str | os.PathLike[str], *, public: bool = False) -> Any:
    """Ed25519 key from a PEM file."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
        from cryptography.hazmat.primitives.serialization import (
            load_pem_private_key,
            load_pem_public_key,
        )
    except ModuleNotFoundError:
        raise InvalidArgument(
            "signatures need cryptography, which is not installed. Run `pip install "
            "hushfit[teams]`."
        ) from None
    kind = ed25519.Ed25519PublicKey if public else ed25519.Ed25519PrivateKey
    try:
        pem = Path(path).read_bytes()
        found = load_pem_public_key(pem) if public else load_pem_private_key(pem, None)
    except OSError as error:
        raise InvalidArgument(
            f"the key {os.fspath(path)} cannot be read ({error.strerror}). Check the path."
        ) from None
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, kind):
        command = (
            "openssl pkey -in sign.pem -pubout -out signer.pem"
            if public
            else "openssl genpkey -algorithm ed25519 -out sign.pem"
        )
        raise InvalidArgument(
            f"{os.fspath(path)} is not an Ed25519 {'public' if public else 'private'} key in PEM. "
            f"Make one with `{command}`."
        )
    return found
