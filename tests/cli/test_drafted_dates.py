"""Drafts of dates, of dates of birth, and of labels that are days or months."""

import numpy as np
import pytest
from conftest_cli import make_rows, write_csv

from hushfit.cli._calendar_labels import in_calendar_order
from hushfit.data.schema import read_schema


@pytest.mark.parametrize(
    ("name", "first", "years", "parts"),
    [
        ("admitted", "2019-01-01", 3, ("since", "month", "weekday")),
        ("date of birth", "1990-01-01", 9, ("since",)),
        ("Geburtsdatum", "1990-01-01", 9, ("since",)),
        ("DOB", "1990-01-01", 9, ("since",)),
        ("since when", "1920-01-01", 80, ("since",)),
    ],
)
def test_dates_of_birth_are_one_number(hushfit, name, first, years, parts):
    days = np.arange(600) * (365 * years // 600)
    dates = (np.datetime64(first) + days).astype(str).tolist()
    write_csv("dates.csv", {**make_rows(600), name: dates})
    assert hushfit("schema", "dates.csv", "--target", "ill", "-o", "dates.toml").code == 0
    column = next(c for c in read_schema("dates.toml").schema.columns if c.name == name)
    assert (column.kind, column.parts) == ("date", parts)


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        (["Fr", "Mo", "Sa"], ["Mo", "Fr", "Sa"]),
        (["Fri", "Mon", "Sun"], ["Mon", "Fri", "Sun"]),
        (["Mittwoch", "Montag"], ["Montag", "Mittwoch"]),
        (["Apr.", "Dec.", "Jan."], ["Jan.", "Apr.", "Dec."]),
        (["Mon", "Moon"], ["Mon", "Moon"]),
        (["Mon", "Monday"], ["Mon", "Monday"]),  # one day twice: they are no calendar
        (["b", "a"], ["b", "a"]),
    ],
)
def test_days_and_months_are_in_the_order_of_the_calendar(labels, ordered):
    assert in_calendar_order(labels) == ordered
