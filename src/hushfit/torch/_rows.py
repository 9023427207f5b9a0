"""Records of any shape, as networks see them: padded batches of one fixed size."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from hushfit._typing import AnyArray, BoolVector, IntVector, Vector
from hushfit.data import Block, DataSource, Persons, PublicRows
from hushfit.data.rows import WHOLE
from hushfit.errors import InvalidArgument
from hushfit.torch._groups import GROUP_ROWS, finite_rows, group_ends, keys_of
from hushfit.torch._validation import RecordShape
from hushfit.unit import ROW, PrivacyUnit


class Records(Protocol):
    """Private inputs and targets, by their numbers."""

    def __len__(self) -> int: ...

    def take(self, rows: IntVector) -> tuple[Tensor, Tensor]:
        """Inputs and targets of some records."""

    @property
    def keys(self) -> AnyArray | None:
        """A number for each record, from its contents alone; None if that would take too long."""

    @property
    def finite(self) -> BoolVector | None:
        """Which records have finite values only; None if that would take too long."""


@dataclass(frozen=True, eq=False)
class ArrayRecords:
    """Records in arrays: inputs and targets, one entry of the first axis for each record."""

    X: AnyArray
    y: AnyArray

    def __post_init__(self) -> None:
        if len(self.X) != len(self.y):
            raise InvalidArgument(
                "X and y have different numbers of records. Give one target for each record."
            )

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: IntVector) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.X[rows]), torch.from_numpy(self.y[rows])

    @cached_property
    def keys(self) -> AnyArray:
        return keys_of(self.X, self.y)

    @cached_property
    def finite(self) -> BoolVector:
        return finite_rows(self.X) & finite_rows(self.y)


@dataclass(frozen=True, eq=False)
class DatasetRecords:
    """Records of a map-style dataset, read one by one. It must return the same record for the same
    number each time.

    A record that cannot be read, or is of another shape than the public one, becomes one that
    contributes nothing: an error in the middle of a fit would tell that it is there.

    Parameters
    ----------
    dataset : map-style dataset
    n_records : int
    x, y : tensor
        An input and a target of the public shapes and types; their values do not matter.
    """

    dataset: Any
    n_records: int
    x: Tensor
    y: Tensor

    keys: ClassVar[None] = None  # would need all records at once
    finite: ClassVar[None] = None

    def __len__(self) -> int:
        return self.n_records

    def take(self, rows: IntVector) -> tuple[Tensor, Tensor]:
        if len(self.dataset) != self.n_records:
            raise InvalidArgument(
                "The dataset changed its length during the fit. Give one of a fixed length."
            )
        # Whole numbers have no NaN: records of them are read as floats, which are exact to 2**53.
        x = torch.full((len(rows), *self.x.shape), math.nan, dtype=torch.float64)
        y = torch.full((len(rows), *self.y.shape), math.nan, dtype=torch.float64)
        for k, row in enumerate(rows):
            with contextlib.suppress(Exception):  # its text may quote the record
                one, target = (torch.as_tensor(part) for part in self.dataset[int(row)])
                if one.shape == self.x.shape and target.shape == self.y.shape:
                    x[k], y[k] = one, target
        return x, y


@dataclass(frozen=True, eq=False)
class Batch:
    """A physical batch: records, then zeros up to its fixed size.

    Parameters
    ----------
    x, y : tensor
    shares : float64 tensor
        Weight of each record: zero where there is none, or where it has a value that is not finite.
    n_records : int
    """

    x: Tensor
    y: Tensor
    shares: Tensor
    n_records: int


@dataclass(frozen=True, eq=False)
class NetworkRows:
    """Private records for networks.

    Parameters
    ----------
    records : Records
    shape : RecordShape
        Public.
    persons : Persons or None
        The person of each record; None if every record is its own unit.
    """

    records: Records
    shape: RecordShape
    persons: Persons | None = None

    @property
    def n_units(self) -> int:
        return len(self.records) if self.persons is None else self.persons.n_persons

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW if self.persons is None else self.persons.unit

    @property
    def n_features(self) -> int:
        return int(np.prod(self.shape.input, dtype=np.int64))

    @property
    def y(self) -> Vector:
        """None: targets may have any shape, and are read with their records."""
        return np.empty(0)

    @property
    def shares(self) -> Vector:
        """Weight of each record, or one weight for all. Those of a person add up to at most one."""
        return WHOLE if self.persons is None else self.persons.shares

    def row_vector(self) -> Vector:
        return np.zeros(len(self.y))

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        """Records of any shape are no rows of a table: queries over those find none."""
        return iter(())

    def public_rows(self) -> PublicRows:
        """None: networks have no relation under which features are public."""
        return PublicRows(lambda: iter(()), 0, self.n_features, None, WHOLE)

    def batches(
        self, rows: IntVector, size: int, dtype: torch.dtype, device: torch.device
    ) -> Iterator[Batch]:
        """Some records, in physical batches."""
        for start in range(0, len(rows), size):
            chosen = rows[start : start + size]
            x, y = self.records.take(chosen)
            shares = torch.from_numpy(np.broadcast_to(self.shares, len(self.records))[chosen])
            x, y, shares = self._padded(x, y, shares, size, dtype)
            yield Batch(x.to(device), y.to(device), shares.to(device), len(chosen))

    def rows_of(self, units: IntVector | None) -> IntVector:
        """Numbers of all records, or of those of some units."""
        if self.persons is None:
            return np.arange(len(self.records)) if units is None else units
        return np.flatnonzero(self.shares) if units is None else self.persons.rows_of(units)

    def groups_of(self, units: IntVector | None) -> tuple[IntVector, list[int], IntVector]:
        """Records by their keys, where the groups end that are added in float32, and records of
        which more have one key than a group may have. A record that is not finite is left out, so
        that no group depends on it.
        """
        keys, finite = self.records.keys, self.records.finite
        if keys is None or finite is None or self.persons is not None:
            raise InvalidArgument(
                "Records without keys, or of persons, are added in float64 only. Give "
                "precise_sums=True to Network.of."
            )
        rows = self.rows_of(units)
        rows = rows[finite[rows]]
        rows = rows[np.argsort(keys[rows], kind="stable")]
        ends = np.array([0, *group_ends(keys[rows])])
        sizes: IntVector = ends[1:] - ends[:-1]
        small = sizes <= GROUP_ROWS
        grouped = np.repeat(small, sizes)
        return rows[grouped], np.cumsum(sizes[small]).tolist(), rows[~grouped]

    def _padded(
        self, x: Tensor, y: Tensor, shares: Tensor, size: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Records and their shares, with zeros up to ``size`` and in place of records that are not
        finite.
        """
        x = x if self.shape.integers else x.to(dtype)  # may overflow
        finite = _finite(x) & _finite(y)
        if not bool(finite.all()):
            x, y, shares = x.clone(), y.clone(), shares.clone()
            x[~finite], y[~finite], shares[~finite] = 0, 0, 0
        x = _filled(x.to(_type(self.shape.integers, dtype)), size)
        y = _filled(y.to(_type(self.shape.classes is not None, dtype)), size)
        if x.ndim == 4:
            x = x.contiguous(memory_format=torch.channels_last)
        return x, y, _filled(shares, size)


def _filled(values: Tensor, size: int) -> Tensor:
    """The same with zeros at its end, as many as are missing, in memory of torch."""
    missing = size - len(values)
    return torch.cat([values, values.new_zeros((missing, *values.shape[1:]))])


def _type(whole: bool, dtype: torch.dtype) -> torch.dtype:
    return torch.int64 if whole else dtype


def _finite(values: Tensor) -> Tensor:
    """Which records have finite values only."""
    flat = values.reshape(len(values), -1)
    quick = torch.isfinite(flat.sum(1))  # a finite sum has finite terms
    return quick if bool(quick.all()) else torch.isfinite(flat).all(1)


def network_rows(source: DataSource) -> NetworkRows:
    """The source as records of a network; refuses rows of a table."""
    if not isinstance(source, NetworkRows):
        raise InvalidArgument(
            f"{type(source).__name__} holds no records of a network. Give NetworkRows."
        )
    return source
