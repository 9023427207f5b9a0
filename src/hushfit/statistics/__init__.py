"""Private statistics with intervals that cover sampling and noise: what is asked before a model.

Description            All statistics of one release
Estimate               A statistic with its confidence interval
number_text            A number with four digits, large ones without an exponent
error_text             An error with two digits, large ones without an exponent
describe               Means, quantiles and shares of labels of a table, for one budget
describe_columns       The same for columns that were read and encoded already
quote                  Cost of a description, from public numbers
survey_of              The statistics of the columns of a schema
table_columns          The columns that a survey reads, as numbers or codes
Settings               The settings that all single statistics share
counts                 Shares of the labels of a public list
histogram              Shares of bins of equal width
mean                   Mean of numbers with a public range
mean_difference        Difference of the means of two groups
median                 Median of numbers with a public range
proportion             Share of one of two labels
proportion_difference  Difference of the shares of a label between two groups
quantile               Quantiles of numbers with a public range
Bars                   A histogram, to be drawn
Answers                Everything that was released about a table
Survey                 The statistics that are asked for
"""

from hushfit.statistics._describe import (
    describe,
    describe_columns,
    quote,
    survey_of,
    table_columns,
)
from hushfit.statistics._description import Description, Estimate, error_text, number_text
from hushfit.statistics._grid import Bars
from hushfit.statistics._single import (
    Settings,
    counts,
    histogram,
    mean,
    mean_difference,
    median,
    proportion,
    proportion_difference,
    quantile,
)
from hushfit.statistics._survey import Answers, Survey

__all__ = [
    "Answers",
    "Bars",
    "Description",
    "Estimate",
    "Settings",
    "Survey",
    "counts",
    "describe",
    "describe_columns",
    "error_text",
    "histogram",
    "mean",
    "mean_difference",
    "median",
    "number_text",
    "proportion",
    "proportion_difference",
    "quantile",
    "quote",
    "survey_of",
    "table_columns",
]
