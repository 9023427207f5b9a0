"""The protocol of a loss."""

from typing import NamedTuple, Protocol

from hushfit._typing import Vector


class KernelLoss(NamedTuple):
    """Code and parameter of a loss in compiled code.

    Attributes
    ----------
    code : int
        One of the constants of ``hushfit.kernels.codes``.
    parameter : float
        Parameter of the loss; 0 if it has none.
    """

    code: int
    parameter: float


class Loss(Protocol):
    """A pointwise loss l(t, y) of a margin ``t`` and a label ``y``: it never owns data.

    Losses of one margin take ``t`` and ``y`` of length n. Losses of several margins take ``t`` of
    shape (n, K) and labels 0, ..., K - 1, and their slope has the shape of ``t``.

    Attributes
    ----------
    outputs : int
        Number of margins K of one record; 1 for two classes and for regression.
    hessian_rank : int
        Largest rank of the second derivative in the margins. Costs of objective perturbation depend
        on it.
    hessian_trace : float
        Supremum of the trace of the second derivative in the margins. It matters where a person has
        several rows.
    one_sign : bool
        Whether the slopes at any two margins, given one label, have the same sign: their difference
        is then at most the larger of the two. False is always valid.
    slope_bound : float
        Supremum of the absolute slope, in the Euclidean norm if there are several margins.
        Sensitivities depend on it.
    smoothness : float
        Supremum of the second derivative, of its largest eigenvalue when there are several margins.
    kernel : KernelLoss
        How compiled code computes the slope.
    """

    @property
    def outputs(self) -> int: ...

    @property
    def hessian_rank(self) -> int: ...

    @property
    def hessian_trace(self) -> float: ...

    @property
    def one_sign(self) -> bool: ...

    @property
    def slope_bound(self) -> float: ...

    @property
    def smoothness(self) -> float: ...

    @property
    def kernel(self) -> KernelLoss: ...

    def value(self, t: Vector, y: Vector) -> Vector: ...

    def slope(self, t: Vector, y: Vector) -> Vector: ...
