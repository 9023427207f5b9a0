"""A coordinator's server under an attacker's control: FLARE's own, plus a folder through which any
message can be sent to any owner.

A request is a JSON file ``<number>.ask`` in the folder; the reply is written next to it. Arguments
as for FLARE's server, after the folder.
"""

import base64
import json
import runpy
import sys
import threading
import time
from pathlib import Path

from nvflare.apis.fl_constant import ServerCommandKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.fuel.f3.cellnet.core_cell import CoreCell
from nvflare.fuel.f3.cellnet.core_cell import Message as CellMessage
from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
from nvflare.private.admin_defs import Message

FORGED = "forged-origin"


def _forge(message, *args, **kwargs):
    """An outgoing message in another site's name."""
    if message.get_header(FORGED):
        message.set_header(MessageHeaderKey.ORIGIN, message.get_header(FORGED))


def _payload(asked):
    body = base64.b64decode(asked["body64"]) if "body64" in asked else asked.get("body")
    if asked["kind"] == "admin":
        message = Message(asked["topic"], body)
        message.set_headers(asked.get("headers", {}))
        message.set_header(ServerCommandKey.PEER_FL_CONTEXT, FLContext())
        return message
    if asked["kind"] == "aux":
        letter = Shareable()
        letter["body"] = body
        letter.set_peer_props({"__identity_name__": "server"})
        for name, value in asked.get("headers", {}).items():
            letter.set_header(name, value)
        return letter
    return body


def _shown(reply):
    payload = reply.payload
    if isinstance(payload, Message):
        payload = {
            "body": str(payload.body),
            "headers": {key: str(value) for key, value in payload.headers.items()},
        }
    elif isinstance(payload, dict):
        payload = {str(key): repr(value) for key, value in payload.items()}
    code = str(reply.get_header(MessageHeaderKey.RETURN_CODE))
    return {
        "code": code,
        "error": str(reply.get_header(MessageHeaderKey.ERROR)),
        "payload": payload if isinstance(payload, dict) else repr(payload),
    }


def serve(folder):
    while "server" not in CoreCell.ALL_CELLS:
        time.sleep(0.3)
    core = CoreCell.ALL_CELLS["server"]
    core.add_outgoing_request_filter(channel="*", topic="*", cb=_forge)
    while True:
        for path in sorted(folder.glob("*.ask")):
            asked = json.loads(path.read_text())
            headers = {FORGED: asked["origin"]} if asked.get("origin") else {}
            request = CellMessage(headers=headers, payload=_payload(asked))
            try:
                reply = core.send_request(
                    asked["channel"],
                    asked["topic"],
                    asked["to"],
                    request,
                    timeout=asked.get("timeout", 20.0),
                )
                answer = _shown(reply)
            except Exception as error:
                answer = {"code": "exception", "error": repr(error), "payload": None}
            part = path.with_suffix(".part")
            part.write_text(json.dumps(answer))
            part.rename(path.with_suffix(".reply"))
            path.unlink()
        time.sleep(0.01)


if __name__ == "__main__":
    inbox = Path(sys.argv[1])
    threading.Thread(target=serve, args=(inbox,), daemon=True).start()
    module = "nvflare.private.fed.app.server.server_train"
    sys.argv = [module, *sys.argv[2:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
