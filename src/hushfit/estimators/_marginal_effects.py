"""Marginal effects: how the mean of the response changes with a variable, averaged over public
reference rows, with intervals by the delta method.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from hushfit._typing import Matrix, Vector


class Link(NamedTuple):
    """The mean of a response as a function of the linear predictor, and its derivatives."""

    mean: Callable[[Vector], Vector]
    slope: Callable[[Vector], Vector]
    bend: Callable[[Vector], Vector]


LINKS: Mapping[str, Link] = {
    "identity": Link(lambda eta: eta, np.ones_like, np.zeros_like),
    "logit": Link(
        expit,
        lambda eta: expit(eta) * expit(-eta),
        lambda eta: expit(eta) * expit(-eta) * (expit(-eta) - expit(eta)),
    ),
    "log": Link(np.exp, np.exp, np.exp),
}


class Change(Protocol):
    """What one variable does to reference rows."""

    def effect(self, params: Vector, link: Link) -> tuple[float, Vector]:
        """Average change of the mean, and its derivative by the coefficients."""


@dataclass(frozen=True, eq=False)
class Slope:
    """An infinitely small step of a number: rows, and their derivatives by it."""

    rows: Matrix
    moved: Matrix

    def effect(self, params: Vector, link: Link) -> tuple[float, Vector]:
        Z = _with_constant(self.rows)
        moved = np.column_stack([np.zeros(len(Z)), self.moved])
        eta, along = Z @ params, moved @ params
        value = float(np.mean(link.slope(eta) * along))
        gradient = (link.bend(eta) * along) @ Z + link.slope(eta) @ moved
        return value, gradient / len(Z)


@dataclass(frozen=True, eq=False)
class Switch:
    """The change from one level of a label to another: rows before and after."""

    before: Matrix
    after: Matrix

    def effect(self, params: Vector, link: Link) -> tuple[float, Vector]:
        value, gradient = 0.0, np.zeros(len(params))
        for rows, sign in ((self.after, 1.0), (self.before, -1.0)):
            Z = _with_constant(rows)
            eta = Z @ params
            value += sign * float(np.mean(link.mean(eta)))
            gradient += sign * (link.slope(eta) @ Z) / len(Z)
        return value, gradient


def column_slopes(rows: Matrix) -> Iterator[Slope]:
    """The slope of each column of reference rows."""
    for unit in np.eye(rows.shape[1]):
        yield Slope(rows, np.broadcast_to(unit, rows.shape))


@dataclass(frozen=True, eq=False)
class MarginalEffects:
    """Changes of the mean of the response, averaged over public reference rows.

    Parameters
    ----------
    names : sequence of str
    effects : array of shape (k, 4)
        Estimate, standard error, lower and upper end of the interval.
    level : float
    over : str
        What was averaged over, in words.
    """

    names: Sequence[str]
    effects: Matrix
    level: float
    over: str

    @classmethod
    def of(
        cls,
        changes: Iterable[tuple[str, Change]],
        params: Vector,
        deviations: Callable[[Matrix], Vector],
        link: str,
        interval: tuple[float, float],
        over: str,
    ) -> "MarginalEffects":
        """From released coefficients, the intercept first; ``deviations`` has the standard errors
        of their combinations, and ``interval`` is the level and its quantile.
        """
        (level, quantile), names, lines = interval, [], []
        for name, change in changes:
            value, gradient = change.effect(params, LINKS[link])
            error = float(deviations(gradient[None])[0])
            names.append(name)
            lines.append([value, error, value - quantile * error, value + quantile * error])
        return cls(names, np.array(lines), level, over)

    def __str__(self) -> str:
        width = max(len(name) for name in ["", *self.names])
        ends = f"[{(1 - self.level) / 2:.3f}", f"{(1 + self.level) / 2:.3f}]"
        head = " " * width + "".join(f"{text:>12}" for text in ("dy/dx", "std err", *ends))
        lines = [
            name.ljust(width) + "".join(f"{value:>12.4g}" for value in line)
            for name, line in zip(self.names, self.effects, strict=True)
        ]
        return "\n".join(["Marginal effects", head, *lines, f"Averaged over {self.over}."])


def _with_constant(rows: Matrix) -> Matrix:
    return np.column_stack([np.ones(len(rows)), rows])
