"""One self-contained page about a model. All of it is post-processing of releases, or scores on
rows that were held out.
"""

from html import escape
from typing import Any

from hushfit.models import Model
from hushfit.report._evaluator_points import Evidence, evaluator_points
from hushfit.report.scores import AnyEvaluation
from hushfit.report.sections import (
    budget_facts,
    budget_section,
    coefficients_section,
    document,
    evaluation_section,
    guarantee_section,
    kind_in_words,
    lead,
    odds_section,
    points_section,
    section,
    shapes_section,
    target_name,
)


def report_page(
    model: Model,
    digest: str = "",
    evaluation: AnyEvaluation | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a page about a model.

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
        HTML that loads no other file.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression, load_model, save_model
    >>> from hushfit.report import report_page
    >>> X, y = np.array([[0.2], [0.8]] * 200), np.array([0, 1] * 200)
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-4, classes=[0, 1]).fit(X, y)
    >>> digest = save_model(model, "model.json")
    >>> page = report_page(load_model("model.json"), digest)
    >>> page.startswith("<!doctype html>")
    True
    """
    title = f"{kind_in_words(model)} of {target_name(model)}"
    sections = [
        guarantee_section(model.guarantee),
        odds_section(model.guarantee),
        budget_section(model.guarantee),
        shapes_section(model),
        coefficients_section(model),
        "" if evaluation is None else evaluation_section(evaluation),
        points_section(evaluator_points(model, evidence)),
        _public(model),
        _provenance(model, digest),
    ]
    held_out = " or from the held-out rows named above" if evaluation else ""
    return document(title, lead(model), _facts(model, evaluation), sections, held_out)


def _facts(model: Model, evaluation: AnyEvaluation | None) -> list[tuple[str, str, str]]:
    facts = [
        *budget_facts(model.guarantee),
        ("columns", f"{len(model.feature_names)}", _of_target(model)),
    ]
    if evaluation is not None:
        facts.append((*evaluation.headline, f"on {evaluation.rows:,} held-out rows"))
    return facts


def _of_target(model: Model) -> str:
    return f"{len(model.classes)} classes" if model.predicts_classes else "to predict a number"


def _public(model: Model) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in model.guarantee.public)
    body = (
        "<p>The guarantee assumes that these are public. If one of them was learnt from the rows, "
        f"it was leaked.</p><ul>{items}</ul>"
    )
    if model.schema is not None:
        rows = "".join(
            f'<tr><td class="name">{escape(c.name)}</td><td>{c.kind}</td>'
            f"<td>{escape(c.stated)}</td></tr>"
            for c in model.schema.columns
        )
        table = (
            "<table><thead><tr><th>column</th><th>kind</th><th>range or vocabulary</th></tr>"
            f"</thead><tbody>{rows}</tbody></table>"
        )
        body += (
            f"<details><summary>The schema, {len(model.schema.columns)} columns</summary>"
            f'<div class="scroll" tabindex="0" role="region" aria-label="Schema">{table}</div>'
            "</details>"
        )
    return section("public", "What was assumed public", body, long=True)


def _shown_settings(model: Model) -> dict[str, Any]:
    settings = model.estimator.get_params()
    shown = ("features", "scaling", "solver", "penalty", "alpha")
    return {name: settings[name] for name in shown if name in settings}


def _provenance(model: Model, digest: str) -> str:
    made = model.provenance
    pairs = [
        ("Model", digest and f"sha256 {digest}"),
        ("Schema", made.schema_hash and f"sha256 {made.schema_hash}"),
        ("Made", made.created),
        ("Command", made.command),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
        (
            "Settings",
            ", ".join(f"{key}={value!r}" for key, value in _shown_settings(model).items()),
        ),
        ("Steps", f"{model.estimator.n_iter_}, fixed in advance"),
        (
            "Ledger",
            model.receipt
            and (
                f"{model.receipt.dataset}, payment {model.receipt.number}, entry "
                f"{model.receipt.hash}"
            ),
        ),
    ]
    rows = "".join(
        f'<dt>{name}</dt><dd class="mono">{escape(str(value))}</dd>'
        for name, value in pairs
        if value
    )
    return section("papers", "Provenance", f'<dl class="papers">{rows}</dl>')
