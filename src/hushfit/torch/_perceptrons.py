"""Multilayer perceptrons as scikit-learn estimators."""

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.base import RegressorMixin
from torch import Tensor, nn

from hushfit._typing import AnyArray, Vector
from hushfit.data import FeatureBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators import (
    PredictionRanges,
    TargetScale,
    feature_ranges,
    refuse_extras,
    split_groups,
    with_missing_targets,
)
from hushfit.privacy import Budget
from hushfit.release import Quote
from hushfit.torch._estimators import _PrivateNetwork, _PrivateNetworkClassifier
from hushfit.torch._validation import RecordShape

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "tanh": nn.Tanh,
    "relu": nn.ReLU,
    "elu": nn.ELU,
    "silu": nn.SiLU,
}
_PUBLIC_SEED = 0


def multilayer_perceptron(
    inputs: int, hidden: Sequence[int], outputs: int, activation: str = "tanh", seed: int = 0
) -> nn.Sequential:
    """Linear layers with an activation between them; the weights are drawn from a public seed.

    Parameters
    ----------
    inputs : int
    hidden : sequence of int
        Widths of the hidden layers.
    outputs : int
    activation : {"tanh", "relu", "elu", "silu"}, default="tanh"
    seed : int, default=0

    Returns
    -------
    nn.Sequential

    Examples
    --------
    >>> from hushfit.torch import multilayer_perceptron
    >>> len(multilayer_perceptron(inputs=4, hidden=(8,), outputs=2))
    3
    """
    if activation not in ACTIVATIONS:
        raise InvalidArgument(
            f"activation={activation!r} is not known. Use one of {', '.join(ACTIVATIONS)}."
        )
    widths = [inputs, *_widths(hidden), outputs]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for width, following in itertools.pairwise(widths):
            layers += [nn.Linear(width, following), ACTIVATIONS[activation]()]
    return nn.Sequential(*layers[:-1])


def _widths(hidden: Any) -> list[int]:
    found = [hidden] if isinstance(hidden, int | np.integer) else hidden
    if (
        not isinstance(found, Sequence)
        or not found
        or any(isinstance(h, bool) or not isinstance(h, int | np.integer) or h < 1 for h in found)
    ):
        raise InvalidArgument(f"hidden={hidden!r} is not a list of widths. Give (256, 256).")
    return [int(width) for width in found]


def _squared_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return 0.5 * (outputs.flatten(1)[:, 0] - targets) ** 2


