"""Learning to rank with a privacy guarantee."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.metrics import ndcg_score
from sklearn.utils.validation import check_is_fitted, validate_data

from hushfit._typing import AnyArray, IntVector, Matrix, Vector
from hushfit.data import FeatureBounds, Persons, persons_of
from hushfit.data.lists import Documents, RankedLists, list_starts, one_for_each_list
from hushfit.errors import InvalidArgument, NonFiniteRecords
from hushfit.estimators._arguments import ExplainsArguments
from hushfit.estimators._cells import as_cells, exact_cells, with_numbers
from hushfit.estimators._frames import as_frame, column_taken, labels_of, unwrapped
from hushfit.estimators._labels import numbers_of
from hushfit.estimators._linear import no_cell_quoted
from hushfit.estimators._persons import features_of, name_of_ids
from hushfit.estimators._private_fit import check_sizes
from hushfit.estimators._progress import progress_bar
from hushfit.estimators._ranges import feature_ranges
from hushfit.privacy import Budget, Guarantee, Relation, labels_only
from hushfit.ranking_problem import ListwiseLoss, RankingProblem
from hushfit.release import Contract, Quote, Randomness, Terms
from hushfit.solvers.ranking import RankingSolver, ranking_solver_from
from hushfit.unit import LIST, PrivacyUnit

UNITS = ("labels", "list", "person")
DEPTH = 10
_LARGEST_GRADE = 50.0  # gains are powers of two
_LARGEST_VALUE = 1e100
_ID_EACH = "id for each document"
_LAYER_SEED = 0  # public: the same hidden layer for everybody


class PrivateRanker(ExplainsArguments, BaseEstimator):
    r"""Learning to rank with a differential-privacy guarantee.

    Documents come in lists, one for each query, with a grade for each document: 0 for irrelevant,
    more for better. The model gives each document a score by its features.

    Parameters
    ----------
    epsilon : float, default=1.0
    delta : float, default=1e-6
    unit : {"labels", "list", "person"}, default="labels"
        What is protected: all grades of one list, with **public documents**; one list with its
        documents; or all lists of one person with their documents. With ``"labels"`` and
        ``persons``, all grades of one person.
    loss : {"listnet", "listmle", "bayesrank"} or ListwiseLoss, default="listnet"
    scorer : "linear", "mlp" or a public feature map, default="linear"
        A map is a function, or an object with ``transform``, from documents to features, document
        by document; scores are linear in them. It must not have been fitted on private rows. Model
        files hold `LayerMap`, `QuadraticMap` and `ChainedMaps` of `hushfit.estimators`.
    solver : str or solver, default="auto"
        ``"auto"``, ``"one-release"``, ``"privbr"``, ``"whitened-lists"``, ``"listwise-sgd"``, or an
        object of `hushfit.solvers.ranking` with its own settings.
    adjacency : {"replace-one", "add-remove"}, default="replace-one"
        For ``"list"`` and ``"person"``; labels are always replaced.
    max_grade : float, default=4
        Largest grade; public. Larger grades count as it, negative and missing ones as 0.
    max_list_length : int, optional
        Refuse lists with more documents.
    hidden : int, default=256
        Hidden units of ``"mlp"``.
    feature_bounds : (low, high), optional
        Public range of every column; values are clipped and mapped to [0, 1].
    lists_per_person : int, optional
        How many lists of one person are used, the first ones; 1000 if not given.
    ledger : Ledger, optional
    random_state : int or numpy generator, optional
        Reproducible, insecure noise; None for secure noise.
    verbose : int, default=0

    Attributes
    ----------
    weights_ : array
        Weights of the scorer.
    coef_ : array of shape (n_features,)
        The same, for a scorer without hidden units.
    privacy_ : Guarantee
    n_iter_ : int
        Number of releases of the most frequent kind.
    receipt_ : Receipt or None
        The payment; None without a ledger.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit import PrivateRanker
    >>> X, queries = np.tile(np.linspace(0, 1, 10), 200)[:, None], np.repeat(np.arange(200), 10)
    >>> grades = np.tile(np.arange(10) // 5, 200)
    >>> model = PrivateRanker(epsilon=1.0, delta=1e-5).fit(X, grades, qid=queries)
    >>> worse, better = model.predict([[0.1], [0.9]])
    >>> bool(better > worse)
    True
    """

    # Columns of a frame that were no features.
    _apart: tuple[str, ...] = ()

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        unit: str = "labels",
        loss: Any = "listnet",
        scorer: Any = "linear",
        solver: Any = "auto",
        adjacency: str = "replace-one",
        max_grade: float = 4,
        max_list_length: int | None = None,
        hidden: int = 256,
        feature_bounds: Any = None,
        lists_per_person: int | None = None,
        ledger: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.unit = unit
        self.loss = loss
        self.scorer = scorer
        self.solver = solver
        self.adjacency = adjacency
        self.max_grade = max_grade
        self.max_list_length = max_list_length
        self.hidden = hidden
        self.feature_bounds = feature_bounds
        self.lists_per_person = lists_per_person
        self.ledger = ledger
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, qid: Any = None, group: Any = None, persons: Any = None
    ) -> "PrivateRanker":
        """Fit the model and charge its cost.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_documents, n_features)
        y : array of shape (n_documents,) or str
            Grades, from 0 to ``max_grade``. A text names a column of the data frame, here and
            below; it is no feature, and left out of frames that are predicted later.
        qid : array of shape (n_documents,) or str, optional
            The query of each document; documents of one query must be adjacent.
        group : array of shape (n_lists,), optional
            The number of documents of each list, in their order; instead of ``qid``.
        persons : array or named series of shape (n_lists,), or str, optional
            Whose list each is. The name of a series is that of the column of ids, which accounts of
            persons ask for. A text names a column of the data frame, with the id of each document's
            list.

        Returns
        -------
        self
        """
        budget, loss = Budget(self.epsilon, self.delta), self._loss()
        self._check_settings(persons is not None)
        apart = tuple(name for name in (y, qid, persons) if isinstance(name, str))
        id_column = persons if isinstance(persons, str) else name_of_ids(persons)
        X, y, qid = _columns_taken(X, y, qid)
        X, ids = column_taken(X, persons, "persons", "id for each list")
        _refuse_labels_among_columns(X, y, qid)
        features = self._validated(X, reset=True)
        if self.unit == "labels":
            _refuse_huge(features)
        starts = list_starts(len(features), qid, group)
        self._refuse_long_lists(starts)
        grades = self._grades(y, len(features))
        if isinstance(persons, str):
            ids = one_for_each_list(exact_cells(ids), starts)
        owners = self._persons(ids, len(starts) - 1, id_column)
        layer = self._public_layer(features, starts, loss)
        documents = Documents(_mapped(features, layer), starts)
        problem = self._problem(
            loss, documents, owners, hidden=self._hidden if layer is None else 0
        )
        source = RankedLists(documents, grades, owners)
        solver = ranking_solver_from(self.solver, problem)
        quote = _quote(solver, problem, budget)
        contract = Contract.signed(source, quote, problem.relation, self._terms(budget))
        steps = max(part.count for part in quote.plan.parts)
        with progress_bar(type(self).__name__, steps, shown=self.verbose > 0) as watch:
            weights = solver.solve(problem, contract.curator, watch)
        self._apart = apart
        self.weights_: Vector = weights if layer is None else np.concatenate([layer, weights])
        self.n_iter_ = steps
        self.privacy_: Guarantee = contract.guarantee
        self.receipt_ = contract.receipt
        return self

    def predict(self, X: Any) -> Vector:
        """Score of each document; the higher, the earlier in its list.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_documents, n_features)

        Returns
        -------
        array of shape (n_documents,)
        """
        check_is_fitted(self)
        X = as_frame(X)
        for name in self._apart:
            X = features_of(X, name)
        features = np.nan_to_num(self._validated(X, reset=False), posinf=0.0, neginf=0.0)
        if self._hidden == 0:
            if features.shape[1] != len(self.weights_):
                raise InvalidArgument(
                    f"The feature map gives {features.shape[1]} features, but the model was fitted "
                    f"with {len(self.weights_)}. Give the map that it was fitted with."
                )
            return np.asarray(features @ self.weights_)
        d, inner = features.shape[1], features.shape[1] * self._hidden
        outer = inner + self._hidden
        units = features @ self.weights_[:inner].reshape(d, -1) + self.weights_[inner:outer]
        return np.asarray(np.maximum(units, 0.0) @ self.weights_[outer:])

    def rank(self, X: Any, qid: Any = None, group: Any = None) -> list[IntVector]:
        """The documents of each list, best first.

        Parameters
        ----------
        X : array, CSR matrix or data frame of shape (n_documents, n_features)
        qid, group
            As for `fit`. Neither of them takes X as one list.

        Returns
        -------
        list of int arrays
            Numbers of rows of X, for each list in its order.
        """
        X, qid = column_taken(as_frame(X), qid, "qid", _ID_EACH)
        scores = self.predict(X)
        starts = (
            np.array([0, len(scores)])
            if qid is None and group is None
            else list_starts(len(scores), qid, group)
        )
        return [
            start + np.argsort(-scores[start:stop], kind="stable")
            for start, stop in itertools.pairwise(starts)
        ]

    def score(self, X: Any, y: Any, qid: Any = None, group: Any = None) -> float:
        """Mean NDCG of the first ten documents, with gains ``2**grade - 1``.

        A list without a relevant document counts as 0. Not private: use lists that the model was
        not trained on.

        Parameters
        ----------
        X, y, qid, group
            As for `fit`.

        Returns
        -------
        float
        """
        return float(self.ndcg(X, y, qid, group, depths=(DEPTH,))[0])

    def ndcg(
        self,
        X: Any,
        y: Any,
        qid: Any = None,
        group: Any = None,
        depths: tuple[int, ...] = (1, 2, 4, 8, DEPTH),
    ) -> Vector:
        """Mean NDCG at several depths; see `score`.

        Parameters
        ----------
        X, y, qid, group
            As for `fit`.
        depths : tuple of int

        Returns
        -------
        array of shape (len(depths),)
        """
        X, y, qid = _columns_taken(X, y, qid)
        scores = self.predict(X)
        return mean_ndcg(
            scores, self._grades(y, len(scores)), list_starts(len(scores), qid, group), depths
        )

    def quote(self, n_lists: int, n_features: int, per_person: bool = False) -> Quote:
        """Cost of a fit with these settings; no list is read and nothing is charged.

        Parameters
        ----------
        n_lists, n_features : int
            Number of lists (or of persons) and of columns; public.
        per_person : bool, default=False
            Whether units are persons.

        Returns
        -------
        Quote
            Cost, noise multipliers and planned releases. Print it.
        """
        check_sizes(n_lists=n_lists, n_features=n_features)
        self._check_settings(per_person)
        unit = self.list_person_unit() if per_person else LIST
        relation = self.relation(per_person)
        frozen = self._hidden > 0 and labels_only(relation) and self._loss().name == "listnet"
        width = self._hidden if frozen else n_features
        hidden = 0 if frozen else self._hidden
        problem = RankingProblem(self._loss(), n_lists, width, relation, hidden, unit)
        return _quote(
            ranking_solver_from(self.solver, problem), problem, Budget(self.epsilon, self.delta)
        )

    @property
    def coef_(self) -> Vector:
        """Weights of the features; only for a scorer that is linear in them."""
        check_is_fitted(self)
        if self._hidden:
            raise AttributeError("A network has no coefficients; see weights_.")
        return self.weights_

    @property
    def _hidden(self) -> int:
        return int(self.hidden) if self.scorer == "mlp" else 0

    def _loss(self) -> ListwiseLoss:
        return self.loss if isinstance(self.loss, ListwiseLoss) else ListwiseLoss(self.loss)

    def _check_settings(self, has_persons: bool) -> None:
        if self.unit not in UNITS:
            raise InvalidArgument(
                f"unit={self.unit!r} is not known. Use 'labels' (documents are public), 'list' or "
                "'person'."
            )
        if self.unit == "person" and not has_persons:
            raise InvalidArgument(
                "unit='person' needs persons: whose list each is. Give them to fit, or use "
                "unit='list' if every list is somebody else's."
            )
        if self.unit == "list" and has_persons:
            raise InvalidArgument(
                "persons were given, but unit='list' protects single lists. Use unit='person' to "
                "protect all lists of a person."
            )
        if not 0 < float(self.max_grade) <= _LARGEST_GRADE:
            raise InvalidArgument(
                f"max_grade={self.max_grade!r} is not a largest grade. Give a number above 0 and "
                f"at most {_LARGEST_GRADE:g}: gains are powers of two."
            )
        known = self.scorer in ("linear", "mlp") if isinstance(self.scorer, str) else True
        if not known or not (isinstance(self.scorer, str) or _map_of(self.scorer)):
            raise InvalidArgument(
                f"scorer={self.scorer!r} is not known. Use 'linear', 'mlp', a function, or an "
                "object with transform."
            )
        if self.scorer == "mlp" and not (isinstance(self.hidden, int) and self.hidden > 0):
            raise InvalidArgument(f"hidden={self.hidden!r} is not a number of units. Give 256.")

    def relation(self, has_persons: bool = False) -> Relation:
        """The adjacency relation of a fit: that of labels where only they are protected.

        Parameters
        ----------
        has_persons : bool, default=False
            Whether ``persons`` are given to `fit`.

        Returns
        -------
        Relation
        """
        if self.unit == "labels":
            return Relation.PERSON_LABEL if has_persons else Relation.LABEL
        relation = Relation.parse(self.adjacency)
        if labels_only(relation):
            raise InvalidArgument(
                f"adjacency={self.adjacency!r} does not suit unit={self.unit!r}. Use "
                "unit='labels' to protect labels alone."
            )
        return relation

    def list_person_unit(self, column: str | None = None) -> PrivacyUnit:
        """The privacy unit of a fit with ``persons``.

        Parameters
        ----------
        column : str, optional
            Name of the column of ids.

        Returns
        -------
        PrivacyUnit
        """
        return PrivacyUnit.person("mean", self.lists_per_person, column, record="list")

    def _persons(self, persons: Any, n_lists: int, column: str | None) -> Persons | None:
        """Whose list each is: from the ids of a column, or as compared already."""
        if persons is None:
            return None
        if isinstance(persons, Persons):
            if len(persons.codes) != n_lists or persons.unit != self.list_person_unit(
                persons.unit.column
            ):
                raise InvalidArgument(
                    "persons should have one person for each list, with these lists_per_person, "
                    "and has not."
                )
            return persons
        ids = np.asarray(persons)
        if ids.shape != (n_lists,):
            raise InvalidArgument(
                "persons should have one id for each list, in one dimension, and has not."
            )
        return persons_of(ids, n_lists, self.list_person_unit(column))

    def _validated(self, X: Any, *, reset: bool) -> AnyArray:
        """Documents as an array in C order, mapped by public bounds or the public feature map."""
        with no_cell_quoted(X):
            X = validate_data(
                self,
                with_numbers(unwrapped(X)),
                reset=reset,
                accept_sparse="csr",
                dtype=[np.float64, np.float32],
                ensure_all_finite=False,
            )
        features: AnyArray = X.toarray() if issparse(X) else np.asarray(X)
        if self.unit == "labels" and not _all_finite(features):
            raise NonFiniteRecords(
                "X contains NaN or infinity. Documents are public with unit='labels', so fill or "
                "drop those values first."
            )
        if self.feature_bounds is not None:
            features = FeatureBounds.parse(feature_ranges(self), X.shape[1]).apply(features)
        feature_map = None if isinstance(self.scorer, str) else _map_of(self.scorer)
        if feature_map is not None:
            n_documents = len(features)
            features = np.asarray(feature_map(features), dtype=np.float64)
            if features.ndim != 2 or len(features) != n_documents:
                raise InvalidArgument(
                    "The feature map should give an array with one row for each document, and has "
                    "not."
                )
        return np.ascontiguousarray(features)

    def _refuse_long_lists(self, starts: IntVector) -> None:
        if self.max_list_length is not None and np.diff(starts).max() > self.max_list_length:
            raise InvalidArgument(
                f"A list has more documents than max_list_length={self.max_list_length}. Shorten "
                "it by a rule that does not look at grades, or give a larger number."
            )

    def _grades(self, y: Any, n_documents: int) -> Vector:
        """The grades, inside their public range: no error may tell of one."""
        cells = as_cells(y)
        grades = numbers_of(cells)
        if grades is None:
            raise InvalidArgument(
                "y is an array of texts, dates or complex numbers. Give grades as numbers, from 0 "
                f"to max_grade={self.max_grade:g}."
            )
        if grades.shape != (n_documents,):
            raise InvalidArgument(
                "y should have one grade for each document of X, in one dimension, and has not."
            )
        known = np.where(np.isnan(grades), 0.0, grades)
        return np.ascontiguousarray(np.clip(known, 0.0, self.max_grade))

    def _public_layer(
        self, features: AnyArray, starts: IntVector, loss: ListwiseLoss
    ) -> Vector | None:
        """Inner weights of a network whose last layer alone is learnt, by one release; else None.

        Public: a fixed random layer of features in units of their spread within lists.
        """
        if not (self._hidden and self.unit == "labels" and loss.name == "listnet"):
            return None
        d, hidden = features.shape[1], self._hidden
        documents = Documents(features, starts)
        spread = np.sqrt(np.diag(documents.within_moment(np.ones(documents.n_lists))))
        spread /= math.sqrt(documents.n_lists)
        rng = np.random.default_rng(_LAYER_SEED)
        inner = rng.standard_normal((d, hidden)) / math.sqrt(d)
        inner /= np.where(spread > 0, spread, np.inf)[:, None]
        thresholds = -(features.mean(axis=0) @ inner) + rng.standard_normal(hidden)
        return np.concatenate([inner.ravel(), thresholds])

    def _problem(
        self, loss: ListwiseLoss, documents: Documents, owners: Persons | None, hidden: int
    ) -> RankingProblem:
        relation = self.relation(owners is not None)
        public = labels_only(relation)
        return RankingProblem(
            loss,
            documents.n_lists if owners is None else owners.n_persons,
            documents.n_features,
            relation,
            hidden,
            LIST if owners is None else owners.unit,
            documents if public else None,
            owners.shares if public and owners is not None else None,
        )

    def _terms(self, budget: Budget) -> Terms:
        public = ["the names and number of the columns", f"the largest grade, {self.max_grade:g}"]
        if self.unit == "labels":
            public.insert(0, "every document: its features, and which documents are in one list")
        if self.feature_bounds is not None:
            public.append("the range of every column, given by the caller")
        notes = {
            "labels": "Which documents are listed must not depend on the grades.",
            "list": "Lists are centred and scaled by themselves where the scorer is linear.",
            "person": "Lists are centred and scaled by themselves where the scorer is linear.",
        }
        return Terms(
            budget,
            type(self).__name__,
            Randomness.of(self.random_state),
            self.ledger,
            tuple(public),
            (notes[self.unit],),
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _quote(solver: RankingSolver, problem: RankingProblem, budget: Budget) -> Quote:
    plan = solver.plan(problem)
    drawn = sum(part.count * part.query.coordinates(problem) for part in plan.parts)
    return plan.quote_for(problem.n_units, problem.relation, budget, drawn)


def _map_of(scorer: Any) -> Callable[[Any], Any] | None:
    """The feature map of an argument: an object's ``transform``, or a function."""
    transform = getattr(scorer, "transform", scorer)
    return transform if callable(transform) else None


