"""A run as its coordinator requests it, without transport.

It is public. It names an algorithm of the library and its settings, never code and never a path.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from hushfit.data.schema import Schema
from hushfit.errors import InvalidArgument
from hushfit.estimators import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.federated._agreement import Agreement
from hushfit.federated._network import Network
from hushfit.federated._owner import Run
from hushfit.federated._protocol import Algorithm
from hushfit.federated.algorithms import ALGORITHMS, SharedSolver
from hushfit.privacy import Budget
from hushfit.unit import PrivacyUnit

_FORMAT = "hushfit-run-2"
MAX_BYTES = 1 << 20
_MAX_OWNERS, _MAX_UNITS, MAX_ATTEMPTS = 200, 10**12, 10**6
_PER_ATTEMPT = ("attempt", "dropped", "turn_timeout")  # may differ between two attempts at one run
UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_RESERVED = ("server", "coordinator", "conductor", "all", "ca")
_MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateLinearSVC}
_MODEL_KEYS = ("kind", "penalty", "alpha", "l1_ratio", "adjacency")


def checked_name(name: Any) -> str:
    """The name of an owner: it becomes part of certificates, addresses and file names."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        raise InvalidArgument(
            f"{name!r} does not name an owner. Use small letters, digits and dashes, a letter "
            "first, at most 41, and none of "
            f"{', '.join(_RESERVED)}."
        )
    return name


