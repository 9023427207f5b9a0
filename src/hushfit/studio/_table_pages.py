"""Pages about the table and its schema, and about what a budget buys."""

import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hushfit._write import write_whole
from hushfit.errors import InvalidArgument
from hushfit.studio._access import form_of
from hushfit.studio._commands import number
from hushfit.studio._jobs import message_in
from hushfit.studio._schema_form import SchemaForm
from hushfit.studio._settings import TABLES, UNUSUAL
from hushfit.studio._studio import Studio

_KINDS = ("categorical", "numeric", "count", "ordinal")
_PRIORS = (0.01, 0.1, 0.5)


class TablePages:
    """Table and plan."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._listed: dict[tuple[str, int, int], list[str]] = {}
        self.routes: Sequence[Route] = [
            Route("/table", self.table),
            Route("/table/upload", self.upload, methods=["POST"]),
            Route("/table/draft", self.draft, methods=["POST"]),
            Route("/table/save", self.save, methods=["POST"]),
            Route("/plan", self.plan),
            Route("/plan/forecast", self.forecast),
        ]

    def table(self, request: Request) -> Response:
        """The drafted schema as a form, or how to get one."""
        studio = self._studio
        name = studio.table(request)
        path = None if name is None else studio.schema_path(name)
        form = SchemaForm.read(path) if path is not None and path.is_file() else None
        return self._page(request, name, form)

    def _page(
        self, request: Request, name: str | None, form: SchemaForm | None, refused: str = ""
    ) -> Response:
        studio = self._studio
        return studio.page(
            request,
            "table.html",
            status=400 if refused else 200,
            refused=refused,
            table=name,
            tables=list(studio.settings.files()),
            columns=[] if name is None or form else self._columns(name),
            kinds=_KINDS,
            form=form,
            schema_name="" if name is None else studio.schema_path(name).name,
            saved="saved" in request.query_params,
            most=studio.settings.max_upload,
        )

    async def upload(self, request: Request) -> Response:
        """Store a table in the folder, under a name that is not taken."""
        form = await form_of(request)
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InvalidArgument("no file was chosen. Choose a table, such as patients.csv.")
        name = _checked_name(file.filename)
        place = self._studio.settings.folder / name
        if place.exists():
            raise InvalidArgument(
                f"there is a file {name!r} already, and it is not replaced. Rename yours."
            )
        await run_in_threadpool(_stored, file.file, place)
        return RedirectResponse(self._studio.to("table", table=name), 303)

    async def draft(self, request: Request) -> Response:
        """Draft a schema with ``hushfit schema``."""
        form = await form_of(request)
        studio = self._studio
        table = studio.settings.file(str(form.get("table", ""))).name
        output = studio.schema_path(table).name
        kind = str(form.get("kind", ""))
        asked = ("--target-kind", kind) if kind in _KINDS else ()
        again = ("--overwrite",) if form.get("again") else ()
        line = ("schema", table, "--target", str(form.get("target", "")), *asked, *again)
        code, told = await run_in_threadpool(studio.run, (*line, "-o", output))
        if code:
            raise InvalidArgument(message_in(told))
        return RedirectResponse(studio.to("table", table=table), 303)

    async def save(self, request: Request) -> Response:
        """Save the schema as its form states it; what cannot be saved is shown again."""
        fields = await form_of(request)
        studio = self._studio
        table = studio.settings.file(str(fields.get("table", ""))).name
        path = studio.schema_path(table)
        form = await run_in_threadpool(SchemaForm.read, path)
        try:
            text = form.changed(fields)
        except InvalidArgument as error:
            entered = form.entered(fields)
            return await run_in_threadpool(self._page, request, table, entered, str(error))
        write_whole(path, text)
        return RedirectResponse(studio.to("table", table=table, saved="1"), 303)

    def plan(self, request: Request) -> Response:
        """Epsilon and what it buys; reads no row."""
        studio = self._studio
        table = studio.table(request)
        path = None if table is None else studio.schema_path(table)
        columns = None
        if path is not None and path.is_file():
            columns = len(SchemaForm.read(path).schema.feature_names)
        return studio.page(request, "plan.html", table=table, columns=columns)

    def forecast(self, request: Request) -> Response:
        """What a budget buys, as part of the page."""
        from markupsafe import Markup

        from hushfit.forecast import forecast, rows_needed, warning_of_few
        from hushfit.report import odds_figure, posterior

        given = request.query_params
        rows = int(number(given.get("rows"), "the number of rows"))
        columns = int(number(given.get("columns"), "the number of features"))
        exponent = number(given.get("power", "0"), "epsilon")
        epsilon = float(f"{10**exponent:.2g}")
        delta = number(given["delta"], "delta") if given.get("delta") else 0.1 / max(rows, 2)
        found = forecast(rows, columns, epsilon, delta)
        values: dict[str, Any] = {
            "plan": found,
            "noise": [noise for noise in found.noise if not noise.refused],
            "needed": rows_needed(0.01, columns, epsilon, delta),
            "warning": warning_of_few(rows, columns, epsilon, delta),
            "beliefs": [(prior, *posterior(prior, epsilon, delta)) for prior in _PRIORS],
            "figure": Markup(odds_figure(epsilon, delta)),
        }
        return HTMLResponse(self._studio.filled(request, "forecast.html", **values))

    def _columns(self, table: str) -> list[str]:
        """Names of the columns of a table, as ``hushfit schema --columns`` lists them."""
        path = self._studio.settings.file(table)
        state = path.stat()
        version = (table, state.st_mtime_ns, state.st_size)
        if version not in self._listed:
            code, told = self._studio.run(("schema", table, "--columns"))
            if code:
                raise InvalidArgument(message_in(told))
            self._listed = {version: json.loads(told)["columns"]}  # people look at one table
        return self._listed.get(version, [])


def _checked_name(given: str) -> str:
    """Name of an uploaded file, without folders."""
    name = Path(given.replace("\\", "/")).name
    if not name.isprintable() or name.startswith(UNUSUAL) or not name.endswith(TABLES):
        raise InvalidArgument(
            f"{name!r} is not the name of a table. Upload a file that ends in one of: "
            f"{', '.join(TABLES)}."
        )
    return name


def _stored(source: Any, place: Path) -> None:
    """Copy an upload to its place, whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=place.parent, prefix=".upload-")
    try:
        with os.fdopen(handle, "wb") as file:
            shutil.copyfileobj(source, file)
        os.chmod(temporary, 0o600)
        os.link(temporary, place)  # refused if somebody was faster
    except FileExistsError:
        raise InvalidArgument(
            f"there is a file {place.name!r} already, and it is not replaced. Rename yours."
        ) from None
    except OSError as error:
        raise InvalidArgument(
            f"{place.name} cannot be stored ({error.strerror}). Free some space."
        ) from None
    finally:
        os.unlink(temporary)
