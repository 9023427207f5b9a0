"""A model card: Markdown with a YAML head, as model hubs show it. Post-processing of a model file,
and of scores on rows that were held out.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hushfit._version import __version__
from hushfit.models import Model, RankingModel
from hushfit.privacy import Guarantee
from hushfit.report._evaluator_points import Evidence, evaluator_points
from hushfit.report._network_page import training_facts
from hushfit.report.scores import AnyEvaluation
from hushfit.report.sections import kind_in_words, lead, target_name

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")
_LOAD = """```python
from hushfit{package} import {load}

model = {load}({file})
{use}
print(model.guarantee)
```"""


@dataclass(frozen=True)
class _Subject:
    """What a card says about a model of one kind.

    Parameters
    ----------
    title, lead, use, columns : str
    task : str
        As model hubs call it.
    metric : str, default=""
        The most important score, with its value.
    scores, training : str, default=""
    """

    title: str
    lead: str
    use: str
    columns: str
    task: str
    metric: str = ""
    scores: str = ""
    training: str = ""


def model_card(
    model: Model,
    digest: str = "",
    evaluation: AnyEvaluation | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a card about a model.

    Parameters
    ----------
    model : Model
        Of classes or numbers.
    digest : str, default=""
        Hash of the model file.
    evaluation : Evaluation or NumberEvaluation, optional
        Scores on held-out rows.
    evidence : Evidence, optional
        The total of its data set, and what attacks measured.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression, load_model, save_model
    >>> from hushfit.report import model_card
    >>> X, y = np.array([[0.2], [0.8]] * 200), np.array([0, 1] * 200)
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-4, classes=[0, 1]).fit(X, y)
    >>> digest = save_model(model, "model.json")
    >>> card = model_card(load_model("model.json"), digest)
    >>> card.splitlines()[0]
    '---'
    """
    subject = _Subject(
        f"{kind_in_words(model)} of {target_name(model)}",
        lead(model),
        _use("", "load_model", '"model.json"', _predict(model)),
        _columns(model),
        _task(model),
        *_scores(evaluation),
    )
    return _card(model, subject, digest, evidence)


def _task(model: Model) -> str:
    return "tabular-classification" if model.predicts_classes else "tabular-regression"


