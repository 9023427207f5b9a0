"""Bugs in noise: too little, reused, off the grid, or not of the distribution of the proofs."""

import numpy as np

from hushfit.kernels import gaussian
from hushfit.privacy.noise import _sampler as samplers
from hushfit.release import mechanism
from hushfit.release.mechanisms import _batches as batches
from hushfit.release.mechanisms import _corner as selection
from hushfit.release.mechanisms import _difference as difference
from hushfit.release.mechanisms import _gate as gate
from hushfit.release.mechanisms import _gradient_norm as gradient_norm
from hushfit.release.mechanisms import perturbed_minimiser as minimiser

from ._mutant import Mutant, swapped, together


def off_the_grid():
    def noisy(self, answer, noise):
        return answer + noise * self.step

    return swapped(mechanism.NoiseGrid, noisy=noisy)


def rounding_outside_the_batch():
    """The grid is fine for a sampled record; one outside changes the answer much less."""
    return swapped(difference.AnchoredBatch, answer=batches.Sampling.answer)


def steps_below_floating_point():
    return together(
        swapped(mechanism.NoiseGrid, __post_init__=lambda self: None),
        swapped(difference, _MIN_BOUND=0.0),
    )


def rounded_normals():
    def gaussian(self, log2_variance, size):
        return np.rint(
            np.random.default_rng().normal(scale=2 ** (log2_variance / 2), size=size)
        ).astype(np.int64)

    return swapped(samplers.SecureSampler, gaussian=gaussian)


def no_tails():
    original = samplers.SecureSampler.gaussian

    def gaussian(self, log2_variance, size):
        most = int(3 * 2 ** (log2_variance / 2))
        return np.clip(original(self, log2_variance, size), -most, most)

    return swapped(samplers.SecureSampler, gaussian=gaussian)


def seed_in_every_call():
    def gaussian(self, log2_variance, size):
        return np.rint(
            np.random.default_rng(0).normal(scale=2.0 ** (log2_variance / 2), size=size)
        ).astype(np.int64)

    return swapped(samplers.SeededSampler, gaussian=gaussian)


def slots_taken_whole():
    """Heights are not compared with the density: a staircase above it is drawn from."""

    def cut(fine, odd):
        cells, firsts = gaussian.slots_for(fine, odd)
        in_cells = np.arange(len(cells)) < firsts[-1]
        return gaussian.Slots(np.where(in_cells & (cells < 0), ~cells, cells), firsts)

    return swapped(samplers, slots_for=cut)


def folded_laplace():
    original = samplers.SecureSampler.laplace
    return swapped(
        samplers.SecureSampler,
        laplace=lambda self, log2_scale, size: np.abs(original(self, log2_scale, size)),
    )


def half_the_standard_deviation():
    def _gaussian_noise(query, log2_deviation, sampler):
        return sampler.gaussian(2 * log2_deviation - 2, query.size)

    return swapped(mechanism, _gaussian_noise=_gaussian_noise)


def one_number_for_all():
    def _gaussian_noise(query, log2_deviation, sampler):
        return np.repeat(sampler.gaussian(2 * log2_deviation, 1), query.size)

    return swapped(mechanism, _gaussian_noise=_gaussian_noise)