def _mapped(features: AnyArray, layer: Vector | None) -> AnyArray:
    """Documents after a public hidden layer, or as they are."""
    if layer is None:
        return features
    d = features.shape[1]
    hidden = len(layer) // (d + 1)
    units: Matrix = features @ layer[: d * hidden].reshape(d, hidden) + layer[d * hidden :]
    return np.maximum(units, 0.0)


def _all_finite(features: AnyArray) -> bool:
    # A sum is finite if all entries are, unless it overflows: then each is looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(features.sum())) or bool(np.isfinite(features).all())


def _refuse_huge(documents: AnyArray) -> None:
    """Refuse public documents whose squares are beyond floats, before anything is paid."""
    # A nan, which a feature map may give, is not below it either.
    if not max(float(documents.max()), -float(documents.min())) <= _LARGEST_VALUE:
        raise InvalidArgument(
            f"X has a value beyond {_LARGEST_VALUE:g}, or the feature map gives one. Documents are "
            "public with unit='labels': scale or clip that column first. Nothing was charged."
        )


def _columns_taken(X: Any, y: Any, qid: Any) -> tuple[Any, Any, Any]:
    """Documents without the columns that texts name, their grades and their queries."""
    X, y = labels_of(X, y)
    X, qid = column_taken(X, qid, "qid", _ID_EACH)
    return X, y, qid


