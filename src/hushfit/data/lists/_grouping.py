"""From query ids, or from group sizes, to where each list of documents starts."""

from typing import Any

import numpy as np

from hushfit._typing import AnyArray, IntVector
from hushfit.errors import InvalidArgument


def list_starts(n_documents: int, qid: Any = None, group: Any = None) -> IntVector:
    """Where each list starts, and where the last one ends.

    Parameters
    ----------
    n_documents : int
    qid : array of shape (n_documents,), optional
        The query of each document. Documents of one query must be adjacent.
    group : array of shape (n_lists,), optional
        The number of documents of each list, in their order.

    Returns
    -------
    int array of shape (n_lists + 1,)

    Raises
    ------
    InvalidArgument
        If both or neither are given, if sizes do not add up, or if a query's documents are apart.
    """
    if (qid is None) == (group is None):
        raise InvalidArgument(
            "Give either qid, the query of each document, or group, the number of documents of "
            "each list: one of the two says which documents are ranked together."
        )
    if qid is None:
        return _starts_of_sizes(n_documents, np.asarray(group))
    return _starts_of_ids(n_documents, np.asarray(qid))


def one_for_each_list(persons: AnyArray, starts: IntVector) -> AnyArray:
    """The person of each list, which is that of all its documents.

    A list of two persons' documents is refused: counted as the first one's, it would have no bound
    on what the second contributes.

    Parameters
    ----------
    persons : array of shape (n_documents,)
    starts : int array of shape (n_lists + 1,)

    Returns
    -------
    array of shape (n_lists,)
    """
    found: AnyArray = persons[starts[:-1]]
    first = np.repeat(found, np.diff(starts))
    missing = (persons != persons) & (first != first)  # nan, which no value equals
    if not np.all((persons == first) | missing):
        raise InvalidArgument(
            "The documents of one list name different persons. Give every person's documents "
            "a query of their own. Nothing was spent. (This error reveals something about the "
            "table to whoever sees it.)"
        )
    return found


def _starts_of_sizes(n_documents: int, sizes: AnyArray) -> IntVector:
    if sizes.ndim != 1 or sizes.dtype.kind not in "iuf" or not np.all(sizes == np.rint(sizes)):
        raise InvalidArgument(
            "group should have the number of documents of each list, as whole numbers in one "
            "dimension. For an id per document, use qid."
        )
    if len(sizes) == 0 or sizes.min() < 1:
        raise InvalidArgument("Every entry of group should be at least 1: a list has a document.")
    if int(sizes.sum()) != n_documents:  # both numbers may be private, so neither is named
        raise InvalidArgument(
            "The sizes in group do not add up to the number of documents of X. Give the number of "
            "documents of every list."
        )
    return np.concatenate([[0], np.cumsum(sizes.astype(np.int64))])


def _starts_of_ids(n_documents: int, ids: AnyArray) -> IntVector:
    if ids.ndim != 1 or len(ids) != n_documents:
        raise InvalidArgument(
            "qid should have one id for each document of X, in one dimension, and has not."
        )
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise InvalidArgument("qid has missing values. Give the query of every document.")
    changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    starts = np.concatenate([[0], changes, [n_documents]]).astype(np.int64)
    try:
        n_queries = len(np.unique(ids))
    except TypeError:
        raise InvalidArgument(
            "qid mixes types that cannot be compared. Give numbers, or texts."
        ) from None
    if n_queries < len(starts) - 1:
        raise InvalidArgument(
            "The documents of a query are apart: another query's documents lie between them. Sort "
            "X, y and qid by qid, or give different queries different ids."
        )
    return starts
