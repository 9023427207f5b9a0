"""Descriptions of a real run, without transport: the run as requested, and the owner as configured
on its own disk.

A run comes from the coordinator and is public. It names an algorithm of the library and its
settings, never code and never a path. Rows, schema, ledger and ceiling come from the owner's own
file. Anything else that a run requests is refused before anything is paid.
"""

import base64
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from hushfit.data.schema import Schema
from hushfit.data.tables import CodedRows, find_tables, read_schema
from hushfit.errors import InvalidArgument, OldJournal
from hushfit.estimators import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.federated._agreement import Agreement
from hushfit.federated._network import Network
from hushfit.federated._owner import Owner, Run
from hushfit.federated._protocol import Algorithm, Seat
from hushfit.federated.algorithms import ALGORITHMS, SharedSolver
from hushfit.privacy import Budget, Ledger
from hushfit.unit import PrivacyUnit

_FORMAT = "hushfit-run-2"
_MAX_BYTES = 1 << 20
_MAX_OWNERS, _MAX_UNITS, _MAX_ATTEMPTS = 200, 10**12, 10**6
_PER_ATTEMPT = ("attempt", "dropped", "turn_timeout")  # may differ between two attempts at one run
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNREADABLE = (TypeError, ValueError, KeyError, AttributeError, ArithmeticError, RecursionError)
_NAME = re.compile(r"[a-z][a-z0-9-]{0,40}")
_RESERVED = ("server", "coordinator", "conductor", "all", "ca")
_MODELS = {"logistic": PrivateLogisticRegression, "svm": PrivateLinearSVC}
_MODEL_KEYS = ("kind", "penalty", "alpha", "l1_ratio", "adjacency")


class RunRefused(InvalidArgument):
    """An owner does not take part in a run.

    Parameters
    ----------
    why : str
        For the owner's own events.
    told : str
        For the coordinator. Nothing that came with the run is in it, and nothing of the owner's
        machine.
    """

    def __init__(self, why: str, told: str) -> None:
        super().__init__(why)
        self.told = told


def told_to_others(error: Exception) -> str:
    """The text of a refusal that a coordinator receives. What it has sent is never quoted: it may
    not have known all of it.
    """
    if isinstance(error, RunRefused):
        return error.told
    if isinstance(error, OldJournal):
        return "its journal is an old copy, with which it would draw released noise again."
    return "it cannot take part; its own events say why."


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
        if not all(_is_count(n, _MAX_UNITS) for n in self.units.values()):
            raise InvalidArgument(
                f"units={dict(self.units)} must be whole numbers from 1 to {_MAX_UNITS:g}."
            )
        if not set(self.dropped) < set(self.network.names):
            raise InvalidArgument(
                f"dropped={list(self.dropped)} must name some of the owners "
                f"{list(self.network.names)}, not all."
            )
        if not (_is_count(self.attempt, _MAX_ATTEMPTS) and 0 < self.turn_timeout <= 86_400):
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
        except _UNREADABLE as error:
            raise InvalidArgument(
                f"the run cannot be read ({type(error).__name__}). It was not made by this version."
            ) from None

    def packed(self) -> str:
        """As one string without quotes or braces, which no engine mistakes for its own settings."""
        return base64.b64encode(json.dumps(self.to_dict()).encode()).decode("ascii")

    @classmethod
    def unpacked(cls, text: Any) -> "RunSpec":
        """The inverse of `packed`, for untrusted text."""
        if not isinstance(text, str) or len(text) > _MAX_BYTES:
            raise InvalidArgument(
                "the run is not a text of at most a megabyte. It was not made by this version."
            )
        try:
            # As UTF-8 and nothing else: given bytes, JSON would also take UTF-16 and UTF-32.
            data = json.loads(base64.b64decode(text, validate=True).decode("utf-8"))
        except (ValueError, RecursionError):
            raise InvalidArgument("the run is no JSON. It was not made by this version.") from None
        return cls.from_dict(data)


def _is_count(value: Any, most: int) -> bool:
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


_OPTIONAL = (
    "peers", "approved", "most_message_bytes", "most_jobs_per_hour", "environment", "insecure_seed",
)  # fmt: skip


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of at most a megabyte; anything else is refused with a message."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise InvalidArgument(f"{path} is longer than a megabyte. Check the path.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except InvalidArgument:
        raise
    except OSError as error:
        raise InvalidArgument(
            f"{path} cannot be read ({error.strerror}). Check the path."
        ) from None
    except RecursionError:
        raise InvalidArgument(f"{path} is nested too deeply. Fix that place.") from None
    except ValueError as error:
        raise InvalidArgument(
            f"{path} is not valid TOML: {str(error).splitlines()[0]}. Fix that place."
        ) from None


