"""An owner as configured on its own disk.

Rows, schema, ledger and ceiling come from the owner's own file. Anything else that a run requests
is refused before anything is paid.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from hushfit.data.tables import CodedRows, find_tables, read_schema
from hushfit.errors import InvalidArgument
from hushfit.federated._agreement import Agreement
from hushfit.federated._owner import Owner, Run
from hushfit.federated._protocol import Seat
from hushfit.federated.deployment._refusal import RunRefused
from hushfit.federated.deployment._run_spec import (
    MAX_ATTEMPTS,
    MAX_BYTES,
    UNREADABLE,
    RunSpec,
    checked_name,
    is_count,
    made_estimator,
    with_sorted_target,
)
from hushfit.privacy import Budget, Ledger

_SHA256 = re.compile(r"[0-9a-f]{64}")
_OPTIONAL = (
    "peers", "approved", "most_message_bytes", "most_jobs_per_hour", "environment", "insecure_seed",
)  # fmt: skip


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file of at most a megabyte; anything else is refused with a message."""
    try:
        if path.stat().st_size > MAX_BYTES:
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
        "most_jobs_per_hour": _count("most_jobs_per_hour", given, 60, MAX_ATTEMPTS),
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
    if not is_count(value, most):
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
    if seed is not None and not (seed == 0 or is_count(seed, 2**32 - 1)):
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
        except UNREADABLE as error:
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
