"""Private fits for people who write torch: any module, any loss, any dataset of fixed length."""

import copy
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from hushfit.data import persons_of
from hushfit.errors import InvalidArgument
from hushfit.privacy import Budget
from hushfit.release import Randomness, Terms
from hushfit.torch._fit import LEFT_OUT, ROW_INDEPENDENCE, NetworkFit, fit_network
from hushfit.torch._network import Network
from hushfit.torch._rows import ArrayRecords, DatasetRecords, NetworkRows, Records
from hushfit.torch._validation import RecordShape, one_tensor
from hushfit.unit import PrivacyUnit

NOT_READ = "A record that cannot be read, or has another shape, contributes nothing."


def fit_private(
    module: nn.Module,
    loss: Any,
    dataset: Any,
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    adjacency: str = "replace-one",
    solver: Any = "auto",
    groups: Any = None,
    rows_per_person: int | None = None,
    classes: int | None = None,
    callbacks: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    device: str | torch.device = "cpu",
    physical_batch: int | None = None,
    ledger: Any = None,
    random_state: Any = None,
    verbose: int = 0,
) -> NetworkFit:
    """Fit a module to a dataset with a differential-privacy guarantee.

    Batches are drawn by the library with secret coins, so there is no data loader.

    Parameters
    ----------
    module : nn.Module
        Where the fit begins; its weights are public. It is not changed.
    loss : callable
        From outputs and targets to one value for each example, or a loss of ``torch.nn``.
    dataset : pair of arrays or tensors, TensorDataset, or map-style dataset
        Pairs of an input and a target. Shapes and types are public; records must be the same each
        time they are read.
    epsilon : float, default=1.0
    delta : float, default=1e-6
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
    solver : str or solver, default="auto"
    groups : array, optional
        Ids: whose record each is. The privacy unit is then one person.
    rows_per_person : int, optional
        How many records of a person are used, the first ones; 1000 if not given.
    classes : int, optional
        Number of classes, where targets are whole numbers; the number of outputs if not given. A
        record with another label contributes nothing.
    callbacks, checkpoint, device, physical_batch, ledger, random_state, verbose
        As for `PrivateNeuralClassifier`.

    Returns
    -------
    NetworkFit
        The fitted module, the guarantee and the receipt.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hushfit.torch import fit_private
    >>> x, y = torch.rand(500, 8), torch.randint(0, 2, (500,))
    >>> fit = fit_private(nn.Linear(8, 2), nn.CrossEntropyLoss(), (x, y), epsilon=1.0, delta=1e-5)
    >>> fit.guarantee.epsilon
    1.0
    """
    budget = Budget(epsilon, delta)
    records, x, y = _records(dataset)
    if not isinstance(module, nn.Module):
        raise InvalidArgument(f"module={module!r} is not a torch.nn.Module. Give one.")
    shape = RecordShape(
        tuple(x.shape), not x.is_floating_point(), tuple(y.shape), _classes(classes, module, x, y)
    )
    if isinstance(records, ArrayRecords) and shape.classes is not None:
        records = _labelled(records, shape.classes, loss)
    persons = None
    if groups is not None:
        if len(groups) != len(records):
            raise InvalidArgument("groups should have one id for each record, and has not.")
        persons = persons_of(
            groups, len(records), PrivacyUnit.person(rows_per_person=rows_per_person)
        )
    rows = NetworkRows(records, shape, persons)
    network = Network.of(
        module,
        loss,
        shape,
        rows.n_units,
        adjacency,
        rows.privacy_unit,
        physical_batch,
        device,
        precise_sums=isinstance(records, DatasetRecords),
    )
    terms = Terms(
        budget,
        "fit_private",
        Randomness.of(random_state),
        ledger,
        ("the shapes and types of a record", "the module and its first weights", "the loss"),
        (LEFT_OUT, *([NOT_READ] if isinstance(records, DatasetRecords) else []), ROW_INDEPENDENCE),
    )
    return fit_network(rows, network, solver, terms, random_state, callbacks, checkpoint, verbose)


def _records(dataset: Any) -> tuple[Records, Tensor, Tensor]:
    """The records of a dataset, and one input and target for their shapes and types."""
    if isinstance(dataset, TensorDataset):
        dataset = dataset.tensors
    if isinstance(dataset, tuple | list) and len(dataset) == 2:
        X, y = (_array(one) for one in dataset)
        if len(X) == 0:
            raise InvalidArgument("The dataset has no records. Give some.")
        records: Records = ArrayRecords(X, y)
        return records, torch.from_numpy(X[:1])[0], torch.from_numpy(y[:1])[0]
    if isinstance(dataset, Dataset) and not isinstance(dataset, IterableDataset):
        try:
            n_records = len(dataset)
            pair, _ = dataset[0], dataset[n_records - 1]
        except Exception as error:
            raise InvalidArgument(
                f"The dataset cannot be read by numbers from 0 ({type(error).__name__}). Give one "
                "with __len__ and __getitem__."
            ) from None
        if len(dataset) != n_records:
            raise InvalidArgument(
                "The dataset changes its length when it is read. Nothing was charged. Give one of "
                "a fixed length."
            )
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument(
                "A record of the dataset is no pair of an input and a target. Let its __getitem__ "
                "return (input, target). Nothing was charged."
            )
        x, y = (torch.as_tensor(one) for one in pair)
        return DatasetRecords(dataset, n_records, x, y), x, y
    raise InvalidArgument(
        f"dataset={type(dataset).__name__} is not a pair of arrays, a TensorDataset or a dataset "
        "with a length. A DataLoader or an iterable dataset would choose the batches; here secret "
        "coins do. Give loader.dataset."
    )


def _array(values: Any) -> Any:
    found = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise InvalidArgument(f"Records of type {found.dtype} are no numbers. Encode them first.")
    if found.dtype.kind == "u" or found.dtype.kind == "b":
        return found.astype(np.int64)
    return np.ascontiguousarray(found)


def _labelled(records: ArrayRecords, classes: int, loss: Any) -> ArrayRecords:
    """The records with a missing label where it is no class: these contribute nothing. Labels are
    floats in any case, so that one which is missing does not change the keys of the others.
    """
    y = records.y
    known = (y >= 0) & (y < classes)
    if isinstance(loss, nn.CrossEntropyLoss | nn.NLLLoss):
        known |= y == loss.ignore_index
    return ArrayRecords(records.X, np.where(known, y.astype(np.float64), np.nan))


def _classes(classes: int | None, module: nn.Module, x: Tensor, y: Tensor) -> int | None:
    """Number of classes; None for real targets."""
    if y.is_floating_point():
        return None
    if classes is not None:
        if isinstance(classes, bool) or not isinstance(classes, int) or classes < 1:
            raise InvalidArgument(f"classes={classes!r} is not a number of classes. Give an int.")
        return classes
    dtype = next((one.dtype for one in module.parameters()), torch.float32)
    record = torch.zeros((2, *x.shape), dtype=dtype if x.is_floating_point() else x.dtype)
    try:
        with torch.no_grad():  # of a copy: a pass may change what a module keeps
            outputs = copy.deepcopy(module)(record)
    except Exception as error:
        raise InvalidArgument(
            f"{type(module).__name__} does not take records of shape {tuple(x.shape)}: {error}. "
            "Nothing was charged."
        ) from None
    if one_tensor(module, outputs).ndim < 2:
        raise InvalidArgument(
            "Targets are whole numbers, but the module has no output for each class. Give classes, "
            "or targets of a floating-point type."
        )
    return int(outputs.shape[1])
