"""scikit-learn's own checks of what an estimator must do."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from _support import ERROR_FOR_A_CELL
from hushfit import PrivateLinearSVC, PrivateLogisticRegression

# Checks whose demand contradicts privacy, each with the reason. Empty is the aim.
CONTRADICT_PRIVACY: dict[str, str] = {**ERROR_FOR_A_CELL}


def expected_failures(estimator):
    return CONTRADICT_PRIVACY


@pytest.mark.usefixtures("quiet_fits")
@parametrize_with_checks(
    [
        PrivateLogisticRegression(),
        PrivateLinearSVC(),
        PrivateLogisticRegression(penalty="l1", solver="proximal-gd"),
        PrivateLogisticRegression(epsilon=float("inf"), penalty="l2", alpha=0.01),
        PrivateLinearSVC(epsilon=float("inf"), penalty="l2", alpha=0.01),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_finds_nothing_to_complain_about(estimator, check):
    check(estimator)
