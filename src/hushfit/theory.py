r"""What the theorems of the source texts promise, as numbers: bounds on the excess objective, or
the rows that a wished error takes.

Each function puts the constants of a theorem beside noise that is really private: its noise comes
from the present accounting, not from the paper's (docs/errata.md). Losses are logistic-like on
records of length at most one: Lipschitz constant ``lipschitz``, smoothness ``smoothness``. What the
theorems leave open (the distance to the best weights) is in `Setting`. docs/theory.md compares the
numbers with measured ones.

Bound           A theorem's number for one algorithm
Setting         Public numbers that the theorems ask for
ss_admm         Renyi-DP ADMM, Theorem 2
mp_admm         The same argument for model perturbation
rsgd_ar         Permuted SGD: optimisation error and the exact effect of noise on the minimiser
pp_admm         PP-ADMM, Theorem 4: rows of an owner
ipp_admm        The same for the releases that its gate lets through
dp_sadmm        DP-SADMM, Theorem 5 with the constants of Lemma 5
dp_vradmm       DP-VRADMM, Theorem 3: order of magnitude
strongly_convex Both with a ridge, Theorems 4 and 6: order of magnitude
all_bounds      Every bound for one setting
smoothing_gain  The constant tau of Laplacian smoothing
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hushfit.errors import InvalidArgument
from hushfit.losses import Logistic
from hushfit.penalties import Zero
from hushfit.privacy import Budget, Relation, by_relation, gaussian_mu, labels_only
from hushfit.problem import Problem
from hushfit.solvers import PermutedSGD

# The dual ball of ssADMM's theorem; the two terms that hold it fall as 1/t.
_DUAL_RADIUS = 1.0
# "Some constant a" of PP-ADMM's theorem, from Sridharan, Shalev-Shwartz and Srebro (2008).
_FAST_RATE = 1.0
_MOST_ROWS = 1e15

EXCESS, ROWS = "excess objective", "rows of an owner"


@dataclass(frozen=True)
class Setting:
    """Public numbers that the theorems ask for.

    Parameters
    ----------
    n_units : int
        Number of rows, or of persons.
    n_features : int
    epsilon, delta : float
    adjacency : str, default="replace-one"
        Which data sets are neighbours.
    distance : float, default=10.0
        Norm of the best weights, intercept included: what the theorems call a diameter.
    steps : int, default=500
        Releases of an iterative algorithm.
    lipschitz : float, default=1.0
    smoothness : float, default=0.25
    ridge : float, default=0.0
        Weight of a ridge penalty: how strongly convex the objective is.

    Examples
    --------
    >>> from hushfit.theory import Setting, ss_admm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(ss_admm(setting).value, 2)
    0.65
    """

    n_units: int
    n_features: int
    epsilon: float
    delta: float
    adjacency: str = "replace-one"
    distance: float = 10.0
    steps: int = 500
    lipschitz: float = 1.0
    smoothness: float = 0.25
    ridge: float = 0.0

    def __post_init__(self) -> None:
        for name in ("n_units", "n_features", "steps", "distance", "lipschitz", "smoothness"):
            value = getattr(self, name)
            if not 0 < value < math.inf:
                raise InvalidArgument(f"{name}={value!r} must be a finite number above 0.")
        if not 0 <= self.ridge < math.inf:
            raise InvalidArgument(f"ridge={self.ridge!r} must be a finite number, 0 for none.")
        if not self.budget.is_private:
            raise InvalidArgument(
                "epsilon=inf adds no noise, and these bounds are about noise. Give a finite one."
            )
        if labels_only(Relation.parse(self.adjacency)):
            raise InvalidArgument(
                f"adjacency={self.adjacency!r} has no theorem in the source texts. Use "
                "'replace-one' or 'add-remove'."
            )

    @property
    def budget(self) -> Budget:
        """The budget, checked."""
        return Budget(self.epsilon, self.delta)

    @property
    def weights(self) -> int:
        """Number of weights, the intercept included."""
        return self.n_features + 1

    @property
    def mu(self) -> float:
        """Gaussian parameter of the budget."""
        return gaussian_mu(self.epsilon, self.delta)

    @property
    def noise_of_one_step(self) -> float:
        """Noise on a coordinate of the mean gradient if one step had the whole budget."""
        moved = by_relation(Relation.parse(self.adjacency), replace_one=2, add_remove=1)
        return moved * self.lipschitz / (self.n_units * self.mu)


@dataclass(frozen=True)
class Bound:
    """A theorem's number for one algorithm.

    Parameters
    ----------
    algorithm : str
    theorem : str
    quantity : str
        What ``value`` bounds.
    value : float
    limit : float
        The same with as many steps as one likes, at the same budget.
    remark : str

    Examples
    --------
    >>> from hushfit.theory import EXCESS, Bound
    >>> Bound("ss-admm", "Theorem 2", EXCESS, 0.65, 0.03, "").to_dict()["limit"]
    0.03
    """

    algorithm: str
    theorem: str
    quantity: str
    value: float
    limit: float
    remark: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values; infinities as None."""
        return {
            key: None if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in asdict(self).items()
        }