def _owner_entries(path: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of an owner.toml, checked, with its paths made absolute."""
    home = path.resolve().parent
    data, ceiling = given["data"], given["ceiling"]
    tables = [data] if isinstance(data, str) else data
    texts = [given[key] for key in ("kit", "schema", "ledger", "dataset", "state")]
    if not isinstance(tables, list) or not tables or not isinstance(ceiling, dict):
        raise InvalidArgument(
            "data must be a string or a list of strings, and ceiling a table. Fix that."
        )
    if not all(isinstance(text, str) and text and "\0" not in text for text in [*texts, *tables]):
        raise InvalidArgument("paths must be strings, and not empty. Fix that.")
    if set(ceiling) != {"epsilon", "delta"}:
        raise InvalidArgument("[ceiling] needs epsilon and delta, the largest budget of a run.")
    ledger = given["ledger"]
    return {
        "name": checked_name(given["name"]),
        "kit": home / given["kit"],
        "data": tuple(str(home / table) for table in tables),
        "schema": home / given["schema"],
        "ledger": ledger if "://" in ledger else str(home / ledger),
        "dataset": given["dataset"],
        "state": home / given["state"],
        "ceiling": Budget(ceiling["epsilon"], ceiling["delta"]),
        "peers": _fingerprints("peers", given),
        "approved": _fingerprints("approved", given),
        "most_message_bytes": _count("most_message_bytes", given, 1 << 24, 1 << 30),
        "most_jobs_per_hour": _count("most_jobs_per_hour", given, 60, _MAX_ATTEMPTS),
        "environment": _names("environment", given),
        "insecure_seed": _seed(given),
    }


def _fingerprints(key: str, given: Mapping[str, Any]) -> dict[str, str]:
    table = given.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(text, str) for text in table.values()):
        raise InvalidArgument(f"[{key}] must be a table of names and fingerprints. Fix that.")
    found = {name: text.lower().replace(":", "") for name, text in table.items()}
    for name, text in found.items():
        if not _SHA256.fullmatch(text):
            raise InvalidArgument(
                f"[{key}]: the fingerprint of {name[:100]!r} must be 64 hexadecimal digits."
            )
    return found


def _count(key: str, given: Mapping[str, Any], default: int, most: int) -> int:
    value: int = given.get(key, default)
    if not _is_count(value, most):
        raise InvalidArgument(f"{key} must be a whole number from 1 to {most}.")
    return value


def _names(key: str, given: Mapping[str, Any]) -> tuple[str, ...]:
    names = given.get(key, [])
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.isidentifier() for name in names
    ):
        raise InvalidArgument(f"{key} must be a list of names of environment variables.")
    return tuple(names)


def _seed(given: Mapping[str, Any]) -> int | None:
    seed = given.get("insecure_seed")
    if seed is not None and not (seed == 0 or _is_count(seed, 2**32 - 1)):
        raise InvalidArgument(
            "insecure_seed must be a whole number from 0 to 4294967295, or left out."
        )
    return seed


@dataclass(frozen=True)
class OwnerConfig:
    """An owner as its own ``owner.toml`` describes it. Nothing in it ever comes from a message.

    Parameters
    ----------
    name : str
    kit : path
        Folder with the key, the certificate and the policies.
    data : tuple of str
        Tables with the rows.
    schema : path
    ledger : str
        Path or address.
    dataset : str
        Account in the ledger.
    state : path
        Folder for journals, events and results.
    ceiling : Budget
        Largest budget of one run.
    peers : mapping from name to str
        SHA-256 fingerprints of neighbours' certificates, as given by the neighbours themselves.
        Optional.
    approved : mapping from name of a run to str
        Fingerprints of the runs that this owner has approved. It takes part in no other.
    most_message_bytes : int
        Longer messages are refused unread.
    most_jobs_per_hour : int
        Attempts at runs that are accepted within an hour; the rest are refused.
    environment : tuple of str
        Further environment variables that the engine's processes may see.
    insecure_seed : int or None
        For tests: reproducible noise, which anyone who knows the seed can remove.
    """

    name: str
    kit: Path
    data: tuple[str, ...]
    schema: Path
    ledger: str
    dataset: str
    state: Path
    ceiling: Budget
    peers: Mapping[str, str] = field(default_factory=dict)
    approved: Mapping[str, str] = field(default_factory=dict)
    most_message_bytes: int = 1 << 24
    most_jobs_per_hour: int = 60
    environment: tuple[str, ...] = ()
    insecure_seed: int | None = None

    @classmethod
    def load(cls, path: str | Path) -> "OwnerConfig":
        """Read an ``owner.toml``; its paths are relative to its own folder."""
        path = Path(path)
        given = read_toml(path)
        optional = {f.name for f in fields(cls) if f.name in _OPTIONAL}
        needed = {f.name for f in fields(cls)} - optional
        if not needed <= set(given) <= needed | optional:
            wrong = sorted((needed - set(given)) | (set(given) - needed - optional))
            raise InvalidArgument(
                f"{path}: {', '.join(wrong)[:200]} is missing or unknown. It needs "
                f"{', '.join(sorted(needed))}."
            )
        try:
            return cls(**_owner_entries(path, given))
        except InvalidArgument as error:
            raise InvalidArgument(f"{path}: {error}") from None
        except _UNREADABLE as error:
            raise InvalidArgument(
                f"{path} has an entry of the wrong type ({type(error).__name__}). Compare it with "
                "what `hushfit federate join` writes."
            ) from None

    def own_schema(self) -> Any:
        """The schema; refused if it has unconfirmed values that were drafted from the rows."""
        file = read_schema(self.schema)
        if file.unconfirmed:
            raise InvalidArgument(
                f"{self.schema.name} has values that were drafted from the rows and not confirmed "
                f"({', '.join(file.unconfirmed[:5])}). A run would reveal them to everyone. "
                "Replace them by what is publicly known."
            )
        return with_sorted_target(file.schema)

    def open_ledger(self) -> Ledger:
        return Ledger(self.ledger, dataset=self.dataset)

    def consider(self, spec: RunSpec) -> None:
        """Refuse a run that this owner has not approved, or that is not for it. Reads no rows, pays
        nothing.
        """
        self._require_approval(spec)
        if self.name not in spec.active:
            raise RunRefused(
                f"{self.name} is not among the owners of run {spec.run}.",
                "it is not among the owners.",
            )
        asked = spec.budgets[self.name]
        if not (asked.epsilon <= self.ceiling.epsilon and asked.delta <= self.ceiling.delta):
            raise RunRefused(
                f"run {spec.run} asks {self.name} for epsilon={asked.epsilon:g}, "
                f"delta={asked.delta:g}, over its ceiling of "
                f"epsilon={self.ceiling.epsilon:g}, delta={self.ceiling.delta:g}. Ask for less.",
                "the run asks for more than its ceiling. Ask for less.",
            )
        mine = Agreement({**spec.terms, "schema": self.own_schema().to_dict()})
        try:
            mine.require_same(self.name, spec.agreement, "the coordinator")
        except InvalidArgument as error:
            raise RunRefused(
                str(error), f"its schema differs: {_own_side(mine, spec.agreement)}."
            ) from None

    def _require_approval(self, spec: RunSpec) -> None:
        """Refuse a run that the owner has not approved: ceiling and ledger only bound its cost."""
        if self.approved.get(spec.run) == spec.fingerprint:
            return
        asked = spec.budgets.get(self.name)
        cost = "nothing" if asked is None else f"epsilon={asked.epsilon:g}, delta={asked.delta:g}"
        raise RunRefused(
            f"run {spec.run} ({spec.algorithm}, asking {self.name} for {cost}) is not approved. "
            "If you agree to it, add this "
            f"line under [approved] in owner.toml: {spec.approval}",
            "it has not approved this run. Give it the run file, and ask it to approve the "
            "fingerprint.",
        )

    def _require_account(self, spec: RunSpec) -> None:
        """Refuse a run that the ledger would refuse to pay for, before another owner has paid."""
        ledger = self.open_ledger()
        problem = ledger.account.tally().unit_problem(spec.unit)
        if problem is not None:
            raise RunRefused(
                f"run {spec.run} {problem}. Nothing was spent.",
                "its ledger does not take charges for the unit that the run protects.",
            )

    def read_rows(self, spec: RunSpec) -> CodedRows:
        """This owner's rows for a run; refused if the run states another number of rows or persons,
        or the ledger does not take charges for them. Pays nothing; the caller closes them.
        """
        self.consider(spec)
        self._require_account(spec)
        schema = self.own_schema()
        rows = CodedRows.from_tables(find_tables(self.data, None, schema.file), schema)
        if rows.n_units != spec.units[self.name]:
            found, what = rows.n_units, spec.unit.plural
            rows.close()
            raise RunRefused(
                f"{self.name} has {found} {what}, but run {spec.run} states "
                f"{spec.units[self.name]}. The number of {what} is public: state it correctly.",
                f"it has {found} {what}, and the run states another number.",
            )
        return rows

    def open_owner(
        self,
        spec: RunSpec,
        rows: CodedRows,
        folder: Path | None = None,
        ledger: Ledger | None = None,
    ) -> Owner:
        """This owner in a run: its journal opened, its ledger charged once.

        Parameters
        ----------
        spec : RunSpec
        rows : CodedRows
            From `read_rows`.
        folder : path, optional
            Of the journal; the state folder by default.
        ledger : Ledger, optional
            Instead of the owner's own.

        Returns
        -------
        Owner
        """
        self.consider(spec)
        estimator = made_estimator(spec.terms, spec.budgets[self.name])
        problem = estimator.problem(
            rows.n_units, rows.n_features, len(rows.classes), rows.privacy_unit
        )
        seat = Seat(self.name, spec.network, problem, spec.units, spec.budgets)
        run = Run(spec.run, spec.made_algorithm())
        return Owner(
            rows, seat, run, ledger or self.open_ledger(), folder or self.state, self.insecure_seed
        )


def _own_side(mine: Agreement, theirs: Agreement) -> str:
    """The first entries of an owner's public schema that differ, with its values; nothing that only
    the run has.
    """
    found = [f"{where} is {own} there" for where, own in mine.own_differences(theirs)]
    return (
        "; ".join(found[:3])
        or "the run has entries that it does not have, or another order of columns"
    )
