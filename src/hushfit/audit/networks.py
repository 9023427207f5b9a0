"""Audits of networks: checks and attacks. Imported by name, where torch is installed.

attack_network    Attack a solver of networks with many runs
network_checks    Checks of networks that need no attack
one_run_network   Attack a network with one fit and many canaries
"""

import contextlib
import math
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hushfit._typing import AnyArray, BoolVector, IntVector, Vector
from hushfit.audit._curators import seeded_curator
from hushfit.audit._network_names import NETWORK_ATTACKS, NETWORK_CHECKS
from hushfit.audit.attacks import WHITE, Audit, OneRun, audit, claim_of, one_run
from hushfit.audit.checks import Finding
from hushfit.data import Persons
from hushfit.errors import InvalidArgument
from hushfit.privacy import (
    Budget,
    GaussianCost,
    PureCost,
    Relation,
    compose,
    epsilon_of,
    replaces_one,
)
from hushfit.privacy.noise import AheadSampler
from hushfit.release import GatedBatch, Quote
from hushfit.torch import (
    ArrayRecords,
    Network,
    NetworkGradient,
    NetworkLossDrop,
    NetworkRows,
    fit_private,
    multilayer_perceptron,
    quote_of,
)
from hushfit.torch.examples import (
    CLASSES,
    COLUMNS,
    UNFIT,
    CountedRecords,
    Killed,
    accepted,
    cross_entropy,
    linear_network,
    perceptron,
    table_network,
)
from hushfit.torch.solvers import (
    NetworkAdam,
    NetworkBLS,
    NetworkSGD,
    NetworkSolver,
    run_network,
)
from hushfit.unit import ROW, PrivacyUnit

_UNITS = 4
_CANARY = 1e3  # far above every clipping norm
# The attack with one run: budget and shares were chosen in simulations of Gaussian noise, with
# other seeds.
ONE_RUN_BUDGET = Budget(4.0, 1e-7)
_FEW_STEPS = 3


# Attacks


@dataclass(frozen=True)
class NetworkTarget:
    """A solver of networks to attack.

    Parameters
    ----------
    solver : NetworkSolver
    rate : float
        Share of the records in a batch.
    unit : PrivacyUnit, default=ROW
    """

    solver: NetworkSolver
    rate: float
    unit: PrivacyUnit = ROW


_TINY = 1e-3  # learning rate: what is attacked are the gradients
_TARGETS = {
    "network dp-sgd": NetworkTarget(NetworkSGD(3, learning_rate=_TINY, rate=1.0), 1.0),
    "network dp-sgd, sampled": NetworkTarget(NetworkSGD(3, learning_rate=_TINY, rate=0.5), 0.5),
    "network dp-sgd, person": NetworkTarget(
        NetworkSGD(3, learning_rate=_TINY, rate=1.0), 1.0, PrivacyUnit.person()
    ),
    "network dp-adam": NetworkTarget(NetworkAdam(3, learning_rate=_TINY, rate=1.0), 1.0),
    "network bls, sampled": NetworkTarget(NetworkBLS(expected_steps=2, rate=0.5), 0.5),
}
assert tuple(_TARGETS) == NETWORK_ATTACKS


def attack_network(
    name: str,
    relation: Relation,
    budget: Budget,
    trials: int = 4000,
    *,
    seed: int = 0,
    alarm: float | None = None,
) -> Audit:
    """Attack a solver of networks by the likelihood ratio of its noisy gradients.

    The canary is a record, or all records of a person, whose clipped gradient has full length in a
    direction of its own; it is there or not, or turned round.

    Parameters
    ----------
    name : str
        One of `NETWORK_ATTACKS`.
    relation : Relation
    budget : Budget
    trials : int, default=4000
    seed : int, default=0
    alarm : float, optional
        False-alarm rate, where many audits run together.

    Returns
    -------
    Audit
    """
    target = _TARGETS[name]
    network = linear_network(2, _UNITS, relation, target.unit)
    quote = quote_of(target.solver, network, budget)
    [part] = quote.plan.parts
    sources = [_with_canary(network, world, relation) for world in (0, 1)]
    score = _scorer(quote.multipliers[part.name], target.rate, relation)

    def mechanism(world: int, seed: int) -> float:
        door = seeded_curator(sources[world], quote, relation, seed)
        run_network(target.solver, network, door)
        return sum(score(float(one.answer[0])) for one in door.transcript)

    claim = claim_of(quote, budget, relation, _UNITS)
    words = "a record whose clipped gradient has full length, " + (
        "turned round" if replaces_one(relation) else "there or not"
    )
    return audit(
        mechanism, claim, trials, name=name, seed=seed, view=WHITE, canary=words, alarm=alarm
    )