def reused_across_classes():
    original = mechanism._gaussian_noise

    def _gaussian_noise(query, log2_deviation, sampler):
        outputs = getattr(getattr(query, "problem", None), "outputs", 1)
        if outputs == 1 or query.doubled is not None or query.size % outputs:
            return original(query, log2_deviation, sampler)
        return np.tile(sampler.gaussian(2 * log2_deviation, query.size // outputs), outputs)

    return swapped(mechanism, _gaussian_noise=_gaussian_noise)


def clip_what_is_noisy():
    original = mechanism.NoiseGrid.noisy

    def noisy(self, answer, noise):
        found = original(self, answer, noise)
        length = np.linalg.norm(found)
        longest = self.scale
        return found if length <= longest else found * (longest / length)

    return swapped(mechanism.NoiseGrid, noisy=noisy)


def noise_for_the_mean():
    original = mechanism.NoiseGrid.noisy
    return swapped(
        mechanism.NoiseGrid, noisy=lambda self, answer, noise: original(self, answer, noise // 3)
    )


def drawn_once():
    """One draw for the whole run, as published, keyed by sampler, scale and size."""
    original = minimiser.GaussianInside.draw
    cache = {}

    def draw(self, sampler, log2_deviation, size):
        key = id(sampler), log2_deviation, size
        if key not in cache:
            cache[key] = sampler, original(self, sampler, log2_deviation, size)
        return cache[key][1]

    return swapped(minimiser.GaussianInside, draw=draw)


def laplace_of_half_the_scale():
    def draw(self, sampler, log2_deviation, size):
        return sampler.laplace(log2_deviation - 1, size)

    return swapped(minimiser.LaplaceInside, draw=draw)


def laplace_in_the_euclidean_norm():
    return swapped(minimiser.LaplaceInside, stretch=lambda self, size: 1.0)


def gate_noise(draw):
    """A gate whose noise is drawn by ``draw``, which maps sampler, exponent and count to threshold
    noise and noise on scores.
    """

    def first_above(asked, source, rows, noise, threshold_multiplier, entropy):
        if threshold_multiplier == 0:
            return asked(source, rows)
        grid = mechanism.NoiseGrid.of(
            asked,
            threshold_multiplier,
            entropy.relation,
            4 * source.n_units,
            finest=gate._MAX_LOG2_DEVIATION,
        )
        k = grid.log2_deviation
        draws = (
            entropy.sampler.laplace
            if noise == "laplace"
            else lambda e, n: entropy.sampler.gaussian(2 * e, n)
        )
        threshold, on_scores = draw(draws, k, asked.drop.size)
        steps = np.rint(asked.scores(source, rows) / grid.step).astype(np.int64) + on_scores
        return gate.first_passed(steps >= threshold)

    return swapped(gate, first_above=first_above)


def shared_gate_noise():
    return gate_noise(lambda draws, k, n: (draws(k, 1), np.repeat(draws(k, 1), n)))


def gate_without_query_noise():
    return gate_noise(lambda draws, k, n: (draws(k, 1), np.zeros(n, dtype=np.int64)))


def threshold_redrawn():
    original = gradient_norm._segment_of

    def _segment_of(query, grid, entropy):
        segment = original(query, grid, entropy)
        if segment is not None:
            segment.threshold = int(entropy.sampler.laplace(grid.log2_deviation, 1)[0])
        return segment

    return swapped(gradient_norm, _segment_of=_segment_of)


def exact_choice():
    def answer(self, query, source, noise_multiplier, entropy):
        return query(source, None)

    return swapped(gate.NoisyChoice, answer=answer)


def twice_the_utility():
    original = selection._grid

    def _grid(query, multiplier, relation, n_units):
        bits, steps = original(query, multiplier, relation, n_units)
        return bits, 2 * steps

    return swapped(selection, _grid=_grid)


def not_from_the_system():
    return swapped(samplers, SecureSampler=lambda: samplers.SeededSampler(0))


_MECHANISM, _SAMPLER = "hushfit.release.mechanism", "hushfit.privacy.noise._sampler"

NOISE = (
    Mutant(
        "floating-point noise",
        _MECHANISM,
        "Floating-point noise is added to the exact answer, so that the last digits of the sum "
        "reveal both.",
        off_the_grid,
        ("noise on gradient, logistic (replace-one)", "noise on second moment (add-remove)"),
        "Mironov (2012)",
    ),
    Mutant(
        "rounded normals",
        _SAMPLER,
        "A rounded normal number is used instead of exact discrete noise.",
        rounded_normals,
        ("sampler, secure",),
    ),
    Mutant(
        "tails cut off",
        _SAMPLER,
        "Noise is clipped at three standard deviations, so that more distant answers reveal the "
        "table.",
        no_tails,
        ("sampler, secure",),
    ),
    Mutant(
        "slots taken whole",
        _SAMPLER,
        "Proposals in slots that the density cuts are accepted without a comparison.",
        slots_taken_whole,
        ("sampler, secure",),
    ),
    Mutant(
        "one-sided Laplace noise",
        _SAMPLER,
        "Noise is never negative, so an answer below the truth is impossible.",
        folded_laplace,
        ("sampler, secure",),
    ),
    Mutant(
        "seed in every call",
        _SAMPLER,
        "The generator is seeded again for each release, so that all get the same noise.",
        seed_in_every_call,
        ("noise of proximal-gd", "sampler, seeded", "attack on ss-admm (replace-one)"),
    ),
    Mutant(
        "half the standard deviation",
        _MECHANISM,
        "The exponent of the variance is off by two.",
        half_the_standard_deviation,
        (
            "noise of ss-admm",
            "noise on gradient, logistic (replace-one)",
            "attack on proximal-gd (add-remove)",
        ),
    ),
    Mutant(
        "one number for all coordinates",
        _MECHANISM,
        "A single draw is broadcast over the answer and cancels in differences of its entries.",
        one_number_for_all,
        ("noise of proximal-gd", "noise on gradient, logistic (replace-one)"),
    ),
    Mutant(
        "noise reused across classes",
        _MECHANISM,
        "Every class gets the same noise, which cancels in the difference of two of them.",
        reused_across_classes,
        ("noise of proximal-gd, softmax", "noise of proximal-gd, one against the rest"),
    ),
    Mutant(
        "noise before clipping",
        _MECHANISM,
        "The noisy sum is clipped, and the noise with it.",
        clip_what_is_noisy,
        ("noise of dp-sgd", "noise of ss-admm"),
    ),
    Mutant(
        "noise for the mean on the sum",
        _MECHANISM,
        "Noise is divided by a number of rows that the answer has not been divided by.",
        noise_for_the_mean,
        ("noise of dp-sadmm", "noise of mp-admm", "attack on outpert-gd (replace-one)"),
    ),
    Mutant(
        "noise drawn once",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "All rounds have the same noise in their objective: two of them give an equation without "
        "noise.",
        drawn_once,
        ("noise of dpsc",),
        "DPSC, DPLL, DPLH",
    ),
    Mutant(
        "Laplace noise of half the scale",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "The scale of Laplace noise is taken for its standard deviation.",
        laplace_of_half_the_scale,
        ("noise of dpsc, pure",),
    ),
    Mutant(
        "Laplace noise in the Euclidean norm",
        "hushfit.release.mechanisms.perturbed_minimiser",
        "Noise that needs the L1 sensitivity is scaled by the Euclidean sensitivity.",
        laplace_in_the_euclidean_norm,
        ("price of dpsc, pure (replace-one)", "price of owner, dvp"),
    ),
    Mutant(
        "shared gate noise",
        "hushfit.release.mechanisms._gate",
        "All scores of a gate share one draw of noise, of the threshold's scale.",
        shared_gate_noise,
        ("distribution of gates, laplace", "distribution of gates, gaussian"),
        "sparse-vector variants (Lyu, Su and Li 2017)",
    ),
    Mutant(
        "gate without noise on scores",
        "hushfit.release.mechanisms._gate",
        "Only the threshold is noisy; with many candidates their exact order is revealed.",
        gate_without_query_noise,
        ("distribution of gates, laplace", "distribution of gates, gaussian"),
        "sparse-vector variants (Lyu, Su and Li 2017)",
    ),
    Mutant(
        "redrawn threshold",
        "hushfit.release.mechanisms._gradient_norm",
        "The threshold gets new noise in every round, so that every round has a privacy loss.",
        threshold_redrawn,
        ("distribution of gates that restart",),
        "IPP-ADMM, Algorithm 2",
    ),
    Mutant(
        "exact choice",
        "hushfit.release.mechanisms._gate",
        "The candidate with the largest exact score is chosen.",
        exact_choice,
        ("distribution of choices",),
    ),
    Mutant(
        "twice the utility",
        "hushfit.release.mechanisms._corner",
        "The exponential mechanism without the factor two in its exponent.",
        twice_the_utility,
        ("distribution of corners",),
    ),
    Mutant(
        "seeded noise sold as secure",
        _SAMPLER,
        "Without a seed, noise comes from a generator with a fixed one.",
        not_from_the_system,
        ("fits with secure noise",),
    ),
    Mutant(
        "rounding outside the batch",
        "hushfit.release.mechanisms._difference",
        "Rounding to the noise grid is covered for sampled records, but not for the others.",
        rounding_outside_the_batch,
        ("a record outside its anchored batch",),
    ),
    Mutant(
        "steps below floating point",
        _MECHANISM,
        "For a tiny sensitivity the step of the grid is rounded to zero, and the noise with it.",
        steps_below_floating_point,
        ("noise of tiny sensitivities",),
    ),
)
