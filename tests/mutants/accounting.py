"""Bugs in accounting: costs below the true privacy loss, batches other than the accounted ones,
ledgers that can be circumvented.
"""

import math
from dataclasses import replace

import numpy as np

from hushfit.data import SeededCoins
from hushfit.estimators import _classifiers as classifiers
from hushfit.privacy import (
    Budget,
    GatedCost,
    GaussianCost,
    PoissonGaussianCost,
    PureCost,
    Relation,
    SeededSampler,
    compose,
)
from hushfit.privacy.accounting import _filter as filters
from hushfit.privacy.ledger import Tally, _reserve, _tally
from hushfit.privacy.ledger import _ledger as ledgers
from hushfit.privacy.ledger._tally import ComposedTotal
from hushfit.release import Plan, Planned, SecondMoment
from hushfit.release import curator as _curator
from hushfit.release import plan as _plan
from hushfit.release.curator import Curator
from hushfit.release.mechanisms import (
    _batches,
    _difference,
    _gate,
    _gradient_norm,
    _permuted,
    _vocabulary,
)
from hushfit.release.mechanisms import perturbed_minimiser as _minimiser

from ._mutant import Mutant, swapped


def record_for_sensitivity():
    """The accountant gets noise relative to a record's bound instead of the sensitivity."""
    original = PoissonGaussianCost.directions

    def directions(self, relation):
        if relation is Relation.ADD_REMOVE:
            return original(self, relation)
        return original(
            replace(self, noise_multiplier=2 * self.noise_multiplier), Relation.ADD_REMOVE
        )

    return swapped(PoissonGaussianCost, directions=directions)


def epsilon_per_step():
    return swapped(
        _batches.FullBatch,
        cost=lambda self, noise_multiplier, count, n_units: GaussianCost(noise_multiplier),
    )


def rate_per_run():
    def cost(self, noise_multiplier, count, n_units):
        return PoissonGaussianCost(noise_multiplier, self.rate / count, count)

    return swapped(_batches.PoissonBatch, cost=cost)


def larger_batches_than_priced():
    original = _batches.poisson_units
    return swapped(
        _batches,
        poisson_units=lambda n_units, rate, coins: original(n_units, min(1.0, 2 * rate), coins),
    )


def with_replacement():
    def fixed_size_units(n_units, size, coins):
        return np.sort((coins.words(size) % np.uint64(n_units)).astype(np.int64))

    return swapped(_batches, fixed_size_units=fixed_size_units)


def batch_drawn_once():
    original = _batches.poisson_units
    cache = {}

    def poisson_units(n_units, rate, coins):
        if (n_units, rate) not in cache:
            cache[n_units, rate] = original(n_units, rate, coins)
        return cache[n_units, rate]

    return swapped(_batches, poisson_units=poisson_units)


def public_order():
    original = _permuted.uniform_order
    return swapped(
        _permuted, uniform_order=lambda n_units, coins: original(n_units, SeededCoins(0))
    )


def separate_amplification():
    def cost(self, noise_multiplier, count, n_units):
        gate = GatedCost(
            math.inf,
            self.rate,
            self.noise,
            *self.gate_multipliers(noise_multiplier),
            self.queries,
            count=count,
        )
        return compose([PoissonGaussianCost(noise_multiplier, self.rate, count), gate])

    return swapped(_gate.GatedBatch, cost=cost)


def anchored_as_sampled():
    def cost(self, noise_multiplier, count, n_units):
        return PoissonGaussianCost(noise_multiplier, self.rate, count)

    return swapped(_difference.AnchoredBatch, cost=cost)


def fixed_size_as_poisson():
    def cost(self, noise_multiplier, count, n_units):
        return PoissonGaussianCost(noise_multiplier, self._rate(n_units), count)

    return swapped(_batches.FixedSizeBatch, cost=cost)


def name_for_the_other_relation():
    """As if compared with ``is``: a name is not the member, and is taken for the cheaper
    relation.
    """
    return swapped(
        Relation,
        parse=classmethod(
            lambda cls, value: value if isinstance(value, Relation) else cls.ADD_REMOVE
        ),
    )


def average_batch():
    def cost(self, noise_multiplier, count, n_units):
        mean = sum(share * ratio for share, ratio in zip(self.shares, self.ratios, strict=True))
        return GaussianCost(noise_multiplier / mean, count)

    return swapped(_permuted.SecretOrder, cost=cost)


def first_part_only():
    def cost(self, multipliers, n_units):
        part = self.parts[0]
        return part.sampling.cost(multipliers[part.name], part.count, n_units)

    return swapped(_plan.Plan, cost=cost)


