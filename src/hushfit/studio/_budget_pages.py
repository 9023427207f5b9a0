"""Pages of budgets: totals, history, grants and approvals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

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
from hushfit.studio._assigned import refuse_who_administers_nothing
from hushfit.studio._commands import number
from hushfit.studio._studio import Studio

_WIDTH, _HEIGHT, _MARGIN = 560, 180, 36
_FOR_EVER: Final = ("close", "renew")
_ACTS: Final[Mapping[str, Callable[[Ledger, Mapping[str, Any]], object]]] = {
    "grant": lambda account, form: account.team.grant(
        str(form.get("person", "")),
        number(form.get("epsilon"), "epsilon"),
        until=_filled(form, "until"),
    ),
    "revoke": lambda account, form: account.team.revoke(str(form.get("person", ""))),
    "transfer": lambda account, form: account.team.transfer(
        str(form.get("person", "")), str(form.get("to", "")), _number_or_none(form, "epsilon")
    ),
    "freeze": lambda account, form: account.team.freeze(_filled(form, "person")),
    "thaw": lambda account, form: account.team.thaw(_filled(form, "person")),
    "limit": lambda account, form: account.team.set_limit(_number_or_none(form, "epsilon")),
    "approve": lambda account, form: account.team.approve(_request(form)),
    "decline": lambda account, form: account.team.decline(_request(form)),
    "appoint": lambda account, form: account.team.appoint(str(form.get("person", ""))),
    "dismiss": lambda account, form: account.team.dismiss(str(form.get("person", ""))),
    "renew": lambda account, form: account.renew(
        str(form.get("as", "")),
        number(form.get("epsilon"), "epsilon"),
        until=_filled(form, "until"),
    ),
    "close": lambda account, form: account.team.close(),
}
_OF_PAYMENTS: Final = ("charge", "model", "releases")
_SAID: Final = (
    *("grantee", "person", "from", "to", "epsilon", "delta", "until", "label", "request"),
    "renewed_by",
)


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
        settings = self._studio.settings
        tables = list(settings.files()) if settings.accounts else []
        may_open = not settings.accounts or any(one["administers"] for one in accounts)
        return self._studio.page(
            request, "budget.html", accounts=accounts, tables=tables, may_open=may_open
        )

    async def open(self, request: Request) -> Response:
        """Open an account, as ``hushfit ledger init`` does."""
        await run_in_threadpool(self._open, request, await form_of(request))
        return RedirectResponse(self._studio.to("budget"), 303)

    async def act(self, request: Request) -> Response:
        """An act of an administrator: the same as a verb of ``hushfit ledger``."""
        await run_in_threadpool(self._act, request, await form_of(request))
        return RedirectResponse(self._studio.to("budget"), 303)

    def _open(self, request: Request, form: Mapping[str, Any]) -> None:
        if self._studio.settings.accounts:
            refuse_who_administers_nothing(self._studio.accounts(request))
        Ledger.create(
            self._studio.settings.ledger_path(),
            str(form.get("dataset", "")),
            number(form.get("epsilon"), "epsilon"),
            number(form.get("delta"), "delta"),
            str(form.get("adjacency", "replace-one")),
            unit=str(form.get("unit", "row")),
            until=_filled(form, "until"),
            token=session_of(request).token,
        )

    def _act(self, request: Request, form: Mapping[str, Any]) -> None:
        kind, name = str(form.get("act", "")), str(form.get("dataset", ""))
        if kind in _FOR_EVER and not form.get("sure"):
            raise InvalidArgument(
                f"to {kind} {name!r} is for ever. Nothing was done. Tick that you know it."
            )
        if kind == "assign":
            accounts = self._studio.accounts(request)
            table = self._studio.settings.file(str(form.get("table", ""))).name
            self._studio.assigned.assign(table, self._studio.account(request, name), accounts)
        elif kind in _ACTS:
            _ACTS[kind](self._studio.account(request, name), form)
        else:
            raise InvalidArgument(f"{kind!r} is nothing that can be done here. Nothing was done.")

    def _described(self, request: Request, name: str) -> dict[str, Any]:
        account = self._studio.account(request, name)
        team, assigned = account.team, self._studio.assigned.accounts()
        payments = payments_of(account)
        return {
            **balance(account),
            "person": str(account.unit),
            "history": payments,
            "team": team_summary(team.now),
            "administers": team.identity in team.administrators,
            "identity": team.identity,
            "acts": _acts(account),
            "tables": [table for table, own in assigned.items() if own == name],
            "curve": _curve([p["total"] for p in payments], account.budget.epsilon),
        }


def _acts(account: Ledger) -> list[dict[str, Any]]:
    """Every entry that is no payment, with its author and what it says."""
    return [
        {
            "number": entry.number,
            "at": str(entry.body.get("at", "")),
            "user": str(entry.body.get("user", "")),
            "kind": entry.kind,
            "what": ", ".join(
                f"{name.replace('_', ' ')} {entry.body[name]}"
                for name in _SAID
                if name in entry.body
            ),
        }
        for entry in account.team.account.history()
        if entry.kind not in _OF_PAYMENTS
    ]


def _filled(form: Mapping[str, Any], name: str) -> str | None:
    """A field of a form; None if it was left empty."""
    return str(form.get(name, "")).strip() or None


def _number_or_none(form: Mapping[str, Any], name: str) -> float | None:
    stated = _filled(form, name)
    return None if stated is None else number(stated, name)


def _request(form: Mapping[str, Any]) -> int:
    stated = str(form.get("request", ""))
    if not stated.isdecimal():
        raise InvalidArgument(f"{stated!r} is not the number of a request. Nothing was done.")
    return int(stated)


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
