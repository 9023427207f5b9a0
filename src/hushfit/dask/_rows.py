"""Rows of a table in parts on the workers of a Dask cluster, as a data source.

Noise is drawn by the curator, in the driver; workers only add up. See docs/adr/0017-dask.md.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NoReturn
from uuid import uuid4

import numpy as np
from distributed import Client, Future, wait
from distributed import TimeoutError as StillWaiting

from hushfit._typing import BoolVector, IntVector, Vector
from hushfit.dask._pieces import Span, parts_of
from hushfit.dask._tasks import (
    DividedBy,
    Encoding,
    Failure,
    ForDesign,
    ForRegression,
    Mapped,
    View,
    add_up,
    count_rows,
    encode_files,
    encode_frames,
    list_files,
)
from hushfit.data import (
    Block,
    Persons,
    PublicRows,
    RecordScaling,
    SumsOverRows,
    one_place_each,
)
from hushfit.data.design import MainEffects
from hushfit.data.schema import Schema, with_sorted_classes
from hushfit.data.tables import CodedRows
from hushfit.errors import HushfitError, InvalidArgument, TooFewRows
from hushfit.features import AdditiveMap
from hushfit.unit import ROW, PrivacyUnit

# Seconds between looks at a cluster that has not answered.
_LOOK_SECONDS = 2.0


class ClusterLost(HushfitError):
    """The cluster, or too many of its workers, went away during a fit.

    Examples
    --------
    >>> from hushfit.dask import ClusterLost
    >>> from hushfit.errors import HushfitError
    >>> issubclass(ClusterLost, HushfitError)
    True
    """


class DaskRows:
    """Rows of a table in parts, each encoded and kept by a worker of a cluster.

    Give it to ``fit`` of an estimator in place of an array; the fitted model is an ordinary one.
    Weights are those of the same table on one machine, bit for bit. Made with `from_parquet` or
    `from_dataframe`. Single rows are protected: a schema with a column of ids is refused.

    Parameters
    ----------
    client : distributed.Client
    encoding : Encoding
    parts : sequence of Future
        Each of a `Kept` part, in the order of the rows.
    n_units : int
        Number of rows of the whole table; public.
    patience : float
        Seconds without any worker after which a fit gives up.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from distributed import Client
    >>> from hushfit import PrivateLogisticRegression
    >>> from hushfit.dask import DaskRows
    >>> from hushfit.data.schema import CategoricalColumn, NumericColumn, Schema
    >>> schema = Schema((NumericColumn("age", 0, 110),), CategoricalColumn("ill", ("no", "yes")))
    >>> table = pd.DataFrame({"age": [40, 70] * 500, "ill": ["no", "yes"] * 500})
    >>> table.to_parquet("visits.parquet")
    >>> with Client(processes=False, dashboard_address=None, memory_limit=0) as client:
    ...     with DaskRows.from_parquet("visits.parquet", schema, client=client) as rows:
    ...         PrivateLogisticRegression(epsilon=1.0, delta=1e-5).fit(rows).classes_
    array(['no', 'yes'], dtype='<U3')
    """

    def __init__(
        self,
        client: Client,
        encoding: Encoding,
        parts: Sequence[Future],
        n_units: int,
        patience: float,
    ) -> None:
        self._client, self._parts, self._patience = client, list(parts), patience
        self._views: tuple[View, ...] = ()
        self._public: CodedRows = encoding.template()
        self.n_units = n_units

    @classmethod
    def from_parquet(
        cls,
        paths: str | Sequence[str],
        schema: Schema,
        *,
        client: Client,
        fit_intercept: bool = True,
        patience: float = 60.0,
    ) -> "DaskRows":
        """Encode Parquet files on the workers of a cluster, which all see them under these paths.

        Parameters
        ----------
        paths : str or sequence of str
            Paths, or patterns with ``*``.
        schema : Schema
            With a target.
        client : distributed.Client
        fit_intercept : bool, default=True
            As in the estimator.
        patience : float, default=60.0
            Seconds without any worker after which a fit gives up.

        Returns
        -------
        DaskRows

        Raises
        ------
        InvalidArgument
            If files are missing, damaged or lack a column, or the schema has a column of ids.
        """
        encoding = Encoding(_rows_schema(schema), fit_intercept)
        patterns = [paths] if isinstance(paths, str) else list(paths)
        wait_for = _Waiting(client, patience)
        files, sizes = wait_for.all([_submit(client, list_files, patterns)])[0]
        pieces = _pieces(sizes, client)
        parts = [_submit(client, encode_files, files, spans, encoding) for spans in pieces]
        return cls._encoded(client, encoding, parts, sum(sizes), patience)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        schema: Schema,
        *,
        client: Client,
        fit_intercept: bool = True,
        patience: float = 60.0,
    ) -> "DaskRows":
        """Encode the partitions of a Dask data frame.

        Parameters
        ----------
        frame : dask.dataframe.DataFrame
            Its graph must give the same rows whenever it is computed: a lost part is computed
            again.
        schema : Schema
            With a target.
        client : distributed.Client
        fit_intercept, patience
            As for `from_parquet`.

        Returns
        -------
        DaskRows
        """
        encoding = Encoding(_rows_schema(schema), fit_intercept)
        partitions = client.compute(frame.to_delayed())
        wait_for = _Waiting(client, patience)
        sizes = wait_for.all([_submit(client, count_rows, part) for part in partitions])
        parts = []
        for spans in _pieces(sizes, client):
            own = [partitions[span.place] for span in spans]
            numbered = tuple(Span(place, span.rows) for place, span in enumerate(spans))
            parts.append(_submit(client, encode_frames, own, numbered, encoding))
        return cls._encoded(client, encoding, parts, sum(sizes), patience)

    @classmethod
    def _encoded(
        cls,
        client: Client,
        encoding: Encoding,
        parts: list[Future],
        n_units: int,
        patience: float,
    ) -> "DaskRows":
        rows = cls(client, encoding, parts, n_units, patience)
        try:
            # Whatever is wrong with a part is found here, before anything is paid for.
            _Waiting(client, patience).all([_submit(client, _problem, part) for part in parts])
        except BaseException:
            rows.close()
            raise
        return rows

    # The public half

    @property
    def schema(self) -> Schema:
        return self._public.schema

    @property
    def classes(self) -> tuple[str, ...]:
        return self._public.classes

    @property
    def keep_unlabelled(self) -> bool:
        return self._public.keep_unlabelled

    @property
    def n_features(self) -> int:
        return self._public.n_features

    @property
    def scaling(self) -> RecordScaling:
        return self._public.scaling

    @property
    def centred(self) -> BoolVector:
        return self._public.centred

    @property
    def ranges(self) -> tuple[Vector, Vector]:
        return self._public.ranges

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return ROW

    @property
    def persons(self) -> Persons | None:
        return None

    # Views, which workers make when they are first asked about them

    def mapped(self, feature_map: AdditiveMap) -> "DaskRows":
        """The same rows, mapped by a public feature map."""
        return self._viewed(Mapped(feature_map))

    def divided_by(self, length: float) -> "DaskRows":
        """The same rows, divided by one public length unless they are longer."""
        return self._viewed(DividedBy(length))

    def for_design(self, design: MainEffects) -> "DaskRows":
        """The same rows as those of a regression table; they keep their lengths."""
        return self._viewed(ForDesign(design))

    def for_regression(
        self, scaling: RecordScaling, mapped: Callable[[Vector], Vector], scaled_labels: bool
    ) -> "DaskRows":
        """The same rows with mapped targets, for regression."""
        return self._viewed(ForRegression(scaling, mapped, scaled_labels))

    def _viewed(self, view: View) -> "DaskRows":
        other = copy(self)
        other._views, other._public = (*self._views, view), view(self._public)
        return other

    # The rows

    def added_up(self, sums: SumsOverRows) -> Vector:
        """Exact sums over all rows: one task for each worker that keeps parts."""
        tasks = [
            _submit(self._client, add_up, parts, self._views, self.n_units, sums, workers=workers)
            for workers, parts in self._by_worker()
        ]
        first, *others = _Waiting(self._client, self._patience).all(tasks)
        return np.asarray(sum(others, start=first))

    def _by_worker(self) -> Iterator[tuple[list[str] | None, list[Future]]]:
        """Parts by the worker that adds them up; those that no worker has now, one by one."""
        try:
            kept = self._client.who_has(self._parts)
        except Exception as error:
            raise _lost(error) from None
        for worker, numbers in one_place_each([kept.get(part.key, ()) for part in self._parts]):
            yield None if worker is None else [worker], [self._parts[i] for i in numbers]

    @property
    def y(self) -> NoReturn:
        raise _in_parts()

    @property
    def shares(self) -> NoReturn:
        raise _in_parts()

    def row_vector(self) -> Vector:
        raise _in_parts()

    def blocks(self, units: IntVector | None = None) -> Iterator[Block]:
        raise _in_parts()

    def public_rows(self) -> PublicRows:
        raise _in_parts()

    def close(self) -> None:
        """Let the workers drop their parts."""
        self._public.close()
        for part in self._parts:
            part.release()

    def __enter__(self) -> "DaskRows":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"DaskRows({self.n_units} rows, {self.n_features} features)"


class _Waiting:
    """Waits for tasks; gives up when the cluster is gone."""

    def __init__(self, client: Client, patience: float) -> None:
        self._client, self._patience = client, patience

    def all(self, tasks: list[Future]) -> list[Any]:
        """The results of tasks; a `Failure` among them is raised."""
        try:
            self._finished(tasks)
            found = self._client.gather(tasks)
        except HushfitError:
            raise
        except Exception as error:  # what a lost connection raises depends on the moment
            raise _lost(error) from None
        for result in found:
            if isinstance(result, Failure):
                raise InvalidArgument(result.reason)
        return list(found)

    def _finished(self, tasks: list[Future]) -> None:
        deserted = 0.0
        while True:
            started = time.monotonic()
            try:
                wait(tasks, timeout=_LOOK_SECONDS)
                return
            except StillWaiting:
                alone = not self._client.scheduler_info(n_workers=-1)["workers"]
                deserted = deserted + time.monotonic() - started if alone else 0.0
            if self._client.status != "running":
                raise _lost(ConnectionError())
            if deserted > self._patience:
                raise ClusterLost(
                    f"The cluster has had no worker for {self._patience:g} seconds. What was paid "
                    "for is spent, and nothing was released twice. Start workers, and fit again."
                )


def _submit(
    client: Client, task: Callable[..., Any], *args: Any, workers: list[str] | None = None
) -> Future:
    """Submit a task under a name that says nothing about its arguments."""
    key = f"hushfit-{task.__name__}-{uuid4().hex}"
    # A worker may be lost: others then take over its tasks.
    elsewhere = workers is not None
    return client.submit(
        task, *args, key=key, pure=False, workers=workers, allow_other_workers=elsewhere
    )


def _problem(part: Any) -> Failure | None:
    return part if isinstance(part, Failure) else None


def _pieces(sizes: Sequence[int], client: Client) -> list[tuple[Span, ...]]:
    if sum(sizes) < 2:
        raise TooFewRows("the tables have fewer than 2 rows. Check that these are the files.")
    return parts_of(sizes, max(len(client.scheduler_info(n_workers=-1)["workers"]), 1))


def _rows_schema(schema: Schema) -> Schema:
    if schema.person is not None:
        raise InvalidArgument(
            f"the schema protects persons by column {schema.person!r}, whose rows may lie in "
            "several parts of the table. Nothing was spent. Fit persons on one machine: `hushfit "
            "fit` without --dask reads files that are larger than memory."
        )
    return with_sorted_classes(schema)


def _in_parts() -> InvalidArgument:
    return InvalidArgument(
        "These rows lie in several places, and only sums over them come together. Use "
        "solver='auto', or fit on one machine."
    )


def _lost(error: Exception) -> ClusterLost:
    return ClusterLost(
        f"The connection to the Dask cluster was lost ({type(error).__name__}). What was paid for "
        "is spent, and nothing was released twice. Look at the scheduler, connect again, and fit "
        "again, which pays again."
    )
