"""IPUMS-BR, the Brazilian census extract of the source texts, from a local file.

The rows are not bundled: IPUMS does not allow it. The authors of DP-AGD (Lee and Kifer, 2018)
publish the encoded file ``IPUMS-BR.dat`` in the repository of their paper.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from hushfit._typing import IntVector, Matrix
from hushfit.errors import InvalidArgument

_ROWS, _COLUMNS = 38_000, 52


class LabelledRows(NamedTuple):
    """Numeric columns and labels in {0, 1}.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.datasets import LabelledRows
    >>> X, y = LabelledRows(np.zeros((2, 3)), np.array([0, 1]))
    >>> X.shape
    (2, 3)
    """

    X: Matrix
    y: IntVector


def load_ipums_br(path: str | Path) -> LabelledRows:
    """Read IPUMS-BR: 38,000 rows of 52 columns and a label in {0, 1}, separated by blanks.

    Parameters
    ----------
    path : path
        The file ``IPUMS-BR.dat``.

    Returns
    -------
    LabelledRows
        ``X, y``. Columns are as in the file, not scaled: give ``feature_bounds``, or scale them by
        ranges that you know without the rows.

    Raises
    ------
    InvalidArgument
        If the file cannot be read, or has another shape or other labels.

    Examples
    --------
    >>> from hushfit.datasets import load_ipums_br
    >>> load_ipums_br("missing.dat")
    Traceback (most recent call last):
    ...
    hushfit.errors.InvalidArgument: missing.dat cannot be read (FileNotFoundError). Give the file...
    """
    try:
        values = np.loadtxt(path, dtype=np.float64, ndmin=2)
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"{path} cannot be read ({type(error).__name__}). Give the file IPUMS-BR.dat: numbers "
            "separated by blanks, the label last."
        ) from None
    if values.shape != (_ROWS, _COLUMNS + 1):
        raise InvalidArgument(
            f"{path} has {values.shape[0]} rows of {values.shape[1]} numbers; IPUMS-BR has "
            f"{_ROWS} of {_COLUMNS + 1}, the label last. Give the file IPUMS-BR.dat."
        )
    X, y = values[:, :-1], values[:, -1]
    if not np.isin(y, (0, 1)).all() or not np.isfinite(X).all():
        raise InvalidArgument(
            f"{path} has labels other than 0 and 1, or values that are not numbers. Give the file "
            "IPUMS-BR.dat as its authors publish it."
        )
    return LabelledRows(X, y.astype(np.int64))
