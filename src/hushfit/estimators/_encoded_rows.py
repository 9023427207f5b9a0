"""Rows that a public schema has encoded, as estimators see them."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from hushfit._typing import BoolVector, Vector
from hushfit.data import DataSource, RecordScaling
from hushfit.data.design import MainEffects
from hushfit.data.schema import Schema
from hushfit.features import AdditiveMap


class RegressionRows(DataSource, Protocol):
    """A source that says which of its features were mapped from [0, 1] to [-1, 1], and which values
    0 and 1 stand for.
    """

    @property
    def centred(self) -> BoolVector: ...

    @property
    def ranges(self) -> tuple[Vector, Vector]: ...


@runtime_checkable
class EncodedRows(Protocol):
    """Rows whose columns a public schema has mapped to [0, 1], with targets in their own units."""

    def mapped(self, feature_map: AdditiveMap) -> "EncodedRows":
        """The same rows, with the outputs of a public map of their columns in place of these."""

    def for_regression(
        self, scaling: RecordScaling, mapped: Callable[[Vector], Vector], scaled_labels: bool
    ) -> RegressionRows:
        """Records in a scaling, with mapped targets."""


class TableRows(EncodedRows, DataSource, Protocol):
    """Rows that a public schema has encoded, as a source: in one place, or in parts in several."""

    @property
    def schema(self) -> Schema: ...

    @property
    def classes(self) -> tuple[str, ...]:
        """The public classes; none if the target is no label."""

    @property
    def keep_unlabelled(self) -> bool:
        """Whether records stay whatever their label is."""

    def mapped(self, feature_map: AdditiveMap) -> "TableRows": ...

    def divided_by(self, length: float) -> "TableRows":
        """The same rows, divided by one public length unless they are longer."""

    def for_design(self, design: MainEffects) -> "TableRegression":
        """The same rows as those of a regression table; they keep their lengths."""


class TableRegression(RegressionRows, EncodedRows, Protocol):
    """Rows of a regression table, whose targets are still in their own units."""