def _with_canary(network: Network, world: int, relation: Relation) -> NetworkRows:
    """Records of which the first unit is the canary, and the others contribute nothing."""
    persons = network.privacy_unit.is_person
    codes = np.append(np.arange(_UNITS), [0, 0]) if persons else np.arange(_UNITS)
    X = np.zeros((len(codes), 2), dtype=np.float32)
    X[codes == 0, 0] = (_CANARY, -_CANARY if replaces_one(relation) else 0.0)[world]
    owners = Persons(codes, _UNITS, network.privacy_unit) if persons else None
    y = np.ones(len(codes), dtype=np.float32)
    return NetworkRows(ArrayRecords(X, y), network.record, owners)


def _scorer(multiplier: float, rate: float, relation: Relation) -> Callable[[float], float]:
    """Log-likelihood ratio of one noisy gradient, along the direction of the canary."""
    one_way = replaces_one(relation)
    noise = multiplier * (2.0 if one_way else 1.0)  # in units of the clipping norm

    def present(x: float, side: float) -> float:
        return math.log1p(rate * math.expm1((side * x - 0.5) / noise**2))

    def score(x: float) -> float:
        return present(x, 1.0) - (present(x, -1.0) if one_way else 0.0)

    return score


def one_run_network(
    relation: Relation,
    budget: Budget = ONE_RUN_BUDGET,
    canaries: int = 400_000,
    *,
    guessed: float = 0.005,
    noise: float = 1.0,
    seed: int = 0,
) -> OneRun:
    """Attack one whole fit: many canaries, each in it or not by a bit of its own (Steinke, Nasr and
    Jagielski, 2023).

    The network is a table with one weight for each canary, so their clipped gradients have full
    length in directions of their own, in every step. The attacker sees all noisy gradients.

    Parameters
    ----------
    relation : Relation
        A canary that is not in the fit is turned round, or contributes nothing.
    budget : Budget
        Of the fit.
    canaries : int, default=400_000
    guessed : float, default=0.005
        Share of the canaries that are guessed.
    noise : float, default=1.0
        Share of the noise that is drawn: less than 1 plants a bug.
    seed : int, default=0

    Returns
    -------
    OneRun
    """
    network = table_network(canaries, relation)
    solver = NetworkSGD(_FEW_STEPS, 1.0, learning_rate=_TINY)
    quote = quote_of(solver, network, budget)
    drawn = {name: noise * multiplier for name, multiplier in quote.multipliers.items()}
    absent = -_CANARY if replaces_one(relation) else 0.0

    def mechanism(included: BoolVector, seed: int) -> Vector:
        y = np.where(included, _CANARY, absent).astype(np.float32)
        records = ArrayRecords(np.arange(canaries)[:, None], y)
        rows = NetworkRows(records, network.record)
        door = seeded_curator(rows, Quote.at(quote.plan, drawn, canaries), relation, seed)
        run_network(solver, network, door)
        return np.asarray(np.sum([one.answer for one in door.transcript], axis=0))

    claim = claim_of(quote, budget, relation, canaries)
    return one_run(mechanism, claim, canaries, seed=seed, shares=(guessed,))


# Checks without an attack


def network_checks() -> dict[str, Callable[[int], list[Finding]]]:
    """Checks of networks by their names; each maps a seed to findings."""
    checks = (
        _check_modules,
        _check_gradient,
        _check_persons,
        _check_decreases,
        _check_order,
        _check_price,
        _check_noise,
        _check_ahead,
        _check_checkpoint,
    )
    return dict(zip(NETWORK_CHECKS, checks, strict=True))