def ss_admm(setting: Setting) -> Bound:
    r"""Renyi-DP ADMM, Theorem 2: :math:`d\sqrt{2 (C^2 + p\sigma^2)/t} + \beta d/t`.

    The best ``rho`` is taken. At a fixed budget :math:`\sigma^2` grows with t, so the bound tends
    to :math:`d \sqrt{2p}` times the noise of one step, not to zero as the paper's rate.

    Examples
    --------
    >>> from hushfit.theory import Setting, ss_admm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(ss_admm(setting).limit, 3)
    0.03
    """
    return _admm_bound(
        setting,
        "ss-admm",
        "Renyi-DP ADMM, Theorem 2",
        "the published rate 1/sqrt(t) takes the noise as constant; at a fixed budget it is not",
        1.0,
    )


def mp_admm(setting: Setting) -> Bound:
    """The same argument for noise on x, z and y apart: three times the variance at rho = 1.

    The paper has no such theorem. ``form="plus"`` adds noise to x alone and has ssADMM's bound.

    Examples
    --------
    >>> from hushfit.theory import Setting, mp_admm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(mp_admm(setting).limit, 3)
    0.052
    """
    return _admm_bound(
        setting,
        "mp-admm",
        "by the same proof",
        "as published, with noise on x, z and y; form='plus' has the bound of ss-admm",
        3.0,
    )


def _admm_bound(
    setting: Setting, algorithm: str, theorem: str, remark: str, variance: float
) -> Bound:
    d, t = setting.distance, setting.steps
    noise = variance * setting.weights * setting.noise_of_one_step**2
    value = d * math.sqrt(2 * (setting.lipschitz**2 / t + noise)) + _DUAL_RADIUS * d / t
    return Bound(algorithm, theorem, EXCESS, value, d * math.sqrt(2 * noise), remark)


def rsgd_ar(setting: Setting) -> Bound:
    r"""Permuted SGD: :math:`d^2 / (2 \sum \eta)` for the run, :math:`s\sigma^2/2` for the noise.

    The thesis has no bound on the excess risk. The second term is exact: noise moves the margin of
    a record of length one by a normal number of deviation :math:`\sigma`, whatever the number of
    columns. The first is that of gradient descent; batches and restarts are not in it.

    Examples
    --------
    >>> from hushfit.theory import Setting, rsgd_ar
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(rsgd_ar(setting).value, 3)
    0.023
    """
    problem = Problem(
        Logistic(), Zero(), setting.n_units, setting.n_features, Relation.parse("replace-one")
    )
    if setting.adjacency != "replace-one":
        return Bound(
            "rsgd-ar",
            "none in the thesis",
            EXCESS,
            math.inf,
            math.inf,
            "several batches are proved under replace-one only",
        )
    solver = PermutedSGD().for_budget(setting.budget, problem)
    quote = solver.plan(problem).quote(problem, setting.budget)
    (multiplier,) = quote.multipliers.values()
    sigma = multiplier * solver.query(problem).sensitivity(problem.relation)
    time = solver.time or math.inf
    value = setting.distance**2 / (2 * time) + problem.loss.smoothness * sigma**2 / 2
    return Bound(
        "rsgd-ar",
        "none in the thesis",
        EXCESS,
        value,
        value,
        "logistic loss, default schedule; the part of the noise does not grow with the columns",
    )


