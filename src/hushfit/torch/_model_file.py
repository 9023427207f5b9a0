"""Files of networks: weights as safetensors, with the guarantee and everything else in the header.

A safetensors file is a JSON header and raw numbers: no code is run when it is read, and any
language can read it. The header of ours has the guarantee, the settings, the schema, the receipt
and a hash
over all of it and the weights.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from hushfit.data import FeatureBounds
from hushfit.data.schema import Schema
from hushfit.errors import InvalidArgument
from hushfit.estimators import PredictionRanges, feature_ranges
from hushfit.models import (
    NETWORK_FORMAT,
    Model,
    PaidReceipt,
    Provenance,
    payment_of,
    restore_names,
)
from hushfit.privacy import Guarantee
from hushfit.torch._estimators import PrivateNeuralClassifier, outputs_of
from hushfit.torch._fit import NetworkFit, Training
from hushfit.torch._perceptrons import (
    PrivateMLPClassifier,
    PrivateMLPRegressor,
    multilayer_perceptron,
)

_VERSION = "3"
_READ = ("2", _VERSION)  # version 2 says nothing of the training
_COMMON = ("epsilon", "delta", "adjacency", "solver")
_PERCEPTRON = (*_COMMON, "hidden", "activation", "feature_bounds")
# What a file keeps of an estimator besides its weights and classes.
_SETTINGS: dict[type, tuple[str, ...]] = {
    PrivateMLPClassifier: _PERCEPTRON,
    PrivateMLPRegressor: (*_PERCEPTRON, "target_bounds"),
    PrivateNeuralClassifier: (*_COMMON, "input_range"),
    NetworkFit: ("solver",),
}
_PERCEPTRONS = (PrivateMLPClassifier, PrivateMLPRegressor)
_DRAWN = tuple(kind.__name__ for kind in _PERCEPTRONS)  # whose architecture is in their settings
_FIELDS = (
    *("format", "version", "kind", "settings", "classes", "features", "steps", "schema"),
    *("guarantee", "receipt", "provenance", "hash"),
)


def save_network(model: Any, path: str | os.PathLike[str]) -> str:
    """Write a fitted network with its guarantee, atomically.

    Parameters
    ----------
    model : Model, fitted estimator, or NetworkFit
        Networks other than perceptrons are written without their architecture, which only code
        can describe.
    path : path or str
        Replaced if it exists; usually ends in ``.safetensors``.

    Returns
    -------
    str
        SHA-256 of the contents, as the file states it.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hushfit.torch import PrivateMLPClassifier, load_network, save_network
    >>> X = np.tile(np.float32([[0.2], [0.8]]), (100, 1))
    >>> settings = {"epsilon": 3.0, "delta": 1e-4, "classes": [0, 1], "feature_bounds": (0, 1)}
    >>> model = PrivateMLPClassifier(hidden=(4,), random_state=0, **settings)
    >>> model = model.fit(X, np.tile([0, 1], 100))
    >>> path = tempfile.mkdtemp() + "/network.safetensors"
    >>> len(save_network(model, path))
    64
    """
    made, record = _with_provenance(model)
    raw, digest = network_bytes(made)
    record(digest)  # before the file exists: every model file is in the ledger
    _write(Path(path), raw)
    return digest


def _with_provenance(model: Any) -> tuple[Model, Callable[[str], None]]:
    """A network as its file describes it, and what records the hash of the file in its ledger."""
    if isinstance(model, Model):
        return model, lambda digest: None
    paid, record = payment_of(model)
    return Model(model, receipt=paid, provenance=Provenance.now()), record


def network_bytes(made: Model) -> tuple[bytes, str]:
    """A network as the bytes of its file, and its hash."""
    fitted = made.estimator
    if type(fitted) not in _SETTINGS or not hasattr(fitted, "module_"):
        raise InvalidArgument(
            f"{type(fitted).__name__} is not a fitted network. Fit one, then save it."
        )
    fields = {
        "format": NETWORK_FORMAT,
        "version": _VERSION,
        "kind": type(fitted).__name__,
        "settings": _settings(fitted),
        "classes": [] if isinstance(fitted, NetworkFit) else made.classes,
        "features": made.feature_names if isinstance(fitted, _PERCEPTRONS) else None,
        "steps": int(fitted.n_iter_),
        "schema": None if made.schema is None else made.schema.to_dict(),
        "guarantee": made.guarantee.to_dict(),
        "receipt": None if made.receipt is None else asdict(made.receipt),
        "provenance": asdict(made.provenance),
    }
    tensors = {
        name: value.detach().cpu().contiguous()
        for name, value in fitted.module_.state_dict().items()
    }
    header = {name: json.dumps(value, allow_nan=False) for name, value in fields.items()}
    digest = _digest(header, tensors)
    return save(tensors, {**header, "hash": json.dumps(digest)}), digest


def load_network(path: str | os.PathLike[str], module: nn.Module | None = None) -> Model:
    """Read a network. No code in the file is run, and one that was changed is refused.

    Parameters
    ----------
    path : path or str
    module : nn.Module, optional
        The architecture, for networks other than perceptrons; it gets the weights.

    Returns
    -------
    Model

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from hushfit.torch import PrivateMLPClassifier, load_network, save_network
    >>> X = np.tile(np.float32([[0.2], [0.8]]), (100, 1))
    >>> settings = {"epsilon": 3.0, "delta": 1e-4, "classes": [0, 1], "feature_bounds": (0, 1)}
    >>> model = PrivateMLPClassifier(hidden=(4,), random_state=0, **settings)
    >>> model = model.fit(X, np.tile([0, 1], 100))
    >>> path = tempfile.mkdtemp() + "/network.safetensors"
    >>> digest = save_network(model, path)
    >>> load_network(path).guarantee.epsilon
    3.0
    """
    return read_network(path, module)[0]


def read_network(
    path: str | os.PathLike[str], module: nn.Module | None = None, *, described: bool = False
) -> tuple[Model, str]:
    """Read a network and the verified hash of its contents; without its architecture, if it is only
    to be described.
    """
    try:
        with safe_open(os.fspath(path), framework="pt") as file:
            header = dict(file.metadata() or {})
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, ValueError) as error:
        raise InvalidArgument(
            f"the network {os.fspath(path)} cannot be read ({type(error).__name__}). Check the "
            "path."
        ) from None
    if sorted(header) != sorted(_FIELDS):
        raise InvalidArgument(
            f"{os.fspath(path)} is not a network of hushfit. Use what save_network wrote."
        )
    try:
        fields = {name: json.loads(text) for name, text in header.items()}
        stated = fields.pop("hash")
        found = _digest({name: header[name] for name in fields}, tensors)
        if stated != found:
            raise InvalidArgument(
                f"{os.fspath(path)} was changed after it was written: it states the hash "
                f"{str(stated)[:12]}..., its contents have {found[:12]}.... Get the original, or "
                "fit again."
            )
        if described and module is None and fields["kind"] not in _DRAWN:
            module = _named(tensors)
        return _model(fields, tensors, module), found
    except InvalidArgument:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        raise InvalidArgument(
            f"{os.fspath(path)} has a field of the wrong type ({type(error).__name__})."
        ) from None


def _settings(fitted: Any) -> dict[str, Any]:
    """The settings of an estimator as JSON values; the range of targets as it was used."""
    found = {name: _plain(getattr(fitted, name)) for name in _SETTINGS[type(fitted)]}
    if "feature_bounds" in found:
        bounds = FeatureBounds.stored(feature_ranges(fitted), int(fitted.n_features_in_))
        found["feature_bounds"] = _plain(bounds)
    training = fitted.training_
    found["training"] = None if training is None else asdict(training)
    if isinstance(fitted, PrivateMLPRegressor):
        found["target_bounds"] = PredictionRanges.of(fitted).target
    return found


def _model(fields: dict[str, Any], tensors: dict[str, Tensor], module: nn.Module | None) -> Model:
    if fields["version"] not in _READ:
        raise InvalidArgument(
            f"the network has version {fields['version']!r}, this hushfit reads "
            f"{' and '.join(_READ)}."
        )
    kind = {kind.__name__: kind for kind in _SETTINGS}[fields["kind"]]
    settings, classes = dict(fields["settings"]), fields["classes"]
    stored = settings.pop("training", None)
    training = None if stored is None else Training(**stored)
    if kind in _PERCEPTRONS:
        settings["hidden"] = tuple(settings["hidden"])
        module = multilayer_perceptron(
            len(fields["features"]), settings["hidden"], len(classes) or 1, settings["activation"]
        )
    if module is None:
        raise InvalidArgument(
            f"the file has the weights of a {fields['kind']}, whose architecture is code. In "
            "Python, give it as module= of load_network."
        )
    _fill(module, tensors)
    guarantee, steps = Guarantee.from_dict(fields["guarantee"]), int(fields["steps"])
    if kind is NetworkFit:
        weights = nn.utils.parameters_to_vector(p for p in module.parameters() if p.requires_grad)
        values, solver = weights.detach().double().numpy(), settings.get("solver", "not stated")
        fitted: Any = NetworkFit(module, values, steps, guarantee, None, solver, training)
    else:
        given = {} if kind in _PERCEPTRONS else {"module": module}
        fitted = _estimator(kind, {**given, **settings}, classes, fields["features"])
        fitted.module_, fitted.n_iter_, fitted.privacy_ = module, steps, guarantee
        fitted.training_, fitted.receipt_ = training, None
        if fields["schema"] is None and fields["features"] is not None:
            restore_names(fitted, fields["features"])
    return Model(
        fitted,
        None if fields["schema"] is None else Schema.from_dict(fields["schema"]),
        None,
        None if fields["receipt"] is None else PaidReceipt(**fields["receipt"]),
        Provenance(**fields["provenance"]),
    )


def _estimator(
    kind: Any, settings: dict[str, Any], classes: list[Any], features: list[str] | None
) -> Any:
    """An estimator that predicts as the one that was saved, once it has its module."""
    settings["epsilon"] = float(settings["epsilon"])
    bounds = settings.get("feature_bounds")
    if isinstance(bounds, list):  # the two ends, of two columns
        settings["feature_bounds"] = tuple(bounds)
    if kind is PrivateMLPRegressor:
        fitted = kind(**settings)
        PredictionRanges(tuple(settings["target_bounds"])).restore(fitted)
    else:
        fitted = kind(**settings, classes=classes)
        fitted.classes_ = np.array(classes)
    if features is not None:
        fitted.n_features_in_ = len(features)
    return fitted


def _named(tensors: Mapping[str, Tensor]) -> nn.Module:
    """A module that has the names and shapes of weights, and computes nothing."""
    whole = nn.Module()
    for path, values in tensors.items():
        *parents, own = path.split(".")
        holder = whole
        for parent in parents:
            if parent not in dict(holder.named_children()):
                holder.add_module(parent, nn.Module())
            holder = holder.get_submodule(parent)
        holder.register_parameter(own, nn.Parameter(values, values.is_floating_point()))
    return whole


def _fill(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    try:
        module.load_state_dict(tensors)
    except RuntimeError:
        raise InvalidArgument(
            f"{type(module).__name__} has other parameters than the network in the file: their "
            "names or shapes differ. Give the architecture that was fitted."
        ) from None


def _digest(header: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for name in sorted(tensors):
        values = tensors[name].detach().cpu().contiguous().numpy()
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()


def _plain(value: Any) -> Any:
    """A setting as a JSON value."""
    if isinstance(value, np.ndarray | list | tuple):
        return np.asarray(value).tolist()
    if isinstance(value, float) and np.isinf(value):
        return "inf"
    return value if isinstance(value, str | int | float | None) else repr(value)


def _write(path: Path, raw: bytes) -> None:
    scratch = path.with_name(f".{path.name}.partial")
    try:
        with open(scratch, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise InvalidArgument(
            f"{path} cannot be written ({error.strerror}). Choose another path."
        ) from None


def export_onnx(model: Any, path: str | os.PathLike[str], shape: tuple[int, ...]) -> None:
    """Write a fitted network as an ONNX graph, with its guarantee as metadata.

    Parameters
    ----------
    model : Model, fitted estimator or NetworkFit
    path : path or str
    shape : tuple of int
        Shape of a record, as the module takes it: inputs are scaled before.

    Notes
    -----
    Needs ``pip install hushfit[onnx]``. The input ``X`` has the shape (n, \\*shape), the output
    ``outputs`` is that of the module. The metadata ``settings`` have the public ranges that inputs
    are scaled from, and for a regressor the range that outputs of -1 to 1 stand for.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.torch import PrivateMLPClassifier, export_onnx
    >>> X = np.tile(np.float32([[0.2], [0.8]]), (100, 1))
    >>> settings = {"epsilon": 3.0, "delta": 1e-4, "classes": [0, 1], "feature_bounds": (0, 1)}
    >>> model = PrivateMLPClassifier(hidden=(4,), **settings).fit(X, np.tile([0, 1], 100))
    >>> export_onnx(model, "network.onnx", shape=(1,))
    """
    import onnx

    fitted = model.estimator if isinstance(model, Model) else model
    module: nn.Module = fitted.module_
    about = {"guarantee": fitted.privacy_.to_json(), "settings": json.dumps(_settings(fitted))}
    if isinstance(model, Model):
        about |= {"classes": repr(model.classes), "features": repr(model.feature_names)}
    outputs_of(module, shape)  # refuses records of another shape
    dtype = next(module.parameters()).dtype
    rows = torch.export.Dim("n", min=1)
    with _errors_only("torch.onnx"):  # it warns that torchvision, which is not needed, is missing
        program = torch.onnx.export(
            module.eval(),
            (torch.zeros((2, *shape), dtype=dtype),),
            input_names=["X"],
            output_names=["outputs"],
            dynamic_shapes=({0: rows},),
            dynamo=True,
            verbose=False,
        )
    graph = program.model_proto
    onnx.helper.set_model_props(graph, about)
    _write(Path(path), graph.SerializeToString())


@contextmanager
def _errors_only(name: str) -> Iterator[None]:
    """Keep a package from logging anything but errors."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
