"""Where the studio works, and who may use it."""

import ipaddress
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from hushfit.errors import InvalidArgument

TABLES: Final = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather", ".xlsx")
_GIGABYTE: Final = 1 << 30
UNUSUAL: Final = (".", "-")  # hidden, or read as an option by a command line


@dataclass(frozen=True)
class Settings:
    """Where the studio works, and who may use it.

    Parameters
    ----------
    folder : Path
        Tables, schemas, models and, unless it is elsewhere, the ledger.
    table : str, optional
        Table that pages begin with.
    ledger : str, optional
        SQLite file or ``postgresql://`` address; ``ledger.db`` in the folder by default.
    host : str, default="127.0.0.1"
        Another than a loopback address needs a certificate and accounts.
    port : int, default=0
        0 takes a free one.
    certificate, key : Path, optional
        Of TLS (PEM).
    accounts : bool, default=False
        Whether people log in with tokens of the ledger, rather than with the address that the
        program prints.
    officers : tuple of str
        People who may only look. With ``read_only`` everybody may only look.
    read_only : bool, default=False
    max_upload : int
        Largest table that can be uploaded, in bytes.
    """

    folder: Path
    table: str | None = None
    ledger: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    certificate: Path | None = None
    key: Path | None = None
    accounts: bool = False
    officers: tuple[str, ...] = ()
    read_only: bool = False
    max_upload: int = 2 * _GIGABYTE
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    # Cookies do not know ports: another server on this machine would see those of a known path.
    root: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(9)}", repr=False)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InvalidArgument(
                f"{self.folder} is not a folder. Make it, or start the studio elsewhere."
            )
        if not self.is_loopback and (self.certificate is None or not self.accounts):
            raise InvalidArgument(
                f"--host {self.host} is not a loopback address: others could listen and act. Give "
                "--tls-cert, --tls-key and --accounts, or leave --host out and use an SSH tunnel."
            )
        if (self.certificate is None) is not (self.key is None):
            raise InvalidArgument("--tls-cert and --tls-key belong together. Give both.")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def location(self) -> str:
        """Location of the ledger as commands take it and pages show it: without a password."""
        return _without_password(self.ledger)[0] if self.ledger else "ledger.db"

    @property
    def environment(self) -> dict[str, str]:
        """What commands get in their environment, which other users cannot see."""
        password = _without_password(self.ledger or "")[1]
        return {} if password is None else {"PGPASSWORD": password}

    @property
    def scheme(self) -> str:
        """Scheme of its address."""
        return "http" if self.certificate is None else "https"

    def ledger_path(self) -> str:
        """Location of the ledger for this process, which works in another folder."""
        stated = self.ledger or self.location
        return stated if "://" in stated else str(self.folder / stated)

    def files(self, *endings: str, within: str = "") -> dict[str, Path]:
        """Files of the folder with some ending, by name; no other file can be named in a page."""
        place = self.folder / within
        found = sorted(place.iterdir()) if place.is_dir() else []
        return {
            path.name: path
            for path in found
            if path.name.endswith(endings or TABLES)
            and not path.name.startswith(UNUSUAL)
            and path.is_file()
            and path.resolve().is_relative_to(self.folder.resolve())
        }

    def file(self, name: str, *endings: str, within: str = "") -> Path:
        """One of these files; another name is refused."""
        known = self.files(*endings, within=within)
        if name not in known:
            raise InvalidArgument(
                f"there is no file {name!r} here. Choose one of: "
                f"{', '.join(known) or 'none, upload one'}."
            )
        return known[name]


def _without_password(location: str) -> tuple[str, str | None]:
    """Location of a ledger without its password, and the password."""
    if "://" not in location:
        return location, None
    parts = urlsplit(location)
    fields = dict(parse_qsl(parts.query, keep_blank_values=True))
    stated = fields.pop("password", None)
    password = stated if parts.password is None else unquote(parts.password)
    login, at, place = parts.netloc.rpartition("@")
    shown = parts._replace(netloc=login.partition(":")[0] + at + place, query=urlencode(fields))
    return shown.geturl(), password
