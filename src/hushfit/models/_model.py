"""A fitted model with its schema, its guarantee, and the receipt of its payment."""

import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from hushfit._typing import AnyArray, Matrix, Vector
from hushfit._version import __version__
from hushfit.data.design import Design
from hushfit.data.schema import OrdinalTarget, Schema, encode
from hushfit.errors import InvalidArgument
from hushfit.estimators import as_frame
from hushfit.privacy import Guarantee


@dataclass(frozen=True)
class PaidReceipt:
    """The ledger entry that paid for a model.

    Parameters
    ----------
    dataset : str
        Name of the data set in the ledger.
    number : int
        Number of the payment, from 1.
    hash : str
        The ledger's hash at that entry; it pins the ledger's history from outside.
    """

    dataset: str
    number: int
    hash: str


@dataclass(frozen=True)
class Provenance:
    """How and when a model was fitted.

    Parameters
    ----------
    command : str
        The command, without passwords.
    created : str
        Time in UTC.
    versions : dict of str to str
        Versions of the libraries used.
    schema_hash : str
        SHA-256 of the schema, empty without one.

    Examples
    --------
    >>> from hushfit.models import Provenance
    >>> Provenance(command="hushfit fit visits.csv").command
    'hushfit fit visits.csv'
    """

    command: str = ""
    created: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    schema_hash: str = ""

    @classmethod
    def now(cls, command: str = "", schema_hash: str = "") -> "Provenance":
        """The provenance of a model fitted now.

        Parameters
        ----------
        command : str, default=""
        schema_hash : str, default=""

        Returns
        -------
        Provenance
        """
        libraries = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
        versions = {"hushfit": __version__, "python": platform.python_version(), **libraries}
        return cls(command, datetime.now(UTC).isoformat(timespec="seconds"), versions, schema_hash)


def restore_names(estimator: Any, features: list[str]) -> None:
    """Give an estimator that was read from a file the names of its columns, if they had any."""
    if features != [f"x{j}" for j in range(len(features))]:
        estimator.feature_names_in_ = np.array(features, dtype=object)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted estimator with schema, guarantee, receipt and provenance.

    Parameters
    ----------
    estimator : classifier or regressor
        Fitted.
    schema : Schema, optional
        How tables are encoded; without one, the model takes arrays only.
    standard_error : array of shape (n_outputs, n_weights + 1), optional
        Standard error of each coefficient, and last of the intercept, due to the privacy noise.
    receipt : PaidReceipt, optional
    provenance : Provenance
    design : Design, optional
        The columns that coefficients with intervals belong to; without one they belong to the
        encoded features.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.models import Model
    >>> fitted = PrivateLogisticRegression(float("inf"), classes=[0, 1])
    >>> fitted = fitted.fit(np.array([[0.2], [0.8]] * 20), np.array([0, 1] * 20))
    >>> Model(fitted).guarantee.epsilon
    inf
    """

    estimator: Any
    schema: Schema | None = None
    standard_error: Matrix | None = None
    receipt: PaidReceipt | None = None
    provenance: Provenance = field(default_factory=Provenance)
    design: Design | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The privacy guarantee."""
        guarantee: Guarantee = self.estimator.privacy_
        return guarantee

    @property
    def classes(self) -> list[Any]:
        """The classes that it predicts; none if it predicts numbers."""
        classes: list[Any] = self.estimator.classes_.tolist() if self.predicts_classes else []
        return classes

    @property
    def predicts_classes(self) -> bool:
        """Whether it predicts classes, and not numbers, counts or grades."""
        return bool(is_classifier(self.estimator))

    @property
    def outputs(self) -> list[Any]:
        """The class that each row of `shown_weights` speaks for: the positive one of two, or all
        of more; none if it predicts numbers.
        """
        if not self.predicts_classes:
            return []
        positive = self.estimator.positive_
        return self.classes if positive is None else [positive]

    @property
    def weights(self) -> tuple[Matrix, Vector]:
        """Coefficients of shape (n_outputs, n_weights), and intercepts."""
        return np.atleast_2d(self.estimator.coef_), np.atleast_1d(self.estimator.intercept_)

    @property
    def shown_weights(self) -> tuple[Matrix, Vector]:
        """`weights` as reports show them: those of two classes point towards the positive one."""
        coef, intercept = self.weights
        return self.estimator.towards_ * coef, self.estimator.towards_ * intercept

    @property
    def feature_names(self) -> list[str]:
        """Names of the encoded features, or of the columns of its design."""
        if self.design is not None:
            return self.design.names
        if self.schema is not None:
            return self.schema.feature_names
        count = int(self.estimator.n_features_in_)
        names = getattr(self.estimator, "feature_names_in_", None)
        return [f"x{j}" for j in range(count)] if names is None else [str(name) for name in names]

    @property
    def weight_names(self) -> list[str]:
        """Names of the coefficients: of the features, or of the outputs of the feature map."""
        made = self.estimator.feature_map_
        names = self.feature_names
        return names if made is None else list(made.output_names(names))

    def predict(self, table: Any) -> AnyArray:
        """The most likely label of each row of a table, or its predicted number or grade.

        Parameters
        ----------
        table : mapping of str to array, data frame, table with an Arrow stream, or array
            Raw columns for a model with a schema, features otherwise.

        Returns
        -------
        array of shape (n_rows,)
        """
        return self.labelled(self.estimator.predict(self._features(table)))

    def labelled(self, predictions: AnyArray) -> AnyArray:
        """Predictions of the estimator in terms of the target: positions as grades.

        Parameters
        ----------
        predictions : array of shape (n_rows,)

        Returns
        -------
        array of shape (n_rows,)
        """
        target = None if self.schema is None else self.schema.target
        if isinstance(target, OrdinalTarget):
            return target.nearest(predictions)
        return np.asarray(predictions)

    def predict_proba(self, table: Any) -> Matrix:
        """The probability of each class for each row of a table.

        Parameters
        ----------
        table : mapping of str to array, data frame, table with an Arrow stream, or array
            Raw columns for a model with a schema, features otherwise.

        Returns
        -------
        array of shape (n_rows, n_classes)

        Raises
        ------
        InvalidArgument
            If the model gives no probabilities, as support vector machines and regressors do not.
        """
        if not hasattr(self.estimator, "predict_proba"):
            raise InvalidArgument(
                f"{type(self.estimator).__name__} gives no probabilities. Use predict."
            )
        return np.asarray(self.estimator.predict_proba(self._features(table)))

    def from_encoded(self, X: Any) -> Any:
        """What the estimator takes, from rows that the schema has encoded.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, n_encoded)

        Returns
        -------
        array or CSR matrix
        """
        return X if self.design is None else self.design.from_encoded(X)

    def _features(self, table: Any) -> Any:
        if self.schema is None:
            return table
        return self.from_encoded(encode(as_frame(table), self.schema)[0])