def curvature_for_nothing():
    def cost(self, noise_multiplier, count, n_units):
        return compose(
            [
                GaussianCost(noise_multiplier, count),
                GaussianCost(self.output_multiplier(noise_multiplier), count),
            ]
        )

    return swapped(_minimiser.GaussianInside, cost=cost)


def pure_curvature_for_nothing():
    def cost(self, noise_multiplier, count, n_units):
        return PureCost(1 / noise_multiplier + 1 / self.output_multiplier(noise_multiplier), count)

    return swapped(_minimiser.LaplaceInside, cost=cost)


def rounds_promised_one_by_one():
    original = _minimiser.LaplaceInside.cost
    return swapped(
        _minimiser.LaplaceInside,
        cost=lambda self, noise_multiplier, count, n_units: original(
            self, noise_multiplier, 1, n_units
        ),
    )


def one_segment_paid():
    def cost(self, noise_multiplier, count, n_units):
        return PureCost(2 / noise_multiplier)

    return swapped(_gradient_norm.RestartedGate, cost=cost)


def query_noise_for_free():
    """The gate's cost without that of the scores."""

    def cost(self, noise_multiplier, count, n_units):
        return PureCost(1 / noise_multiplier, count)

    return swapped(_gate.FreshGate, cost=cost)


def choice_for_half():
    return swapped(
        _gate.NoisyChoice,
        cost=lambda self, noise_multiplier, count, n_units: PureCost(1 / noise_multiplier, count),
    )


def lost_mass_ignored():
    return swapped(
        _vocabulary.Thresholded,
        cost=lambda self, noise_multiplier, count, n_units: GaussianCost(noise_multiplier, count),
    )


def filter_forgets():
    def charge(self, cost):
        if not self.affords(cost):
            raise ledgers.BudgetExceeded("over")
        self._squares[:] = [filters._mu_square(cost)]

    return swapped(filters.GaussianFilter, charge=charge)


def filter_by_the_release_alone():
    def affords(self, cost):
        curve, _ = filters._curve_and_failure_probability(cost, self._orders, self.relation)
        return bool(np.any(curve <= self.allowances)) and self._spent.max() < 1e3

    return swapped(filters.RdpFilter, affords=affords)


def by_a_false_conversion():
    """rho = epsilon^2 / (4 log(1/delta)), which is not valid for large epsilon."""
    original = _plan.calibrate

    def calibrate(cost_at, budget, relation):
        strength = math.sqrt(budget.epsilon**2 / (2 * math.log(1 / budget.delta)))
        return (
            strength
            if isinstance(cost_at(1.0), GaussianCost)
            else original(cost_at, budget, relation)
        )

    return swapped(_plan, calibrate=calibrate)


def another_delta():
    original = _plan.usable

    def usable(budget):
        spendable, reserve = original(budget)
        return Budget(spendable.epsilon, min(1e-3, 100 * spendable.delta)), reserve

    return swapped(_plan, usable=usable)


def the_reserve_of_delta_is_forgotten():
    return swapped(_reserve, min=lambda epsilon, most: epsilon)


# Payments


def paid_afterwards():
    original = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        fitted = original(source, problem, solver, replace(terms, ledger=None))
        if terms.ledger is not None:
            terms.ledger.charge(fitted.guarantee.cost, terms.label, problem.relation)
        return fitted

    return swapped(classifiers, private_fit=private_fit)


def second_release_forgotten():
    """A noisy second moment for standard errors, released after the fit has been paid."""
    original = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        fitted = original(source, problem, solver, terms)
        plan = Plan((Planned("covariance", SecondMoment, 1),))
        curator = Curator(
            source, plan, {"covariance": 5.0}, problem.relation, SeededSampler(0), SeededCoins(1)
        )
        curator.release("covariance", SecondMoment(problem))
        return fitted

    return swapped(classifiers, private_fit=private_fit)


def not_paid_at_all():
    original = classifiers.private_fit
    return swapped(
        classifiers,
        private_fit=lambda source, problem, solver, terms, verbose=0: original(
            source, problem, solver, replace(terms, ledger=None)
        ),
    )


def half_of_it_paid():
    original = ledgers.Ledger.charge

    def charge(self, cost, *terms, **more):
        cheaper = (
            replace(cost, noise_multiplier=2 * cost.noise_multiplier)
            if isinstance(cost, GaussianCost)
            else cost
        )
        return original(self, cheaper, *terms, **more)

    return swapped(ledgers.Ledger, charge=charge)


def forked_account():
    def __deepcopy__(self, memo):
        account = ledgers.MemoryAccount(self.budget, self.relation, self.name)
        for receipt in self.entries:
            account._receipts.add(receipt)
        return ledgers.Ledger.over(account)

    return swapped(ledgers.Ledger, __deepcopy__=__deepcopy__)


