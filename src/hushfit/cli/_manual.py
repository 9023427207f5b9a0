"""The manual page, generated from the texts of ``--help``."""

from collections.abc import Iterator

import click

from hushfit.cli._app import VERBS, app

_HEAD = """# The `hushfit` command

This page is generated from the program's help texts (`python -m hushfit.cli._manual >
docs/cli.md`). [The tutorial](tutorial.md) shows the verbs with real output.
"""

_PLAN = """
## The rule behind `hushfit plan`

With `x = s * sqrt(d + 1) / (n * mu)`, where n is the number of rows (or of persons, if these are
protected), d of encoded columns, s is 2 for replace-one and 1 for add-remove, and mu is the
Gaussian parameter of (epsilon, delta), the default solver is expected to lose `0.24 * x**0.69` of
accuracy against a fit without privacy, and nine cases in ten are within a factor of 2.7 of that.
The rule is a least-squares line, in logarithms, through 61 measurements: eight tables of 6,500 to
80,000 rows and 33 to 301 columns, epsilon from 0.05 to 1.6 at delta 1e-8, both relations on three
of them, one row per person. It does not depend on your labels: a rare class or a very easy problem
can be outside. The noise that `plan` prints is not an estimate but the exact calibration.

Under `label` and `person-label` s is 1: a label of two classes moves the sum by its record, half as
far as a replaced record does. The rule was not fitted to that but checked, on Adult, bank and
covtype: 18 measured losses ([labels alone](benchmarks.md#labels-alone)) were .07 to 1.06 times what
it says.

**Rankings.** No rule for NDCG is honest: how much noise a ranking bears depends on how far apart
the documents of a list are, which no public number tells. `plan` prints the standard deviation of
the noise in a weight as a multiple of a typical weight, `s * d * sigma / (n * sqrt(T))`: n is the
number of lists or persons, d of columns, T of releases and sigma their noise multiplier, s is 2 (1
for add-remove). It takes documents that differ equally in all d columns, scores with a standard
deviation of one within a list, and every list as clipped; correlated columns do better. From that
follows the number of lists or persons below which a weight is more noise than signal.
"""

_LISTS = """
## Schemas of lists

A schema with a `query` describes lists of documents, and `fit` then fits a
[ranking model](algorithms/ranking.md). `hushfit schema --query COLUMN` drafts one; so does `hushfit
schema FILE` for LETOR (SVMlight) text, with lines such as `2 qid:10 1:0.5 3:1`.

```toml
target = "grade"           # column of the grades, from 0 for irrelevant
query = "query"            # column that groups documents; rows of one query are adjacent
max_grade = 4              # larger grades count as this one
columns = ["bm25", "spam"] # features, numbers; for LETOR text n_features = 46 instead
unit = "labels"            # or "list", "person": what is protected
person = "judge"           # optional: whose list each is; needed for unit = "person"
lists_per_person = 20      # optional: the first lists of a person that are used; 1000 if left out
max_list_length = 500      # optional: longer lists are refused
feature_bounds = [0, 1]    # optional: public range of all features
```

A draft has `confirm = true`. Delete the line when every value is what is publicly known: until
then `fit` refuses the schema, and `--accept-draft` is not for lists. `hushfit schema --check`
counts, for the owner of the data, faulty grades, split queries and lists from which nothing can be
learnt.
"""

