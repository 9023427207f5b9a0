"""The four hospitals: read as UCI publishes them, or simulated."""

import numpy as np
import pytest

from hushfit.data.schema._schema import NumericColumn, encode
from hushfit.datasets import HEART_SCHEMA, load_heart, simulate_heart
from hushfit.datasets._heart import HOSPITALS
from hushfit.errors import InvalidArgument


def test_invented_hospitals_have_the_published_sizes_and_differ():
    hospitals = simulate_heart()
    assert {name: len(heart.target) for name, heart in hospitals.items()} == {
        name: rows for name, (_, rows) in HOSPITALS.items()
    }
    ill = {name: np.mean(heart.target == "present") for name, heart in hospitals.items()}
    assert ill["switzerland"] > ill["long-beach"] > ill["budapest"]
    for heart in hospitals.values():
        X, names = encode(heart.columns, HEART_SCHEMA)
        assert X.shape == (len(heart.target), len(names))
        assert ((X >= 0) & (X <= 1)).all()


def test_invented_hospitals_are_the_same_for_a_seed():
    one, same, other = simulate_heart(1), simulate_heart(1), simulate_heart(2)
    np.testing.assert_array_equal(one["cleveland"].columns["age"], same["cleveland"].columns["age"])
    assert not np.array_equal(one["cleveland"].columns["age"], other["cleveland"].columns["age"])


def write_hospitals(folder, line):
    for name, rows in HOSPITALS.values():
        (folder / name).write_text("\n".join([line] * rows) + "\n")


def test_files_in_the_form_of_uci_are_read(tmp_path):
    write_hospitals(tmp_path, "51,1.0,3,?,0,0,2,?,1.0,-.5,?,?,?,2")
    heart = load_heart(tmp_path)["budapest"]
    first = {name: column[0] for name, column in heart.columns.items()}
    assert (first["age"], first["sex"], first["chest-pain"], first["st-depression"]) == (
        51,
        "male",
        "other-pain",
        -0.5,
    )
    assert (first["resting-ecg"], first["exercise-angina"], first["fasting-sugar"]) == (
        "hypertrophy",
        "yes",
        "normal",
    )
    assert np.isnan(
        [first["resting-pressure"], first["cholesterol"], first["max-heart-rate"]]
    ).all()  # "?" and 0 were not measured
    assert set(heart.target) == {"present"}
    X, names = encode(heart.columns, HEART_SCHEMA)
    pressure = next(column for column in HEART_SCHEMA.columns if column.name == "resting-pressure")
    assert isinstance(pressure, NumericColumn)
    assert X[0, names.index("resting-pressure")] == pytest.approx((130 - 80) / (220 - 80))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read"):
        load_heart(tmp_path)
    write_hospitals(tmp_path, "51,1.0,3")
    with pytest.raises(InvalidArgument, match="303 lines of 14 values"):
        load_heart(tmp_path)
