"""One self-contained page about a network: the guarantee, the layers, scores on held-out rows."""

from html import escape
from typing import Any

from hushfit.models import Model
from hushfit.report._evaluator_points import Evidence, evaluator_points
from hushfit.report.scores import Scores
from hushfit.report.sections import (
    budget_facts,
    budget_section,
    document,
    guarantee_section,
    odds_section,
    points_section,
    section,
)


def network_page(
    model: Model,
    digest: str = "",
    scores: Scores | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a page about a network.

    Parameters
    ----------
    model : Model
        With a fitted network.
    digest : str, default=""
        Hash of the model file.
    scores : Scores, optional
        Scores on held-out rows.
    evidence : Evidence, optional
        The total of its data set, and what attacks measured.

    Returns
    -------
    str
        HTML that loads no other file.
    """
    g = model.guarantee
    sections = [
        guarantee_section(g),
        odds_section(g),
        budget_section(g),
        "" if scores is None else section("scores", "On held-out rows", _scores(scores)),
        section("layers", "Layers", _layers(model.estimator.module_)),
        points_section(evaluator_points(model, evidence)),
        section(
            "public", "Taken as public", "".join(f"<p>{escape(fact)}.</p>" for fact in g.public)
        ),
        section(
            "origin",
            "Provenance",
            f"<p>{escape(model.provenance.command)} {escape(model.provenance.created)}</p>"
            f"<p>Model file: <code>{escape(digest)}</code></p>",
        ),
    ]
    held_out = " or from the held-out rows named above" if scores else ""
    weights = sum(values.numel() for values in model.estimator.module_.parameters())
    facts = [
        *budget_facts(g),
        ("weights", f"{weights:,}", "all released"),
        *training_facts(model),
    ]
    lead = "Every weight was computed from noisy sums of gradients alone."
    return document("Network", lead, facts, sections, held_out)


def training_facts(model: Model) -> list[tuple[str, str, str]]:
    """Steps, batch, noise and clipping norm, with a remark each; all were fixed in advance."""
    g, training = model.guarantee, model.estimator.training_
    unit = g.unit.plural
    facts = [("steps", f"{model.estimator.n_iter_:,}", "at most" if g.adaptive else "fixed")]
    if training is not None:  # None of a file of an older version
        facts.append(("batch", f"{training.batch:,.0f}", f"{unit} on average"))
    if not g.adaptive:
        noise = max(release.noise_multiplier for release in g.releases)
        facts.append(("noise multiplier", f"{noise:.4g}", "times the sensitivity of a step"))
    if training is not None:
        how = "gradients are scaled to it" if training.normalised else "longer gradients are cut"
        facts.append(("clipping norm", f"{training.clip:g}", how))
    return facts


def _layers(module: Any) -> str:
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{' x '.join(map(str, values.shape))}</td>"
        f"<td>{values.numel():,}</td></tr>"
        for name, values in module.named_parameters()
    )
    return f"<table><tr><th>parameter</th><th>shape</th><th>weights</th></tr>{rows}</table>"


def _scores(scores: Scores) -> str:
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in line) + "</tr>"
        for line in scores.lines()
    )
    return f"<table>{rows}</table>"
