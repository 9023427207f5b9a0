"""What all pages of the studio share."""

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from hushfit._pages import rendered
from hushfit.privacy import Ledger
from hushfit.privacy.ledger import ledger_datasets
from hushfit.studio._access import Session, session_of
from hushfit.studio._assigned import Assigned
from hushfit.studio._jobs import Jobs, run_hushfit
from hushfit.studio._settings import Settings

_OWN: Final = files("hushfit.studio").joinpath("static")
STATIC: Final = {
    **{name: Path(str(_OWN.joinpath(name))) for name in ("htmx.min.js", "studio.js", "studio.css")},
    "page.css": Path(str(files("hushfit._pages").joinpath("page.css"))),
}
_PAGES: Final = (
    ("table", "Table"),
    ("plan", "Plan"),
    ("fit", "Fit"),
    ("budget", "Budget"),
    ("models", "Models"),
)


def _memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Studio:
    """Settings and queue of a studio, and how it answers.

    Parameters
    ----------
    settings : Settings
    jobs : Jobs
    assigned : Assigned
    """

    settings: Settings
    jobs: Jobs
    assigned: Assigned
    _turns: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(2), repr=False)

    def run(self, arguments: Sequence[str]) -> tuple[int, str]:
        """A short command.

        Many readers do not start many at a time, and a file that unpacks to much more than it is
        takes no more than a part of the memory.
        """
        with self._turns:
            return run_hushfit(arguments, self.settings, most_memory=_memory() // 4)

    def page(
        self, request: Request, template: str, /, status: int = 200, **values: Any
    ) -> Response:
        """A template as an answer."""
        return HTMLResponse(self.filled(request, template, **values), status)

    def filled(self, request: Request, template: str, /, **values: Any) -> str:
        """A template, filled."""
        session: Session | None = request.scope.get("session")
        return rendered(
            __package__,
            template,
            root=self.settings.root,
            pages=_PAGES,
            session=session,
            here=request.scope["path"].removeprefix(f"{self.settings.root}/").partition("/")[0],
            csrf="" if session is None else session.csrf,
            may_spend=session is not None and session.may_spend,
            **values,
        )

    def to(self, path: str, **fields: str) -> str:
        """Address of a page."""
        return f"{self.settings.root}/{path}" + (f"?{urlencode(fields)}" if fields else "")

    def table(self, request: Request) -> str | None:
        """The table that a page is about: named in the address, or else one with a schema."""
        named = request.query_params.get("table") or self.settings.table
        known = self.settings.files()
        if named in known:
            return named
        described = (name for name in known if self.schema_path(name).is_file())
        return next(described, next(iter(known), None))

    def schema_path(self, table: str) -> Path:
        """Where the schema of a table is."""
        stem = table
        for ending in (".gz", *("." + part for part in table.split(".")[1:][::-1])):
            stem = stem.removesuffix(ending)
        return self.settings.folder / f"{stem}.schema.toml"

    def datasets(self) -> list[str]:
        """Accounts of the ledger; none if there is no ledger yet."""
        place = self.settings.ledger_path()
        if "://" not in place and not Path(place).is_file():
            return []
        return ledger_datasets(place)

    def accounts(self, request: Request) -> dict[str, Ledger]:
        """All accounts by name, as the person of the session sees them."""
        return {name: self.account(request, name) for name in self.datasets()}

    def account(self, request: Request, dataset: str) -> Ledger:
        """An account, as the person of the session sees it."""
        token = session_of(request).token
        return Ledger(self.settings.ledger_path(), dataset=dataset, token=token)
