"""Bugs in networks: those of the literature and of other libraries. Needs torch."""

from dataclasses import replace

import numpy as np

from hushfit.privacy import PureCost, compose
from hushfit.privacy.noise import _ahead
from hushfit.release import mechanism as release_mechanism
from hushfit.release.mechanisms import _gate as release_gate
from hushfit.torch import _fit as fitting
from hushfit.torch import _gate as network_gate
from hushfit.torch import _module_loss as module_losses
from hushfit.torch import _network as network_module
from hushfit.torch import _rows as network_rows
from hushfit.torch import _validation as validation
from hushfit.torch._gradient import NetworkGradient
from hushfit.torch._groups import GROUP_ROWS, Weighted
from hushfit.torch._parts import Outer

from ._mutant import Mutant, swapped, together


def _engines_taken_as_right():
    return swapped(validation, _agrees=lambda engine, x, y: True)


def types_not_looked_at():
    """Batch normalisation in a fit whose checks were written for other layers."""
    return together(
        swapped(
            validation,
            refuse_known_layers=lambda module: None,
            _check_rows_apart=lambda compute, x, y, what: None,
            _same=lambda one, other: True,
        ),
        _engines_taken_as_right(),
    )


def only_types_looked_at():
    """As in Opacus: known layers are refused, and own layers that mix examples are not."""
    return together(
        swapped(validation, _check_rows_apart=lambda compute, x, y, what: None),
        _engines_taken_as_right(),
    )


def tied_weights_not_looked_for():
    return together(
        swapped(module_losses.ModuleLoss, __post_init__=lambda self: None),
        swapped(network_module, sums_repeat=lambda engine, shape, rows: True),
        _engines_taken_as_right(),
    )


def norms_in_half_precision():
    original = Outer.squared_norms

    def squared_norms(self):
        return original(self).sqrt().half().double().square()

    return together(swapped(Outer, squared_norms=squared_norms), _engines_taken_as_right())


def half_the_radius():
    """Norms in float32, and a radius of half the clipping norm."""
    norms, radius = Outer.squared_norms, NetworkGradient.radius
    return together(
        swapped(Outer, squared_norms=lambda self: norms(self).float().double()),
        swapped(NetworkGradient, radius=lambda self: radius(self) / 2),
        _engines_taken_as_right(),
    )


def first_layer_alone():
    original = NetworkGradient._clipped

    def clipped(self, parts, shares):
        return Weighted(parts, original(self, parts[:1], shares).weights)

    return swapped(NetworkGradient, _clipped=clipped)


def realised_batch():
    original = NetworkGradient.__call__

    def mean(self, source, units):
        count = source.n_units if units is None else max(1, len(units))
        return original(self, source, units) * source.n_units / count

    return swapped(NetworkGradient, __call__=mean)


def persons_in_full():
    def shares(self):
        return np.ones(1)

    return swapped(network_rows.NetworkRows, shares=property(shares))


def decreases_not_clipped():
    def drop(self, before, after):
        return float(((before[0] - after[0]) * before[1]).sum())

    return swapped(network_gate.NetworkLossDrop, _drop=drop)


def groups_by_place():
    """Groups of records by their places in the table."""

    def groups_of(self, units):
        rows = self.rows_of(units)
        ends = [*range(GROUP_ROWS, len(rows), GROUP_ROWS), len(rows)]
        return rows, ends if len(rows) else [], rows[:0]

    return swapped(network_rows.NetworkRows, groups_of=groups_of)


def gate_amplified_apart():
    def cost(self, noise_multiplier, count, n_units):
        gate = np.log1p(self.rate * np.expm1(self.gate / noise_multiplier))
        alone = release_gate.GatedCost(1e3, self.rate, self.noise, 2e3, 4e3, 1)
        return compose([alone, PureCost(gate, count)])

    return swapped(release_gate.GatedBatch, cost=cost)


