"""A fit of a network, after its arguments have been checked: quote, charge, run."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from torch import nn

from hushfit._typing import Vector
from hushfit.errors import InvalidArgument
from hushfit.estimators import progress_bar
from hushfit.privacy import Budget, Guarantee, Receipt
from hushfit.privacy.noise import AheadSampler
from hushfit.release import Contract, Quote, Randomness, Terms
from hushfit.torch._checkpoint import (
    CLAIMED_AT_ONCE,
    Checkpoint,
    fingerprint,
    made_of,
    only_user_of,
)
from hushfit.torch._network import Network
from hushfit.torch._rows import NetworkRows
from hushfit.torch.solvers import NetworkSolver, State, network_solver_from, run_network

LEFT_OUT = (
    "A record with a missing or infinite value, or on which the module or its loss fails, "
    "contributes nothing."
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
    """

    step: int
    steps: int
    weights: Vector
    network: Network

    def module(self) -> nn.Module:
        """The module with the current weights."""
        return self.network.module_at(self.weights)


Callback: TypeAlias = Callable[[Progress], None]


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
    """

    module: nn.Module
    weights: Vector
    steps: int
    guarantee: Guarantee
    receipt: Receipt | None


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
    quote = quote_of(chosen, network, terms.budget)
    terms = replace(terms, randomness=_ahead(terms.randomness))
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and any(part.sampling.alone for part in quote.plan.parts):
        raise InvalidArgument(
            f"{chosen} chooses its noise during the run, which a checkpoint cannot continue. "
            "Nothing was charged. Leave checkpoint=None, or use another solver."
        )
    with nullcontext() if path is None else only_user_of(path):
        contract, start = _contract(rows, network, chosen, quote, terms, random_state, path)
        with progress_bar(terms.label, chosen.steps, shown=verbose > 0) as watch:
            watcher = _Watcher(
                network, chosen, contract, seen, watch, path, _fit_of(network, quote)
            )
            weights = run_network(chosen, network, contract.curator, start, watcher.after)
    module = network.module_at(weights)
    return NetworkFit(module, weights, chosen.steps, contract.guarantee, contract.receipt)


def quote_of(solver: NetworkSolver, network: Network, budget: Budget) -> Quote:
    """Cost and noise of a fit, from public numbers alone; nothing is charged."""
    plan = solver.plan(network)
    drawn = sum(part.count * part.query.coordinates(network) for part in plan.parts)
    return plan.quote_for(network.n_units, network.relation, budget, drawn)


def _ahead(randomness: Randomness) -> Randomness:
    """The same; secure noise is drawn while the gradients that it is for are computed."""
    sampler = randomness.sampler
    return randomness._replace(sampler=AheadSampler(sampler)) if sampler.secure else randomness


def _fit_of(network: Network, quote: Quote) -> str:
    return fingerprint(
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
) -> tuple[Contract, State | None]:
    """A contract that is paid for now, or the rest of one that was paid for before."""
    relation, fit = network.relation, _fit_of(network, quote)
    if path is None or not path.exists():
        contract = Contract.signed(rows, quote, relation, terms, remember=False)
        if path is not None:
            state = solver.begin(network, contract.curator)
            _claimed(fit, contract, CLAIMED_AT_ONCE, state).save(path)
        return contract, None
    found = Checkpoint.load(path, fit)
    if random_state is not None:
        # The stream of a seed begins anew: another one, or noise would repeat.
        seed = int(fingerprint(seed=random_state, claimed=found.claimed)[:8], 16)
        terms = replace(terms, randomness=Randomness.of(seed))
    claimed = min(found.claimed, solver.steps)
    counts = {part.name: part.count for part in quote.plan.parts}
    made = made_of(counts, claimed, solver.steps)
    contract = Contract.resumed(rows, quote, relation, terms, found.payment, made)
    state = replace(found.state, step=found.state.step if _is_done(found, solver) else claimed)
    _claimed(fit, contract, claimed + CLAIMED_AT_ONCE, state).save(path)
    return contract, state


def _is_done(found: Checkpoint, solver: NetworkSolver) -> bool:
    return found.state.step >= solver.steps


def _claimed(fit: str, contract: Contract, claimed: int, state: State) -> Checkpoint:
    receipt = contract.receipt
    return Checkpoint(fit, None if receipt is None else receipt.number, claimed, state)


@dataclass(frozen=True, eq=False)
class _Watcher:
    """Stores, shows and reports the steps of a run."""

    network: Network
    solver: NetworkSolver
    contract: Contract
    callbacks: tuple[Callback, ...]
    bar: Callable[[int], None] | None
    path: Path | None
    fit: str

    def after(self, state: State) -> None:
        stored = self.path is None
        if self.path is not None and self._is_due(state.step):
            claimed = min(state.step + CLAIMED_AT_ONCE, self.solver.steps)
            _claimed(self.fit, self.contract, claimed, state).save(self.path)
            stored = True
        if stored:
            for callback in self.callbacks:
                callback(Progress(state.step, self.solver.steps, state.w, self.network))
        if self.bar is not None:
            self.bar(state.step)

    def _is_due(self, step: int) -> bool:
        return step % CLAIMED_AT_ONCE == 0 or step == self.solver.steps
