"""Pages of budgets: totals, history, grants and approvals."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hushfit.cli.verbs.ledger import balance, payments_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import Ledger
from hushfit.privacy.ledger import team_summary
from hushfit.studio._access import form_of, session_of
from hushfit.studio._commands import number
from hushfit.studio._studio import Studio

_WIDTH, _HEIGHT, _MARGIN = 560, 180, 36


class BudgetPages:
    """Totals with their curve, history, grants and approvals."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.routes: Sequence[Route] = [
            Route("/budget", self.budget),
            Route("/budget/open", self.open, methods=["POST"]),
            Route("/budget/act", self.act, methods=["POST"]),
        ]

    def budget(self, request: Request) -> Response:
        """All accounts."""
        accounts = [self._described(request, name) for name in self._studio.datasets()]
        return self._studio.page(request, "budget.html", accounts=accounts)

    async def open(self, request: Request) -> Response:
        """Open an account, as ``hushfit ledger init`` does."""
        form = await form_of(request)
        terms = (
            str(form.get("dataset", "")),
            number(form.get("epsilon"), "epsilon"),
            number(form.get("delta"), "delta"),
            str(form.get("adjacency", "replace-one")),
        )
        unit = str(form.get("unit", "row"))
        until = str(form.get("until", "")) or None
        token = session_of(request).token
        place = self._studio.settings.ledger_path()
        await run_in_threadpool(Ledger.create, place, *terms, unit=unit, until=until, token=token)
        return RedirectResponse(self._studio.to("budget"), 303)

    async def act(self, request: Request) -> Response:
        """An act of an administrator: the same as a verb of ``hushfit ledger``."""
        form = await form_of(request)
        await run_in_threadpool(self._act, request, {**form})
        return RedirectResponse(self._studio.to("budget"), 303)

    def _act(self, request: Request, form: dict[str, Any]) -> None:
        team = self._studio.account(request, str(form.get("dataset", ""))).team
        kind = str(form.get("act", ""))
        if kind == "grant":
            until = str(form.get("until", "")) or None
            epsilon = number(form.get("epsilon"), "epsilon")
            team.grant(str(form.get("person", "")), epsilon, until=until)
        elif kind in ("approve", "decline"):
            request_number = int(number(form.get("request"), "the request"))
            (team.approve if kind == "approve" else team.decline)(request_number)
        elif kind in ("freeze", "thaw"):
            (team.freeze if kind == "freeze" else team.thaw)()
        elif kind == "limit":
            stated = str(form.get("epsilon", ""))
            team.set_limit(number(stated, "epsilon") if stated else None)
        else:
            raise InvalidArgument(f"{kind!r} is nothing that can be done here. Nothing was done.")

    def _described(self, request: Request, name: str) -> dict[str, Any]:
        account = self._studio.account(request, name)
        team = account.team
        payments = payments_of(account)
        return {
            **balance(account),
            "person": str(account.unit),
            "history": payments,
            "team": team_summary(team.now),
            "administers": team.identity in team.administrators,
            "identity": team.identity,
            "curve": _curve([p["total"] for p in payments], account.budget.epsilon),
        }


def _curve(totals: list[float], budget: float) -> Markup:
    """The composed total after each payment, under the line of the budget."""
    top = max([budget, *totals]) * 1.05
    if not totals or not top < float("inf"):
        return Markup("")
    step = (_WIDTH - 2 * _MARGIN) / max(len(totals), 1)

    def y(value: float) -> float:
        return _HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * value / top

    points = [(float(_MARGIN), y(0.0))]
    for k, total in enumerate(totals):
        x = _MARGIN + step * (k + 0.5)
        points += [(x, points[-1][1]), (x, y(total))]
    points.append((_WIDTH - _MARGIN, points[-1][1]))
    path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points)
    line, right = f"{y(budget):.1f}", _WIDTH - _MARGIN
    title = (
        f"Composed total after each of {len(totals)} payments: {totals[-1]:.4g} of {budget:g} now"
    )
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{title}"><title>{title}'
        f'</title><line class="even" x1="{_MARGIN}" x2="{right}" y1="{line}" y2="{line}"/>'
        f'<text x="{_MARGIN}" y="{y(budget) - 6:.1f}">budget {budget:g}</text>'
        f'<line class="axis" x1="{_MARGIN}" x2="{right}" y1="{y(0):.1f}" y2="{y(0):.1f}"/>'
        f'<path class="curve" d="{path}"/>'
        f'<text x="{right}" y="{points[-1][1] - 6:.1f}" text-anchor="end">{totals[-1]:.4g}</text>'
        "</svg>"
    )
