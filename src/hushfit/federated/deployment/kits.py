"""Keys, certificates and hardened kits of a federation. Every key is generated where it is used;
only requests and certificates are sent.

The engine's own kits let a coordinator send code and shell commands to the sites. The ones written
here do not: the policies of an owner allow two exact classes of its installed library, no foreign
code, no shell, no remote operation and no log streaming.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from hushfit.errors import InvalidArgument
from hushfit.federated._network import Network
from hushfit.federated.deployment._certificates import (
    DAYS,
    alternative_name,
    authority_of,
    issued_certificate,
    key_pem,
    new_key,
    pem,
    signed_request,
    subject_of,
)
from hushfit.federated.deployment._envelope import (
    Identity,
    check_certificate,
    common_name,
    fingerprint_of,
)
from hushfit.federated.deployment._run_spec import checked_name

EXECUTOR = "hushfit.federated.nvflare.OwnerExecutor"
CONTROLLER = "hushfit.federated.nvflare.CoordinatorController"
COORDINATOR, CONDUCTOR = "coordinator", "conductor@hushfit.federation"
_FORMAT = "hushfit-invitation-1"
_ENGINE = "nvflare.app_common"
_ROLES = ("project_admin", "org_admin", "lead", "member")
_RIGHTS = (
    "submit_job",
    "clone_job",
    "manage_job",
    "download_job",
    "view",
    "operate",
    "shell_commands",
    "byoc",
)


@dataclass(frozen=True)
class Invitation:
    """Public description of a federation, one JSON file.

    Parameters
    ----------
    name : str
        Of the federation.
    host : str
        Address of the coordinator.
    port : int
    network : Network
    authority : str
        Certificate of the authority (PEM).
    """

    name: str
    host: str
    port: int
    network: Network
    authority: str

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,40}", self.name) or not re.fullmatch(
            r"[A-Za-z0-9.-]{1,200}", self.host
        ):
            raise InvalidArgument(
                f"name={self.name!r} or host={self.host!r} is not usable. Use letters, digits, "
                "dots and dashes."
            )
        if not 0 < self.port < 65_536:
            raise InvalidArgument(f"port={self.port} is no port. Use a number from 1 to 65535.")
        for owner in self.network.names:
            checked_name(owner)

    def to_json(self) -> str:
        described = {"format": _FORMAT, "name": self.name, "host": self.host, "port": self.port}
        return (
            json.dumps(
                {**described, "network": self.network.to_dict(), "authority": self.authority},
                indent=1,
            )
            + "\n"
        )

    @classmethod
    def read(cls, path: str | Path) -> "Invitation":
        """Read an untrusted file."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            if data.pop("format") != _FORMAT:
                raise ValueError
            x509.load_pem_x509_certificate(data["authority"].encode())
            return cls(**{**data, "network": Network.from_dict(data["network"])})
        except InvalidArgument:
            raise
        except OSError as error:
            raise InvalidArgument(
                f"{path} cannot be read ({error.strerror}). Check the path."
            ) from None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InvalidArgument(
                f"{path} is no invitation of this version. Ask the coordinator for it again."
            ) from None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate; compare it over another channel than the file."""
        return fingerprint_of(x509.load_pem_x509_certificate(self.authority.encode()))


def found(folder: str | Path, name: str, host: str, port: int, network: Network) -> Invitation:
    """Create a federation: an authority, the coordinator's kit and the invitation.

    Parameters
    ----------
    folder : path
        Created; must not hold a federation yet. ``ca/`` in it can be moved to a neutral party.
    name : str
        Of the federation.
    host, port : str, int
        Address of the coordinator.
    network : Network
        The owners and the edges between them.

    Returns
    -------
    Invitation
        Also written to ``invitation.json``.
    """
    folder = Path(folder)
    if (folder / "invitation.json").exists():
        raise InvalidArgument(f"{folder} holds a federation already. Choose another folder.")
    key = new_key()
    authority = authority_of(key, name)
    invitation = Invitation(name, host, port, network, pem(authority))
    _write_secret(folder / "ca" / "ca.key", key_pem(key))
    _write(folder / "ca" / "ca.crt", pem(authority))
    _write(folder / "ca" / "issued.json", "{}\n")
    _write(folder / "invitation.json", invitation.to_json())
    _coordinator_kit(folder, invitation)
    _conductor_kit(folder, invitation)
    return invitation


def request(folder: str | Path, invitation: Invitation, name: str) -> Path:
    """Generate an owner's key and a certificate request.

    Parameters
    ----------
    folder : path
        Folder of the owner; the key is generated in its ``kit/startup`` and stays there.
    invitation : Invitation
    name : str
        One of the owners in the invitation.

    Returns
    -------
    path
        Of the request, ``<name>.csr``.
    """
    folder, name = Path(folder), checked_name(name)
    if name not in invitation.network.names:
        raise InvalidArgument(
            f"{name!r} is not invited; the owners are {', '.join(invitation.network.names)}. Ask "
            "the coordinator."
        )
    place = folder / "kit" / "startup" / "client.key"
    if place.exists():
        raise InvalidArgument(
            f"{folder} has a key already. Send {name}.csr, or choose another folder."
        )
    key = new_key()
    _write_secret(place, key_pem(key))
    _write(folder / f"{name}.csr", signed_request(key, subject_of(name, name)))
    return folder / f"{name}.csr"


def approve(
    authority: str | Path,
    invitation: Invitation,
    csr: bytes,
    days: float = DAYS,
    replace: bool = False,
) -> str:
    """Turn a request into a certificate.

    Parameters
    ----------
    authority : path
        The ``ca`` folder.
    invitation : Invitation
    csr : bytes
        The request (PEM).
    days : float, default=365
        How long the certificate is valid.
    replace : bool, default=False
        Issue a second certificate for a name that has one. Without it, no one can claim a name that
        is taken.

    Returns
    -------
    str
        The certificate (PEM).
    """
    folder = Path(authority)
    try:
        requested = x509.load_pem_x509_csr(csr)
    except ValueError:
        raise InvalidArgument(
            "this is no certificate request. Give the .csr file that `hushfit federate join` wrote."
        ) from None
    name, public = common_name(requested.subject), requested.public_key()
    if (
        not requested.is_signature_valid
        or not isinstance(public, rsa.RSAPublicKey)
        or public.key_size < 2048
    ):
        raise InvalidArgument(
            f"the request of {name!r} is not signed with an RSA key of 2048 bits or more. Make it "
            "with `join`."
        )
    if name not in invitation.network.names:
        raise InvalidArgument(
            f"the request is for {name!r}, which is not invited. The owners are "
            f"{', '.join(invitation.network.names)}."
        )
    issued = json.loads((folder / "issued.json").read_text(encoding="utf-8"))
    if name in issued and not replace:
        raise InvalidArgument(
            f"{name} has a certificate already ({issued[name][:16]}...): somebody else may claim "
            f"the name. If {name} confirms over another channel that it needs a new one, use "
            "--replace."
        )
    certificate = issued_certificate(
        folder, subject_of(name, name), public, [x509.DNSName(name)], days
    )
    _write(
        folder / "issued.json",
        json.dumps({**issued, name: fingerprint_of(certificate)}, indent=1) + "\n",
    )
    return pem(certificate)


def install(folder: str | Path, invitation: Invitation, name: str, certificate: str) -> Identity:
    """Complete an owner's kit with its certificate, and harden it.

    Parameters
    ----------
    folder : path
        Where `request` wrote the key.
    invitation : Invitation
    name : str
    certificate : str
        The result of `approve` (PEM).

    Returns
    -------
    Identity
    """
    startup = Path(folder) / "kit" / "startup"
    try:
        parsed = x509.load_pem_x509_certificate(certificate.encode())
    except ValueError:
        raise InvalidArgument(
            "this is no certificate. Give the .crt file that the coordinator sent."
        ) from None
    check_certificate(parsed, x509.load_pem_x509_certificate(invitation.authority.encode()), name)
    _write(startup / "client.crt", certificate)
    _write(startup / "rootCA.pem", invitation.authority)
    identity = Identity.read(name, startup)  # also refuses a certificate for another key
    _write_json(startup / "fed_client.json", _client_settings(invitation, name))
    _write_json(startup.parent / "local" / "resources.json", _owner_resources())
    _write_json(startup.parent / "local" / "authorization.json", _authorization(_OWNER_ALLOWS))
    _write_json(startup.parent / "local" / "log_config.json", _logging())
    return identity


# Permissions of the conductor's role at an owner: deploy a run and end it. Everything else is
# "none", for all roles.
_OWNER_ALLOWS = {"submit_job": "any", "manage_job": "any"}
_COORDINATOR_ALLOWS = {
    "submit_job": "any",
    "manage_job": "any",
    "view": "any",
    "download_job": "any",
}


def _authorization(lead: Mapping[str, str]) -> dict[str, Any]:
    nothing = dict.fromkeys(_RIGHTS, "none")
    return {
        "format_version": "1.0",
        "permissions": {role: {**nothing, **(lead if role == "lead" else {})} for role in _ROLES},
    }


def _owner_resources() -> dict[str, Any]:
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [EXECUTOR],
        "allow_log_streaming": False,
        "client": {"retry_timeout": 30, "compression": "Gzip"},
        "components": [
            {
                "id": "resource_manager",
                "path": f"{_ENGINE}.resource_managers.gpu_resource_manager.GPUResourceManager",
                "args": {"num_of_gpus": 0, "mem_per_gpu_in_GiB": 0, "expiration_period": 300},
            },
            {
                "id": "resource_consumer",
                "path": f"{_ENGINE}.resource_consumers.gpu_resource_consumer.GPUResourceConsumer",
                "args": {},
            },
            {
                "id": "process_launcher",
                "path": f"{_ENGINE}.job_launcher.client_process_launcher.ClientProcessJobLauncher",
                "args": {},
            },
        ],
    }


def _coordinator_resources(kit: Path) -> dict[str, Any]:
    storage = f"{_ENGINE}.storages.filesystem_storage.FilesystemStorage"
    persistor = f"{_ENGINE}.state_persistors.storage_state_persistor.StorageStatePersistor"
    snapshots = {"root_dir": str(kit / "store" / "snapshots"), "uri_root": "/"}
    return {
        "format_version": 2,
        "class_list_enforcement_mode": "enforce",
        "class_allow_list": [CONTROLLER],
        "servers": [
            {
                "admin_storage": "transfer",
                "max_num_clients": 1000,
                "heart_beat_timeout": 600,
                "admin_timeout": 10.0,
            }
        ],
        "snapshot_persistor": {
            "path": persistor,
            "args": {"uri_root": "/", "storage": {"path": storage, "args": snapshots}},
        },
        "components": [
            {
                "id": "job_scheduler",
                "path": f"{_ENGINE}.job_schedulers.job_scheduler.DefaultJobScheduler",
                "args": {"max_jobs": 1},
            },
            {
                "id": "job_manager",
                "path": "nvflare.apis.impl.job_def_manager.SimpleJobDefManager",
                "args": {"uri_root": str(kit / "store" / "jobs"), "job_store_id": "job_store"},
            },
            {"id": "job_store", "path": storage},
            {
                "id": "process_launcher",
                "path": f"{_ENGINE}.job_launcher.server_process_launcher.ServerProcessJobLauncher",
                "args": {},
            },
        ],
    }


def _client_settings(invitation: Invitation, name: str) -> dict[str, Any]:
    service = {"target": f"{invitation.host}:{invitation.port}", "scheme": "grpc"}
    return {
        "format_version": 2,
        "servers": [{"name": invitation.name, "service": service, "identity": COORDINATOR}],
        "client": {
            "ssl_private_key": "client.key",
            "ssl_cert": "client.crt",
            "ssl_root_cert": "rootCA.pem",
            "fqsn": name,
            "is_leaf": True,
            "connection_security": "mtls",
        },
    }


def _coordinator_kit(folder: Path, invitation: Invitation) -> None:
    kit = (folder / COORDINATOR).resolve()
    hosts = [alternative_name(host) for host in dict.fromkeys([COORDINATOR, invitation.host])]
    _own_certificate(
        folder, kit / "startup", "server", subject_of(COORDINATOR, COORDINATOR), hosts, invitation
    )
    server = {
        "name": invitation.name,
        "service": {"target": f"{invitation.host}:{invitation.port}", "scheme": "grpc"},
        "admin_server": invitation.host,
        "admin_port": invitation.port,
        "ssl_private_key": "server.key",
        "ssl_cert": "server.crt",
        "ssl_root_cert": "rootCA.pem",
        "connection_security": "mtls",
    }
    _write_json(kit / "startup" / "fed_server.json", {"format_version": 2, "servers": [server]})
    _write_json(kit / "local" / "resources.json", _coordinator_resources(kit))
    _write_json(kit / "local" / "authorization.json", _authorization(_COORDINATOR_ALLOWS))
    _write_json(kit / "local" / "log_config.json", _logging())


def _conductor_kit(folder: Path, invitation: Invitation) -> None:
    kit = folder / "conductor"
    subject = subject_of(CONDUCTOR, COORDINATOR, role="lead")
    _own_certificate(
        folder, kit / "startup", "client", subject, [x509.DNSName(CONDUCTOR)], invitation
    )
    admin = {
        "project_name": invitation.name,
        "username": CONDUCTOR,
        "server_identity": COORDINATOR,
        "scheme": "grpc",
        "host": invitation.host,
        "port": invitation.port,
        "connection_security": "mtls",
        "uid_source": "user_input",
        "with_file_transfer": True,
        "upload_dir": "transfer",
        "download_dir": "transfer",
        "client_key": "client.key",
        "client_cert": "client.crt",
        "ca_cert": "rootCA.pem",
    }
    _write_json(kit / "startup" / "fed_admin.json", {"format_version": 1, "admin": admin})
    settings = {
        "idle_timeout": 86_400.0,
        "login_timeout": 10.0,
        "with_debug": False,
        "authenticate_msg_timeout": 5.0,
        "prompt": "> ",
    }
    _write_json(kit / "local" / "resources.json", {"format_version": 1, "admin": settings})


def _logging() -> dict[str, Any]:
    """One rotating log file of the engine; this library writes nothing to it."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"plain": {"format": "%(asctime)s %(name)s %(levelname)s %(message)s"}},
        "handlers": {
            "file": {
                "class": "logging.handlers.RotatingFileHandler",
                "formatter": "plain",
                "filename": "log.txt",
                "maxBytes": 5_000_000,
                "backupCount": 3,
            }
        },
        "loggers": {"root": {"level": "INFO", "handlers": ["file"]}},
    }


def _own_certificate(
    folder: Path,
    startup: Path,
    stem: str,
    subject: x509.Name,
    names: Sequence[x509.GeneralName],
    to: Invitation,
) -> None:
    """Key and certificate of a party on the authority's own machine."""
    key = new_key()
    _write_secret(startup / f"{stem}.key", key_pem(key))
    _write(
        startup / f"{stem}.crt",
        pem(issued_certificate(folder / "ca", subject, key.public_key(), names, DAYS)),
    )
    _write(startup / "rootCA.pem", to.authority)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    _write(path, json.dumps(content, indent=2) + "\n")


def _write_secret(path: Path, text: str) -> None:
    """Write a file that only this user can read, from the first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)