def network_card(
    model: Model,
    digest: str = "",
    evaluation: AnyEvaluation | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a card about a network.

    Parameters
    ----------
    model : Model
        With a fitted network.
    digest, evaluation, evidence
        As for `model_card`.

    Returns
    -------
    str
        Markdown.
    """
    perceptron = "hidden" in vars(model.estimator)  # of other networks a file has no architecture
    bare = not hasattr(model.estimator, "predict")  # of `fit_private`: its targets have no names
    use = _predict(model) if not bare else "model.estimator.module  # a torch.nn.Module"
    file = '"model.safetensors"' + ("" if perceptron else ", module")
    subject = _Subject(
        f"Network for {target_name(model)}",
        "Outputs of a module of torch." if bare else lead(model),
        _use(".torch", "load_network", file, use),
        _columns(model) if perceptron else "Records of the shape that the module takes.",
        "other" if bare else _task(model),
        *_scores(evaluation),
        training=_table(["training", "value", "meaning"], training_facts(model)),
    )
    return _card(model, subject, digest, evidence)


def ranking_card(
    model: RankingModel,
    digest: str = "",
    ndcg: Mapping[int, float] | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a card about a ranking model.

    Parameters
    ----------
    model : RankingModel
    digest : str, default=""
    ndcg : mapping of int to float, optional
        Mean NDCG on held-out lists, by depth.
    evidence : Evidence, optional

    Returns
    -------
    str
        Markdown.
    """
    by_depth = [[f"NDCG@{depth}", f"{value:.4f}"] for depth, value in (ndcg or {}).items()]
    names = () if model.schema is None else model.schema.columns
    subject = _Subject(
        "Ranking model",
        "Orders the documents of a list by their features.",
        _use("", "load_model", '"model.json"', "model.estimator.predict(X)  # higher is earlier"),
        _table(["column"], [[name] for name in names])
        if names
        else f"{model.estimator.n_features_in_} features of a document.",
        "text-ranking",
        " ".join(by_depth[-1]) if by_depth else "",
        _EXACT_LISTS + _table(["score", "value"], by_depth) if by_depth else "",
    )
    return _card(model, subject, digest, evidence)


def _releases(g: Guarantee) -> str:
    """Everything that was computed from the rows and left the curator."""
    lines = [
        [r.name, r.query, f"{r.count:,}", f"{r.noise_multiplier:.4g}", r.sampling]
        for r in g.releases
    ]
    about = f"Noise is a multiple of the most that {g.unit.in_words} can change an answer.\n\n"
    return about + _table(["release", "query", "times", "noise multiplier", "rows read"], lines)


def _card(
    model: Model | RankingModel, subject: _Subject, digest: str, evidence: Evidence | None
) -> str:
    sections = [
        ("", f"{_text(subject.lead)} Fitted with differential privacy by hushfit."),
        ("How to use it", subject.use),
        ("Privacy guarantee", _text(str(model.guarantee).replace("\n", " "))),
        ("Releases and their noise", _releases(model.guarantee)),
        ("Training", subject.training),
        ("Scores on held-out data", subject.scores),
        ("For an evaluator (NIST SP 800-226)", _points(model, evidence)),
        ("Columns", subject.columns),
        ("Limits", _LIMITS),
        ("Provenance", _provenance(model, digest)),
    ]
    body = [f"## {name}\n\n{text}" if name else text for name, text in sections if text]
    return "\n\n".join([_head(model.guarantee, subject), f"# {_text(subject.title)}", *body]) + "\n"


_EXACT_LISTS = (
    "Computed without noise from lists declared as held out of training. A list without a relevant "
    "document counts as 0.\n\n"
)
_LIMITS = (
    "The guarantee is about the rows that the model was fitted to, under the assumptions that it "
    "lists. It says nothing about whether predictions are right or fair. Noise hides small groups "
    "first: check scores by group before use. Do not use the model outside the public ranges above."
)


def _head(guarantee: Guarantee, subject: _Subject) -> str:
    """YAML; its texts are written as JSON, which is YAML too."""
    lines = [
        "---",
        "library_name: hushfit",
        f"pipeline_tag: {subject.task}",
        "tags:",
        "- differential-privacy",
        f"- {subject.task}",
        f"hushfit_version: {json.dumps(__version__)}",
        f"epsilon: {json.dumps('inf' if guarantee.nonprivate else guarantee.epsilon)}",
        f"delta: {guarantee.delta:.6e}",  # without a point, YAML would read a text
        f"adjacency: {json.dumps(str(guarantee.relation))}",
        f"unit_of_privacy: {json.dumps(guarantee.unit.in_words)}",
    ]
    if subject.metric:
        lines += ["metrics:", f"- {json.dumps(subject.metric, ensure_ascii=False)}"]
    return "\n".join([*lines, "---"])


def _use(package: str, load: str, file: str, use: str) -> str:
    return _LOAD.format(package=package, load=load, file=file, use=use)


def _predict(model: Model) -> str:
    table = "raw columns, by name" if model.schema is not None else "an array of features"
    return f"model.predict(table)  # {table}"


def _scores(evaluation: AnyEvaluation | None) -> tuple[str, str]:
    """The most important score, and a section about all of them."""
    if evaluation is None:
        return "", ""
    rows = _table(["score", "value", "meaning"], evaluation.lines())
    by_class = ""
    if evaluation.confusion is not None:
        shares = [
            [s.label, f"{s.rows:.0f}", *(_share(v) for v in (s.recall, s.precision))]
            for s in evaluation.confusion.by_class
        ]
        by_class = "\n\n" + _table(["class", "rows", "recall", "precision"], shares)
    exact = (
        f"Computed without noise from {evaluation.rows:,} rows declared as held out of training. "
        f"{evaluation.independence}"
    )
    return " ".join(evaluation.headline), f"{_text(exact)}\n\n{rows}{by_class}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _points(model: Model | RankingModel, evidence: Evidence | None) -> str:
    return "\n".join(
        f"- **{_text(point.title)}.** {_text(point.answer)}"
        + (" *To be stated by the owner of the data.*" if point.open else "")
        for point in evaluator_points(model, evidence)
    )


def _columns(model: Model) -> str:
    if model.schema is None:
        return f"{len(model.feature_names)} features."
    rows = [[column.name, column.kind] for column in model.schema.columns]
    return _table(["column", "kind"], rows)


def _provenance(model: Model | RankingModel, digest: str) -> str:
    made = model.provenance
    pairs: list[tuple[str, Any]] = [
        ("Model file", digest and f"sha256 {digest}"),
        ("Schema", made.schema_hash and f"sha256 {made.schema_hash}"),
        ("Made", made.created),
        ("Command", made.command),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]
    return "\n".join(f"- {name}: {_text(str(value))}" for name, value in pairs if value)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([_text(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _text(text: str) -> str:
    """A text of somebody else in one line of Markdown, without its markup."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
