"""Pages of fits: choose, review what will be spent, confirm, watch."""

import math
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hushfit.cli import BY_TARGET
from hushfit.errors import InvalidArgument
from hushfit.privacy import Ledger
from hushfit.privacy.ledger import Grant
from hushfit.studio._access import form_of, session_of
from hushfit.studio._commands import FEATURES, PENALTIES, FitChoice, number
from hushfit.studio._jobs import Job, now
from hushfit.studio._schema_form import SchemaForm
from hushfit.studio._studio import Studio

_FIELDS = (
    *("table", "dataset", "model", "epsilon", "delta", "person", "held_out", "accept_draft"),
    *("intervals", "features", "penalty", "alpha"),
)
# Families as people call them.
_CALLED: Final = {
    "logistic": "logistic regression",
    "svm": "support vector machine",
    "mlp": "neural network",
    "linear": "linear regression",
    "ridge": "ridge regression",
    "elasticnet": "elastic net",
    "huber": "robust regression (Huber)",
    "poisson": "Poisson regression",
}


class FitPages:
    """Choose, review, confirm, watch."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self.routes: Sequence[Route] = [
            Route("/fit", self.choose),
            Route("/fit/review", self.review),
            Route("/fit/start", self.start, methods=["POST"]),
            Route("/fit/jobs/{key}", self.job),
            Route("/fit/jobs/{key}/state", self.state),
        ]

    def choose(self, request: Request) -> Response:
        """What to fit, and from which account."""
        studio = self._studio
        table = studio.table(request)
        path = None if table is None else studio.schema_path(table)
        form = SchemaForm.read(path) if path is not None and path.is_file() else None
        names = studio.datasets()
        return studio.page(
            request,
            "fit.html",
            table=table,
            tables=list(studio.settings.files()),
            form=form,
            families=[] if form is None else [(f, _CALLED.get(f, f)) for f in _families(form)],
            accounts=[self._account(request, name) for name in names],
            usual=self._usual_account(table),
            features=FEATURES,
            penalties=PENALTIES,
            key=secrets.token_hex(16),
            jobs=studio.jobs.all()[:20],
        )

    def review(self, request: Request) -> Response:
        """What will be spent, to be confirmed.

        The key is part of the address: whoever comes back to it confirms the same fit again, and
        not another one.
        """
        fields = request.query_params
        choice, key = self._choice(request, fields), str(fields.get("key", ""))
        jobs = self._studio.jobs
        same = [
            job
            for job in jobs.all()
            if not job.ended and job.key != key and job.steps[0][3:] == choice.fit("")[3:]
        ]
        return self._studio.page(
            request,
            "review.html",
            choice=choice,
            person=choice.person or self._form(choice.table).schema.person,
            account=self._account(request, choice.dataset),
            hidden=_stated(fields),
            same=same,
            confirmed=jobs.has(key),
            key=key,
        )

    async def start(self, request: Request) -> Response:
        """Put a confirmed fit into the queue; a form that is sent again starts nothing."""
        fields = await form_of(request)
        key = str(fields.get("key", ""))
        choice = await run_in_threadpool(self._choice, request, fields)
        session = session_of(request)
        (self._studio.settings.folder / "models").mkdir(exist_ok=True)
        account = await run_in_threadpool(self._studio.account, request, choice.dataset)
        person = await run_in_threadpool(lambda: account.team.identity)
        model, steps = choice.output(key), choice.steps(key)
        job = Job(key, person, choice.dataset, model, steps, now(), choice=_stated(fields))
        await run_in_threadpool(self._studio.jobs.add, job, session.token)
        return RedirectResponse(self._studio.to(f"fit/jobs/{key}"), 303)

    def job(self, request: Request) -> Response:
        """A fit that was confirmed, and what has become of it."""
        job = self._studio.jobs.get(request.path_params["key"])
        return self._studio.page(request, "job.html", job=job, **self._state(job))

    def state(self, request: Request) -> Response:
        """The part of that page that changes."""
        job = self._studio.jobs.get(request.path_params["key"])
        text = self._studio.filled(request, "job_state.html", job=job, **self._state(job))
        # 286 tells htmx to ask no more.
        return HTMLResponse(text, 286 if job.ended else 200)

    def _state(self, job: Job) -> dict[str, Any]:
        payment = None if job.state == "queued" else self._studio.jobs.payment(job)
        models = self._studio.settings.files(".json", ".html", within="models")
        page = job.model.removesuffix(".json") + ".html"
        return {
            "payment": payment,
            "ahead": 0 if job.ended else self._studio.jobs.ahead(job),
            "has_model": job.model in models,
            "has_page": page in models,
            "again": self._studio.to("fit/review", **job.choice, key=secrets.token_hex(16)),
        }

    def _choice(self, request: Request, fields: Mapping[str, Any]) -> FitChoice:
        studio = self._studio
        table = studio.settings.file(str(fields.get("table", ""))).name
        form = self._form(table)
        held_out = str(fields.get("held_out", ""))
        if held_out:
            studio.settings.file(held_out)
        dataset = str(fields.get("dataset", ""))
        if dataset not in studio.datasets():
            raise InvalidArgument(
                f"the ledger has no data set {dataset!r}. Open an account on the page Budget."
            )
        account = studio.account(request, dataset)
        if studio.settings.accounts:
            studio.assigned.refuse_other(table, account)
        family, known = str(fields.get("model", "")), _families(form)
        if family not in known:
            raise InvalidArgument(f"{family!r} is no model for this target: {', '.join(known)}.")
        return FitChoice(
            table,
            studio.schema_path(table).name,
            dataset,
            family,
            str(account.relation),
            number(fields.get("epsilon"), "epsilon"),
            number(fields.get("delta"), "delta"),
            studio.settings.location,
            str(fields.get("person", "")),
            held_out,
            bool(fields.get("accept_draft")),
            bool(fields.get("intervals")),
            *(str(fields.get(name, "")).strip() for name in ("features", "penalty", "alpha")),
        )

    def _usual_account(self, table: str | None) -> str:
        """The account that paid for a table the last time."""
        paid = (job.dataset for job in self._studio.jobs.all() if job.choice.get("table") == table)
        return self._studio.assigned.accounts().get(table or "") or next(paid, "")

    def _form(self, table: str) -> SchemaForm:
        path = self._studio.schema_path(table)
        if not path.is_file():
            raise InvalidArgument(f"{table} has no schema yet. Draft one on the page Table.")
        return SchemaForm.read(path)

    def _account(self, request: Request, dataset: str) -> dict[str, Any]:
        """What an account has left, in words that do not subtract."""
        account: Ledger = self._studio.account(request, dataset)
        team = account.team.now
        own: Grant | None = team.grant_of(account.team.identity)
        return {
            "name": dataset,
            "spent": account.spent().epsilon,
            "largest_fit": min(account.largest_fit(), math.inf if own is None else own.largest_fit),
            "budget": account.budget,
            "relation": str(account.relation),
            "unit": account.unit,
            "state": team.state,
            "limit": team.limit,
            "granted": bool(team.grants),
            "grant": own,
        }


def _stated(fields: Mapping[str, Any]) -> dict[str, str]:
    """What a form says about a fit, as plain texts."""
    return {name: str(fields[name]) for name in _FIELDS if fields.get(name)}


def _families(form: SchemaForm) -> tuple[str, ...]:
    """Models for the target of a schema, the default one first."""
    target = form.schema.target
    if target is None:
        raise InvalidArgument(
            "the schema has no target, so nothing can be predicted. Draft it again on the page "
            "Table, with a column to predict."
        )
    return BY_TARGET[target.kind]
