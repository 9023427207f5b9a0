"""A model card: Markdown with a YAML head, as model hubs show it. Post-processing of a model file,
and of scores on rows that were held out.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from hushfit._version import __version__
from hushfit.models import Model
from hushfit.report._evaluate import AnyEvaluation
from hushfit.report._evaluator_points import Evidence, evaluator_points
from hushfit.report._report_page import kind_in_words, lead, target_name

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~])")
_CODE = """```python
from hushfit import load_model

model = load_model("model.json")
model.predict(table)  # {use}
print(model.guarantee)
```"""


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
    """
    title = f"{kind_in_words(model)} of {target_name(model)}"
    sections = [
        ("", f"{_text(lead(model))} Fitted with differential privacy by hushfit."),
        ("How to use it", _use(model)),
        ("Privacy guarantee", _text(str(model.guarantee).replace("\n", " "))),
        ("Scores on held-out rows", "" if evaluation is None else _scores(evaluation)),
        ("For an evaluator (NIST SP 800-226)", _points(model, evidence)),
        ("Columns", _columns(model)),
        ("Limits", _LIMITS),
        ("Provenance", _provenance(model, digest)),
    ]
    body = [f"## {name}\n\n{text}" if name else text for name, text in sections if text]
    return "\n\n".join([_head(model, evaluation), f"# {_text(title)}", *body]) + "\n"


_LIMITS = (
    "The guarantee is about the rows that the model was fitted to, under the assumptions that it "
    "lists. It says nothing about whether predictions are right or fair. Noise hides small groups "
    "first: check scores by group before use. Do not use the model outside the public ranges above."
)


def _head(model: Model, evaluation: AnyEvaluation | None) -> str:
    """YAML; its texts are written as JSON, which is YAML too."""
    task = "tabular-classification" if model.predicts_classes else "tabular-regression"
    lines = [
        "---",
        "library_name: hushfit",
        f"pipeline_tag: {task}",
        "tags:",
        "- differential-privacy",
        f"- {task}",
        f"hushfit_version: {json.dumps(__version__)}",
        f"epsilon: {json.dumps('inf' if model.guarantee.nonprivate else model.guarantee.epsilon)}",
        f"delta: {model.guarantee.delta:.6e}",  # without a point, YAML would read a text
        f"adjacency: {json.dumps(str(model.guarantee.relation))}",
        f"unit_of_privacy: {json.dumps(model.guarantee.unit.in_words)}",
    ]
    if evaluation is not None:
        name, value = evaluation.headline
        lines += ["metrics:", f"- {json.dumps(f'{name} {value}', ensure_ascii=False)}"]
    return "\n".join([*lines, "---"])


def _use(model: Model) -> str:
    use = "raw columns, by name" if model.schema is not None else "an array of features"
    return _CODE.format(use=use)


def _scores(evaluation: AnyEvaluation) -> str:
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
    return f"{_text(exact)}\n\n{rows}{by_class}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _points(model: Model, evidence: Evidence | None) -> str:
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


def _provenance(model: Model, digest: str) -> str:
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
