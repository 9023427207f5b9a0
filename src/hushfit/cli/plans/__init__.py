"""Plans of ``hushfit plan``, one file for each kind.

THEOREMS           Options of the theorems alone
plan_classes       Noise, expected loss of accuracy, and rows needed, of a model of classes
plan_intervals     Width of intervals, and rows needed
plan_numbers       Noise of a model of numbers, grades or counts, and rows needed
plan_ranking       Noise of a ranking model, and lists needed
plan_theorems      What the theorems of the source texts promise
plan_units_needed  How many rows or persons are needed, by a schema that does not state their number
"""

from hushfit.cli.plans._classes import plan_classes
from hushfit.cli.plans._intervals import plan_intervals
from hushfit.cli.plans._numbers import plan_numbers
from hushfit.cli.plans._ranking import plan_ranking
from hushfit.cli.plans._theorems import THEOREMS, plan_theorems
from hushfit.cli.plans._units_needed import plan_units_needed

__all__ = [
    "THEOREMS",
    "plan_classes",
    "plan_intervals",
    "plan_numbers",
    "plan_ranking",
    "plan_theorems",
    "plan_units_needed",
]
