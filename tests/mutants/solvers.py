"""Bugs of solvers that use more than their releases."""

import numpy as np

from hushfit.release import ClippedGradient, GradientWithMoment, HessianSum, SecondMoment
from hushfit.release.curator import Curator
from hushfit.release.mechanisms import _batches
from hushfit.solvers.admm import _vradmm as vradmm
from hushfit.solvers.gradient import _dp_sgd as dp_sgd
from hushfit.solvers.gradient import _line_search as bls
from hushfit.solvers.gradient import _proximal as proximal
from hushfit.solvers.newton import _newton as newton
from hushfit.solvers.wrappers import _private_graph as private_graph

from ._mutant import Mutant, swapped, together


def rows_behind(curator):
    """The rows, which only the curator should hold."""
    inner = curator
    while not isinstance(inner, Curator):
        inner = inner.curator
    return inner._Curator__source


def exact_gradient(problem, curator, w, clip):
    return (
        ClippedGradient(problem, w, clip)(rows_behind(curator), None).reshape(problem.shape)
        / problem.n_units
    )


def dual_without_noise():
    original = vradmm.Splitting.dual_start
    held = {}
    original_epoch = vradmm._TwoNoises.epoch

    def epoch(self, problem, curator, solver, snapshot):
        held["exact"] = exact_gradient(problem, curator, snapshot, solver.clip_used)
        return original_epoch(self, problem, curator, solver, snapshot)

    return together(
        swapped(vradmm._TwoNoises, epoch=epoch),
        swapped(
            vradmm.Splitting,
            dual_start=lambda splitting, x, g: original(splitting, x, held["exact"]),
        ),
    )


def stops_by_the_exact_gradient():
    original = proximal.ProximalGradient.iterates

    def iterates(self, problem, curator):
        for iterate in original(self, problem, curator):
            yield iterate
            clip = problem.loss.slope_bound
            if np.linalg.norm(exact_gradient(problem, curator, iterate.w, clip)) < 1e-9:
                return

    return swapped(proximal.ProximalGradient, iterates=iterates)


def better_of_two_by_the_rows():
    """Of two iterates, the one with the smaller exact gradient."""

    def finish(self, problem, curator, average):
        here, there = (
            np.linalg.norm(exact_gradient(problem, curator, w, 1.0))
            for w in (average, 0.5 * average)
        )
        return average if here <= there else 0.5 * average

    return swapped(dp_sgd.DPSGD, finish=finish)


def curvature_without_noise():
    def _by_curvature(solver, problem, curator, gradient):
        w, query = gradient.w, HessianSum(problem, gradient.w, solver.curvature)
        together = GradientWithMoment(gradient, query, solver.curvature_share)
        g = together.split(curator.release("gradient and curvature", together))[0] / problem.n_units
        exact = query.matrix(query(rows_behind(curator), None)) / problem.n_units
        H = newton.at_least(exact, 0.01 if solver.floor is None else solver.floor)
        return w - np.linalg.solve(H, np.atleast_2d(g).T).T.reshape(w.shape)

    return swapped(newton, _by_curvature=_by_curvature)


def moment_for_nothing():
    """Regarded as preprocessing that needs no noise."""
    original = _batches.gaussian_answer

    def gaussian_answer(query, source, rows, multiplier, entropy):
        exact = isinstance(query, SecondMoment)
        return query(source, rows) if exact else original(query, source, rows, multiplier, entropy)

    return swapped(_batches, gaussian_answer=gaussian_answer)


def step_by_the_rows():
    original = bls.DPBLS._gradient_and_step

    def _gradient_and_step(self, problem, curator, w, search):
        g, _ = original(self, problem, curator, w, search)
        return g, int(search.gate(problem, w, g)(rows_behind(curator), None)[0])

    return swapped(bls.DPBLS, _gradient_and_step=_gradient_and_step)


def graph_of_the_rows():
    def _estimated(self, problem, curator):
        query = SecondMoment(problem)
        M = query.matrix(query(rows_behind(curator), None)) / problem.n_units
        return private_graph.graph_of_moment(M, 1e-6, problem.fit_intercept, self.alpha)

    return swapped(private_graph.PrivateGraph, _estimated=_estimated)


SOLVERS = (
    Mutant(
        "dual without noise",
        "hushfit.solvers.admm._vradmm",
        "The dual variable starts from the exact gradient.",
        dual_without_noise,
        ("replay of dp-vradmm, strongly convex",),
        "DP-VRADMM, strongly convex case",
    ),
    Mutant(
        "stops by the exact gradient",
        "hushfit.solvers.gradient._proximal",
        "A solver compares the exact gradient with a tolerance and stops.",
        stops_by_the_exact_gradient,
        ("replay of proximal-gd",),
    ),
    Mutant(
        "better of two by the rows",
        "hushfit.solvers.gradient._dp_sgd",
        "The result is the one of two iterates that fits the rows better.",
        better_of_two_by_the_rows,
        ("replay of dp-sgd",),
    ),
    Mutant(
        "curvature without noise",
        "hushfit.solvers.newton._newton",
        "Newton steps use a noisy gradient and the exact Hessian.",
        curvature_without_noise,
        ("replay of newton",),
    ),
    Mutant(
        "second moment for nothing",
        "hushfit.release.mechanisms._batches",
        "The second moment that whitens the columns gets no noise, as if it were preprocessing.",
        moment_for_nothing,
        ("noise of whitened-gd", "noise of prox-newton"),
    ),
    Mutant(
        "step size by the rows",
        "hushfit.solvers.gradient._line_search",
        "A line search uses the exact loss; only its gradients are noisy.",
        step_by_the_rows,
        ("replay of bls", "replay of bls, all rows"),
    ),
    Mutant(
        "graph of the rows",
        "hushfit.solvers.wrappers._private_graph",
        "The graph over the columns is estimated from the exact second moment.",
        graph_of_the_rows,
        ("replay of private graph",),
        "DP-SADMM, DP-VRADMM",
    ),
)
