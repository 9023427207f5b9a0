"""What pages are made of: sections about a guarantee and a model, tables and figures.

document              A whole page
section               One section of a page
kind_in_words         What kind of model it is
lead                  What is predicted, in a sentence
target_name           The name of what is predicted
budget_facts          Epsilon, delta and what is protected, for the head of a page
budget_section        Where the budget went
guarantee_section     The guarantee in words
odds_section          What epsilon means for an attacker's belief
points_section        What an evaluator must be told
forest                Weights as a forest plot that can be searched and sorted
coefficients_section  Coefficients, with what is known of their errors
evaluation_section    Scores on held-out rows
shapes_section        Effects of the numeric columns of an additive model
bars_figure           Small histogram
odds_figure           Belief of an attacker before and after a release
plan_figure           Expected loss of accuracy against epsilon
posterior             Bounds of an attacker's belief after a release
narrow                What narrow screens show under a number
"""

from hushfit.report.sections._coefficients import coefficients_section, forest
from hushfit.report.sections._document import document, section
from hushfit.report.sections._evaluation import evaluation_section
from hushfit.report.sections._figures import bars_figure, odds_figure, plan_figure, posterior
from hushfit.report.sections._forest import narrow
from hushfit.report.sections._guarantee import (
    budget_facts,
    budget_section,
    guarantee_section,
    odds_section,
)
from hushfit.report.sections._points import points_section
from hushfit.report.sections._shapes import shapes_section
from hushfit.report.sections._subject import kind_in_words, lead, target_name

__all__ = [
    "bars_figure",
    "budget_facts",
    "budget_section",
    "coefficients_section",
    "document",
    "evaluation_section",
    "forest",
    "guarantee_section",
    "kind_in_words",
    "lead",
    "narrow",
    "odds_figure",
    "odds_section",
    "plan_figure",
    "points_section",
    "posterior",
    "section",
    "shapes_section",
    "target_name",
]
