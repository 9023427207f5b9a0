"""Networks as scikit-learn estimators: what they share, and any module as a classifier."""

import copy
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from hushfit._typing import AnyArray, Matrix
from hushfit.data import FeatureBounds
from hushfit.errors import InvalidArgument
from hushfit.estimators import (
    ExplainsArguments,
    PersonSettings,
    encode_labels,
    features_of,
    no_cell_quoted,
    persons_in,
    public_classes,
    refuse_extras,
    split_groups,
    with_numbers,
    with_unknown_labels,
)
from hushfit.privacy import Budget, Guarantee, Receipt
from hushfit.release import Quote, Randomness, Terms
from hushfit.torch._fit import (
    LEFT_OUT,
    ROW_INDEPENDENCE,
    NetworkFit,
    Training,
    fit_network,
    quote_of,
)
from hushfit.torch._network import Network
from hushfit.torch._rows import ArrayRecords, NetworkRows
from hushfit.torch._validation import RecordShape, one_tensor
from hushfit.torch.solvers import network_solver_from
from hushfit.unit import ROW, PrivacyUnit

_PREDICTED_AT_ONCE = 4096


class _PrivateNetwork(ExplainsArguments, PersonSettings, BaseEstimator):
    """Base of the estimators, which differ in their module and in their targets."""

    _any_shape: ClassVar[bool] = False

    def _module(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        raise NotImplementedError

    def _scaled(self, X: AnyArray) -> AnyArray:
        raise NotImplementedError

    def _validated(self, X: Any, **options: Any) -> Any:
        """Records (and targets, if ``y`` is given) as arrays; no message quotes a value."""
        given = {"X": with_numbers(X), **options}
        arrays = {
            name: value.detach().cpu().numpy() if isinstance(value, Tensor) else value
            for name, value in given.items()
        }
        with no_cell_quoted():
            return validate_data(
                self,
                dtype=[np.float32, np.float64],
                allow_nd=self._any_shape,
                ensure_all_finite=False,
                **arrays,
            )

    def _fitted(
        self, X: AnyArray, targets: AnyArray, record: RecordShape, outputs: int, loss: Any, ids: Any
    ) -> NetworkFit:
        budget = Budget(self.epsilon, self.delta)
        terms = self._terms(budget)
        persons = persons_in(self, ids)
        rows = NetworkRows(ArrayRecords(self._scaled(X), targets), record, persons)
        network = self._network(record, outputs, loss, rows.n_units, rows.privacy_unit)
        return fit_network(
            rows,
            network,
            self.solver,
            terms,
            self.random_state,
            self.callbacks,
            self.checkpoint,
            self.verbose,
        )

    def _network(
        self, record: RecordShape, outputs: int, loss: Any, n_units: int, unit: PrivacyUnit
    ) -> Network:
        module = self._module(record.input, outputs)
        return Network.of(
            module,
            loss,
            record,
            n_units,
            self.adjacency,
            unit,
            self.physical_batch,
            self.device,
        )

    def _quoted(self, record: RecordShape, outputs: int, loss: Any, n: int, person: bool) -> Quote:
        budget = Budget(self.epsilon, self.delta)
        unit = self.person_unit() if person else ROW
        network = self._network(record, outputs, loss, n, unit)
        return quote_of(network_solver_from(self.solver, budget, network), network, budget)

    def _accept(self, fit: NetworkFit) -> None:
        self.module_: nn.Module = fit.module
        self.n_iter_ = fit.steps
        self.training_: Training | None = fit.training
        self.privacy_: Guarantee = fit.guarantee
        self.receipt_: Receipt | None = fit.receipt

    def _outputs(self, X: Any) -> Matrix:
        """Outputs of the module; those of a record that is not finite are of the zero record."""
        check_is_fitted(self)
        X = self._validated(features_of(X, self.privacy_.unit.column), reset=False)
        X = self._scaled(X)
        outputs_of(self.module_, X.shape[1:])  # refuses records of another shape
        dtype = next(self.module_.parameters()).dtype
        found = []
        with torch.no_grad():
            for start in range(0, len(X), _PREDICTED_AT_ONCE):
                x = torch.from_numpy(np.array(X[start : start + _PREDICTED_AT_ONCE])).to(dtype)
                x[~torch.isfinite(x).flatten(1).all(1)] = 0
                found.append(self.module_(x).double().numpy())
        return np.concatenate(found)

    def _public(self) -> list[str]:
        return ["the shape of a record", "the module and its first weights"]

    def _notes(self) -> list[str]:
        return [
            LEFT_OUT,
            ROW_INDEPENDENCE,
        ]

    def _terms(self, budget: Budget) -> Terms:
        return Terms(
            budget,
            type(self).__name__,
            Randomness.of(self.random_state),
            self.ledger,
            tuple(self._public()),
            tuple(self._notes()),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _cross_entropy(outputs: Tensor, classes: Tensor) -> Tensor:
    return F.cross_entropy(outputs, classes, reduction="none")


class _PrivateNetworkClassifier(ClassifierMixin, _PrivateNetwork):
    """What classifiers of networks have in common."""

    def fit(self, X: Any, y: Any = None, groups: Any = None, **unsupported: Any) -> Any:
        """Fit the network and charge its cost.

        Parameters
        ----------
        X : array or tensor of shape (n_records, ...), or TensorDataset
            A dataset has the records and the labels.
        y : array or tensor of shape (n_records,), optional
            Not given with a dataset.
        groups : array of shape (n_records,) or str, optional
            Ids: whose record each is. The privacy unit is then one person with all of their
            records (user-level privacy). None protects single records.

        Returns
        -------
        self
        """
        refuse_extras(unsupported)
        Budget(self.epsilon, self.delta)
        X, y = _taken_apart(X, y)
        X, ids = split_groups(X, groups, y)
        if self.classes is None:
            X, y = self._validated(X, y=y)
            check_classification_targets(y)
            classes = public_classes(None, y)
            labels = encode_labels(y, classes)
        else:
            classes = public_classes(self.classes, y)
            y = y.detach().cpu().numpy() if isinstance(y, Tensor) else y
            X, labels = with_unknown_labels(y, classes, partial(self._validated, X))
        record = RecordShape(X.shape[1:], classes=len(classes))
        if len(classes) == 2:  # from -1 and +1
            labels = (labels + 1) / 2
        fit = self._fitted(X, labels, record, len(classes), _cross_entropy, ids)
        self.classes_ = classes
        self._accept(fit)
        return self

    def quote(
        self, n_units: int, shape: Any, n_classes: int | None = None, per_person: bool = False
    ) -> Quote:
        """Cost of a fit with these settings; no record is read and nothing is charged.

        Parameters
        ----------
        n_units : int
            Number of records, or of persons; public.
        shape : int or tuple of int
            Shape of a record, or its number of features.
        n_classes : int, optional
            Number of classes, if ``classes`` is not set.
        per_person : bool, default=False
            Whether units are persons: the cost of a fit with ``groups``.

        Returns
        -------
        Quote
            Cost, noise multipliers and planned releases. Print it.
        """
        if n_classes is None and self.classes is None:
            raise InvalidArgument(
                "The cost depends on the number of classes. Set classes, or give n_classes."
            )
        count = len(self.classes) if n_classes is None else n_classes
        record = RecordShape(_shape(shape), classes=count)
        return self._quoted(record, count, _cross_entropy, n_units, per_person)

    def decision_function(self, X: Any) -> Matrix:
        """Outputs of the network: one for each class, or for two classes their difference.

        Parameters
        ----------
        X : array or tensor of shape (n_records, ...)

        Returns
        -------
        array of shape (n_records, n_classes), or (n_records,) for two classes
        """
        outputs = self._outputs(X)
        return outputs[:, 1] - outputs[:, 0] if len(self.classes_) == 2 else outputs

    def predict_proba(self, X: Any) -> Matrix:
        """Probability of each class.

        Parameters
        ----------
        X : array or tensor of shape (n_records, ...)

        Returns
        -------
        array of shape (n_records, n_classes)
        """
        outputs = self._outputs(X)
        exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> AnyArray:
        """The most likely class of each record.

        Parameters
        ----------
        X : array or tensor of shape (n_records, ...)

        Returns
        -------
        array of shape (n_records,)
        """
        outputs = self._outputs(X)
        return self.classes_[outputs.argmax(axis=1)]

    def _public(self) -> list[str]:
        known = self.classes is not None
        return [
            f"the classes, {'given by the caller' if known else 'READ FROM THE ROWS'}",
            *super()._public(),
        ]

    def _notes(self) -> list[str]:
        read = "The classes were read from the labels, outside the guarantee."
        return [*super()._notes(), *([] if self.classes is not None else [read])]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # A private model of a few dozen records is mostly noise, as it must be.
        tags.classifier_tags.poor_score = True
        return tags


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int | np.integer) else tuple(map(int, shape))


class PrivateNeuralClassifier(_PrivateNetworkClassifier):
    """Any network as a classifier with a differential-privacy guarantee.

    Parameters
    ----------
    module : nn.Module
        From a batch of records to one output for each class. Its weights are where the fit begins;
        they are public, and the module itself is not changed. Layers that mix examples are refused.
    epsilon : float, default=1.0
        Privacy budget of this fit. ``inf`` fits without privacy, and says so in ``privacy_``.
    delta : float, default=1e-6
        Should be well below one over the number of records, or of persons.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        Adjacency relation: neighbouring tables have one record exchanged for another, or for
        nothing; with ``groups``, all records of one person.
    classes : sequence, optional
        Public label set. A record whose label is missing or not in it contributes nothing. None
        reads the set from ``y`` and warns.
    solver : str or solver, default="auto"
        ``"auto"``, ``"dp-sgd"``, ``"dp-adam"``, or an object of `hushfit.torch.solvers`.
    input_range : (low, high), optional
        Public range of every input: values are clipped to it and mapped to [-1, 1]. None uses the
        records unchanged.
    person_weight : {"mean", "cap"}, default="mean"
    rows_per_person : int, optional
        As for `PrivateLogisticRegression`, for a fit with ``groups``.
    callbacks : list of callables, optional
        Called after each step with a `Progress`: step and released weights, never a loss.
    checkpoint : path, optional
        File to store the run in. If it exists, the fit goes on where it stopped and nothing is
        charged again; delete it to start again.
    device : str, default="cpu"
    physical_batch : int, optional
        Examples that pass through the module at once, a multiple of 32. It changes the speed, not
        the result.
    ledger : Ledger, optional
        The ledger of the data set; charged before the records are read.
    random_state : None or int, default=None
        None is the only secure setting.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    module_ : nn.Module
        With the fitted weights.
    classes_ : array
    n_iter_ : int
        Number of steps, fixed in advance.
    training_ : Training
        Average size of a batch, and clipping norm.
    privacy_ : Guarantee
        The guarantee. Print it.
    receipt_ : Receipt or None
        The payment; None without a ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from hushfit.torch import PrivateNeuralClassifier
    >>> X = np.tile(np.float32([[0.2], [0.8]]), (100, 1))
    >>> model = PrivateNeuralClassifier(
    ...     nn.Linear(1, 2), epsilon=3.0, delta=1e-4, classes=[0, 1], random_state=0
    ... )
    >>> model.fit(X, np.tile([0, 1], 100)).predict(X).shape
    (200,)
    """

    _any_shape = True

    def __init__(
        self,
        module: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        classes: Any = None,
        solver: Any = "auto",
        input_range: Any = None,
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
        self.module = module
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.classes = classes
        self.solver = solver
        self.input_range = input_range
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.device = device
        self.physical_batch = physical_batch
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def _module(self, shape: tuple[int, ...], outputs: int) -> nn.Module:
        if not isinstance(self.module, nn.Module):
            raise InvalidArgument(f"module={self.module!r} is not a torch.nn.Module. Give one.")
        found = outputs_of(self.module, shape)
        if found != (outputs,):
            raise InvalidArgument(
                f"The module has outputs of shape {found} for a record of shape {shape}, but there "
                f"are {outputs} classes. Give its last layer one output for each class."
            )
        return self.module

    def _scaled(self, X: AnyArray) -> AnyArray:
        if self.input_range is None:
            return X
        bounds = FeatureBounds.parse(self.input_range, 1)
        low, high = bounds.low[0], bounds.high[0]
        scaled: AnyArray = np.clip(X, low, high)
        return (scaled - low) * X.dtype.type(2 / (high - low)) - X.dtype.type(1)

    def _public(self) -> list[str]:
        given = [] if self.input_range is None else ["the range of the inputs, given by the caller"]
        return [*super()._public(), *given]


def _taken_apart(X: Any, y: Any) -> tuple[Any, Any]:
    """Records and labels, also of a dataset that holds both."""
    if y is not None or not isinstance(X, Dataset | DataLoader):
        return X, y
    if isinstance(X, TensorDataset) and len(X.tensors) == 2:
        return X.tensors
    raise InvalidArgument(
        f"X is a {type(X).__name__}. Give records and labels as arrays or tensors, or a "
        "TensorDataset of both. fit_private(module, nn.CrossEntropyLoss(), dataset, ...) of "
        "hushfit.torch takes every dataset with a length; batches are drawn there, so of a "
        "DataLoader it takes loader.dataset."
    )


def _channels_last(shape: tuple[int, ...]) -> str:
    """A hint for records that look like images with the channels last."""
    if len(shape) != 3 or shape[-1] not in (1, 3, 4) or shape[0] in (1, 3, 4):
        return ""
    return " If they are images, torch has the channels first: X.transpose(0, 3, 1, 2)."


def outputs_of(module: nn.Module, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape of the outputs of one record; refuses a module that takes no such records."""
    dtype = next((one.dtype for one in module.parameters()), torch.float32)
    try:
        with torch.no_grad():  # of a copy: a pass may change what a module keeps
            outputs = copy.deepcopy(module)(torch.zeros((2, *shape), dtype=dtype))
    except Exception as error:
        raise InvalidArgument(
            f"{type(module).__name__} does not take records of shape {shape}: {error}. Nothing was "
            "charged. Give records of another shape, or change the module, whose forward pass must "
            f"not need gradients.{_channels_last(shape)}"
        ) from None
    return tuple(one_tensor(module, outputs).shape[1:])
