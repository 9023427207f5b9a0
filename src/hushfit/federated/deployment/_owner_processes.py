"""The engine's two processes at an owner, restricted to what a run needs.

``python -m hushfit.federated.deployment._owner_processes site|worker ...`` starts FLARE's own
client or worker with these restrictions. By default FLARE lets whoever controls the server read
files by shell commands (the server itself decides whether a command needs permission), change
logging, and inspect the process; it reads settings as HOCON, which can include environment
variables, files and web pages; and it does not report to a handler where a message comes from. Here
only JSON is read, only the commands of a run are answered, a job passes the `Door` before it is
unpacked, and each message carries the name of its sender.
"""

import os
import runpy
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from nvflare.apis.shareable import Shareable
from nvflare.app_common.job_launcher.client_process_launcher import ClientProcessJobLauncher
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.fuel.f3.cellnet.fqcn import FqcnInfo
from nvflare.fuel.utils.config import ConfigFormat
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.fuel.utils.zip_utils import unzip_all_from_bytes
from nvflare.lighter.utils import verify_folder_signature_and_get_signers
from nvflare.private.admin_defs import error_reply
from nvflare.private.defs import RequestHeader
from nvflare.private.fed.client import admin_commands, scheduler_cmds, training_cmds
from nvflare.private.fed.client.client_req_processors import ClientRequestProcessors
from nvflare.private.fed.client.command_agent import CommandAgent
from nvflare.utils.job_launcher_utils import generate_client_command

from hushfit.federated.deployment._job_guard import Door
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment.kits import CONDUCTOR, EXECUTOR

SENDER = "hushfit.sender"
"""Message header at an owner: the site that sent it, as authenticated by the engine's server."""

OWNER_FILE = "HUSHFIT_OWNER_FILE"
_MODULE = "hushfit.federated.deployment._owner_processes"
_SITE, _WORKER = (
    "nvflare.private.fed.app.client.client_train",
    "nvflare.private.fed.app.client.worker_process",
)
_NETWORK_MANAGER, _HEARTBEAT = "_net_manager", "heartbeat"
_REFUSED = "it cannot take part; its own events say why."


def read_json_only() -> None:
    """Read settings as JSON only, whatever a file is called: no HOCON, no YAML."""
    ConfigFactory._fmt2Loader = {ConfigFormat.JSON: ConfigFactory._fmt2Loader[ConfigFormat.JSON]}


def without_network_manager() -> None:
    """Disable the engine's remote diagnostics except for the heartbeat."""
    register = CoreCell.register_request_cb

    def restricted(self: Any, channel: str, topic: str, cb: Any, *args: Any, **kwargs: Any) -> None:
        if channel != _NETWORK_MANAGER or topic == _HEARTBEAT:
            register(self, channel, topic, cb, *args, **kwargs)

    CoreCell.register_request_cb = restricted


class GuardedDeploy(training_cmds.DeployProcessor):  # type: ignore[misc]  # the engine has no types
    """Deploys jobs that the door accepts."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def process(self, req: Any, app_ctx: Any) -> Any:
        job, meta = req.get_header(RequestHeader.JOB_ID), req.get_header(RequestHeader.JOB_META)
        why = self._door.admit(job, req.body, meta)
        return super().process(req, app_ctx) if why is None else error_reply(why)


# the engine has no types
class GuardedStart(scheduler_cmds.StartJobProcessor):  # type: ignore[misc]
    """Starts an accepted job, once."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def process(self, req: Any, app_ctx: Any) -> Any:
        started = self._door.start(req.get_header(RequestHeader.JOB_ID))
        return super().process(req, app_ctx) if started else error_reply(_REFUSED)


def signed_by_conductor(archive: bytes, authority: Path) -> bool:
    """Whether a job's files have the conductor's signature; the engine itself accepts that of any
    member of the federation.
    """
    with tempfile.TemporaryDirectory() as folder:
        unzip_all_from_bytes(archive, folder)
        verified, signers = verify_folder_signature_and_get_signers(folder, str(authority))
    return bool(verified and signers and all(signer[0] == CONDUCTOR for signer in signers))


def answer_runs_only(door: Door) -> None:
    """Answer only the commands by which a server deploys, starts and ends a job."""
    ClientRequestProcessors.request_processors[:] = [
        GuardedDeploy(door),
        GuardedStart(door),
        scheduler_cmds.CheckResourceProcessor(),
        scheduler_cmds.CancelResourceProcessor(),
        training_cmds.AbortAppProcessor(),
        training_cmds.NotifyJobStatusProcessor(),
    ]


def start_restricted_workers() -> None:
    """Start workers through this module too."""

    def get_command(self: Any, job_meta: Any, fl_ctx: Any) -> str:
        command: str = generate_client_command(fl_ctx)
        if f"-m {_WORKER} " not in command:
            raise RuntimeError("this version of the engine starts its worker in another way")
        return command.replace(f"-m {_WORKER} ", f"-m {_MODULE} worker ", 1)

    ClientProcessJobLauncher.get_command = get_command


def end_runs_only() -> None:
    """In a worker, answer only the commands by which its parent ends it."""
    allowed = (
        admin_commands.CheckStatusCommand,
        admin_commands.AbortCommand,
        admin_commands.ByeCommand,
    )
    admin_commands.AdminCommands.commands[:] = [
        c for c in admin_commands.AdminCommands.commands if type(c) in allowed
    ]


def name_senders() -> None:
    """In a worker, overwrite the sender that a message claims by its true origin."""
    dispatch = CommandAgent._aux_communication

    def named(self: Any, request: Any) -> Any:
        if isinstance(request.payload, Shareable):
            request.payload.set_header(
                SENDER, FqcnInfo(request.get_header(MessageHeaderKey.ORIGIN, "")).root
            )
        return dispatch(self, request)

    CommandAgent._aux_communication = named


def main(arguments: list[str]) -> None:
    """Restrict the engine, then run it."""
    kind, *rest = arguments
    read_json_only()
    without_network_manager()
    if kind == "site":
        owner_file = Path(os.environ[OWNER_FILE])
        authority = OwnerConfig.load(owner_file).kit / "startup" / "rootCA.pem"
        answer_runs_only(
            Door(owner_file, EXECUTOR, partial(signed_by_conductor, authority=authority))
        )
        start_restricted_workers()
    else:
        end_runs_only()
        name_senders()
    module = {"site": _SITE, "worker": _WORKER}[kind]
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
