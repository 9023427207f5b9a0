"""The points that an evaluator of a differential-privacy guarantee must be told, by NIST SP 800-226
("Guidelines for Evaluating Differential Privacy Guarantees", 2025), on a page and as JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hushfit.data.schema import CategoricalColumn
from hushfit.models import Model, RankingModel
from hushfit.privacy import Guarantee, labels_only


@dataclass(frozen=True)
class Point:
    """One point: what is asked, and what is known.

    Parameters
    ----------
    key : str
        Its name in JSON.
    title : str
    answer : str
    open : bool, default=False
        Whether the owner of the data has to add something that hushfit cannot know.
    """

    key: str
    title: str
    answer: str
    open: bool = False


@dataclass(frozen=True)
class AccountTotal:
    """What has been spent on the data set so far, by its ledger.

    Parameters
    ----------
    dataset : str
    epsilon, delta : float
        Composed total of all payments.
    budget : float
        Epsilon that may be spent.
    payments : int
    """

    dataset: str
    epsilon: float
    delta: float
    budget: float
    payments: int


@dataclass(frozen=True)
class Evidence:
    """What is known about a model beside its file.

    Parameters
    ----------
    total : AccountTotal, optional
        Of its data set.
    audit : str, optional
        What attacks on its algorithm measured, in words.
    """

    total: AccountTotal | None = None
    audit: str | None = None


def evaluator_points(
    model: Model | RankingModel, evidence: Evidence | None = None
) -> tuple[Point, ...]:
    """What an evaluator must be told about a model.

    Parameters
    ----------
    model : Model or RankingModel
    evidence : Evidence, optional

    Returns
    -------
    tuple of Point
    """
    known, g = evidence or Evidence(), model.guarantee
    return (
        Point("privacy_parameters", "Privacy parameters", _parameters(g)),
        Point("unit_of_privacy", "Unit of privacy", _unit(g)),
        _total(model, known.total),
        Point(
            "trust_model",
            "Trust model",
            "Central: whoever runs the fit holds the rows and is trusted with them. The guarantee "
            "is about everybody who sees the model, this page, or any other result of the releases "
            "below.",
        ),
        Point("mechanism", "Mechanism and proof", _mechanism(g)),
        Point(
            "noise",
            "Noise",
            "Discrete Gaussian noise on an integer grid, drawn exactly from the operating system's "
            "cryptographic generator; sums are exact, and rounding is part of the sensitivity."
            if g.secure
            else "From a SEEDED generator: whoever knows the seed can remove it. Not for release.",
        ),
        Point(
            "side_channels",
            "Side channels",
            "Not covered: time, memory and the size of temporary files of a fit, and messages "
            "about a file that cannot be read. Number of steps, model size and messages depend on "
            "public numbers alone.",
        ),
        _tuning(model),
        _audit(known.audit),
        Point("utility_and_bias", "Utility and bias", _utility(model)),
        Point(
            "retention",
            "Data retention and access",
            "hushfit keeps no rows: encoded rows are in memory or in an unnamed temporary file, "
            "which end with the process, and the model has none. Only `hushfit fit --cache` leaves "
            "packed rows, in a folder that its user names. How long these and the table itself are "
            "kept, and who may read them, has to be stated by the owner.",
            open=True,
        ),
        Point("assumed_public", "Assumed public", "; ".join(g.public) or "Nothing but the sizes."),
    )


def points_dict(points: Sequence[Point]) -> dict[str, dict[str, object]]:
    """Points as plain JSON values, by their keys.

    Parameters
    ----------
    points : sequence of Point

    Returns
    -------
    dict
    """
    return {
        point.key: {"title": point.title, "answer": point.answer, "open": point.open}
        for point in points
    }


def _parameters(g: Guarantee) -> str:
    if g.nonprivate:
        return "None: epsilon is infinite, and the model has no guarantee."
    return (
        f"(epsilon, delta)-differential privacy with epsilon = {g.epsilon:.4g} and delta = "
        f"{g.delta:.3g}, for this model alone."
    )


def _unit(g: Guarantee) -> str:
    if labels_only(g.relation):
        protected = "labels only, FEATURES ARE NOT PROTECTED"
    else:
        protected = f"all of their {g.unit.record}s" if g.unit.is_person else "all of it"
    return f"{g.unit.in_words} ({protected}); adjacency: {g.relation}."


def _total(model: Model | RankingModel, total: AccountTotal | None) -> Point:
    key, title = "total_budget", "All releases from this data set"
    if total is not None:
        several = total.payments != 1
        counted = f"{total.payments} payment{'s' if several else ''} on {total.dataset!r}"
        return Point(
            key,
            title,
            f"{counted} {'compose' if several else 'composes'} to epsilon = {total.epsilon:.4g} at "
            f"delta = {total.delta:.3g}, of a budget of {total.budget:.4g}. This model is "
            f"{'one of them' if several else 'the only one'}.",
        )
    why = (
        "The file of the model names no payment of a ledger, so it does not tell of other releases "
        "from these rows."
        if model.receipt is None
        else f"Paid from the account {model.receipt.dataset!r} (payment {model.receipt.number}); "
        "the total of the account is in its ledger."
    )
    return Point(
        key,
        title,
        f"{why} The privacy losses of all releases from the same rows compose.",
        open=True,
    )


def _mechanism(g: Guarantee) -> str:
    made = ", ".join(f"{r.count} x {r.name} ({r.query})" for r in g.releases)
    return (
        f"{made}. Every query has a proof of its sensitivity in docs/proofs and tests that break "
        f"if it is wrong; hushfit {g.version}."
    )


def _tuning(model: Model | RankingModel) -> Point:
    return Point(
        "tuning",
        "Settings tuned on rows",
        f"Settings of this model: solver = {model.estimator.solver!r}"
        f"{_penalty(model)}. Defaults follow from public numbers and releases that were paid for. "
        "If somebody chose settings, columns or this model by looking at results on the rows, that "
        "is not accounted for and has to be stated.",
        open=True,
    )


def _penalty(model: Model | RankingModel) -> str:
    settings = vars(model.estimator)
    return "".join(
        f", {key} = {settings[key]!r}" for key in ("penalty", "alpha") if key in settings
    )


def _audit(stated: str | None) -> Point:
    answer = stated or "`hushfit audit MODEL` shows what attacks on the algorithm measured."
    return Point("audit", "Audit evidence", answer)


def _utility(model: Model | RankingModel) -> str:
    if isinstance(model, RankingModel):
        return (
            "Noise hides rare kinds of lists first, so a model may serve them worse. NDCG on "
            "held-out lists is given by `hushfit evaluate`."
        )
    target = None if model.schema is None else model.schema.target
    rare = (
        " Rare classes suffer most: see recall by class."
        if isinstance(target, CategoricalColumn)
        else " Values outside the public range of the target are clipped to it."
    )
    return (
        "Noise hides small groups first, so a model may serve them worse. Scores on held-out rows, "
        f"also by group, are given by `hushfit evaluate --by COLUMN`.{rare}"
    )
