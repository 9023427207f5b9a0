"""A published-style table of coefficients from Adult, with and without privacy.

python examples/plot_inference.py        # writes inference.svg and the table of its page

Who earned more than 50,000 dollars in 1994, by age, schooling, hours, sex and marriage: odds ratios
of a private fit (epsilon 1, delta 1e-6, replace-one, seeded noise) beside those of statsmodels on
the same rows. The page is docs/inference-example.md. ``--table PATH`` reads the rows from a CSV
file with the columns of the bundled table instead.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import statsmodels.formula.api as smf

from hushfit import PrivateLogisticRegression
from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
from hushfit.datasets import load_adult
from hushfit.errors import InsecureNoiseWarning

matplotlib.use("svg")
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "hushfit"  # the same numbers make the same file

ROOT = Path(__file__).parents[1]
PAGE, FIGURE = ROOT / "docs" / "inference-example.md", ROOT / "docs" / "figures" / "inference.svg"
MARKS = "<!-- table: begin -->", "<!-- table: end -->"
GREEN, GREY = "#0b6e69", "#5c676c"
# Public: what a census form can hold, and what the law and the calendar allow.
SCHEMA = Schema(
    (
        NumericColumn("age", 17, 90),
        NumericColumn("schooling", 1, 16),
        NumericColumn("hours", 1, 99),
        CategoricalColumn("sex", ("Female", "Male")),
        CategoricalColumn("marriage", ("never", "married", "ended")),
    ),
    CategoricalColumn("income", ("<=50K", ">50K")),
)
FORMULA = (
    "income ~ I((age - 40) / 10) + I(((age - 40) / 10) ** 2) + I(schooling - 10) "
    "+ I((hours - 40) / 10) + sex + marriage"
)
NAMES = {
    "I((age - 40) / 10)": "age, per 10 years from 40",
    "I(((age - 40) / 10) ** 2)": "age, the square of it",
    "I(schooling - 10)": "schooling, per step",
    "I((hours - 40) / 10)": "hours a week, per 10",
    "sex[T.Male]": "men, against women",
    "marriage[T.married]": "married, against never",
    "marriage[T.ended]": "marriage ended, against never",
}
MARRIAGE = {
    "Never-married": "never",
    "Married-civ-spouse": "married",
    "Married-AF-spouse": "married",
}


def rows(path: str | None) -> pd.DataFrame:
    """The table with short names; every other marital status is a marriage that ended."""
    raw = load_adult().to_frame() if path is None else pd.read_csv(path, skipinitialspace=True)
    return pd.DataFrame(
        {
            "age": raw["age"].astype(float),
            "schooling": raw["education-num"].astype(float),
            "hours": raw["hours-per-week"].astype(float),
            "sex": raw["sex"],
            "marriage": raw["marital-status"].map(MARRIAGE).fillna("ended"),
            "income": raw["income"],
        }
    )


def fits(table: pd.DataFrame) -> tuple[Any, pd.DataFrame]:
    """The private model, and estimates with 95 % intervals of both, by coefficient."""
    settings = {"epsilon": 1.0, "delta": 1e-6, "cov_type": "robust", "random_state": 1}
    model = PrivateLogisticRegression.from_formula(FORMULA, SCHEMA, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)
        model.fit(table)
    right = FORMULA.split("~")[1].replace("marriage", "C(marriage, Treatment('never'))")
    own = table.assign(y=(table["income"] == ">50K").astype(int))
    plain = smf.logit(f"y ~ {right}", own).fit(disp=0, cov_type="HC0")
    terms = [
        name.replace("C(marriage, Treatment('never'))", "marriage") for name in plain.params.index
    ]
    ends = plain.conf_int().to_numpy()
    without = pd.DataFrame({"plain": plain.params.to_numpy()}, index=terms)
    without["plain_low"], without["plain_high"] = ends.T
    lines = [line for line in model.inference_.lines() if line.name in NAMES]
    private = pd.DataFrame([line._asdict() for line in lines]).set_index("name")
    return model, private.join(without).loc[list(NAMES)]


def written(found: pd.DataFrame) -> str:
    """The table in Markdown: odds ratios with their intervals."""
    lines = [
        "| | odds ratio, private | 95 % interval | P | without privacy | 95 % interval |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in found.iterrows():
        private, plain = (
            np.exp([row.coef, row.low, row.high]),
            np.exp([row.plain, row.plain_low, row.plain_high]),
        )
        p = "< .001" if row.pvalue < 0.001 else f"{row.pvalue:.3f}"
        cells = [NAMES[str(name)], *_cells(private), p, *_cells(plain)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _cells(values: np.ndarray) -> list[str]:
    return [f"{values[0]:.2f}", f"{values[1]:.2f} to {values[2]:.2f}"]


def drawn(found: pd.DataFrame) -> None:
    """A forest plot of both."""
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    places = np.arange(len(found))[::-1]
    for shift, colour, label, names in (
        (0.13, GREEN, "private, epsilon 1", ("coef", "low", "high")),
        (-0.13, GREY, "without privacy", ("plain", "plain_low", "plain_high")),
    ):
        middle, low, high = (np.exp(found[name]) for name in names)
        axes.hlines(places + shift, low, high, color=colour, linewidth=1.8)
        axes.plot(middle, places + shift, "o", color=colour, markersize=4.5, label=label)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="odds ratio of an income above 50,000 dollars (log scale)")
    axes.set_yticks(places, [NAMES[str(name)] for name in found.index])
    ticks = [0.75, 1, 1.5, 2, 3, 5, 8]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", help="a CSV file instead of the bundled table")
    model, found = fits(rows(parser.parse_args().table))
    print(model.summary())
    print(model.marginal_effects())
    drawn(found)
    before, _, rest = PAGE.read_text().partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    PAGE.write_text(f"{before}{MARKS[0]}\n\n{written(found)}\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