def pp_admm(setting: Setting, error: float = 0.1, confidence: float = 0.95) -> Bound:
    r"""PP-ADMM, Theorem 4: rows of an owner so that the loss exceeds that of the reference by at
    most ``error``, with its unknown constant V = 1 and an exact minimiser.

    :math:`n \ge \log(1/\xi) / (a^2/(2|\theta|^2) - 2 H(n))`, :math:`H = 2\sigma_1^2 d\log(1/\xi)`
    with the noise of one of ``steps`` rounds.

    Examples
    --------
    >>> from hushfit.theory import Setting, pp_admm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(pp_admm(setting).value, -4)
    1130000.0
    """
    return _owner_bound(setting, "pp-admm", "PP-ADMM, Theorem 4", setting.steps, error, confidence)


def ipp_admm(
    setting: Setting, error: float = 0.1, confidence: float = 0.95, sent: float = 0.5
) -> Bound:
    """The same for the releases that the gate of IPP-ADMM lets through: a share of the rounds.

    Examples
    --------
    >>> from hushfit.theory import Setting, ipp_admm, pp_admm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> ipp_admm(setting).value < pp_admm(setting).value
    True
    """
    rounds = max(1, round(sent * setting.steps))
    return _owner_bound(
        setting, "ipp-admm", "PP-ADMM, Theorem 4, c rounds", rounds, error, confidence
    )


def _owner_bound(
    setting: Setting, algorithm: str, theorem: str, rounds: int, error: float, confidence: float
) -> Bound:
    if not 0 < error < math.inf or not 0 < confidence < 1:
        raise InvalidArgument(
            f"error={error!r} must be above 0 and confidence={confidence!r} between 0 and 1."
        )

    def rows(releases: int) -> float:
        xi = (1 - confidence) / 3  # the theorem fails with probability 3 xi
        log = math.log(1 / xi)
        room = error**2 / (2 * setting.distance**2)
        # H n^2 / log: the noise of an owner falls with its rows.
        of_noise = (
            2 * setting.weights * releases * (setting.noise_of_one_step * setting.n_units) ** 2
        )
        # n (room - (1 + a) log of_noise / n^2) = log is a quadratic equation in n.
        penalty = (1 + _FAST_RATE) * log * of_noise
        n = (log + math.sqrt(log**2 + 4 * room * penalty)) / (2 * room)
        return n if n < _MOST_ROWS else math.inf

    return Bound(
        algorithm,
        theorem,
        ROWS,
        rows(rounds),
        rows(1),
        f"loss within {error:g} of the reference with probability {confidence:g}, V = 1; the "
        "theorem takes the noisy rounds to converge, which they do not",
    )


def dp_sadmm(setting: Setting, smoothing: float = 0.0) -> Bound:
    r"""DP-SADMM, Theorem 5, with the constants of Lemma 5 and step sizes
    :math:`\eta_0/\sqrt t`, the best :math:`\eta_0 \le 1/(2g)`, all rows in each step.

    Examples
    --------
    >>> from hushfit.theory import Setting, dp_sadmm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(dp_sadmm(setting).limit, 3)
    0.042
    """
    d, t = setting.distance, setting.steps
    noise = setting.weights * smoothing_gain(setting.weights, smoothing)

    def bound(steps: float) -> float:
        square = setting.lipschitz**2 / setting.n_units + (
            noise * steps * setting.noise_of_one_step**2
        )
        start = (1 + 4 * smoothing) * d**2
        # [start / (2 eta0) + 2 eta0 square] / sqrt(t), as 1 - eta g is at least a half.
        eta0 = min(math.sqrt(start / (4 * square)), 1 / (2 * setting.smoothness))
        return (start / (2 * eta0) + 2 * eta0 * square) / math.sqrt(steps)

    limit = 2 * d * math.sqrt((1 + 4 * smoothing) * noise) * setting.noise_of_one_step
    return Bound(
        "dp-sadmm",
        "DP-SADMM, Theorem 5 and Lemma 5",
        EXCESS,
        bound(t),
        limit,
        "Laplacian smoothing lowers tau and raises the norm of the start: see smoothing",
    )