_PERSONS = """
## Persons with several rows

Without more the privacy unit is one row. With a column of ids, named in the schema or by
`fit --person`, it is one person with all of their rows (user-level privacy):

```toml
person = "patient_nbr"     # at the top of the schema, before [target]
person_weight = "cap"      # optional; "mean" if left out
rows_per_person = 3        # optional with "mean", needed with "cap"
```

With `mean` a row of a person with k rows weighs 1/k, so every person counts once, and the first
`rows_per_person` rows of a person are used (1000 if it is not given). With `cap` it weighs 1/max(k,
`rows_per_person`): a person with fewer rows than that counts less, and the first 1000 rows are
used, or `rows_per_person` if that is more. Rows beyond the bound (contribution bounding) are left
out, in the order of the files; nothing is printed about it, since that would reveal something about
a person. Choose the bound and the weights without looking at the rows.

**How ids are compared.** By what they say, each cell by itself, and the same in CSV, Parquet and
Arrow: an id in two files is one person. No person may become two, so where a value has several
notations they are one id:

- Numbers by their value: `7`, `7.00`, `+7`, `" 7 "` and the number 7, or `1e-07` and `0.0000001`.
  Whole numbers are exact at any size. `true` and `false` are 1 and 0.
- Dates and moments by the instant, in UTC if there is no zone, and midnight is the date:
  `2020-01-02`, `2020-01-02T00:00:00Z` and `2020-01-02 01:00+01:00`. Durations by their length.
- Every other text as it is written, without blanks around it and in Unicode's normal form C:
  `007` is not `7`, `a` is not `A`, and `1e5`, without a sign or point, is a code and no number.

Floats of 2**53 or more (2**24 in single precision) are refused, since different ids may have been
rounded to one. So are lists, sets, periods and other types that have no one notation.

**Missing ids.** A null, NaN or blank cell makes its row a person of its own. If a person has rows
without an id, each of these is protected alone. Words such as `NA` or `unknown` are ids: all their
rows are one person's. `hushfit schema --check` counts both, for the owner of the data.

**What is public, and what is not covered.** The number of persons is public, the number of rows is
private: with persons, `fit` prints and writes nothing that depends on it, and its progress shows no
sizes. Not covered are the time that a fit takes, the memory and the temporary file of encoded rows
that it needs, the size of the table itself, and messages about a file that cannot be read, which
name the row. If all ids are equal or all are missing, the fit is refused, which reveals that.

If every id is different, the fit is that of single rows.
"""


_TARGETS = """
## Targets

The target is described under `[target]`, with its `name` and `kind`: `categorical` with
`categories`, `numeric` with `low` and `high`, `count` with `high`, or `ordinal` with `categories`
from the lowest to the highest grade. [Regression and counts](regression.md) has the models of each
kind, and what coefficients and scores mean.
"""

_CURVES = """
## Curved effects

With `fit --features additive`, or `features` in the schema, each numeric column gets a piecewise
linear effect instead of a straight one ([additive models](algorithms/additive.md)). What is public
about a column decides how:

```toml
features = "additive"      # at the top of the schema; "linear" if left out, or "centred"

[columns.children]
kind = "numeric"
low = 0                    # a range that starts at zero: amounts, counts, durations
high = 6
integer = true             # whole numbers: at most high - low intervals between knots
missing = "indicator"      # missing cells get `fill` and a feature that says so
fill = 1
```

`missing = "indicator"` also serves linear models. Whether cells may be missing, like everything in
the schema, must be known without looking at the rows.

## Coefficients that are log-odds

`fit --scaling public`, or `scaling = "public"` at the top of the schema, divides the rows of a
classifier by the largest length that the schema allows, and not each by its own. A coefficient is
then what its column adds to the log-odds. Predictions are on most tables slightly less accurate
([measured](algorithms/auto-appendix.md)), so it is not the default. `fit --inference` gives
log-odds too, with intervals.
"""


def manual() -> str:
    """The whole page as Markdown."""
    parts = [_HEAD, _entry("hushfit", app)]
    parts += [_entry(f"hushfit {name}", command) for name, command in _commands()]
    return "\n".join(parts) + _TARGETS + _PERSONS + _LISTS + _CURVES + _PLAN


def _commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(app, help_option_names=["-h", "--help"])
    for verb in VERBS:
        command = app.get_command(context, verb)
        assert command is not None
        yield verb, command
        if isinstance(command, click.Group):
            yield from (
                (f"{verb} {name}", command.commands[name]) for name in sorted(command.commands)
            )


def _entry(title: str, command: click.Command) -> str:
    context = click.Context(
        command,
        info_name=title,
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    return f"## `{title}`\n\n```text\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    click.echo(manual(), nl=False)
