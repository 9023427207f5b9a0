"""``solver="auto"``: a choice by public numbers, and denoising by post-processing alone."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from _support import RELATIONS, curator_over, problem_for, source_of, three_classes, two_classes
from hushfit.data import SeededCoins
from hushfit.datasets import make_sparse_classification
from hushfit.errors import InvalidArgument
from hushfit.losses import HuberHinge, Logistic, OneVsRest, Softmax
from hushfit.penalties import L1, ScaledL2, Zero
from hushfit.privacy import Budget, SeededSampler, gaussian_mu
from hushfit.release.curator import Curator
from hushfit.solvers import (
    HeavyBall,
    Recalibrated,
    Tempered,
    WhitenedGradientDescent,
    choose_solver,
    run,
)
from hushfit.solvers._whitening import Spectrum
from hushfit.solvers.newton import _whitened as whitened
from hushfit.solvers.newton._denoised import GradientTrajectory, denoised, posterior_means
from hushfit.solvers.newton._whitened import Settings

# Choosing

WHITENED = WhitenedGradientDescent()
FEW, MANY = HeavyBall(steps=60), HeavyBall(steps=200)
CHOICES = [
    (Logistic(), 1, Zero(), 784, 1000, Recalibrated(WHITENED)),
    (Softmax(10), 10, Zero(), 784, 1_000_000, Tempered(WHITENED, share=0.03)),
    (Softmax(10), 10, Zero(), 784, 100, Tempered(WHITENED, share=0.12)),
    (OneVsRest(Logistic(), 4), 4, Zero(), 784, 1_000_000, Tempered(WHITENED, share=0.03)),
    (HuberHinge(), 1, Zero(), 784, 1000, WHITENED),
    (OneVsRest(HuberHinge(), 4), 4, ScaledL2(0.1), 784, 1000, WHITENED),
    (Logistic(), 1, L1(0.1), 784, 1000, FEW),
    (Logistic(), 1, Zero(), 1500, 1000, Recalibrated(FEW)),
    (Logistic(), 1, Zero(), 1500, 10_000_000, Recalibrated(MANY)),
    (Softmax(10), 10, ScaledL2(0.1), 1500, 1000, FEW),
    (Softmax(10), 10, Zero(), 1500, 10_000_000, Tempered(MANY, share=0.03)),
]


@pytest.mark.parametrize(
    ("loss", "outputs", "penalty", "d", "n", "expected"),
    CHOICES,
    ids=[f"{loss}-{d}-{n}-{penalty}" for loss, _, penalty, d, n, _ in CHOICES],
)
@pytest.mark.parametrize("epsilon", [0.05, 1.6])
def test_the_choice_follows_from_loss_penalty_rows_and_columns(
    loss, outputs, penalty, d, n, expected, epsilon
):
    problem = replace(problem_for(np.empty((2, d)), loss, outputs, penalty=penalty), n_units=n)
    assert choose_solver(problem, Budget(epsilon, 1e-8)) == expected


@pytest.mark.parametrize("wrong", [{"moment_share": 1.0}, {"moment_share": 0.0}, {"steps": 0}])
def test_impossible_shares_are_refused(wrong):
    with pytest.raises(InvalidArgument, match=r"moment_share in \(0, 1\)"):
        WhitenedGradientDescent(**wrong)


@pytest.mark.parametrize("most", [4.0, 6.0, 8.0, 20.0])
def test_eigenvalues_are_drawn_together_only_as_far_as_needed(most):
    estimated = np.array([0.01, 0.01, 0.02, 0.03, 0.05, 0.08, 0.2, 0.6])
    released = estimated * np.array([3.0, 0.2, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    spectrum = Spectrum(np.eye(8), released, estimated, 0.01, 0.02)
    rounder = spectrum.compressed_to_dimension(most)
    assert rounder.effective_dimension <= most
    powers = np.log(rounder.estimated / 0.6)[:-1] / np.log(estimated / 0.6)[:-1]
    np.testing.assert_allclose(powers, powers[0])
    if most >= spectrum.effective_dimension:
        np.testing.assert_allclose(rounder.estimated, estimated)
    else:
        less = Spectrum(
            np.eye(8), released, 0.6 * (estimated / 0.6) ** (powers[0] + 0.01), 0.01, 0.02
        )
        assert less.effective_dimension > most


@pytest.mark.parametrize(("first", "shown"), [(0.3, False), (0.4, True)])
def test_what_noise_can_make_is_no_sight_of_the_mean(first, shown):
    released = np.array([0.1, 0.1, first])
    assert (
        Spectrum(
            np.eye(3), released, released, residual_mean=0.05, edge=0.3
        ).has_visible_mean_direction
        is shown
    )


class _UnreadableSource:
    """A source whose rows cannot be read: access is an error."""

    def __getattr__(self, name):
        raise AssertionError(f"the solver looked at the rows: {name}")


UNPENALISED = {
    "logistic": (two_classes(d=8), Logistic(), 1),
    "hinge": (two_classes(d=8), HuberHinge(), 1),
    "softmax": (three_classes(d=6), Softmax(3), 3),
}


@pytest.mark.parametrize(("data", "loss", "outputs"), UNPENALISED.values(), ids=UNPENALISED)
@pytest.mark.parametrize("relation", RELATIONS, ids=str)
def test_without_a_penalty_too_weights_are_a_function_of_the_transcript(
    data, loss, outputs, relation
):
    """Denoising reads the releases and nothing else."""
    X, y = data
    problem = problem_for(X, loss, outputs, relation=relation)
    solver = choose_solver(problem, Budget(1.0, 1e-6))
    plan = solver.plan(problem)
    first = curator_over(source_of(X, y), plan, 0.5, relation)
    w = run(solver, problem, first).w
    again = curator_over(_UnreadableSource(), plan, 0.5, relation, seed=99, replay=first.transcript)
    np.testing.assert_array_equal(run(solver, problem, again).w, w)


# Step sizes and trajectory


@pytest.mark.parametrize(
    ("nu", "averaged"), [(0.0, 1.0), (0.04, 1.0), (0.05, 0.5), (0.06, 0.0), (1.0, 0.0)]
)
def test_the_louder_the_noise_the_less_is_averaged(nu, averaged):
    settings = Settings.for_noise(nu, 10.0, 60).for_smooth(nu)
    weights = settings.weights(60)
    assert settings.averaged == pytest.approx(averaged)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[-1] == pytest.approx(averaged * 2 / 61 + 1 - averaged)
    np.testing.assert_allclose(np.diff(weights[:-1]), averaged * 2 / (60 * 61))


@pytest.mark.parametrize("nu", [0.001, 0.01, 0.03])
def test_with_many_weights_the_walk_is_shorter_and_later_to_gather_momentum(nu):
    """The norm of the noise grows with the square root of their number; clipping norms stay."""
    reference, many_weights = (
        Settings.for_noise(nu, 10.0, 60),
        Settings.for_noise(nu, 10.0, 60, dimension_factor=3.0),
    )
    assert many_weights.clip == reference.clip
    assert many_weights.first_step == pytest.approx(reference.first_step / 3)
    assert many_weights.largest_step / (1 - many_weights.momentum) <= 16 / 3 + 1e-12
    assert many_weights.momentum == Settings.for_noise(3 * nu, 10.0, 60).momentum


@pytest.mark.parametrize(
    ("nu", "factor"),
    [(0.1, 0.7), (0.06, 0.7), (0.05, 0.85), (0.04, 1.25), (0.035, 1.5), (0.0, 1.5)],
)
def test_where_the_walk_arrives_its_first_steps_are_longer(nu, factor):
    settings = Settings.for_noise(nu, 10.0, 60)
    assert settings.for_smooth(nu).first_step == pytest.approx(factor * settings.first_step)


@pytest.mark.parametrize("nu", [0.001, 0.004, 0.0075, 0.01, 0.015, 0.03, 0.1])
def test_momentum_never_carries_a_step_beyond_the_longest_without(nu):
    settings = Settings.for_noise(nu, 10.0, 60)
    assert settings.largest_step / (1 - settings.momentum) <= 16 + 1e-12


@pytest.mark.parametrize(
    ("nu", "factor"), [(0.1, 0.7), (0.045, 0.7), (0.04, 0.775), (0.035, 0.85), (0.0, 0.85)]
)
def test_a_hinge_takes_shorter_steps_where_noise_limits_them(nu, factor):
    settings = Settings.for_noise(nu, 10.0, 60)
    assert settings.for_hinge(nu).first_step == pytest.approx(factor * settings.first_step)


def test_while_gradients_all_say_the_same_the_end_of_a_walk_has_less_noise_for_its_length_than_an_average():  # noqa: E501
    """By the efficiency of weights 1 - (t/T)^2 against equal ones: 5/6."""

    def noise_over_length(averaged):
        settings = Settings(
            clip=1.0, momentum=0.0, first_step=1.0, largest_step=math.inf, averaged=averaged
        )
        trajectory = GradientTrajectory(
            np.zeros((600, 1)), np.zeros((600, 1)), np.ones(600), settings.weights(600), 0.0, 1.0
        )
        _, average = trajectory.responses(0.0)
        return np.linalg.norm(average) / abs(average.sum())

    assert (noise_over_length(0.0) / noise_over_length(1.0)) ** 2 == pytest.approx(5 / 6, rel=0.01)


def simulated(curvature, momentum=0.0, noise=1.0, seed=0, start=5.0, d=40, steps=60, impulse=None):
    """Gradient descent on a quadratic around ``start``, and the weighted average of its
    iterates.
    """
    rng = np.random.default_rng(seed)
    schedule = np.minimum(0.5, 2 * (1 - np.arange(steps) / steps))
    weights = Settings(1.0, momentum, 0.5, 2.0, averaged=0.6).weights(steps)
    u = velocity = average = np.zeros(d)
    points, gradients = [], []
    for t in range(steps):
        ahead = u + momentum * velocity
        g = curvature * (ahead - start) + noise * rng.standard_normal(d)
        if impulse == t:
            g = g + 1.0
        before, u = u, ahead - schedule[t] * g
        velocity = u - before
        average = average + weights[t] * u
        points.append(ahead)
        gradients.append(g)
    return GradientTrajectory(
        np.array(points), np.array(gradients), schedule, weights, momentum, noise
    ), average


@pytest.mark.parametrize("momentum", [0.0, 0.6])
@pytest.mark.parametrize("curvature", [0.0, 0.1, 0.5])
def test_responses_are_what_an_impulse_does(momentum, curvature):
    trajectory, average = simulated(curvature, momentum, noise=0.0)
    points_moved, average_moved = trajectory.responses(curvature)
    for t in (0, 17, 59):
        pushed, other = simulated(curvature, momentum, noise=0.0, impulse=t)
        np.testing.assert_allclose(other[0] - average[0], average_moved[t], atol=1e-10)
        np.testing.assert_allclose(
            pushed.points[:, 0] - trajectory.points[:, 0], points_moved[:, t], atol=1e-10
        )


def slope_by_least_squares(trajectory):
    """Slope of the gradients on the points, as if these had no noise."""
    centred = trajectory.points - trajectory.points.mean(axis=0)
    return (trajectory.gradients * centred).sum() / (centred**2).sum()


# Momentum is used at low noise, where the run converges; where it does not, the estimated curvature
# is too small by a third.
@pytest.mark.parametrize(("curvature", "momentum"), [(0.05, 0.0), (0.2, 0.0), (0.2, 0.6)])
def test_the_walk_tells_the_curvature_and_the_noise_of_its_average(curvature, momentum):
    """Over 40 runs of 40 coordinates the standard deviation is known to 2 %."""
    trajectories, averages = zip(
        *(simulated(curvature, momentum, seed=seed) for seed in range(40)), strict=True
    )
    assert np.mean([trajectory.curvature for trajectory in trajectories]) == pytest.approx(
        curvature, rel=0.1
    )
    assert (
        np.mean([slope_by_least_squares(trajectory) for trajectory in trajectories])
        > 1.1 * curvature
    )
    assert np.mean([trajectory.average_noise for trajectory in trajectories]) == pytest.approx(
        np.std(averages, axis=0).mean(), rel=0.1
    )


def test_a_walk_that_stands_still_has_no_curvature():
    trajectory = GradientTrajectory(
        np.zeros((3, 2)), np.ones((3, 2)), np.ones(3), np.ones(3) / 3, 0.0, 0.0
    )
    assert trajectory.curvature == 0.0
    assert trajectory.average_noise == 0.0


# Empirical Bayes

coordinates = arrays(
    np.float64, st.integers(2, 30), elements=st.floats(-50, 50).map(lambda value: round(value, 3))
)


@given(z=coordinates, noise=st.floats(0.1, 10))
def test_posterior_means_shrink_by_rank_and_have_no_side(z, noise):
    """Between zero and the coordinate; larger ones keep at least as much; signs do not matter."""
    means, evidence = posterior_means(z, noise)
    factors = means[z != 0] / z[z != 0]
    assert ((factors >= 0) & (factors <= 1)).all()
    by_size = factors[np.argsort(np.abs(z[z != 0]), kind="stable")]
    assert (np.diff(by_size) >= -1e-9).all()
    mirrored, same = posterior_means(-z, noise)
    np.testing.assert_allclose(mirrored, -means)
    assert same == pytest.approx(evidence)


@given(z=coordinates, noise=st.floats(0.1, 10), unit=st.sampled_from([0.25, 8.0]))
def test_units_do_not_matter(z, noise, unit):
    np.testing.assert_allclose(
        denoised(unit * z, unit * noise), unit * denoised(z, noise), rtol=1e-6, atol=1e-9
    )


def test_two_kinds_of_coordinates_are_told_apart():
    """Twenty large ones among two hundred: most of the error goes, as with known positions."""
    rng = np.random.default_rng(0)
    truth = np.concatenate([rng.choice([-6.0, 6.0], 20), np.zeros(180)])
    z = truth + rng.standard_normal(200)
    found = denoised(z, 1.0)

    def angle(v):
        return math.acos(v @ truth / np.linalg.norm(v) / np.linalg.norm(truth))

    known = np.where(truth != 0, z, 0.0)
    assert angle(found) < angle(known) + 0.1 * (angle(z) - angle(known))


@pytest.mark.parametrize("signal", [0.0, 0.5, 3.0])
def test_coordinates_of_one_kind_are_left_alone(signal):
    """Of one hundred normal samples few may look like a mixture: on average at most 2 % change."""
    rng = np.random.default_rng(1)
    turned = []
    for _ in range(100):
        z = math.hypot(signal, 1.0) * rng.standard_normal(100)
        found = denoised(z, 1.0)
        turned.append(np.linalg.norm(found - z) / np.linalg.norm(z))
    assert np.mean(turned) < 0.02


def test_what_is_left_projects_on_the_coordinates_as_before():
    rng = np.random.default_rng(2)
    z = np.concatenate([rng.normal(size=90), 8.0 + rng.normal(size=10)])
    assert denoised(z, 1.0) @ z == pytest.approx(z @ z)


@pytest.mark.parametrize(
    "z", [np.array([3.0, -1.0, 0.0]), np.zeros(4)], ids=["no noise", "nothing there"]
)
def test_nothing_to_put_down(z):
    np.testing.assert_array_equal(denoised(z, 0.0), z)
    np.testing.assert_array_equal(denoised(np.zeros(4), 1.0), np.zeros(4))


def test_weights_of_few_relevant_columns_point_better_without_their_noise(monkeypatch):
    """Simulated rows of which 20 columns in 100 matter; same releases, with and without
    denoising.
    """
    X, y, coef, _ = make_sparse_classification(n_rows=20_000, random_state=3)
    problem = problem_for(X)
    solver = WhitenedGradientDescent()
    plan = solver.plan(problem)
    multipliers = plan.multipliers(gaussian_mu(0.1, 1e-8), problem.n_units)

    def cosine(seed):
        source = source_of(X, y.astype(float))
        curator = Curator(
            source, plan, multipliers, problem.relation, SeededSampler(seed), SeededCoins(seed)
        )
        w = run(solver, problem, curator).w[:-1]
        return w @ coef / np.linalg.norm(w) / np.linalg.norm(coef)

    cleared = [cosine(seed) for seed in range(3)]
    monkeypatch.setattr(whitened, "denoised", lambda z, noise: z)
    raw = [cosine(seed) for seed in range(3)]
    assert all(better > worse + 0.02 for better, worse in zip(cleared, raw, strict=True))