def dp_vradmm(setting: Setting, smoothing: float = 0.0) -> Bound:
    r"""DP-VRADMM, Theorem 3: :math:`l\sqrt{\tau d\log(1/\delta)}/(\epsilon n)` with constant one.

    The theorem hides its constant. `strongly_convex` has the bound with a ridge.

    Examples
    --------
    >>> from hushfit.theory import Setting, dp_vradmm
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> round(dp_vradmm(setting).value, 4)
    0.0009
    """
    order = _order(setting, smoothing)
    return Bound(
        "dp-vradmm",
        "DP-VRADMM, Theorem 3",
        EXCESS,
        order,
        order,
        "an order of magnitude: the constant is not in the paper, nor is the distance",
    )


def strongly_convex(setting: Setting, smoothing: float = 0.0) -> Bound:
    r"""DP-VRADMM, Theorem 4, and DP-SADMM, Theorem 6, with a ridge of weight :math:`\mu`:
    :math:`\tau d l^2\log(n)\log(1/\delta)/(\mu\epsilon^2 n^2)` with constant one.

    The theorems hide the same constant. Theorem 4 gets there at a linear rate, but asks for a
    matrix A of full row rank, which none of the paper's experiments has.

    Examples
    --------
    >>> from hushfit.theory import Setting, strongly_convex
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6, ridge=1e-3)
    >>> round(strongly_convex(setting).value, 4)
    0.0092
    """
    if not setting.ridge:
        raise InvalidArgument("ridge=0 makes nothing strongly convex. Give a weight above 0.")
    order = _order(setting, smoothing) ** 2 * math.log(setting.n_units) / setting.ridge
    return Bound(
        "dp-sadmm, dp-vradmm (ridge)",
        "DP-VRADMM, Theorems 4 and 6",
        EXCESS,
        order,
        order,
        "an order of magnitude, like the bound without a ridge",
    )


def _order(setting: Setting, smoothing: float) -> float:
    """The bound of Theorem 3; those of Theorems 4 and 6 are in proportion to its square."""
    tau = smoothing_gain(setting.weights, smoothing)
    return (
        setting.lipschitz
        * math.sqrt(tau * setting.weights * math.log(1 / setting.delta))
        / (setting.epsilon * setting.n_units)
    )


def smoothing_gain(weights: int, smoothing: float) -> float:
    r"""The constant :math:`\tau` of Laplacian smoothing: the mean of
    :math:`1/(1 + 2\nu - 2\nu\cos(2\pi i/d))`.

    Examples
    --------
    >>> from hushfit.theory import smoothing_gain
    >>> smoothing_gain(100, 0.0)
    1.0
    >>> round(smoothing_gain(100, 2.0), 4)  # 1/sqrt(4 nu + 1) for many weights
    0.3333
    """
    angles = 2 * math.pi * np.arange(1, weights + 1) / weights
    return float(np.mean(1 / (1 + 2 * smoothing - 2 * smoothing * np.cos(angles))))


def all_bounds(setting: Setting) -> list[Bound]:
    """Every bound for one setting; those of strongly convex problems if it has a ridge.

    Examples
    --------
    >>> from hushfit.theory import Setting, all_bounds
    >>> setting = Setting(n_units=40_000, n_features=100, epsilon=1.0, delta=1e-6)
    >>> [bound.algorithm for bound in all_bounds(setting)][:3]
    ['ss-admm', 'mp-admm', 'rsgd-ar']
    """
    theorems = [ss_admm, mp_admm, rsgd_ar, dp_sadmm, dp_vradmm, pp_admm, ipp_admm]
    if setting.ridge:
        theorems.append(strongly_convex)
    return [theorem(setting) for theorem in theorems]
