"""A small table of visits, its schema, and its surveys."""

import numpy as np

from hushfit.data.schema import CategoricalColumn, HashedColumn, NumericColumn, Schema

COLUMNS = (
    NumericColumn("age", 0, 100, integer=True),
    NumericColumn("income", 0.0, 1000.0, transform="log1p"),
    CategoricalColumn("ward", ("A", "B", "C")),
    CategoricalColumn("sex", ("F", "M")),
    HashedColumn("street", 8),
)
SCHEMA = Schema(COLUMNS, target=CategoricalColumn("readmitted", ("no", "yes")))
PERSONS = Schema(COLUMNS, target=SCHEMA.target, person="patient")


def visits(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    table = {
        "age": np.clip(rng.normal(45, 15, n), 0, 100).round(),
        "income": rng.lognormal(4, 1, n),
        "ward": rng.choice(np.array(["A", "B", "C", "elsewhere", ""]), n),
        "sex": rng.choice(np.array(["F", "M"]), n),
        "street": rng.choice(np.array(["x", "y"]), n),
        "readmitted": rng.choice(np.array(["no", "yes"]), n, p=[0.9, 0.1]),
        "patient": rng.integers(0, n // 2, n),
    }
    table["age"][rng.random(n) < 0.1] = np.nan
    return table
