"""Bugs in what is paid: prices below what is revealed, batches other than the priced ones,
ledgers that can be tricked.
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
from hushfit.privacy.ledger import _ledger as ledgers
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
    """The accountant is told noise over a record's bound, and takes it for noise over the
    sensitivity.
    """
    honest = PoissonGaussianCost.directions

    def directions(self, relation):
        if relation is Relation.ADD_REMOVE:
            return honest(self, relation)
        return honest(
            replace(self, noise_multiplier=2 * self.noise_multiplier), Relation.ADD_REMOVE
        )

    return swapped(PoissonGaussianCost, directions=directions)


def epsilon_per_step():
    return swapped(
        _batches.FullBatch,
        cost=lambda self, noise_multiplier, count, n_rows: GaussianCost(noise_multiplier),
    )


def rate_per_run():
    def cost(self, noise_multiplier, count, n_rows):
        return PoissonGaussianCost(noise_multiplier, self.rate / count, count)

    return swapped(_batches.PoissonBatch, cost=cost)


def larger_batches_than_priced():
    honest = _batches.poisson_rows
    return swapped(
        _batches, poisson_rows=lambda n_rows, rate, coins: honest(n_rows, min(1.0, 2 * rate), coins)
    )


def with_replacement():
    def fixed_size_rows(n_rows, size, coins):
        return np.sort((coins.words(size) % np.uint64(n_rows)).astype(np.int64))

    return swapped(_batches, fixed_size_rows=fixed_size_rows)


def batch_drawn_once():
    honest = _batches.poisson_rows
    kept = {}

    def poisson_rows(n_rows, rate, coins):
        if (n_rows, rate) not in kept:
            kept[n_rows, rate] = honest(n_rows, rate, coins)
        return kept[n_rows, rate]

    return swapped(_batches, poisson_rows=poisson_rows)


def public_order():
    honest = _permuted.uniform_order
    return swapped(_permuted, uniform_order=lambda n_rows, coins: honest(n_rows, SeededCoins(0)))


def separate_amplification():
    def cost(self, noise_multiplier, count, n_rows):
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
    def cost(self, noise_multiplier, count, n_rows):
        return PoissonGaussianCost(noise_multiplier, self.rate, count)

    return swapped(_difference.AnchoredBatch, cost=cost)


def fixed_size_as_poisson():
    def cost(self, noise_multiplier, count, n_rows):
        return PoissonGaussianCost(noise_multiplier, self._rate(n_rows), count)

    return swapped(_batches.FixedSizeBatch, cost=cost)


def name_for_the_other_relation():
    """As comparing with ``is`` does: only the member itself counts, a name is taken for the
    cheaper relation.
    """
    return swapped(
        Relation,
        parse=classmethod(
            lambda cls, value: value if isinstance(value, Relation) else cls.ADD_REMOVE
        ),
    )


def average_batch():
    def cost(self, noise_multiplier, count, n_rows):
        mean = sum(share * ratio for share, ratio in zip(self.shares, self.ratios, strict=True))
        return GaussianCost(noise_multiplier / mean, count)

    return swapped(_permuted.SecretOrder, cost=cost)


def first_part_only():
    def cost(self, multipliers, n_rows):
        part = self.parts[0]
        return part.sampling.cost(multipliers[part.name], part.count, n_rows)

    return swapped(_plan.Plan, cost=cost)


def curvature_for_nothing():
    def cost(self, noise_multiplier, count, n_rows):
        return compose(
            [
                GaussianCost(noise_multiplier, count),
                GaussianCost(self.output_multiplier(noise_multiplier), count),
            ]
        )

    return swapped(_minimiser.GaussianInside, cost=cost)


def pure_curvature_for_nothing():
    def cost(self, noise_multiplier, count, n_rows):
        return PureCost(1 / noise_multiplier + 1 / self.output_multiplier(noise_multiplier), count)

    return swapped(_minimiser.LaplaceInside, cost=cost)


def rounds_promised_one_by_one():
    honest = _minimiser.LaplaceInside.cost
    return swapped(
        _minimiser.LaplaceInside,
        cost=lambda self, noise_multiplier, count, n_rows: honest(
            self, noise_multiplier, 1, n_rows
        ),
    )


def one_segment_paid():
    def cost(self, noise_multiplier, count, n_rows):
        return PureCost(2 / noise_multiplier)

    return swapped(_gradient_norm.RestartedGate, cost=cost)


def query_noise_for_free():
    """The gate's price without what the scores cost: the noise on them is as large as Laplace
    noise for one.
    """

    def cost(self, noise_multiplier, count, n_rows):
        return PureCost(1 / noise_multiplier, count)

    return swapped(_gate.FreshGate, cost=cost)


def choice_for_half():
    return swapped(
        _gate.NoisyChoice,
        cost=lambda self, noise_multiplier, count, n_rows: PureCost(1 / noise_multiplier, count),
    )


def lost_mass_ignored():
    return swapped(
        _vocabulary.Thresholded,
        cost=lambda self, noise_multiplier, count, n_rows: GaussianCost(noise_multiplier, count),
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
    """rho = epsilon^2 / (4 log(1/delta)), which is no bound for large epsilon."""
    honest = _plan.calibrate

    def calibrate(cost_at, budget, relation):
        strength = math.sqrt(budget.epsilon**2 / (2 * math.log(1 / budget.delta)))
        return (
            strength
            if isinstance(cost_at(1.0), GaussianCost)
            else honest(cost_at, budget, relation)
        )

    return swapped(_plan, calibrate=calibrate)


def another_delta():
    honest = _plan.usable

    def usable(budget):
        spendable, reserve = honest(budget)
        return Budget(spendable.epsilon, min(1e-3, 100 * spendable.delta)), reserve

    return swapped(_plan, usable=usable)


# Who pays, and when


def paid_afterwards():
    honest = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        fitted = honest(source, problem, solver, replace(terms, ledger=None))
        if terms.ledger is not None:
            terms.ledger.charge(fitted.guarantee.cost, terms.label, problem.relation)
        return fitted

    return swapped(classifiers, private_fit=private_fit)


def second_release_forgotten():
    """A noisy second moment for standard errors, after the fit has paid for itself."""
    honest = classifiers.private_fit

    def private_fit(source, problem, solver, terms, verbose=0):
        fitted = honest(source, problem, solver, terms)
        plan = Plan((Planned("covariance", SecondMoment, 1),))
        curator = Curator(
            source, plan, {"covariance": 5.0}, problem.relation, SeededSampler(0), SeededCoins(1)
        )
        curator.release("covariance", SecondMoment(problem))
        return fitted

    return swapped(classifiers, private_fit=private_fit)


def not_paid_at_all():
    honest = classifiers.private_fit
    return swapped(
        classifiers,
        private_fit=lambda source, problem, solver, terms, verbose=0: honest(
            source, problem, solver, replace(terms, ledger=None)
        ),
    )


def half_of_it_paid():
    honest = ledgers.Ledger.charge

    def charge(self, cost, *terms, **more):
        cheaper = (
            replace(cost, noise_multiplier=2 * cost.noise_multiplier)
            if isinstance(cost, GaussianCost)
            else cost
        )
        return honest(self, cheaper, *terms, **more)

    return swapped(ledgers.Ledger, charge=charge)


def forked_account():
    def __deepcopy__(self, memo):
        account = ledgers.MemoryAccount(self.budget, self.relation, self.name)
        account._entries = list(self.entries)
        return ledgers.Ledger.over(account)

    return swapped(ledgers.Ledger, __deepcopy__=__deepcopy__)


def every_charge_by_itself():
    def append(self, decide):
        receipt = decide(())
        self._entries.append(receipt)
        return receipt

    return swapped(ledgers.MemoryAccount, append=append)


def no_filter():
    def total_epsilon(account, entries):
        return ledgers._composed(
            compose(entry.cost for entry in entries), account.budget.delta, account.relation
        )

    return swapped(ledgers, total_epsilon=total_epsilon)


def one_release_too_many():
    honest = _curator.Curator._take

    def _take(self, name, query):
        if self._left.get(name) == 0:
            self._left[name] = 1
            honest(self, name, query)
            self._left[name] = -1
        else:
            honest(self, name, query)

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
        "hushfit.privacy.costs._cost",
        "A replace-one price is read off the pair of tables for add-remove, in units of a record's "
        "bound.",
        record_for_sensitivity,
        ("price of dp-sgd (replace-one)", "price of small Poisson batches"),
        "dp_accounting 0.6 means different noise by one event in two accountants",
    ),
    Mutant(
        "epsilon per step",
        _BATCHES,
        "The price of one step is taken for that of all.",
        epsilon_per_step,
        ("price of proximal-gd (replace-one)", "attack on ss-admm (add-remove)"),
    ),
    Mutant(
        "rate per run",
        _BATCHES,
        "The rate of a batch is divided by the number of steps before it is priced.",
        rate_per_run,
        ("price of dp-sgd (add-remove)", "price of dp-sadmm (replace-one)"),
    ),
    Mutant(
        "larger batches than priced",
        _BATCHES,
        "Rows are drawn at twice the rate that is paid for.",
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
        "One secret batch serves all steps, which are priced as if each had its own.",
        batch_drawn_once,
        ("rows read by Poisson batches",),
    ),
    Mutant(
        "public order counted as secret",
        "hushfit.release.mechanisms._permuted",
        "The order in which rows are dealt comes from a fixed seed, and the price is for a secret "
        "one.",
        public_order,
        ("rows read by a secret order",),
        "code of thesis ch. 3",
    ),
    Mutant(
        "separate amplification",
        "hushfit.release.mechanisms._gate",
        "Gradient and gate look at one batch and are amplified each by itself.",
        separate_amplification,
        ("price of gates with their gradient",),
        "thesis ch. 5, Algorithm 5.2",
    ),
    Mutant(
        "full gradient as sampled",
        "hushfit.release.mechanisms._difference",
        "A full gradient plus a batch is priced as a batch, though nobody is ever left out.",
        anchored_as_sampled,
        ("price of anchored batches", "price of dp-vradmm, single noise (add-remove)"),
        "private SVRG in general",
    ),
    Mutant(
        "fixed size priced as Poisson",
        _BATCHES,
        "Batches of fixed size are given the price of Poisson batches of the same rate.",
        fixed_size_as_poisson,
        ("price of proximal-gd, fixed size (replace-one)",),
    ),
    Mutant(
        "name for the other relation",
        "hushfit.privacy._relation",
        "A relation that comes as its name is taken for add-remove, at half the noise of "
        "replace-one.",
        name_for_the_other_relation,
        ("relations by name",),
        "StrEnum members compared with `is`",
    ),
    Mutant(
        "average batch",
        "hushfit.release.mechanisms._permuted",
        "A run in secret order is priced by how far a record moves it on average.",
        average_batch,
        ("price of a secret order",),
    ),
    Mutant(
        "first part of the plan",
        "hushfit.release.plan",
        "Of a plan with several kinds of release only the first is priced.",
        first_part_only,
        ("price of recalibrated (replace-one)", "price of dp-svrg (add-remove)"),
    ),
    Mutant(
        "curvature for nothing",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Noise inside an objective is priced as noise on a gradient, without the change of volume.",
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
        "rounds promised one by one",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Each round is private, and all of them are priced as one.",
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
        "A choice between noisy scores is priced as if scores could move in one direction only.",
        choice_for_half,
        ("price of choices",),
    ),
    Mutant(
        "delta ignored",
        "hushfit.release.mechanisms._vocabulary",
        "The chance of naming a text that one record alone has is left out of the price.",
        lost_mass_ignored,
        ("price of vocabularies",),
    ),
    Mutant(
        "filter that forgets",
        "hushfit.privacy.accounting._filter",
        "A filter keeps the last release and not the sum.",
        filter_forgets,
        ("price of adaptive runs",),
    ),
    Mutant(
        "filter by the release alone",
        "hushfit.privacy.accounting._filter",
        "A Renyi filter asks whether a release fits the budget, not whether all of them do.",
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
        "Noise is calibrated at a hundred times the delta that is promised.",
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
        "The ledger is charged when the fit has ended, so that a crash releases for nothing.",
        paid_afterwards,
        ("payment of logistic regression, auto",),
    ),
    Mutant(
        "second release forgotten",
        "hushfit.estimators._private_fit",
        "A noisy second moment for standard errors is released after the fit, and nobody pays for "
        "it.",
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
        "What is charged has twice the noise of what is released.",
        half_of_it_paid,
        ("payment of logistic regression, bounded", "payment of quantile scaler"),
    ),
    Mutant(
        "account forked by a copy",
        "hushfit.privacy.ledger._ledger",
        "A deep copy of a ledger has an account of its own, so that clones spend the budget twice.",
        forked_account,
        ("ledger",),
    ),
    Mutant(
        "every charge by itself",
        "hushfit.privacy.ledger._ledger",
        "A charge is compared with the budget without those before it.",
        every_charge_by_itself,
        ("ledger",),
    ),
    Mutant(
        "composition for a filter",
        "hushfit.privacy.ledger._ledger",
        "Prices that were chosen after seeing answers are composed as if they had been fixed "
        "beforehand.",
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
        "The curator looks at the name of a release and not at what is asked.",
        any_query_of_that_name,
        ("refusals",),
    ),
)
