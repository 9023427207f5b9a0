"""One self-contained page about a ranking model: the guarantee, what it protects, NDCG by depth."""

from collections.abc import Mapping
from html import escape
from importlib.resources import files

import numpy as np

from hushfit.models import RankingModel
from hushfit.report._report_page import _POLICY, _guarantee_section, _section

_SHOWN = 25
_BAR, _HEIGHT, _GAP = 260.0, 22.0, 70.0


def ranking_page(
    model: RankingModel, digest: str = "", ndcg: Mapping[int, float] | None = None
) -> str:
    """Write a page about a ranking model.

    Parameters
    ----------
    model : RankingModel
    digest : str, default=""
        Hash of the model file.
    ndcg : mapping of int to float, optional
        Mean NDCG on held-out lists, by depth.

    Returns
    -------
    str
        HTML that loads no other file.
    """
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    g = model.guarantee
    sections = [
        _guarantee_section(g),
        _section("protects", "What is protected", _protected(model)),
        "" if ndcg is None else _section("ndcg", "NDCG by depth", _ndcg(ndcg)),
        _section("weights", "Weights", _weights(model)),
        _section(
            "public", "Taken as public", "".join(f"<p>{escape(fact)}.</p>" for fact in g.public)
        ),
        _section(
            "origin",
            "Provenance",
            f"<p>{escape(model.provenance.command)} {escape(model.provenance.created)}</p>"
            f"<p>Model file: <code>{escape(digest)}</code></p>",
        ),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>Ranking model · hushfit</title><style>{style}</style></head><body>"
        '<header><div><p class="eyebrow">hushfit report</p><h1>Ranking model</h1></div></header>'
        f'<main id="content">{"".join(sections)}</main></body></html>\n'
    )


def _protected(model: RankingModel) -> str:
    words = {
        "labels": "All grades of one list, or of one person's lists. The documents themselves, "
        "their features and which of them are listed together are public and NOT protected.",
        "list": "One whole list: its documents, their number and their grades.",
        "person": "All lists of one person, with their documents and grades.",
    }
    return f"<p>{escape(words[model.estimator.unit])}</p>"


def _ndcg(ndcg: Mapping[int, float]) -> str:
    bars = "".join(
        f'<text x="0" y="{(k + 0.7) * _HEIGHT:.1f}">NDCG@{depth}</text>'
        f'<rect x="{_GAP}" y="{(k + 0.15) * _HEIGHT:.1f}" width="{_BAR * value:.1f}" '
        f'height="{0.7 * _HEIGHT:.1f}" fill="currentColor" opacity="0.6"/>'
        f'<text x="{_GAP + _BAR * value + 6:.1f}" y="{(k + 0.7) * _HEIGHT:.1f}">{value:.3f}</text>'
        for k, (depth, value) in enumerate(ndcg.items())
    )
    size = f'width="{_GAP + _BAR + 60:.0f}" height="{len(ndcg) * _HEIGHT:.0f}"'
    return (
        f'<svg {size} role="img" aria-label="NDCG by depth">{bars}</svg>'
        "<p>On held-out lists, without noise. Gains are 2<sup>grade</sup> - 1; a list without a "
        "relevant document counts as 0.</p>"
    )


def _weights(model: RankingModel) -> str:
    fitted = model.estimator
    if fitted.scorer != "linear":
        return f"<p>A network with {len(fitted.weights_):,} weights.</p>"
    names = (
        model.schema.columns
        if model.schema is not None and model.schema.columns
        else tuple(f"feature {k + 1}" for k in range(len(fitted.weights_)))
    )
    largest = np.argsort(-np.abs(fitted.weights_), kind="stable")[:_SHOWN]
    rows = "".join(
        f"<tr><td>{escape(names[k])}</td><td>{fitted.weights_[k]:.4g}</td></tr>" for k in largest
    )
    return f"<table><tr><th>feature</th><th>weight</th></tr>{rows}</table>"
