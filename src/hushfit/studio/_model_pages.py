"""Pages of models: compare, download, verify."""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route

from hushfit.errors import HushfitError, InvalidArgument
from hushfit.studio._access import session_of
from hushfit.studio._jobs import message_in
from hushfit.studio._studio import Studio

# The page about a model has its own style and script in it. In a sandbox it is of no origin, so
# that they could not use the session.
_REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts"
)
_SCORES = (
    *("accuracy", "balanced_accuracy", "auc", "pr_auc", "log_loss", "calibration_error"),
    *("rmse", "mae", "r2", "deviance"),
)
_KEY_AT_THE_END = re.compile(r"-([0-9a-f]{8})[0-9a-f]{24}\.json$")
_MADE = {
    "onnx": ("export", ".onnx", "application/octet-stream"),
    "card": ("card", ".md", "text/markdown"),
}


class ModelPages:
    """Compare, download, verify."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.routes: Sequence[Route] = [
            Route("/models", self.models),
            Route("/models/{name}/report", self.report),
            Route("/models/{name}/verify", self.verify),
            Route("/models/{name}/{kind}", self.download),
        ]

    def models(self, request: Request) -> Response:
        """All models beside each other, with their scores on a held-out table if one is named."""
        settings = self._studio.settings
        found = settings.files(".json", within="models")
        pages = settings.files(".html", within="models")
        described = [_described(path) for path in found.values()]
        held_out = str(request.query_params.get("held_out", ""))
        if held_out and session_of(request).may_spend:
            table = settings.file(held_out).name
            described = [model | {"scores": self._scores(model, table)} for model in described]
        return self._studio.page(
            request,
            "models.html",
            models=described,
            have_pages={name.removesuffix(".html") + ".json" for name in pages},
            tables=list(settings.files()),
            held_out=held_out,
            scores=[name for name in _SCORES if any(name in m["scores"] for m in described)],
        )

    def _scores(self, model: dict[str, Any], table: str) -> dict[str, float]:
        """What ``hushfit evaluate`` says of a model; nothing if it cannot."""
        if model["problem"]:
            return {}
        code, output = self._studio.run(("evaluate", f"models/{model['name']}", table))
        told = json.loads(output) if code == 0 else {}
        return {name: told[name] for name in _SCORES if isinstance(told.get(name), float)}

    def report(self, request: Request) -> Response:
        """The page about a model, in a sandbox."""
        name = request.path_params["name"].removesuffix(".json") + ".html"
        path = self._studio.settings.file(name, ".html", within="models")
        headers = {"content-security-policy": _REPORT_POLICY}
        return HTMLResponse(path.read_text(encoding="utf-8"), headers=headers)

    def verify(self, request: Request) -> Response:
        """Whether a model is as the ledger recorded it."""
        name = request.path_params["name"]
        path = self._studio.settings.file(name, ".json", within="models")
        location = self._studio.settings.location
        line = ("ledger", "verify", location, "--model", f"models/{path.name}")
        code, output = self._studio.run(line)
        text = (
            "It is as the ledger recorded it, and the ledger verifies."
            if code == 0
            else message_in(output)
        )
        return self._studio.page(request, "verified.html", name=name, good=code == 0, text=text)

    def download(self, request: Request) -> Response:
        """A model as JSON, ONNX or a card."""
        name, kind = request.path_params["name"], request.path_params["kind"]
        path = self._studio.settings.file(name, ".json", within="models")
        if kind == "json":
            return FileResponse(path, media_type="application/json", filename=path.name)
        if kind not in _MADE:
            raise InvalidArgument(f"{kind!r} is no form of a model: json, onnx or card.")
        verb, ending, media = _MADE[kind]
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / (path.name.removesuffix(".json") + ending)
            code, output = self._studio.run((verb, f"models/{path.name}", "-o", str(made)))
            if code:
                raise InvalidArgument(message_in(output))
            contents = made.read_bytes()
        shown = {"content-disposition": f'attachment; filename="{made.name}"'}
        return Response(contents, media_type=media, headers=shown)


def _described(path: Path) -> dict[str, Any]:
    """What a table of models shows of one; a file that is none shows why."""
    from hushfit.models import read_model

    try:
        model, digest = read_model(path)
    except HushfitError as error:
        return {"name": path.name, "short": path.name, "problem": str(error), "scores": {}}
    guarantee = model.guarantee
    return {
        "name": path.name,
        "short": _KEY_AT_THE_END.sub(r"-\1…", path.name),
        "problem": "",
        "scores": {},
        "kind": type(model.estimator).__name__,
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "relation": str(guarantee.relation),
        "unit": guarantee.unit.in_words,
        "secure": guarantee.secure,
        "dataset": "" if model.receipt is None else model.receipt.dataset,
        "payment": "" if model.receipt is None else model.receipt.number,
        "features": len(model.schema.feature_names) if model.schema is not None else "",
        "hash": digest[:12],
    }
