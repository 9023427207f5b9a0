"""Real runs over a network, without the transport: run, owner, coordinator, keys and envelopes.

Clock            Coordinates one attempt at a run
FINISHED         State of an owner whose run has finished
LOST             State of an owner that has not answered for too long
Progress         Progress of a run
REFUSED          State of an owner that has refused the run
RUNNING          State of an owner that takes part
Identity         A private key, its certificate, and the certificate authority that all trust
fingerprint_of   SHA-256 of a certificate, in hex
CLIENT_FILE      Path of an owner's settings in a job
SERVER_FILE      Path of the coordinator's settings in a job
client_settings  The only job settings that an owner accepts
OWNER_FILE       Environment variable with the path of an owner's file
SENDER           Message header with the site that sent it
Events           Log of an owner, one JSON line per event, on its own disk
HELLO            Kind of the message by which owners compare their agreement
Participant      One owner in one attempt at a run
WORD             Kind of the message of an owner in a round
outcome_path     Path of the result of a run
OwnerConfig      An owner as its own ``owner.toml`` describes it
RunSpec          A run as its coordinator requests it
made_estimator   The estimator that the terms of a run describe, not fitted
read_toml        A TOML file of moderate size
told_to_others   The text of an error that a coordinator may see
terms_of         What owners must agree on, from a schema and a model's settings
why_not_without  Why the others cannot continue without an owner, or None if they can
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand
from hushfit.federated.deployment._coordinator import (
    FINISHED,
    LOST,
    REFUSED,
    RUNNING,
    Clock,
    Progress,
)
from hushfit.federated.deployment._owner_config import OwnerConfig, read_toml
from hushfit.federated.deployment._refusal import told_to_others
from hushfit.federated.deployment._run_spec import (
    RunSpec,
    made_estimator,
    terms_of,
    why_not_without,
)

if TYPE_CHECKING:
    from hushfit.federated.deployment._envelope import Identity, fingerprint_of
    from hushfit.federated.deployment._job_guard import CLIENT_FILE, SERVER_FILE, client_settings
    from hushfit.federated.deployment._owner_processes import OWNER_FILE, SENDER
    from hushfit.federated.deployment._owner_side import (
        HELLO,
        WORD,
        Events,
        Participant,
        outcome_path,
    )
else:
    # Those who encrypt need `cryptography`. Descriptions of runs are read without it, by the audit.
    __getattr__ = on_demand(__name__)

__all__ = [
    "CLIENT_FILE",
    "FINISHED",
    "HELLO",
    "LOST",
    "OWNER_FILE",
    "REFUSED",
    "RUNNING",
    "SENDER",
    "SERVER_FILE",
    "WORD",
    "Clock",
    "Events",
    "Identity",
    "OwnerConfig",
    "Participant",
    "Progress",
    "RunSpec",
    "client_settings",
    "fingerprint_of",
    "made_estimator",
    "outcome_path",
    "read_toml",
    "terms_of",
    "told_to_others",
    "why_not_without",
]
