"""The protocol of a loss."""

from typing import NamedTuple, Protocol, runtime_checkable

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

    Examples
    --------
    >>> from hushfit.losses import Logistic, Loss
    >>> loss: Loss = Logistic()
    >>> loss.outputs, loss.slope_bound, loss.smoothness
    (1, 1.0, 0.25)
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


@runtime_checkable
class CanonicalLoss(Loss, Protocol):
    r"""A loss in which the label enters linearly: :math:`l(t, y) = \psi(t) - s(y) \cdot t`, up to
    a function of y alone, as for generalised linear models with the canonical link.

    If features are public, all that labels contribute to a fit is then :math:`\sum_i s(y_i)
    x_i`. The hinge and Huber losses have no such form: there the label says where the loss bends.

    Attributes
    ----------
    label_diameter : float
        Largest distance between the statistics :math:`s(y)` of two admissible labels.
    label_centre : float
        A number, the same for every output, that the statistics of all labels lie around.
    """

    @property
    def label_diameter(self) -> float: ...

    @property
    def label_centre(self) -> float: ...

    def label_deviation(self, y: Vector) -> Vector:
        """The statistic of each label less ``label_centre``, one number or one for each output:
        of norm at most ``label_diameter``. Labels outside the admissible ones are clipped to them;
        one that is not a number counts as the centre. Of several outputs they add up to zero.
        """

    def log_partition(self, t: Vector) -> Vector:
        r"""The convex :math:`\psi` at each margin."""

    def mean(self, t: Vector) -> Vector:
        r"""Gradient of :math:`\psi`, of the shape of ``t``: the expected statistic."""

    def variance(self, t: Vector) -> Vector:
        r"""Second derivative of :math:`\psi` in each margin, of the shape of ``t``."""