class _MLPSettings(_PrivateNetwork):
    """What the perceptrons have in common: columns with public ranges, and hidden layers."""

    def _module(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        return multilayer_perceptron(shape[0], self.hidden, outputs, self.activation, _PUBLIC_SEED)

    def _scaled(self, X: AnyArray) -> AnyArray:
        if self.feature_bounds is None:
            return X
        return 2 * FeatureBounds.parse(feature_ranges(self), X.shape[1]).apply(X) - 1

    def _public(self) -> list[str]:
        given = "the range of every column, given by the caller"
        return [*super()._public(), *([] if self.feature_bounds is None else [given])]

    def _validated(self, X: Any, **options: Any) -> Any:
        return super()._validated(X.toarray() if issparse(X) else X, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True  # and made dense
        return tags


class PrivateMLPClassifier(_MLPSettings, _PrivateNetworkClassifier):
    """A multilayer perceptron as a classifier with a differential-privacy guarantee.

    Parameters
    ----------
    hidden : tuple of int, default=(256, 256)
        Widths of the hidden layers.
    activation : {"tanh", "relu", "elu", "silu"}, default="tanh"
    feature_bounds : (low, high), or one pair per column, or None
        Public ranges: values are clipped to them and mapped to [-1, 1]. None uses the rows
        unchanged, which suits columns of size about one.
    others
        As for `PrivateNeuralClassifier`, and so are the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.torch import PrivateMLPClassifier
    >>> X, y = np.float32([[0.2], [0.8]] * 500), np.array([0, 1] * 500)
    >>> model = PrivateMLPClassifier(
    ...     hidden=(8,), epsilon=3.0, delta=1e-5, feature_bounds=(0, 1), classes=[0, 1]
    ... )
    >>> model.fit(X, y).predict_proba(X).shape
    (1000, 2)
    """

    def __init__(
        self,
        hidden: Any = (256, 256),
        *,
        activation: str = "tanh",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        classes: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        callbacks: Any = None,
        checkpoint: Any = None,
        device: str = "cpu",
        physical_batch: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.classes = classes
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.device = device
        self.physical_batch = physical_batch
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose


class PrivateMLPRegressor(RegressorMixin, _MLPSettings):
    """A multilayer perceptron for a real target, with a differential-privacy guarantee.

    Minimises the squared error of the target mapped to [-1, 1].

    Parameters
    ----------
    hidden, activation, feature_bounds
        As for `PrivateMLPClassifier`.
    target_bounds : (low, high), optional
        Public range of the target; values outside are clipped, and a row whose target is missing
        contributes nothing. None reads it from ``y`` and warns.
    others
        As for `PrivateNeuralClassifier`, and so are the attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.torch import PrivateMLPRegressor
    >>> X = np.linspace(0, 1, 1000, dtype=np.float32)[:, None]
    >>> model = PrivateMLPRegressor(
    ...     hidden=(8,), epsilon=3.0, delta=1e-5, feature_bounds=(0, 1), target_bounds=(0, 100)
    ... )
    >>> model.fit(X, 100 * X[:, 0]).predict(X).shape
    (1000,)
    """

    def __init__(
        self,
        hidden: Any = (256, 256),
        *,
        activation: str = "tanh",
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        target_bounds: Any = None,
        solver: Any = "auto",
        feature_bounds: Any = None,
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        callbacks: Any = None,
        checkpoint: Any = None,
        device: str = "cpu",
        physical_batch: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden = hidden
        self.activation = activation
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.target_bounds = target_bounds
        self.solver = solver
        self.feature_bounds = feature_bounds
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.device = device
        self.physical_batch = physical_batch
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the network and charge its cost.

        Parameters
        ----------
        X : array or tensor of shape (n_rows, n_features)
        y : array or tensor of shape (n_rows,)
        groups : array of shape (n_rows,) or str, optional
            Ids: whose row each is; see `PrivateNeuralClassifier`.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        Budget(self.epsilon, self.delta)
        X, ids = split_groups(X, groups, y)
        check = partial(self._validated, X, y_numeric=True)
        known = self.target_bounds is not None
        X, y = with_missing_targets(y, check) if known else check(y=y)
        scale = TargetScale.of(self.target_bounds, y, fit_intercept=True, stacklevel=3)
        record = RecordShape(X.shape[1:])
        targets = scale(np.where(np.isfinite(y), y, np.nan))
        fit = self._fitted(X, targets, record, 1, _squared_error, ids)
        PredictionRanges((scale.low, scale.high)).restore(self)
        self._accept(fit)
        return self

    def quote(self, n_units: int, n_features: int, per_person: bool = False) -> Quote:
        """Cost of a fit with these settings; no row is read and nothing is charged.

        Parameters
        ----------
        n_units, n_features : int
            Number of rows (or of persons) and of columns; public.
        per_person : bool, default=False
            Whether units are persons: the cost of a fit with ``groups``.

        Returns
        -------
        Quote
            Cost, noise multipliers and planned releases. Print it.
        """
        record = RecordShape((int(n_features),))
        return self._quoted(record, 1, _squared_error, n_units, per_person)

    def predict(self, X: Any) -> Vector:
        """Predicted target of each row, within ``target_bounds``.

        Parameters
        ----------
        X : array or tensor of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows,)
        """
        outputs = np.clip(self._outputs(X)[:, 0], -1, 1)
        low, high = PredictionRanges.of(self).target
        return np.asarray(low + (high - low) / 2 * (1 + outputs))

    def _public(self) -> list[str]:
        known = self.target_bounds is not None
        return [
            f"the range of the target, {'given by the caller' if known else 'READ FROM THE ROWS'}",
            *super()._public(),
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True  # of a few dozen rows
        return tags
