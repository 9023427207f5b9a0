"""One self-contained page about a ranking model: the guarantee, what it protects, NDCG by depth."""

from collections.abc import Mapping
from html import escape

from hushfit.models import RankingModel
from hushfit.report._evaluator_points import Evidence, evaluator_points
from hushfit.report.sections import (
    budget_facts,
    budget_section,
    document,
    forest,
    guarantee_section,
    odds_section,
    points_section,
    section,
)

_BAR, _HEIGHT, _GAP = 260.0, 22.0, 80.0


def ranking_page(
    model: RankingModel,
    digest: str = "",
    ndcg: Mapping[int, float] | None = None,
    evidence: Evidence | None = None,
) -> str:
    """Write a page about a ranking model.

    Parameters
    ----------
    model : RankingModel
    digest : str, default=""
        Hash of the model file.
    ndcg : mapping of int to float, optional
        Mean NDCG on held-out lists, by depth.
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
        section("protects", "What is protected", _protected(model)),
        odds_section(g),
        budget_section(g),
        "" if ndcg is None else section("ndcg", "NDCG by depth", _ndcg(ndcg)),
        section("weights", "Weights", _weights(model)),
        points_section(evaluator_points(model, evidence)),
        section(
            "public",
            "What was assumed public",
            f"<ul>{''.join(f'<li>{escape(fact)}</li>' for fact in g.public)}</ul>",
        ),
        section("papers", "Provenance", _provenance(model, digest)),
    ]
    facts = [*budget_facts(g), ("features", f"{model.estimator.n_features_in_}", "of a document")]
    if ndcg is not None:
        deepest = max(ndcg)
        facts.append((f"NDCG@{deepest}", f"{ndcg[deepest]:.3f}", "on held-out lists"))
    lead = "Orders the documents of a list by their features."
    held_out = " or from the held-out lists" if ndcg is not None else ""
    return document("Ranking model", lead, facts, sections, held_out)


def _provenance(model: RankingModel, digest: str) -> str:
    made, fitted, receipt = model.provenance, model.estimator, model.receipt
    pairs = [
        ("Model", digest and f"sha256 {digest}"),
        ("Made", made.created),
        ("Command", made.command),
        ("Versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
        ("Settings", f"solver={fitted.solver!r}, loss={fitted.loss!r}"),
        ("Steps", f"{fitted.n_iter_}, fixed in advance"),
        (
            "Ledger",
            receipt and f"{receipt.dataset}, payment {receipt.number}, entry {receipt.hash}",
        ),
    ]
    rows = "".join(
        f'<dt>{name}</dt><dd class="mono">{escape(str(value))}</dd>'
        for name, value in pairs
        if value
    )
    return f'<dl class="papers">{rows}</dl>'


def _protected(model: RankingModel) -> str:
    whose = "all lists of one person" if model.guarantee.unit.is_person else "one list"
    words = {
        "labels": f"All grades of {whose}. The documents themselves, their features and which of "
        "them are listed together are public and NOT protected.",
        "list": "One whole list: its documents, their number and their grades.",
        "person": "All lists of one person, with their documents and grades.",
    }
    return f"<p>{escape(words[model.estimator.unit])}</p>"


def _ndcg(ndcg: Mapping[int, float]) -> str:
    bars = "".join(
        f'<text x="0" y="{(k + 0.7) * _HEIGHT:.1f}">NDCG@{depth}</text>'
        f'<rect x="{_GAP}" y="{(k + 0.15) * _HEIGHT:.1f}" width="{_BAR * value:.1f}" '
        f'height="{0.7 * _HEIGHT:.1f}" class="c0" fill="var(--accent)"/>'
        f'<text x="{_GAP + _BAR * value + 6:.1f}" y="{(k + 0.7) * _HEIGHT:.1f}">{value:.3f}</text>'
        for k, (depth, value) in enumerate(ndcg.items())
    )
    width, height = _GAP + _BAR + 60, len(ndcg) * _HEIGHT
    values = "; ".join(f"NDCG@{depth}: {value:.3f}" for depth, value in ndcg.items())
    return (
        f'<figure style="max-width:{width:.0f}px"><svg viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="NDCG by depth. {values}">{bars}</svg></figure>'
        "<p>On held-out lists, without noise. Gains are 2<sup>grade</sup> - 1; a list without a "
        "relevant document counts as 0.</p>"
    )


def _weights(model: RankingModel) -> str:
    fitted = model.estimator
    if isinstance(fitted.scorer, str) and fitted.scorer == "mlp":
        return f"<p>A network with {len(fitted.weights_):,} weights.</p>"
    own = fitted.scorer == "linear"
    names = (
        model.schema.columns
        if own and model.schema is not None and model.schema.columns
        else tuple(f"feature {k + 1}" for k in range(len(fitted.weights_)))
    )
    return forest(list(names), fitted.weights_, None, "Towards the top of a list")
