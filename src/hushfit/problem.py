"""The public half of a fit: everything about it that is not a row."""

import math
from dataclasses import dataclass

import numpy as np

from hushfit._settings import refuse_beyond_floats
from hushfit._typing import Vector
from hushfit.constraints import Constraint
from hushfit.data import RecordScaling
from hushfit.errors import InvalidArgument
from hushfit.kernels.codes import CODES
from hushfit.losses import Loss
from hushfit.penalties import Penalty, check_penalty
from hushfit.privacy import Relation, labels_only, refuse_other_unit
from hushfit.unit import ROW, PrivacyUnit


@dataclass(frozen=True)
class Problem:
    """Minimise the mean loss over the records plus the penalty: of the weights, or of a public
    linear map of them.

    Weights have one entry for each column and, with ``fit_intercept``, a last one for the
    intercept, which no penalty touches. With several outputs they are an array of shape (outputs,
    entries).

    Parameters
    ----------
    loss : Loss
    penalty : Penalty
        With several outputs, of their weights as an array of shape (outputs, columns); most
        penalties add up over outputs.
    n_units : int
        Number of rows, or of persons. Taken as public under both relations; sums are divided by it.
    n_features : int
    relation : Relation or str
    fit_intercept : bool, default=True
    outputs : int, default=1
        1 for two classes or regression, the number of classes otherwise.
    constraint : Constraint or None
        Public ``A w + B z = c`` between the columns' weights and the variable ``z`` that the
        penalty is a function of; None penalises the weights themselves. Only the ADMM solvers take
        one.
    privacy_unit : PrivacyUnit, default=ROW
        Whom the guarantee protects; how many rows of a person are used enters the bounds on
        rounding.
    scaling : RecordScaling, default=UNIT_LENGTH
        What is known of every record: its length is one, at most one, or its entries are bounded.
        Most queries are proved for the first two.
    rotated : bool, default=False
        Whether columns are a rotation of others, as those of an additive model are: single weights
        mean nothing then, and no solver should shrink them one by one on its own account.
    length : float, default=1.0
        With ``PUBLIC_LENGTH``, what records are divided by, unless they are longer.
    """

    loss: Loss
    penalty: Penalty
    n_units: int
    n_features: int
    relation: Relation
    fit_intercept: bool = True
    outputs: int = 1
    constraint: Constraint | None = None
    privacy_unit: PrivacyUnit = ROW
    scaling: RecordScaling = RecordScaling.UNIT_LENGTH
    rotated: bool = False
    length: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "relation", Relation.parse(self.relation))
        refuse_other_unit(self.relation, self.privacy_unit)
        clipped = labels_only(self.relation) or self.scaling is RecordScaling.BOUNDED
        if not math.isfinite(self.loss.slope_bound) and not clipped:
            raise InvalidArgument(
                f"{self.loss!r} has no bound on its slope, so one row could change a gradient "
                "arbitrarily. Use Squared(), or adjacency='label' if features are public."
            )
        refuse_beyond_floats(self.loss)
        refuse_beyond_floats(self.penalty)
        check_penalty(self.penalty)
        expected = self.loss.outputs
        if self.outputs != expected:
            raise InvalidArgument(
                f"{self.loss!r} has {expected} outputs, not {self.outputs}. Give "
                f"outputs={expected}, or a loss for several."
            )
        if self.loss.kernel.code not in CODES:
            # Checked before anything is charged; the kernels would only fail when they run.
            raise InvalidArgument(
                f"{self.loss!r} has the code {self.loss.kernel.code!r}, which compiled code does "
                "not know. Use a loss of hushfit.losses."
            )
        penalised = self.n_features if self.constraint is None else self.constraint.B.shape[1]
        try:
            self.penalty.prox(
                np.zeros(penalised if self.outputs == 1 else (self.outputs, penalised)), 1.0
            )
        except (IndexError, ValueError) as error:
            raise InvalidArgument(
                f"penalty={self.penalty!r} does not suit {penalised} weights ({error}). Make it "
                "for that many."
            ) from None

    @property
    def constant(self) -> float:
        """The entry of the intercept in a record before it is scaled; 0 without an intercept."""
        return self.scaling.constant(self.fit_intercept)

    @property
    def dimension(self) -> int:
        """Length of a record: columns and intercept."""
        return self.n_features + self.fit_intercept

    @property
    def rows_per_unit(self) -> int:
        """Largest number of rows that one unit contributes: 1, or the bound on rows per person."""
        return self.privacy_unit.rows_per_person

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the weights."""
        return (self.dimension,) if self.outputs == 1 else (self.outputs, self.dimension)

    def columns(self, w: Vector) -> Vector:
        """The weights that the penalty sees: a view without the intercept."""
        return w[..., : self.n_features]

    def prox(self, w: Vector, step: float) -> Vector:
        """Proximal step of the penalty; the intercepts pass unchanged."""
        moved = w.copy()
        moved[..., : self.n_features] = self.penalty.prox(self.columns(w), step)
        return moved