@dataclass(frozen=True, eq=False)
class RunSpec:
    """A run as its coordinator requests it: public, the same for all owners, checked by each of
    them.

    Parameters
    ----------
    run : str
        Name; used once. The same name again resumes the same run.
    algorithm : str
        A name of `ALGORITHMS`.
    settings : mapping
        Of the algorithm; numbers, strings, booleans or None.
    network : Network
    units : mapping from name to int
        Number of rows of each owner, or of persons if the schema has a column of their ids.
    budgets : mapping from name to Budget
    terms : mapping
        What owners must agree on: ``"schema"`` and ``"model"``.
    dropped : tuple of str
        Owners that were dropped.
    attempt : int
        Number of the engine's job for this run.
    turn_timeout : float
        Seconds that one owner may take for one round.
    """

    run: str
    algorithm: str
    settings: Mapping[str, Any]
    network: Network
    units: Mapping[str, int]
    budgets: Mapping[str, Budget]
    terms: Mapping[str, Any]
    dropped: tuple[str, ...] = ()
    attempt: int = 1
    turn_timeout: float = 60.0

    def __post_init__(self) -> None:
        self.made_algorithm()
        Run(self.run, self.made_algorithm())
        for name in self.network.names:
            checked_name(name)
        for what, given in (("units", self.units), ("budgets", self.budgets)):
            if set(given) != set(self.network.names):
                raise InvalidArgument(
                    f"{what} names {sorted(given)}, but the owners are "
                    f"{sorted(self.network.names)}. Name each once."
                )
        if len(self.network.names) > _MAX_OWNERS:
            raise InvalidArgument(
                f"a run has at most {_MAX_OWNERS} owners, not {len(self.network.names)}."
            )
        if not all(is_count(n, _MAX_UNITS) for n in self.units.values()):
            raise InvalidArgument(
                f"units={dict(self.units)} must be whole numbers from 1 to {_MAX_UNITS:g}."
            )
        if not set(self.dropped) < set(self.network.names):
            raise InvalidArgument(
                f"dropped={list(self.dropped)} must name some of the owners "
                f"{list(self.network.names)}, not all."
            )
        if not (is_count(self.attempt, MAX_ATTEMPTS) and 0 < self.turn_timeout <= 86_400):
            raise InvalidArgument(
                f"attempt={self.attempt!r} and turn_timeout={self.turn_timeout!r} must be "
                "positive, and the "
                "latter at most 86400 seconds, which is a day."
            )
        made_estimator(self.terms, Budget(1.0, 1e-6))
        unit_of(self.terms)

    def made_algorithm(self) -> Algorithm:
        """The algorithm with its settings."""
        if self.algorithm not in ALGORITHMS:
            known = ", ".join(map(repr, ALGORITHMS))
            raise InvalidArgument(
                f"algorithm={self.algorithm!r} is not one of {known}. A run can only name these."
            )
        made = ALGORITHMS[self.algorithm]()
        if not is_dataclass(made) or isinstance(made, type):
            raise InvalidArgument(f"algorithm={self.algorithm!r} takes no settings.")
        allowed = {f.name for f in fields(made)}
        for name, value in self.settings.items():
            # An integer beyond 64 bits is no setting, and some of them fit in no float.
            huge = isinstance(value, int) and not -(2**63) <= value < 2**63
            if (
                name not in allowed
                or huge
                or not isinstance(value, bool | int | float | str | None)
            ):
                raise InvalidArgument(
                    f"settings of {self.algorithm!r} have {name}={value!r}. Use numbers or strings "
                    f"for {', '.join(sorted(allowed))}."
                )
        chosen: Algorithm = replace(made, **self.settings)
        return chosen

    @property
    def fingerprint(self) -> str:
        """What an owner approves: SHA-256 of all that is the same in every attempt."""
        return _digest(
            {key: value for key, value in self.to_dict().items() if key not in _PER_ATTEMPT}
        )

    @property
    def attempt_fingerprint(self) -> str:
        """SHA-256 of all of it: the owners of one attempt must have received the same."""
        return _digest(self.to_dict())

    @property
    def approval(self) -> str:
        """The line with which an owner approves it, under ``[approved]`` in owner.toml."""
        return f'"{self.run}" = "{self.fingerprint}"'

    @property
    def agreement(self) -> Agreement:
        return Agreement(self.terms)

    @property
    def unit(self) -> PrivacyUnit:
        """Whom the run protects at every owner."""
        return unit_of(self.terms)

    @property
    def active(self) -> tuple[str, ...]:
        """Owners that still take part."""
        return tuple(name for name in self.network.names if name not in self.dropped)

    def neighbours(self, name: str) -> tuple[str, ...]:
        """Neighbours of an owner, without those that were dropped."""
        return tuple(other for other in self.network.neighbours(name) if other not in self.dropped)

    def to_dict(self) -> dict[str, Any]:
        """Describe the run in plain JSON values."""
        return {
            "format": _FORMAT,
            "run": self.run,
            "algorithm": self.algorithm,
            "settings": dict(self.settings),
            "network": self.network.to_dict(),
            "units": dict(self.units),
            "budgets": {
                name: [_json_number(b.epsilon), b.delta] for name, b in self.budgets.items()
            },
            "terms": self.terms,
            "fingerprint": self.agreement.fingerprint,
            "dropped": list(self.dropped),
            "attempt": self.attempt,
            "turn_timeout": self.turn_timeout,
        }

    @classmethod
    def from_dict(cls, data: Any) -> "RunSpec":
        """Read back what `to_dict` wrote; anything else is refused."""
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise InvalidArgument(
                f"this is not a run of format {_FORMAT}. Use the same version of hushfit at all "
                "owners."
            )
        known = {"format", "fingerprint", *(f.name for f in fields(cls))}
        if set(data) != known:
            raise InvalidArgument(
                f"the run has the entries {sorted(data)}, not {sorted(known)}. It was not made by "
                "this version."
            )
        try:
            made = cls(
                run=str(data["run"]),
                algorithm=str(data["algorithm"]),
                settings=dict(data["settings"]),
                network=Network.from_dict(data["network"]),
                units=dict(data["units"]),
                budgets={
                    name: Budget(float(epsilon), float(delta))
                    for name, (epsilon, delta) in data["budgets"].items()
                },
                terms=data["terms"],
                dropped=tuple(data["dropped"]),
                attempt=data["attempt"],
                turn_timeout=float(data["turn_timeout"]),
            )
            if made.agreement.fingerprint != data["fingerprint"]:
                raise InvalidArgument(
                    "the fingerprint of the run does not fit its terms. It was changed in transit."
                )
            made.attempt_fingerprint  # noqa: B018 - refuses terms that cannot be serialised
            return made
        except InvalidArgument:
            raise
        except UNREADABLE as error:
            raise InvalidArgument(
                f"the run cannot be read ({type(error).__name__}). It was not made by this version."
            ) from None

    def packed(self) -> str:
        """As one string without quotes or braces, which no engine mistakes for its own settings."""
        return base64.b64encode(json.dumps(self.to_dict()).encode()).decode("ascii")

    @classmethod
    def unpacked(cls, text: Any) -> "RunSpec":
        """The inverse of `packed`, for untrusted text."""
        if not isinstance(text, str) or len(text) > MAX_BYTES:
            raise InvalidArgument(
                "the run is not a text of at most a megabyte. It was not made by this version."
            )
        try:
            # As UTF-8 and nothing else: given bytes, JSON would also take UTF-16 and UTF-32.
            data = json.loads(base64.b64decode(text, validate=True).decode("utf-8"))
        except (ValueError, RecursionError):
            raise InvalidArgument("the run is no JSON. It was not made by this version.") from None
        return cls.from_dict(data)


