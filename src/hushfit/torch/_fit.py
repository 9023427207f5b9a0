"""A fit of a network, after its arguments have been checked: quote, charge, run."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, is_dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from torch import nn

from hushfit._typing import Vector
from hushfit.errors import HushfitError, InvalidArgument
from hushfit.estimators import progress_bar
from hushfit.privacy import Budget, Guarantee, Receipt, Relation
from hushfit.privacy.noise import AheadSampler
from hushfit.release import Contract, Quote, Randomness, Terms
from hushfit.torch._checkpoint import (
    CLAIMED_AT_ONCE,
    Checkpoint,
    checkpoint_path,
    fingerprint,
    made_of,
    only_user_of,
)
from hushfit.torch._network import Network
from hushfit.torch._rows import NetworkRows
from hushfit.torch.solvers import NetworkSolver, State, network_solver_from, run_network

LEFT_OUT = (
    "A record with a missing or infinite value or an unknown label, or on which the module or its "
    "loss fails, contributes nothing."
)
ROW_INDEPENDENCE = (
    "What is computed of an example is assumed not to depend on other examples, bit for bit, and "
    "sums of the same numbers to have the same bits each time; both were tried out on random "
    "records before the charge."
)


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback sees: released numbers only.

    Parameters
    ----------
    step, steps : int
        Steps done, and steps of the fit.
    weights : array
        Current weights.
    network : Network

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hushfit.torch import fit_private
    >>> x, y = torch.rand(500, 8), torch.randint(0, 2, (500,))
    >>> done = []
    >>> fit = fit_private(
    ...     nn.Linear(8, 2),
    ...     nn.CrossEntropyLoss(),
    ...     (x, y),
    ...     epsilon=1.0,
    ...     delta=1e-5,
    ...     callbacks=[lambda progress: done.append(progress.step)],
    ... )
    >>> done[-1] == fit.steps
    True
    """

    step: int
    steps: int
    weights: Vector
    network: Network

    def module(self) -> nn.Module:
        """The module with the current weights."""
        return self.network.module_at(self.weights)


Callback: TypeAlias = Callable[[Progress], None]


@dataclass(frozen=True)
class Training:
    """How a network was fitted. All of it was chosen before a record was read.

    Parameters
    ----------
    batch : float
        Records in an average batch; persons, if they are the unit of privacy.
    clip : float
        Clipping norm of a gradient; the first one, if it changed during the run.
    normalised : bool
        Whether gradients were scaled to the clipping norm instead of being clipped.
    """

    batch: float
    clip: float
    normalised: bool

    @classmethod
    def by(cls, solver: NetworkSolver, network: Network) -> "Training":
        """The training of a network by a solver."""
        return cls(solver.rate * network.n_units, float(solver.clip), solver.normalise)


@dataclass(frozen=True, eq=False)
class NetworkFit:
    """Result of a fit of a network; all of it is public.

    Parameters
    ----------
    module : nn.Module
        With the fitted weights.
    weights : array
    steps : int
    guarantee : Guarantee
    receipt : Receipt or None
        The payment; None without a ledger.
    solver : str or solver
        As it was given.
    training : Training or None
        None of a file of an older version.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from hushfit.torch import fit_private
    >>> rows = torch.rand(500, 3), torch.rand(500, 1)
    >>> fit = fit_private(nn.Linear(3, 1), nn.MSELoss(), rows, epsilon=1.0, delta=1e-5)
    >>> fit.weights.size, str(fit.guarantee.relation)
    (4, 'replace-one')
    """

    module: nn.Module
    weights: Vector
    steps: int
    guarantee: Guarantee
    receipt: Receipt | None
    solver: Any
    training: Training | None

    # The names that estimators have for the same.

    @property
    def module_(self) -> nn.Module:
        """The fitted module."""
        return self.module

    @property
    def n_iter_(self) -> int:
        """Number of steps."""
        return self.steps

    @property
    def privacy_(self) -> Guarantee:
        """The guarantee."""
        return self.guarantee

    @property
    def training_(self) -> Training | None:
        """How it was fitted."""
        return self.training


def checked_callbacks(callbacks: Any) -> tuple[Callback, ...]:
    """Refuse callbacks that cannot be called, before anything is paid."""
    found = tuple(callbacks) if isinstance(callbacks, Sequence) else ()
    if callbacks is not None and (not found and callbacks != () and callbacks != []):
        raise InvalidArgument(f"callbacks={callbacks!r} is not a list of functions. Give one.")
    for callback in found:
        if not callable(callback):
            raise InvalidArgument(f"The callback {callback!r} cannot be called. Give a function.")
    return found