def _check_modules(seed: int) -> list[Finding]:
    """Modules that must be refused are, before anything is paid."""
    found = []
    for wrong, make in UNFIT.items():
        let_through = False
        with contextlib.suppress(InvalidArgument):
            accepted(make)
            let_through = True
        evidence = "was accepted" if let_through else "is refused"
        found.append(Finding(f"module with {wrong}", not let_through, evidence))
    return found


def _random_records(rng: np.random.Generator, rows: int, size: float) -> tuple[AnyArray, AnyArray]:
    X = (size * rng.normal(size=(rows, COLUMNS))).astype(np.float32)
    return X, rng.integers(0, CLASSES, rows)


def _check_gradient(seed: int) -> list[Finding]:
    """Hill climbing over records, for batches of several sizes, with both kinds of sums."""
    return [
        _climbed(precise, normalise, seed)
        for precise in (False, True)
        for normalise in (False, True)
    ]


def _climbed(precise: bool, normalise: bool, seed: int, climbs: int = 40) -> Finding:
    rng = np.random.default_rng(seed)
    network = perceptron(80, Relation.ADD_REMOVE, precise_sums=precise)
    query = NetworkGradient(network, network.start, 1e-2, normalise)
    X, y = _random_records(rng, 80, 20.0)
    worst = 0.0
    for size in (1, 5, 32, 65):
        record = X[0]
        for _ in range(climbs // 4):
            step = 10.0 ** rng.uniform(-3, 3) * rng.normal(size=COLUMNS)
            trial, label = X[:size].copy(), y[:size].copy()
            trial[0], label[0] = (record + step).astype(np.float32), rng.integers(CLASSES)
            rows = NetworkRows(ArrayRecords(trial, label), network.record)
            moved = query(rows, np.arange(size)) - query(rows, np.arange(1, size))
            length = float(np.linalg.norm(moved)) / query.radius()
            if length > worst:
                worst, record = length, trial[0]
    kind = f"{'precise' if precise else 'rounded'}, {'normalised' if normalise else 'clipped'}"
    # A bound that no record comes near would be wrong the other way.
    passed = 0.95 < worst <= 1.0
    return Finding(f"network gradient, {kind}", passed, f"moved {worst:.6f} of its bound")


def _check_persons(seed: int) -> list[Finding]:
    """All records of a person together stay within the bound of one."""
    rng, unit = np.random.default_rng(seed), PrivacyUnit.person(rows_per_person=4)
    network = perceptron(20, Relation.ADD_REMOVE, unit)
    query = NetworkGradient(network, network.start, 1e-2)
    X, y = _random_records(rng, 60, 20.0)
    X[::20], y[::20] = X[0], y[0]  # all records of the first person are alike
    rows = NetworkRows(ArrayRecords(X, y), network.record, Persons(np.arange(60) % 20, 20, unit))
    moved = np.linalg.norm(query(rows, np.arange(20)) - query(rows, np.arange(1, 20)))
    share = float(moved) / query.radius()
    return [Finding("network gradient of a person", 0.95 < share <= 1.0, f"moved {share:.6f}")]


def _check_decreases(seed: int) -> list[Finding]:
    """A record moves each decrease of a line search by its clip at most."""
    rng = np.random.default_rng(seed)
    network = perceptron(40, Relation.ADD_REMOVE)
    X, y = _random_records(rng, 40, 50.0)
    direction = rng.normal(size=network.size)
    query = NetworkLossDrop(network, network.start, direction, np.array([1.0, 0.1]), 0.5)
    rows = NetworkRows(ArrayRecords(X, y), network.record)
    whole = query(rows, np.arange(40))
    moved = [np.abs(whole - query(rows, np.delete(np.arange(40), k))) for k in range(20)]
    share = float((np.max(moved, axis=0) / query.radii).max())
    return [Finding("decreases of a network's loss", 0.9 < share <= 1.0, f"moved {share:.6f}")]


def _check_order(seed: int) -> list[Finding]:
    """The order of the records shows in no bit of a sum: groups follow from contents."""
    rng = np.random.default_rng(seed)
    network = perceptron(700, Relation.ADD_REMOVE)
    X, y = _random_records(rng, 700, 3.0)
    order = rng.permutation(700)
    query = NetworkGradient(network, network.start, 1.0)
    one, other = (
        query(NetworkRows(ArrayRecords(X[rows], y[rows]), network.record), None)
        for rows in (np.arange(700), order)
    )
    apart = float(np.abs(one - other).max())
    return [Finding("order of network records", apart == 0, f"sums differ by {apart:g}")]


def _check_price(seed: int) -> list[Finding]:
    """Gradient and gate on one batch cost at least what both together can reveal."""
    rate, delta = 0.1, 1e-6
    solver = NetworkBLS(rate=rate, gate=1.0, candidates=4)
    [part] = solver.plan(perceptron(1000, Relation.ADD_REMOVE)).parts
    assert isinstance(part.sampling, GatedBatch)
    stated = epsilon_of(part.sampling.cost(1.0, 2, 1000), delta, Relation.ADD_REMOVE)
    # Randomised response with the gate's epsilon, and the gradient, of one sampled record, twice.
    inner = compose([GaussianCost(1.0), PureCost(1.0)])
    revealed = math.log1p(rate * math.expm1(epsilon_of(inner, delta / rate, Relation.ADD_REMOVE)))
    evidence = f"stated {stated:.3f}, revealed {revealed:.3f}"
    return [Finding("price of a network's line search", stated >= revealed, evidence)]


def _answers(multiplier: float, seed: int) -> Vector:
    """Three noisy gradients of a perceptron, one below the other."""
    network = perceptron(40, Relation.ADD_REMOVE)
    X, y = _random_records(np.random.default_rng(seed), 40, 1.0)
    solver = NetworkSGD(3, 1.0, 0.1, learning_rate=1e-12)
    plan = solver.plan(network)
    quote = Quote.at(plan, {"gradient": multiplier}, network.n_units)
    rows = NetworkRows(ArrayRecords(X, y), network.record)
    door = seeded_curator(rows, quote, Relation.ADD_REMOVE, 7)
    run_network(solver, network, door)
    return np.array([one.answer for one in door.transcript])


def _check_noise(seed: int) -> list[Finding]:
    """No two coordinates or steps have the same noise, and its scale is right in every layer."""
    noise = np.round(_answers(1.0, seed) - _answers(0.0, seed), 9)
    repeated = noise.size - len(np.unique(noise))
    layers = np.split(noise, [COLUMNS * 16, COLUMNS * 16 + 16, COLUMNS * 17 + 16], axis=1)
    scales = [float(np.sqrt(np.mean(layer**2))) / 0.1 for layer in layers]
    return [
        Finding("noise of a network repeats", repeated == 0, f"{repeated} values twice"),
        Finding(
            "scale of noise in every layer",
            # Six standard errors of the smallest layer, with 48 values.
            all(abs(scale - 1) < 6 / math.sqrt(2 * 48) for scale in scales),
            f"{min(scales):.2f} to {max(scales):.2f} of what is stated",
        ),
    ]


class _Numbers:
    """A sampler whose draws are numbered."""

    secure = True

    def __init__(self) -> None:
        self.count = 0

    def gaussian(self, log2_variance: int, size: int) -> IntVector:
        self.count += 1
        return np.full(size, self.count)

    def laplace(self, log2_scale: int, size: int) -> IntVector:
        return self.gaussian(log2_scale, size)


def _check_ahead(seed: int) -> list[Finding]:
    """Every draw is handed out once."""
    sampler = AheadSampler(_Numbers())
    drawn = [int(sampler.gaussian(62, 1 << 14)[0]) for _ in range(4)]
    return [Finding("noise drawn ahead", len(set(drawn)) == 4, f"draws {drawn}")]


def _check_checkpoint(seed: int) -> list[Finding]:
    """A fit that is killed and continued draws no step twice: it asks no more than it planned."""
    steps, killed_at = 30, 15
    dataset = CountedRecords(40, killed_at)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            with contextlib.suppress(Killed):
                fit_private(
                    multilayer_perceptron(COLUMNS, (3,), CLASSES),
                    cross_entropy,
                    dataset,
                    delta=1e-3,
                    solver=NetworkSGD(steps, 1.0),
                    checkpoint=Path(folder) / "checkpoint",
                    random_state=0,
                )
    evidence = f"{dataset.passes} passes over the records for {steps} planned answers"
    return [Finding("checkpoint of a network", killed_at < dataset.passes <= steps, evidence)]