def every_charge_by_itself():
    def append(self, decide):
        receipt = decide(Tally.of(self))
        self._receipts.add(receipt)
        return receipt

    return swapped(ledgers.MemoryAccount, append=append)


def no_filter():
    def empty_total(terms):
        return ComposedTotal(terms.budget.delta, terms.relation)

    return swapped(_tally, empty_total=empty_total)


def one_release_too_many():
    original = _curator.Curator._take

    def _take(self, name, query):
        if self._left.get(name) == 0:
            self._left[name] = 1
            original(self, name, query)
            self._left[name] = -1
        else:
            original(self, name, query)

    return swapped(_curator.Curator, _take=_take)


def any_query_of_that_name():
    def _take(self, name, query):
        if self._left[name] < 1:
            raise _curator.UndeclaredRelease("none left")
        self._left[name] -= 1

    return swapped(_curator.Curator, _take=_take)


_BATCHES = "hushfit.release.mechanisms._batches"

ACCOUNTING = (
    Mutant(
        "wrong convention",
        "hushfit.privacy.costs._gaussian_cost",
        "A replace-one cost is computed from the add-remove pair of distributions, in units of "
        "one record's bound.",
        record_for_sensitivity,
        ("price of dp-sgd (replace-one)", "price of small Poisson batches"),
        "dp_accounting 0.6 means different noise by one event in two accountants",
    ),
    Mutant(
        "epsilon per step",
        _BATCHES,
        "The cost of one step is charged for all steps.",
        epsilon_per_step,
        ("price of proximal-gd (replace-one)", "attack on ss-admm (add-remove)"),
    ),
    Mutant(
        "rate per run",
        _BATCHES,
        "The sampling rate is divided by the number of steps before the cost is computed.",
        rate_per_run,
        ("price of dp-sgd (add-remove)", "price of dp-sadmm (replace-one)"),
    ),
    Mutant(
        "larger batches than priced",
        _BATCHES,
        "Rows are sampled at twice the rate that is paid for.",
        larger_batches_than_priced,
        ("rows read by Poisson batches",),
    ),
    Mutant(
        "sampling with replacement",
        _BATCHES,
        "A batch of fixed size may hold a row several times.",
        with_replacement,
        ("rows read by batches of fixed size",),
        "ssADMM; numpy samples so by default",
    ),
    Mutant(
        "batch drawn once",
        _BATCHES,
        "One secret batch is used for all steps, with the cost of independent batches.",
        batch_drawn_once,
        ("rows read by Poisson batches",),
    ),
    Mutant(
        "public order counted as secret",
        "hushfit.release.mechanisms._permuted",
        "The order of the rows comes from a fixed seed, and the cost is for a secret order.",
        public_order,
        ("rows read by a secret order",),
        "code of thesis ch. 3",
    ),
    Mutant(
        "separate amplification",
        "hushfit.release.mechanisms._gate",
        "Gradient and gate use one batch, and amplification by sampling is applied to each "
        "separately.",
        separate_amplification,
        ("price of gates with their gradient",),
        "thesis ch. 5, Algorithm 5.2",
    ),
    Mutant(
        "full gradient as sampled",
        "hushfit.release.mechanisms._difference",
        "A full gradient plus a batch has the cost of a batch, though no record is ever left out.",
        anchored_as_sampled,
        ("price of anchored batches", "price of dp-vradmm, single noise (add-remove)"),
        "private SVRG in general",
    ),
    Mutant(
        "fixed size priced as Poisson",
        _BATCHES,
        "Batches of fixed size have the cost of Poisson batches of the same rate.",
        fixed_size_as_poisson,
        ("price of proximal-gd, fixed size (replace-one)",),
    ),
    Mutant(
        "name for the other relation",
        "hushfit.privacy._relation",
        "A relation given by its name is taken for add-remove, at half the noise of replace-one.",
        name_for_the_other_relation,
        ("relations by name",),
        "StrEnum members compared with `is`",
    ),
    Mutant(
        "average batch",
        "hushfit.release.mechanisms._permuted",
        "The cost of a run in secret order uses the average effect of a record instead of the "
        "worst case.",
        average_batch,
        ("price of a secret order",),
    ),
    Mutant(
        "first part of the plan",
        "hushfit.release.plan",
        "Of a plan with several kinds of release only the first is accounted.",
        first_part_only,
        ("price of recalibrated (replace-one)", "price of dp-svrg (add-remove)"),
    ),
    Mutant(
        "curvature for nothing",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Noise inside an objective is accounted as noise on a gradient, without the Jacobian "
        "determinant.",
        curvature_for_nothing,
        ("price of steep objectives",),
    ),
    Mutant(
        "curvature for nothing, pure",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Laplace noise inside an objective without log(1 + kappa).",
        pure_curvature_for_nothing,
        ("price of steep objectives, pure",),
    ),
    Mutant(
        "rounds accounted one by one",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Each round is private, and all of them have the cost of one.",
        rounds_promised_one_by_one,
        ("price of owner, dvp", "price of dpsc, pure (replace-one)"),
        "DVP (Zhang and Zhu 2016)",
    ),
    Mutant(
        "one segment paid",
        "hushfit.release.mechanisms._gradient_norm",
        "A gate that opens several times is paid for one opening.",
        one_segment_paid,
        ("price of gates that restart",),
    ),
    Mutant(
        "scores of a gate for free",
        "hushfit.release.mechanisms._gate",
        "Only the threshold of a gate is paid for.",
        query_noise_for_free,
        ("price of gates over all rows",),
    ),
    Mutant(
        "choice for half",
        "hushfit.release.mechanisms._gate",
        "The cost of a choice between noisy scores assumes that all scores change in one "
        "direction.",
        choice_for_half,
        ("price of choices",),
    ),
    Mutant(
        "delta ignored",
        "hushfit.release.mechanisms._vocabulary",
        "The probability of naming a text that only one record has is left out of the cost.",
        lost_mass_ignored,
        ("price of vocabularies",),
    ),
    Mutant(
        "filter that forgets",
        "hushfit.privacy.accounting._filter",
        "A privacy filter stores the last release instead of the sum.",
        filter_forgets,
        ("price of adaptive runs",),
    ),
    Mutant(
        "filter by the release alone",
        "hushfit.privacy.accounting._filter",
        "A Rényi filter compares each release with the budget, not the sum of all releases.",
        filter_by_the_release_alone,
        ("price of adaptive runs, Renyi",),
    ),
    Mutant(
        "false conversion",
        "hushfit.release.plan",
        "Noise from rho = epsilon^2 / (4 log(1/delta)), which is too little for large epsilon.",
        by_a_false_conversion,
        ("price of proximal-gd (replace-one)",),
        "PP-ADMM, Theorem 1",
    ),
    Mutant(
        "another delta",
        "hushfit.release.plan",
        "Noise is calibrated at a hundred times the stated delta.",
        another_delta,
        (
            "price of proximal-gd (replace-one)",
            "price of objective (add-remove)",
            "payment of logistic regression, auto",
        ),
    ),
    Mutant(
        "paid afterwards",
        "hushfit.estimators._private_fit",
        "The ledger is charged after the fit, so that releases before a crash are never paid.",
        paid_afterwards,
        ("payment of logistic regression, auto",),
    ),
    Mutant(
        "second release forgotten",
        "hushfit.estimators._private_fit",
        "A noisy second moment for standard errors is released after the fit without a payment.",
        second_release_forgotten,
        ("payment of logistic regression, auto",),
    ),
    Mutant(
        "not paid at all",
        "hushfit.estimators._private_fit",
        "The ledger that was given is never charged.",
        not_paid_at_all,
        ("payment of logistic regression, auto",),
    ),
    Mutant(
        "half of it paid",
        "hushfit.privacy.ledger._ledger",
        "The charged cost assumes twice the noise of the releases.",
        half_of_it_paid,
        ("payment of logistic regression, bounded", "payment of quantile scaler"),
    ),
    Mutant(
        "account forked by a copy",
        "hushfit.privacy.ledger._ledger",
        "A deep copy of a ledger has a separate account, so that clones spend the budget twice.",
        forked_account,
        ("ledger",),
    ),
    Mutant(
        "every charge by itself",
        "hushfit.privacy.ledger._accounts",
        "A charge is compared with the budget without those before it.",
        every_charge_by_itself,
        ("ledger",),
    ),
    Mutant(
        "reserve of delta forgotten",
        "hushfit.privacy.ledger._reserve",
        "What a fit may lose to discrete noise grows with epsilon; it counts against the reserve "
        "of delta too, which does not.",
        the_reserve_of_delta_is_forgotten,
        ("ledger",),
    ),
    Mutant(
        "composition for a filter",
        "hushfit.privacy.ledger._tally",
        "Costs that were chosen adaptively are composed as if they had been fixed beforehand.",
        no_filter,
        ("ledger",),
    ),
    Mutant(
        "one release too many",
        "hushfit.release.curator",
        "The curator counts from zero where it should count from one.",
        one_release_too_many,
        ("refusals",),
    ),
    Mutant(
        "any query of that name",
        "hushfit.release.curator",
        "The curator checks the name of a release but not the type of the query.",
        any_query_of_that_name,
        ("refusals",),
    ),
)
