"""Encoding of tables by a public schema or private vocabularies.

Proof: docs/proofs/quantiles.md.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from hushfit._typing import AnyArray, Matrix
from hushfit.data.schema import OTHER, CategoricalColumn, Schema, cells_of, encode, label_of, listed
from hushfit.errors import InvalidArgument, TooFewRows
from hushfit.estimators import PersonSettings, as_frame, persons_in, split_groups
from hushfit.preprocessing._rows import column_terms
from hushfit.privacy import Budget, Guarantee, Relation
from hushfit.release import (
    Contract,
    Plan,
    Planned,
    Quote,
    TextColumns,
    Thresholded,
    Vocabulary,
    vocabulary_of,
)

# Share of delta for releasing a text that only one record has; the noise has the rest.
LOST_SHARE_OF_VOCABULARIES = 0.25


class SchemaEncoder(PersonSettings, TransformerMixin, BaseEstimator):
    """Encode a table with a public schema: numbers in [0, 1] and indicators of categories.

    One indicator per category and one for everything else. Categories that are not known beforehand
    are found privately: those frequent enough to exceed the noise become indicators, all others
    share ``<other>``. That costs ``epsilon`` and ``delta``; the schema costs nothing.

    Parameters
    ----------
    schema : Schema, optional
        Columns with public ranges and vocabularies.
    discover : sequence of str, default=()
        Further columns, of texts, whose vocabulary is to be found. A text needs about
        ``7 sqrt(2 d) / mu`` rows to be named, d being the number of these columns and mu the
        Gaussian parameter of the budget: at epsilon 0.3, delta 1e-6 and d = 8, 350 rows. With
        ``groups`` it needs as many persons, and a few more: each of the j different texts that a
        person has in a column counts 1 / sqrt(j).
    rows_per_person : int, optional
        How many rows of one person are used, the first ones; 1000 if None. The smaller this bound,
        the fewer persons a text needs. With ``person_weight="cap"`` as for
        `PrivateLogisticRegression`.
    person_weight : {"mean", "cap"}, default="mean"
        Ignored, since texts have weights of their own; a pipeline wants it equal in all steps.
    epsilon, delta, adjacency, ledger, random_state
        For ``discover`` only; as for `PrivateQuantileScaler`.

    Attributes
    ----------
    schema_ : Schema
        With the vocabularies that were found. A column without a frequent enough text is not in it.
    row_norm_ : float
        Bound on the length of an encoded row: the square root of the number of columns.
    privacy_ : Guarantee or None
        None without ``discover``: then nothing was spent.
    n_features_in_ : int

    Examples
    --------
    >>> from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
    >>> from hushfit.preprocessing import SchemaEncoder
    >>> schema = Schema(
    ...     (NumericColumn("age", 0, 100), CategoricalColumn("sex", ("Female", "Male")))
    ... )
    >>> SchemaEncoder(schema).fit_transform({"age": [50, 120], "sex": ["Male", "?"]}).tolist()
    [[0.5, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """

    def __init__(
        self,
        schema: Schema | None = None,
        discover: Any = (),
        epsilon: float = 0.3,
        delta: float = 1e-6,
        adjacency: str = "replace-one",
        person_weight: str = "mean",
        rows_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
    ) -> None:
        self.schema = schema
        self.discover = discover
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.person_weight = person_weight
        self.rows_per_person = rows_per_person
        self.ledger = ledger
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "SchemaEncoder":
        """Find the vocabularies that are not public, and charge for them.

        Parameters
        ----------
        X : data frame, or mapping from column names to arrays
        y : ignored
        groups : array of shape (n_rows,) or str, optional
            Ids, as for `PrivateLogisticRegression.fit`: the privacy unit is then one person. A
            public schema alone learns nothing, and ids change nothing.

        Returns
        -------
        self
        """
        names = self._discovered()
        table, ids = split_groups(_table(X), groups)
        if ids is not None:
            self._refuse_ids_as_feature(ids.column, names)
        columns = () if self.schema is None else self.schema.columns
        guarantee: Guarantee | None = None
        if names:
            persons = persons_in(self, ids)
            columns_of_texts = tuple(_texts(cells_of(table, name)) for name in names)
            texts = TextColumns(columns_of_texts, persons)
            named, guarantee = self._named(texts)
            columns += tuple(
                CategoricalColumn(name, tuple(found))
                for name, found in zip(names, named, strict=True)
                if found
            )
        if not columns:
            raise InvalidArgument(
                f"No text of {list(names)} is frequent enough to be released at "
                f"epsilon={self.epsilon:g}. The budget is spent. Write the categories that you "
                "know into a schema."
            )
        self.schema_ = Schema(columns)
        self._names = names
        self.row_norm_ = math.sqrt(len(columns)) * (1 + 1e-12)
        self.privacy_ = guarantee
        self.n_features_in_ = len(list(table.keys()))
        return self

    def _discovered(self) -> tuple[str, ...]:
        if not isinstance(self.schema, Schema | None):
            raise InvalidArgument(
                f"schema={self.schema!r} is not a Schema. Build one, or give None and "
                "discover=[...]."
            )
        if isinstance(self.discover, str) or not all(
            isinstance(name, str) for name in self.discover
        ):
            raise InvalidArgument(
                f"discover={self.discover!r} is not a list of column names. Give, say, "
                "['occupation']."
            )
        names = tuple(self.discover)
        known = [] if self.schema is None else [column.name for column in self.schema.columns]
        if len({*names, *known}) < len(names) + len(known):
            raise InvalidArgument(
                f"discover={list(names)} names a column twice, or one of the schema. Name each "
                "once."
            )
        if not names and self.schema is None:
            raise InvalidArgument(
                "There is nothing to encode. Give a schema, or discover=[...] with columns of "
                "texts."
            )
        return names

    def _refuse_ids_as_feature(self, column: str | None, names: tuple[str, ...]) -> None:
        known = () if self.schema is None else self.schema.columns
        if column in names or column in [one.name for one in known]:
            raise InvalidArgument(
                f"The column {column!r} has the ids of persons, and is also to be encoded. Leave "
                "it out of the schema and of discover."
            )

    def _named(self, texts: TextColumns) -> tuple[list[list[str]], Guarantee]:
        """The frequent texts of each column, released and paid for."""
        n, d = texts.n_units, texts.n_features
        unit = texts.privacy_unit
        if n < 2 or len({len(column) for column in texts.columns}) > 1:
            raise TooFewRows(
                f"A vocabulary needs at least 2 {unit.plural}, and columns of one length; there "
                f"are {n} {unit.plural}. Check the table."
            )
        notes = ["A missing text is not counted."]
        if unit.is_person:
            notes.append(
                "Each of the j different texts that a person has in a column counts 1/sqrt(j)."
            )
        terms = column_terms(self, *notes)
        quote, relation = self.quote(n, d, unit.is_person), Relation.parse(self.adjacency)
        contract = Contract.signed(texts, quote, relation, terms)
        texts_named = vocabulary_of(contract.curator.release("vocabulary", Vocabulary(d)))
        return texts_named, contract.guarantee

    def quote(self, n_units: int, n_features: int, per_person: bool = False) -> Quote:
        """Cost of finding the vocabularies; no row is read and nothing is charged.

        Parameters
        ----------
        n_units : int
            Number of rows, or of persons; public.
        n_features : int
            Ignored: ``discover`` determines the number of columns that are read.
        per_person : bool, default=False
            Whether units are persons: the cost of a fit with ``groups``.

        Returns
        -------
        Quote
        """
        d = len(self._discovered())
        if d == 0:
            return Quote.at(Plan(()), {}, n_units)
        mechanism = Thresholded(LOST_SHARE_OF_VOCABULARIES * self.delta, d)
        plan = Plan((Planned("vocabulary", Vocabulary, 1, sampling=mechanism),))
        budget, relation = Budget(self.epsilon, self.delta), Relation.parse(self.adjacency)
        rows_per_unit = self.person_unit().rows_per_person if per_person else 1
        return plan.quote_for(n_units, relation, budget, 2 * d * rows_per_unit)

    def transform(self, X: Any) -> Matrix:
        """Encode rows, each on its own.

        Parameters
        ----------
        X : data frame, or mapping from column names to arrays

        Returns
        -------
        array of shape (n_rows, n_encoded)
            Entries in [0, 1].
        """
        check_is_fitted(self)
        table = _table(X)
        found = [column.name for column in self.schema_.columns if column.name in self._names]
        # Texts as they were counted: a column may come as floats here and as integers there.
        return encode(
            {**table, **{name: list(_texts(cells_of(table, name))) for name in found}}, self.schema_
        )[0]

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Names of the encoded features.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        array of str
        """
        check_is_fitted(self)
        return np.array(self.schema_.feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        return tags


def _table(X: Any) -> Mapping[str, Any]:
    """A table with named columns, frame or mapping."""
    if isinstance(X, Mapping):
        return X
    X = as_frame(X)
    if not hasattr(X, "columns"):
        raise InvalidArgument(
            f"{type(X).__name__} has no column names. Give a data frame, or a mapping from names "
            "to arrays."
        )
    return {str(name): X[name] for name in X.columns}


def _texts(cells: AnyArray) -> tuple[str | None, ...]:
    """Table cells as the texts that the encoding compares, each on its own; None if missing."""
    return tuple(None if label == OTHER else label for label in map(label_of, listed(cells)))
