"""The guarantee of a whole pipeline, composed of those of its parts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hushfit.errors import BudgetExceeded, InvalidArgument
from hushfit.preprocessing._parts import guarantees_of, private_parts, refuse_choices_by_rows
from hushfit.preprocessing._pipeline_account import PipelineAccount
from hushfit.privacy import Cost, Guarantee, Relation, compose, epsilon_of, gaussian_mu
from hushfit.privacy.ledger import RESERVED_SHARE
from hushfit.unit import ROW, PrivacyUnit


def pipeline_guarantee(pipeline: Any, delta: float | None = None) -> Guarantee:
    """One guarantee for a fitted scikit-learn pipeline whose steps were charged separately.

    Parameters
    ----------
    pipeline : Pipeline, ColumnTransformer or FeatureUnion
        Fitted. A part that learnt from the rows without paying is refused.
    delta : float, optional
        At which to state epsilon; None takes the largest delta among the parts.

    Returns
    -------
    Guarantee
        The costs of all parts, composed. Valid if no part's cost depended on what another released;
        a private vocabulary may change later costs, so use `PrivatePipeline` there.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from hushfit import PrivateLogisticRegression, PrivateQuantileScaler, pipeline_guarantee
    >>> X, y = np.array([[0.2], [0.8]] * 500), np.array([0, 1] * 500)
    >>> steps = (
    ...     PrivateQuantileScaler(epsilon=0.2),
    ...     PrivateLogisticRegression(epsilon=0.5, delta=1e-6, classes=[0, 1]),
    ... )
    >>> fitted = make_pipeline(*steps).fit(X, y)
    >>> 0.5 < pipeline_guarantee(fitted).epsilon < 0.7  # less than the sum
    True
    """
    list(private_parts(pipeline))
    refuse_choices_by_rows(pipeline, None)
    found = list(guarantees_of(pipeline))
    if not found:
        raise InvalidArgument(
            "No part of the pipeline spent privacy, so there is no guarantee to state."
        )
    _refuse_different_units(found)
    relations = {guarantee.relation for _, guarantee in found}
    if len(relations) > 1:
        raise InvalidArgument(
            f"The parts are stated under {sorted(relations)}, which do not compose. Give all the "
            "same adjacency."
        )
    delta = max(guarantee.delta for _, guarantee in found) if delta is None else delta
    return _together(found, delta, relations.pop())


def _refuse_different_units(found: Sequence[tuple[str, Guarantee]]) -> None:
    (first, guarantee), *others = found
    for name, other in others:
        if other.unit != guarantee.unit:
            raise InvalidArgument(
                f"The parts have different privacy units, which do not compose: {first!r} protects "
                f"{guarantee.unit}, and {name!r} protects {other.unit}. Give the same groups to "
                "all, and the same person_weight and rows_per_person."
            )


def _together(
    found: Sequence[tuple[str, Guarantee]],
    delta: float,
    relation: Relation,
    epsilon: float | None = None,
) -> Guarantee:
    """The guarantees of the parts as one; epsilon from their composed cost unless given."""
    cost = compose(guarantee.cost for _, guarantee in found)
    return Guarantee(
        _stated(cost, delta, relation) if epsilon is None else epsilon,
        delta,
        relation,
        unit=found[0][1].unit,
        public=tuple(dict.fromkeys(text for _, guarantee in found for text in guarantee.public)),
        releases=tuple(
            replace(release, name=f"{name}: {release.name}", share=part * release.share)
            for (name, guarantee), part in zip(found, _parts_of_whole(found), strict=True)
            for release in guarantee.releases
        ),
        cost=cost,
        secure=all(guarantee.secure for _, guarantee in found),
        # Given, it is the budget of a filter, which chose later costs by earlier answers.
        adaptive=epsilon is not None,
        notes=tuple(dict.fromkeys(text for _, guarantee in found for text in guarantee.notes)),
    )


def _parts_of_whole(found: Sequence[tuple[str, Guarantee]]) -> list[float]:
    """Share of each part in what all spent, as squares of mu; equal ones without privacy."""
    if any(guarantee.nonprivate for _, guarantee in found):
        return [1 / len(found)] * len(found)
    squares = [gaussian_mu(guarantee.epsilon, guarantee.delta) ** 2 for _, guarantee in found]
    return [square / sum(squares) for square in squares]


def _stated(cost: Cost, delta: float, relation: Relation) -> float:
    """Epsilon with the reserve that every budget keeps for discrete noise."""
    usable_share = 1 - RESERVED_SHARE
    return epsilon_of(cost, usable_share * delta, relation) / usable_share


def guarantee_of_account(
    pipeline: Any, account: PipelineAccount, unit: PrivacyUnit = ROW
) -> Guarantee:
    """The guarantee of a fit, from the guarantees of its parts."""
    found = list(guarantees_of(pipeline))
    if not found:
        # No private part had anything to learn.
        return Guarantee(
            account.budget.epsilon,
            account.budget.delta,
            account.relation,
            unit=unit,
            secure=True,
        )
    if any(guarantee.unit != unit for _, guarantee in found):
        raise InvalidArgument(
            f"A step protects something other than {unit}, so no guarantee can be stated. Report "
            "this as a bug."
        )
    whole = _together(found, account.budget.delta, account.relation, account.budget.epsilon)
    if whole.cost != compose(entry.cost for entry in account.entries()):
        raise InvalidArgument(
            "A step released something other than it paid for, so no guarantee can be stated. "
            "Report this as a bug."
        )
    spent = account.tally().epsilon
    if not spent <= account.budget.epsilon:
        raise BudgetExceeded(
            f"The steps released epsilon={spent:.6g} together, over the pipeline's "
            f"{account.budget.epsilon:g}, so no guarantee is stated. Report this as a bug."
        )
    return whole