def is_count(value: Any, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most


def _digest(described: Mapping[str, Any]) -> str:
    # The order of columns, which sorting hides, is in the fingerprint of the terms.
    return hashlib.sha256(
        json.dumps(described, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


def _json_number(epsilon: float) -> float | str:
    return "inf" if math.isinf(epsilon) else epsilon


def made_estimator(terms: Mapping[str, Any], budget: Budget) -> Any:
    """The estimator that the terms of a run describe, not fitted."""
    model = terms.get("model") if isinstance(terms, Mapping) else None
    if (
        not isinstance(model, Mapping)
        or set(model) != set(_MODEL_KEYS)
        or model["kind"] not in _MODELS
    ):
        raise InvalidArgument(
            f"the terms of a run need a model with {', '.join(_MODEL_KEYS)}; kind is one of "
            f"{', '.join(_MODELS)}."
        )
    settings = {key: model[key] for key in _MODEL_KEYS if key != "kind"}
    return _MODELS[model["kind"]](epsilon=budget.epsilon, delta=budget.delta, **settings)


def unit_of(terms: Mapping[str, Any]) -> PrivacyUnit:
    """Whom a run protects, by its schema: one row, or one person with all of their rows."""
    unit: PrivacyUnit = Schema.from_dict(terms["schema"]).privacy_unit
    return unit


def terms_of(
    schema: Any,
    kind: str = "logistic",
    penalty: str | None = None,
    alpha: float = 1e-4,
    l1_ratio: float = 0.5,
    adjacency: str = "replace-one",
) -> dict[str, Any]:
    """What owners must agree on, from a schema and a model's settings."""
    model = {
        "kind": kind,
        "penalty": penalty,
        "alpha": alpha,
        "l1_ratio": l1_ratio,
        "adjacency": adjacency,
    }
    return {"schema": with_sorted_target(schema).to_dict(), "model": model}


def with_sorted_target(schema: Any) -> Any:
    """The schema with its classes in the order that estimators use."""
    target = schema.target
    if target is None or target.kind != "categorical":
        raise InvalidArgument(
            "the schema needs a categorical [target]: the classes to predict. Add it."
        )
    if schema.features != "linear":
        raise InvalidArgument(
            f"the schema has features = {schema.features!r}, whose knots depend on the number of "
            "rows, and owners have different numbers. Runs of several owners fit linear models: "
            "delete that line."
        )
    if schema.scaling != "unit":
        raise InvalidArgument(
            f"the schema has scaling = {schema.scaling!r}. Runs of several owners divide each row "
            "by its own length: delete that line."
        )
    if schema.penalty is not None:
        raise InvalidArgument(
            "the schema has a [penalty]. Runs of several owners take theirs from the run's own "
            "settings: delete that table."
        )
    return replace(schema, target=replace(target, categories=tuple(sorted(target.categories))))


def why_not_without(spec: RunSpec, lost: str) -> str | None:
    """Why the others cannot continue without an owner, or None if they can."""
    rest = [name for name in spec.active if name != lost]
    if len(rest) < 2:
        return "fewer than two owners are left"
    edges = [edge for edge in spec.network.edges if set(edge) <= set(rest)]
    try:
        Network(rest, edges)
    except InvalidArgument:
        return f"without {lost} the network is not connected"
    if isinstance(spec.made_algorithm(), SharedSolver) and any(
        spec.network.parent(name) == lost for name in rest
    ):
        return f"the sums of all owners pass through {lost}"
    return None