def noise_of_one_layer_for_all():
    original = release_mechanism._gaussian_noise

    def repeated(query, log2_deviation, sampler):
        noise = original(query, log2_deviation, sampler)
        half = len(noise) // 2
        noise[half : 2 * half] = noise[:half]
        return noise

    return swapped(release_mechanism, _gaussian_noise=repeated)


def noise_ahead_kept():
    """Noise that was drawn ahead stays where it is, and is handed out again."""

    def gaussian(self, log2_variance, size):
        if self._next is None:
            self._next = self._sampler.gaussian(log2_variance, size)
        return self._next

    return swapped(_ahead.AheadSampler, gaussian=gaussian)


def checkpoint_that_draws_again():
    original = fitting.Checkpoint.load.__func__

    def load(cls, path, fit):
        found = original(cls, path, fit)
        return replace(found, claimed=found.state.step)

    return swapped(fitting.Checkpoint, load=classmethod(load))


_GRADIENT = ("sensitivity of network gradient",)
_MODULES = ("modules that mix examples",)

NETWORKS = (
    Mutant(
        "batch normalisation let through",
        "hushfit.torch._validation",
        "A network with batch statistics is fitted: every example changes all gradients.",
        types_not_looked_at,
        _MODULES,
    ),
    Mutant(
        "only types looked at",
        "hushfit.torch._validation",
        "Layers are judged by their types, so an own layer may centre a batch, or share a mask.",
        only_types_looked_at,
        _MODULES,
        "validator of Opacus",
    ),
    Mutant(
        "tied weights",
        "hushfit.torch._module_loss",
        "Two layers share their weights, and only a part of their gradient is clipped.",
        tied_weights_not_looked_for,
        _MODULES,
    ),
    Mutant(
        "norms in half precision",
        "hushfit.torch._parts",
        "Norms are computed with fewer digits than the gradients that are added.",
        norms_in_half_precision,
        _GRADIENT,
    ),
    Mutant(
        "half the radius of a network",
        "hushfit.torch._gradient",
        "Norms are in float32, and the noise is for half the clipping norm.",
        half_the_radius,
        _GRADIENT,
    ),
    Mutant(
        "first layer alone",
        "hushfit.torch._gradient",
        "Gradients are clipped by the norm of their first layer.",
        first_layer_alone,
        _GRADIENT,
    ),
    Mutant(
        "mean over the realised batch",
        "hushfit.torch._gradient",
        "A sum is divided by the secret size of its batch, so a record changes all shares.",
        realised_batch,
        _GRADIENT,
    ),
    Mutant(
        "records of persons in full",
        "hushfit.torch._rows",
        "Every record of a person counts fully.",
        persons_in_full,
        ("sensitivity of network gradient, persons",),
    ),
    Mutant(
        "decreases of networks not clipped",
        "hushfit.torch._gate",
        "The decrease of one record's loss enters a line search in full.",
        decreases_not_clipped,
        ("sensitivity of network decreases",),
    ),
    Mutant(
        "groups by place",
        "hushfit.torch._rows",
        "Sums in float32 are over records in the order of the table: one record moves all others "
        "to other groups.",
        groups_by_place,
        ("order of network records",),
    ),
    Mutant(
        "gate of a network amplified apart",
        "hushfit.release.mechanisms._gate",
        "Gradient and gate read one batch, and each is amplified by sampling for itself.",
        gate_amplified_apart,
        ("price of a network's line search",),
        "thesis, chapter 5",
    ),
    Mutant(
        "noise of one layer for all",
        "hushfit.release.mechanism",
        "Layers share their noise, which then cancels in differences.",
        noise_of_one_layer_for_all,
        ("noise on network gradient",),
    ),
    Mutant(
        "noise drawn ahead kept",
        "hushfit.privacy.noise._ahead",
        "Noise that was drawn ahead is handed out twice.",
        noise_ahead_kept,
        ("noise drawn ahead",),
    ),
    Mutant(
        "checkpoint that draws again",
        "hushfit.torch._checkpoint",
        "A fit that was killed draws the steps after its last checkpoint a second time.",
        checkpoint_that_draws_again,
        ("checkpoint of a network",),
    ),
)