def fit_network(
    rows: NetworkRows,
    network: Network,
    solver: Any,
    terms: Terms,
    random_state: Any = None,
    callbacks: Any = None,
    checkpoint: str | PathLike[str] | None = None,
    verbose: int = 0,
) -> NetworkFit:
    """Fit one network. Everything that can be refused is refused before the ledger is charged."""
    seen = checked_callbacks(callbacks)
    chosen = network_solver_from(solver, terms.budget, network)
    training = Training.by(chosen, network)
    quote = quote_of(chosen, network, terms.budget)
    terms = replace(terms, randomness=_ahead(terms.randomness))
    path = checkpoint_path(checkpoint)
    if path is not None and any(part.sampling.alone for part in quote.plan.parts):
        raise InvalidArgument(
            f"{chosen} chooses its noise during the run, which a checkpoint cannot continue. "
            "Nothing was charged. Leave checkpoint=None, or use another solver."
        )
    with nullcontext() if path is None else only_user_of(path):
        contract, stored = _contract(rows, network, chosen, quote, terms, random_state, path)
        start = None if stored is None else stored.state
        with progress_bar(terms.label, chosen.steps, shown=verbose > 0) as watch:
            watcher = _Watcher(network, chosen, seen, watch, path, stored)
            weights = run_network(chosen, network, contract.curator, start, watcher.after)
    module = network.module_at(weights)
    paid = contract.guarantee, contract.receipt
    return NetworkFit(module, weights, chosen.steps, *paid, solver, training)


def quote_of(solver: NetworkSolver, network: Network, budget: Budget) -> Quote:
    """Cost and noise of a fit, from public numbers alone; nothing is charged."""
    plan = solver.plan(network)
    drawn = sum(part.count * part.query.coordinates(network) for part in plan.parts)
    return plan.quote_for(network.n_units, network.relation, budget, drawn)


def _ahead(randomness: Randomness) -> Randomness:
    """The same; secure noise is drawn while the gradients that it is for are computed."""
    sampler = randomness.sampler
    return randomness._replace(sampler=AheadSampler(sampler)) if sampler.secure else randomness


def _fit_of(network: Network, solver: NetworkSolver, quote: Quote) -> str:
    return fingerprint(
        solver=asdict(solver) if is_dataclass(solver) else type(solver).__qualname__,
        start=network.start,
        n_units=network.n_units,
        unit=network.privacy_unit,
        relation=network.relation,
        plan=quote.plan,
        multipliers=quote.multipliers,
    )


def _contract(
    rows: NetworkRows,
    network: Network,
    solver: NetworkSolver,
    quote: Quote,
    terms: Terms,
    random_state: Any,
    path: Path | None,
) -> tuple[Contract, Checkpoint | None]:
    """A contract that is paid for now, or the rest of one that was paid for before; and where it
    stands, which is on disk.
    """
    if path is None:
        return Contract.signed(rows, quote, network.relation, terms, remember=False), None
    fit = _fit_of(network, solver, quote)
    if path.exists():
        found = Checkpoint.load(path, fit)
    else:
        found = Checkpoint.before_payment(fit, network.start)
    terms = replace(terms, label=found.paid_as(terms.label))
    if found.claimed == 0:
        contract = _signed(rows, quote, network.relation, terms, found, path)
        state = solver.begin(network, contract.curator)
    else:
        contract, state = _resumed(
            rows, quote, network.relation, terms, random_state, solver, found
        )
    payment = None if contract.receipt is None else contract.receipt.number
    stored = replace(found, payment=payment).claiming(state, solver.steps)
    stored.save(path)
    return contract, stored


def _signed(
    rows: NetworkRows,
    quote: Quote,
    relation: Relation,
    terms: Terms,
    first: Checkpoint,
    path: Path,
) -> Contract:
    """Pay, unless a process that was killed has paid for this run; nothing has been drawn yet."""
    new = not path.exists()
    if new:  # before the payment: a process that is killed after it finds it again
        first.save(path)
    try:
        return Contract.signed_once(rows, quote, relation, terms)
    except HushfitError:  # refused: nothing was paid
        if new:
            path.unlink()
        raise


def _resumed(
    rows: NetworkRows,
    quote: Quote,
    relation: Relation,
    terms: Terms,
    random_state: Any,
    solver: NetworkSolver,
    found: Checkpoint,
) -> tuple[Contract, State]:
    """The rest of a run, after all steps that may have been drawn."""
    if random_state is not None:
        # The stream of a seed begins anew: another one, or noise would repeat.
        seed = int(fingerprint(seed=random_state, claimed=found.claimed)[:8], 16)
        terms = replace(terms, randomness=Randomness.of(seed))
    counts = {part.name: part.count for part in quote.plan.parts}
    made = made_of(counts, found.claimed, solver.steps)
    contract = Contract.resumed(rows, quote, relation, terms, found.payment, made)
    done = found.state.step >= solver.steps
    return contract, found.state if done else replace(found.state, step=found.claimed)


@dataclass(frozen=True, eq=False)
class _Watcher:
    """Stores, shows and reports the steps of a run."""

    network: Network
    solver: NetworkSolver
    callbacks: tuple[Callback, ...]
    bar: Callable[[int], None] | None
    path: Path | None
    stored: Checkpoint | None

    def after(self, state: State) -> None:
        if self.path is None or self.stored is None:
            self._report(state)
        elif state.step % CLAIMED_AT_ONCE == 0 or state.step == self.solver.steps:
            self.stored.claiming(state, self.solver.steps).save(self.path)
            self._report(state)
        if self.bar is not None:
            self.bar(state.step)

    def _report(self, state: State) -> None:
        for callback in self.callbacks:
            callback(Progress(state.step, self.solver.steps, state.w, self.network))