def _refuse_labels_among_columns(X: Any, y: Any, qid: Any) -> None:
    """Refuse a data frame that has the grades or the query among its columns, by their names.

    Values are not compared: a refusal that depends on grades would reveal them.
    """
    columns = list(getattr(X, "columns", ()))
    for values, what in ((y, "the grades"), (qid, "the query")):
        name = getattr(values, "name", None)
        if name is not None and name in columns:
            raise InvalidArgument(
                f"Column {name!r} of X has the name of {what}. Drop it from X: with public "
                "documents it would publish what is to be protected."
            )


def mean_ndcg(scores: Vector, grades: Vector, starts: IntVector, depths: tuple[int, ...]) -> Vector:
    """Mean NDCG over lists at several depths; a list without a relevant document counts as 0."""
    gains, lengths, total = 2.0**grades - 1.0, np.diff(starts), np.zeros(len(depths))
    # Documents of equal scores stay in the order in which they are given.
    order = np.lexsort((-scores, np.repeat(np.arange(len(lengths)), lengths)))
    ranked = gains[order]
    for length in np.unique(lengths):
        own = ranked[starts[:-1][lengths == length][:, None] + np.arange(length)]
        if length == 1:  # scikit-learn refuses single documents, which any order ranks first
            total += (own > 0).sum()
            continue
        falling = np.broadcast_to(-np.arange(length, dtype=np.float64), own.shape)
        total += [
            len(own) * ndcg_score(own, falling, k=depth, ignore_ties=True) for depth in depths
        ]
    return np.asarray(total / len(lengths))
