"""Command lines that the studio runs and shows, and the same in Python."""

import re
import shlex
from dataclasses import dataclass
from typing import Final

from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget

# Models of numbers also need the range of the target, which the command takes from the schema.
_CLASSES: Final = {
    "logistic": "PrivateLogisticRegression",
    "svm": "PrivateLinearSVC",
}
FEATURES: Final = ("linear", "additive")
# Those that need no file and no word of the schema.
PENALTIES: Final = ("none", "l1", "l2", "elasticnet", "group")


@dataclass(frozen=True)
class FitChoice:
    """What a form says about a fit.

    Parameters
    ----------
    table, schema, dataset, model, adjacency : str
    epsilon, delta : float
    ledger : str
    person, held_out : str
        Empty for none.
    accept_draft : bool
    intervals : bool
        Whether coefficients get standard errors, intervals and tests.
    features, penalty, alpha : str
        Empty for what the schema says, or the usual.
    """

    table: str
    schema: str
    dataset: str
    model: str
    adjacency: str
    epsilon: float
    delta: float
    ledger: str
    person: str = ""
    held_out: str = ""
    accept_draft: bool = False
    intervals: bool = False
    features: str = ""
    penalty: str = ""
    alpha: str = ""

    def __post_init__(self) -> None:
        Budget(self.epsilon, self.delta)
        for stated, known, name in (
            (self.features, FEATURES, "features"),
            (self.penalty, PENALTIES, "a penalty"),
        ):
            if stated and stated not in known:
                raise InvalidArgument(f"{stated!r} is not {name}: {', '.join(known)}.")
        if self.alpha and self.alpha not in ("auto", "select"):
            number(self.alpha, "alpha")

    def output(self, key: str) -> str:
        """Name of the model file; it holds the key, so the ledger's entry of the payment does."""
        stem = re.sub(r"[^A-Za-z0-9_-]+", "-", self.dataset).strip("-")[:40] or "model"
        return f"{stem}-{self.model}-{key}.json"

    def steps(self, key: str) -> tuple[tuple[str, ...], ...]:
        """Arguments of ``hushfit``: the fit, and the page about it."""
        model = f"models/{self.output(key)}"
        page = model.removesuffix(".json") + ".html"
        held_out = ("--held-out", self.held_out) if self.held_out else ()
        ledger = ("--ledger", self.ledger)
        return (
            self.fit(model),
            ("report", model, *held_out, *ledger, "-o", page),
        )

    def fit(self, output: str) -> tuple[str, ...]:
        """Arguments of the fit."""
        optional = (
            *(("--person", self.person) if self.person else ()),
            *(("--accept-draft",) if self.accept_draft else ()),
            *self.particular,
        )
        # The output first: the ledger keeps the beginning of a long command.
        return (
            *("fit", "-o", output, self.table, "--schema", self.schema),
            *("--model", self.model, "--epsilon", repr(self.epsilon)),
            *("--delta", repr(self.delta), "--adjacency", self.adjacency, *optional),
            *("--ledger", self.ledger, "--dataset", self.dataset),
        )

    @property
    def particular(self) -> tuple[str, ...]:
        """Options that a usual fit does not have."""
        named = {"--features": self.features, "--penalty": self.penalty, "--alpha": self.alpha}
        given = (part for name, value in named.items() if value for part in (name, value))
        return (*(("--inference",) if self.intervals else ()), *given)

    @property
    def command(self) -> str:
        """The fit as a line for a shell."""
        return shlex.join(("hushfit", *self.fit("model.json")))

    @property
    def python(self) -> str:
        """The same in Python."""
        if self.model not in _CLASSES or self.particular:
            return f"from hushfit.cli import run\n\nrun({list(self.fit('model.json'))!r})\n"
        name = _CLASSES[self.model]
        extra = "" if self.adjacency == "replace-one" else f", adjacency={self.adjacency!r}"
        person = (
            f"file = replace(file, schema=replace(file.schema, person={self.person!r}))\n"
            if self.person
            else ""
        )
        return (
            f"{'from dataclasses import replace' + chr(10) * 2 if person else ''}"
            f"from hushfit import Ledger, {name}\n"
            "from hushfit.data.tables import CodedRows, find_tables, read_schema\n"
            "from hushfit.models import fit_rows\n\n"
            f"file = read_schema({self.schema!r})\n{person}"
            f"estimator = {name}(epsilon={self.epsilon:g}, delta={self.delta:g}{extra})\n"
            f"ledger = Ledger({self.ledger!r}, dataset={self.dataset!r})\n"
            f"tables = find_tables([{self.table!r}], None, file.schema.file)\n"
            "with CodedRows.from_tables(tables, file.schema) as rows:\n"
            "    model, record = fit_rows(estimator, rows, file, ledger)\n"
            "print(model.guarantee)\n"
        )


def number(text: object, name: str) -> float:
    """A number from a form."""
    try:
        return float(str(text))
    except ValueError:
        raise InvalidArgument(
            f"{name} is {text!r}, which is no number. Write one, such as 0.5."
        ) from None
