"""Hashed n-grams of texts: a public vocabulary of fixed size that no row decides.

Every word, or every run of characters, goes to the output that its hash names, with a sign that the
hash names too, so that collisions cancel on average (Weinberger et al. 2009). The hash is that of
scikit-learn's ``HashingVectorizer``.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from hushfit._typing import AnyArray
from hushfit.errors import InvalidArgument

_ANALYSERS = ("word", "char", "char_wb")
_MOST_OUTPUTS = 2**24
_LONGEST = 20
_ROUNDING = 1e-12
# What is written out for cells that are missing: of Python, numpy and pandas.
_MISSING = ("None", "nan", "<NA>", "NaT")
_FIELDS = ("columns", "size", "ngrams", "analyser", "lowercase")


@dataclass(frozen=True)
class HashedText:
    """Columns of texts as signed counts of hashed n-grams; each text has length one.

    A missing text, or one without n-grams, has no counts.

    Parameters
    ----------
    columns : int, default=1
        How many columns there are; each has outputs of its own.
    size : int, default=4096
        Outputs of each column.
    ngrams : tuple of int, default=(1, 1)
        Smallest and largest number of words, or of characters, of an n-gram.
    analyser : {"word", "char", "char_wb"}, default="word"
        What n-grams are made of: words of two letters or more, characters, or characters within
        words.
    lowercase : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.features import HashedText
    >>> texts = np.array([["fever and cough"], [None]], dtype=object)
    >>> HashedText(size=16).transform(texts).power(2).sum(axis=1).ravel()
    array([1., 0.])
    """

    columns: int = 1
    size: int = 4096
    ngrams: tuple[int, int] = (1, 1)
    analyser: str = "word"
    lowercase: bool = True

    kind: ClassVar[str] = "hashed-text"
    rotated: ClassVar[bool] = False
    kept: ClassVar[bool] = True
    reads_text: ClassVar[bool] = True

    def __post_init__(self) -> None:
        ngrams = tuple(self.ngrams) if isinstance(self.ngrams, Sequence) else ()
        whole = all(type(n) is int and n >= 1 for n in (*ngrams, self.columns, self.size))
        if len(ngrams) != 2 or not whole or not ngrams[0] <= ngrams[1] <= _LONGEST:
            raise InvalidArgument(
                f"{self!r} should have whole numbers from 1, and ngrams=(smallest, largest) up to "
                f"{_LONGEST}."
            )
        if self.columns * self.size > _MOST_OUTPUTS:
            raise InvalidArgument(
                f"{self.columns} columns of size={self.size} are more than {_MOST_OUTPUTS} "
                "outputs. Choose a smaller size."
            )
        if self.analyser not in _ANALYSERS or type(self.lowercase) is not bool:
            raise InvalidArgument(
                f"analyser={self.analyser!r} should be one of {_ANALYSERS}, and "
                f"lowercase={self.lowercase!r} True or False."
            )
        object.__setattr__(self, "ngrams", ngrams)

    @property
    def n_inputs(self) -> int:
        return self.columns

    @property
    def n_outputs(self) -> int:
        return self.columns * self.size

    @property
    def row_norm(self) -> float:
        return math.sqrt(self.columns) * (1 + _ROUNDING)

    def leaves_sparse(self, sparse: bool) -> bool:
        return True

    def transform(self, X: AnyArray) -> Any:
        """Map rows of texts.

        Parameters
        ----------
        X : array of shape (n, columns)
            What is neither text nor missing is written out: 5 is the text "5".

        Returns
        -------
        CSR matrix of shape (n, n_outputs)
        """
        from scipy.sparse import csr_array, hstack

        if not len(X):
            return csr_array((0, self.n_outputs))
        counts = [self._hasher.transform(map(_as_text, column)) for column in np.asarray(X).T]
        stacked = csr_array(hstack(counts, format="csr"))
        stacked.sort_indices()
        return stacked

    def transform_sparse(self, X: Any) -> Any:
        raise InvalidArgument("texts are not in a sparse matrix. Give an array or a data frame.")

    @cached_property
    def _hasher(self) -> Any:
        from sklearn.feature_extraction.text import HashingVectorizer

        return HashingVectorizer(
            n_features=self.size,
            ngram_range=self.ngrams,
            analyzer=self.analyser,
            lowercase=self.lowercase,
            norm="l2",
            alternate_sign=True,
            dtype=np.float64,
        )

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the outputs: column and number."""
        return [f"{name}#{k}" for name in names for k in range(self.size)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in a model file."""
        settings = {name: getattr(self, name) for name in _FIELDS}
        return {"kind": self.kind, **settings, "ngrams": list(self.ngrams)}

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> "HashedText":
        """Read what `to_dict` writes."""
        settings = {name: described[name] for name in _FIELDS}
        return cls(**{**settings, "ngrams": tuple(described["ngrams"])})


def _as_text(cell: Any) -> str:
    """A cell as text; empty if it is missing. Lone surrogates, which no hash takes, become "?"."""
    text = str(cell)
    if not isinstance(cell, str) and text in _MISSING:
        return ""
    return text.encode("utf-8", "replace").decode("utf-8")
