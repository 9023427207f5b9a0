r"""Two releases of what labels contribute, the second one weighted towards the boundary of a first
fit. For two classes and features that are public.

    b1 = sum_i x_i s(y_i) + noise                      three tenths of mu squared
    m_i = margin of row i in the fit of b1             public from here on
    b2 = sum_i v_i x_i s(y_i) + noise,  v_i = 1 / cosh(m_i)^2t
    w  = the fit of  .3 b1 + .7 b2, rows weighted by  .3 + .7 v_i

The sum has the noise of one release with the whole budget. Weights cost what rows far from the
boundary would have told; t is the largest power for which that is little beside the noise:
docs/algorithms/one-release.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushfit._typing import Matrix, Vector
from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.problem import Problem
from hushfit.release import Door, LabelStatistic, Plan, Planned, PublicRows, canonical
from hushfit.solvers._known_noise import default_prior, expected_error, noise_in
from hushfit.solvers.base import Iterate
from hushfit.solvers.perturbation._one_release import (
    Design,
    LabelFit,
    OneRelease,
    ReleasedLabels,
    chosen_design,
    public_rows_of,
    used_by,
)

_FIRST, _SECOND = "labels", "labels near the boundary"
_POWERS = (0.0, 0.125, 0.25, 0.5, 0.75, 1.0)
# The expected error of a fitted probability may grow by this multiple of itself times the squared
# share of rows near the boundary, as only their answers can improve, and by this much.
_MOST_GROWTH, _MOST_MORE = 10.5, 1.3e-3


@dataclass(frozen=True)
class TwoReleases:
    """Release the label statistic, fit, and release it again with weights that favour rows near
    the boundary: closer to the largest accuracy than maximum likelihood is where no linear model
    fits. For two classes without a penalty, and features that are public.

    Parameters
    ----------
    boundary_share : float, default=0.7
        Weight of the second release in the result, and its share of the budget (of mu squared).

    Examples
    --------
    >>> from hushfit import Relation
    >>> from hushfit.losses import Logistic
    >>> from hushfit.penalties import Zero
    >>> from hushfit.problem import Problem
    >>> from hushfit.solvers import TwoReleases
    >>> problem = Problem(Logistic(), Zero(), 10_000, 5, Relation.LABEL)
    >>> plan = TwoReleases().plan(problem)
    >>> [(one.name, one.count) for one in plan.records(plan.multipliers(1.0, 10_000))]
    [('labels', 1), ('labels near the boundary', 1)]
    """

    boundary_share: float = 0.7

    takes_constraint = False

    def __post_init__(self) -> None:
        if not 0 < self.boundary_share < 1:
            raise InvalidArgument(
                f"boundary_share={self.boundary_share!r} is outside (0, 1). Use 0.7."
            )

    def plan(self, problem: Problem) -> Plan:
        OneRelease().plan(problem)  # the same problems, with the same refusals
        if not isinstance(problem.loss, Logistic) or problem.penalty.ridge != 0:
            raise InvalidArgument(
                f"TwoReleases is for the logistic loss of two classes without a penalty, not for "
                f"{problem.loss!r} with {problem.penalty!r}: its weights of rows would change the "
                "objective. Use solver='one-release'."
            )
        return Plan(
            (
                Planned(_FIRST, LabelStatistic, 1, 1 - self.boundary_share),
                Planned(_SECOND, LabelStatistic, 1, self.boundary_share),
            )
        )

    def iterates(self, problem: Problem, door: Door) -> Iterator[Iterate]:
        rows, share = public_rows_of(door), self.boundary_share
        multipliers = door.noise_multiplier(_FIRST), door.noise_multiplier(_SECOND)
        together = math.hypot((1 - share) * multipliers[0], share * multipliers[1])
        design = chosen_design(problem, rows, together, None)
        first = ReleasedLabels.of(problem, rows, door, _FIRST, design)
        w = LabelFit(problem, rows, design, first).minimum()
        yield Iterate(w, weight=0.0)
        near = self._affordable(problem, rows, design, rows.margins(w), together)
        second = ReleasedLabels.of(problem, rows, door, _SECOND, design, near)
        mixed = first.mixed_with(second, share)
        used = used_by(rows, design.spectrum, _shares(problem, rows, mixed.weights))[0]
        refitted = Design(design.spectrum, design.squares, mixed.weights, used)
        yield Iterate(LabelFit(problem, rows, refitted, mixed).minimum())

    def _affordable(
        self,
        problem: Problem,
        rows: PublicRows,
        design: Design,
        margins: Vector,
        multiplier: float,
    ) -> Vector:
        """The steepest weights whose expected error is little more than that of equal weights.
        Reads public features, the amount of noise and the first fit.
        """
        loss, values = canonical(problem), design.spectrum.values
        longest = float(rows.lengths(None if design.metric is None else design.metric.A).max())
        scale = multiplier * loss.label_diameter * longest / problem.n_units
        if scale == 0:
            return boundary_weights(margins)
        choices = np.stack([boundary_weights(margins, power) for power in _POWERS], axis=1)
        own = 1.0 if design.weights is None else design.weights[:, None]
        mixed = own * (1 - self.boundary_share + self.boundary_share * choices)
        used = used_by(rows, design.spectrum, _shares(problem, rows, mixed))
        noise = noise_in(scale, design.squares)
        prior = default_prior(values, loss.label_diameter)
        errors = np.array([expected_error(values, one, noise, prior) for one in used])
        least, near = float(errors[0]), float(np.average(choices[:, -1], weights=rows.shares))
        good = errors <= least + min(_MOST_GROWTH * near**2 * least, _MOST_MORE)
        return choices[:, int(np.flatnonzero(good).max(initial=0))]


def boundary_weights(margins: Vector, power: float = 1.0) -> Vector:
    """One on the boundary, and less the further a row is from it; one everywhere at power 0."""
    return np.asarray(np.cosh(np.clip(margins, -300.0, 300.0)) ** (-2 * power))


def _shares(problem: Problem, rows: PublicRows, weights: Vector) -> Matrix:
    """What each row counts, one column for each weighting."""
    columns = weights.reshape(rows.n_rows, -1)
    shares = np.broadcast_to(rows.shares, rows.n_rows)[:, None]
    return np.asarray(shares * columns / problem.n_units)
