"""Bugs in selections: gates that open too often, searches that read rows twice, vocabularies that
name too much.
"""

import numpy as np

from hushfit.audit.checks import _prices as prices
from hushfit.model_selection import _scoring as scoring
from hushfit.model_selection import _search as search
from hushfit.model_selection import _trials as trials
from hushfit.preprocessing import _quantile_scaler as scalers
from hushfit.privacy.accounting import _random_stopping as stopping
from hushfit.release import mechanism
from hushfit.release.mechanisms import _gate as gate
from hushfit.release.mechanisms import _gradient_norm as gradient_norm
from hushfit.release.mechanisms import _vocabulary as vocabulary

from ._mutant import Mutant, swapped, together


def one_segment_too_many():
    def objection(self, query, relation):
        return None if 0 <= query.segment <= self.segments else "one more"

    return swapped(gradient_norm.RestartedGate, objection=objection)


def gate_at_the_exact_gradient():
    def answer(self, query, source, noise_multiplier, entropy):
        rows = (
            None if self.rate == 1 else gate.poisson_units(source.n_units, self.rate, entropy.coins)
        )
        g = mechanism.gaussian_answer(query.gradient, source, rows, noise_multiplier, entropy)
        threshold, _ = self.gate_multipliers(noise_multiplier)
        exact = query.gradient(source, rows)
        index = gate.first_above(query.gate(exact), source, rows, self.noise, threshold, entropy)
        return np.append(g, index)

    return swapped(gate.GatedBatch, answer=answer)


def gate_on_another_batch():
    """Gate and gradient on separate batches, with the cost of one."""
    original = gate.first_above

    def first_above(asked, source, rows, noise, threshold_multiplier, entropy):
        fresh = rows if rows is None else gate.poisson_units(source.n_units, 0.3, entropy.coins)
        return original(asked, source, fresh, noise, threshold_multiplier, entropy)

    return swapped(gate, first_above=first_above)


def best_priced_as_one():
    return together(
        swapped(stopping, best_of_many=_as_one),
        swapped(prices, best_of_many=_as_one),
        swapped(trials, best_of_many=_as_one),
    )


def _as_one(one, rule, relation):
    return one


def exact_scores():
    original = trials.released_score

    def released_score(scores, strength, *terms):
        return original(scores, float("inf"), *terms)

    return swapped(trials, released_score=released_score)


def scored_on_what_was_fitted():
    original = search.split

    def split(n_units, *terms):
        return np.arange(n_units), original(n_units, *terms)[1]

    return swapped(search, split=split)


def labels_compared_as_one_array():
    """A text among the labels turns all of them into texts, none of which is a prediction."""

    def hits(model, X, y):
        return np.asarray(model.predict(X) == np.asarray(y.tolist()), dtype=np.float64)

    return swapped(scoring, _SCORERS={"accuracy": hits})


def refit_for_nothing():
    original = search.PrivateSearchCV.fit

    def fit(self, X, y, groups=None):
        original(self, X, y, groups)
        self.best_estimator_.fit(X, y, groups)
        return self

    return swapped(search.PrivateSearchCV, fit=fit)


def texts_by_their_counts():
    original = vocabulary.Thresholded.answer

    def answer(self, query, source, noise_multiplier, entropy):
        named = vocabulary.vocabulary_of(original(self, query, source, noise_multiplier, entropy))
        counts = vocabulary.counts_of(source)
        ordered = [
            sorted(texts, key=lambda text: (-count[text], text))
            for texts, count in zip(named, counts, strict=True)
        ]
        return vocabulary.as_bytes(ordered)

    return swapped(vocabulary.Thresholded, answer=answer)


def threshold_for_one_column():
    original = vocabulary.Thresholded.threshold

    def threshold(self, scale, rows_per_unit=1):
        return original(vocabulary.Thresholded(self.lost, 1), scale, rows_per_unit)

    return swapped(vocabulary.Thresholded, threshold=threshold)


def threshold_without_the_text_itself():
    original = vocabulary.Thresholded.threshold
    return swapped(
        vocabulary.Thresholded,
        threshold=lambda self, scale, rows_per_unit=1: original(self, scale, rows_per_unit) - 1,
    )


def ends_of_the_column():
    original = scalers.PrivateQuantileScaler.fit

    def fit(self, X, y=None, groups=None):
        original(self, X, y, groups)
        self.low_, self.high_ = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        return self

    return swapped(scalers.PrivateQuantileScaler, fit=fit)


SEARCH = (
    Mutant(
        "off-by-one abort",
        "hushfit.release.mechanisms._gradient_norm",
        "A gate stops only after it has opened once more than paid for.",
        one_segment_too_many,
        ("distribution of gates that restart",),
        "IPP-ADMM, Algorithm 2",
    ),
    Mutant(
        "gate at the exact gradient",
        "hushfit.release.mechanisms._gate",
        "Candidates are computed from the exact gradient, so that the chosen index reveals it.",
        gate_at_the_exact_gradient,
        ("distribution of gates with their gradient",),
    ),
    Mutant(
        "gate on another batch",
        "hushfit.release.mechanisms._gate",
        "Gate and gradient draw a batch each, and the cost is for one.",
        gate_on_another_batch,
        ("rows read by gated batches",),
    ),
    Mutant(
        "best priced as one",
        "hushfit.privacy.accounting._random_stopping",
        "The best of many trials is paid as one trial.",
        best_priced_as_one,
        ("price of a geometric search", "price of a poisson search"),
    ),
    Mutant(
        "exact scores",
        "hushfit.model_selection._trials",
        "Candidates are compared by their exact scores.",
        exact_scores,
        ("payment of search",),
    ),
    Mutant(
        "scored on what was fitted",
        "hushfit.model_selection._search",
        "Rows that score a candidate are also fitted on, and the cost is only the larger of the "
        "two.",
        scored_on_what_was_fitted,
        ("payment of search",),
    ),
    Mutant(
        "labels compared as one array",
        "hushfit.model_selection._scoring",
        "Held-out labels become one array, so that a text among them turns all scores into misses.",
        labels_compared_as_one_array,
        ("scores of a search",),
        "our own search",
    ),
    Mutant(
        "refit for nothing",
        "hushfit.model_selection._search",
        "The best candidate is fitted again on all rows without a payment.",
        refit_for_nothing,
        ("payment of search",),
    ),
    Mutant(
        "texts by their counts",
        "hushfit.release.mechanisms._vocabulary",
        "Common texts are listed in the order of their exact counts.",
        texts_by_their_counts,
        ("attack on lists of texts",),
    ),
    Mutant(
        "threshold for one column",
        "hushfit.release.mechanisms._vocabulary",
        "A rare text may be named in each column, and the threshold is for one column.",
        threshold_for_one_column,
        ("distribution of vocabularies", "price of vocabularies"),
    ),
    Mutant(
        "threshold without the text itself",
        "hushfit.release.mechanisms._vocabulary",
        "The threshold is for texts with a count of zero, and the rare text has a count of one.",
        threshold_without_the_text_itself,
        ("distribution of vocabularies", "price of vocabularies"),
    ),
    Mutant(
        "ends of the column",
        "hushfit.preprocessing._quantile_scaler",
        "The exact smallest and largest values replace the private bounds that were paid for.",
        ends_of_the_column,
        ("sealed door of quantile scaler",),
    ),
)
