"""What a solver of networks is: a state, and one step from released answers to the next state."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from hushfit._typing import Vector
from hushfit.privacy import Budget
from hushfit.release import Door, Plan
from hushfit.torch._network import Network


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a solver knows after some steps. All of it is a function of released answers,
    and so public: it may be stored, and the run continued from it.

    Parameters
    ----------
    step : int
        Number of steps done.
    w : array
        Weights of the network.
    memory : mapping from str to array
        What else the solver remembers, such as a momentum.

    Examples
    --------
    >>> import numpy as np
    >>> from hushfit.torch.solvers import State
    >>> State(step=0, w=np.zeros(3)).memory
    {}
    """

    step: int
    w: Vector
    memory: Mapping[str, Vector] = field(default_factory=dict)


class NetworkSolver(Protocol):
    """An algorithm for networks that declares its releases, then makes them step by step.

    Examples
    --------
    >>> from hushfit.torch.solvers import NetworkAdam, NetworkSolver
    >>> solver: NetworkSolver = NetworkAdam(steps=300, rate=0.01)
    >>> solver.steps, solver.rate, solver.clip
    (300, 0.01, 1.0)
    """

    @property
    def steps(self) -> int:
        """Number of steps; fixed beforehand."""

    @property
    def rate(self) -> float:
        """Share of the units in an average batch."""

    @property
    def clip(self) -> float:
        """Clipping norm of a gradient; the first one, if it changes during the run."""

    @property
    def normalise(self) -> bool:
        """Whether gradients are scaled to the clipping norm instead of being clipped."""

    @property
    def average_last(self) -> float:
        """Share of the iterates, from the end, whose mean is the result."""

    def for_budget(self, budget: Budget, network: Network) -> "NetworkSolver":
        """The same with all settings chosen that depend on budget and network."""

    def plan(self, network: Network) -> Plan:
        """All releases it will make, independent of the answers."""

    def begin(self, network: Network, door: Door) -> State:
        """The state before the first step."""

    def advance(self, network: Network, door: Door, state: State) -> State:
        """Make the releases of one step."""


_SUM, _COUNT = "mean.sum", "mean.count"
Seen = Callable[[State], None]


def run_network(
    solver: NetworkSolver,
    network: Network,
    door: Door,
    start: State | None = None,
    seen: Seen | None = None,
) -> Vector:
    """Run a solver to its end and average its last iterates.

    Parameters
    ----------
    solver : NetworkSolver
    network : Network
    door : Door
    start : State, optional
        Where an interrupted run stopped.
    seen : callable, optional
        Called with the state after each step.

    Returns
    -------
    array
        The weights.
    """
    state = solver.begin(network, door) if start is None else start
    averaged = max(1, round(solver.average_last * solver.steps))
    while state.step < solver.steps:
        mean = {name: state.memory[name] for name in (_SUM, _COUNT) if name in state.memory}
        state = solver.advance(network, door, state)
        if state.step > solver.steps - averaged:
            mean = {
                _SUM: mean.get(_SUM, 0.0) + state.w,
                _COUNT: mean.get(_COUNT, np.zeros(1)) + 1,
            }
        state = replace(state, memory={**state.memory, **mean})
        if seen is not None:
            seen(state)
    if _SUM not in state.memory:
        return state.w
    return np.asarray(state.memory[_SUM] / state.memory[_COUNT])
