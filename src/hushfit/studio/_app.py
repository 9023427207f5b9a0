"""The web application: which page answers which address."""

from functools import partial

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp

from hushfit.errors import BudgetExceeded, HushfitError, InvalidArgument
from hushfit.studio._access import COOKIE, Access, Guard, entered, form_of
from hushfit.studio._assigned import Assigned
from hushfit.studio._budget_pages import BudgetPages
from hushfit.studio._fit_pages import FitPages
from hushfit.studio._jobs import Jobs
from hushfit.studio._model_pages import ModelPages
from hushfit.studio._settings import Settings
from hushfit.studio._studio import STATIC, Studio
from hushfit.studio._table_pages import TablePages


def make_app(settings: Settings) -> ASGIApp:
    """The web application.

    Parameters
    ----------
    settings : Settings

    Returns
    -------
    ASGI application
        With its guard in front.
    """
    access, jobs = Access(settings), Jobs(settings)
    studio = Studio(settings, jobs, Assigned(settings.folder))
    tables, fits = TablePages(studio), FitPages(studio)
    budgets, models = BudgetPages(studio), ModelPages(studio)
    pages = [
        Route("/", lambda request: RedirectResponse(f"{settings.root}/table", 303)),
        Route("/login", partial(_login, settings, access, studio), methods=["GET", "POST"]),
        Route("/logout", partial(_logout, settings, access), methods=["POST"]),
        Route("/static/{name}", _static),
        *tables.routes,
        *fits.routes,
        *budgets.routes,
        *models.routes,
    ]
    handlers = {HushfitError: partial(_refused, studio), 404: partial(_not_found, studio)}
    inner = Starlette(
        routes=[Mount(settings.root, routes=pages)],
        exception_handlers=handlers,
    )
    return Guard(inner, settings, access)


async def _login(settings: Settings, access: Access, studio: Studio, request: Request) -> Response:
    """Exchange a token of the ledger for a session."""
    if request.method == "GET":
        return studio.page(request, "login.html", wrong=False)
    form = await request.form()
    key = await run_in_threadpool(access.enter, str(form.get("token", "")))
    if key is None:
        return studio.page(request, "login.html", status=403, wrong=True)
    return entered(settings, key)


async def _logout(settings: Settings, access: Access, request: Request) -> Response:
    """End a session."""
    await form_of(request)
    access.leave(request.cookies.get(COOKIE))
    return RedirectResponse(f"{settings.root}/login", 303)


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise InvalidArgument(f"there is no file {name!r} here.")
    return FileResponse(STATIC[name], headers={"cache-control": "max-age=3600"})


def _refused(studio: Studio, request: Request, error: Exception) -> Response:
    status = 409 if isinstance(error, BudgetExceeded) else 400
    return studio.page(request, "error.html", status=status, message=str(error))


def _not_found(studio: Studio, request: Request, error: Exception) -> Response:
    text = "There is no such page. Choose one above."
    return studio.page(request, "error.html", status=404, message=text)
