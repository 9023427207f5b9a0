"""Exact integer noise, from the operating system's generator or, for tests, from a seed.

AheadSampler         A sampler that draws the next Gaussian noise in a thread
DiscreteNoise        All discrete Gaussian noise of a fit, and its privacy loss
OpenDPSampler        The same noise from OpenDP's exact samplers
Sampler              Source of integer noise
SecureSampler        Exact discrete noise from the operating system's cryptographic generator
SeededSampler        Reproducible noise for tests and simulations
discretisation_loss  Epsilon to add when a Gaussian guarantee is met by discrete noise
sampler_for          Choose the sampler for a ``random_state``
"""

from hushfit.privacy.noise._ahead import AheadSampler
from hushfit.privacy.noise._sampler import (
    DiscreteNoise,
    OpenDPSampler,
    Sampler,
    SecureSampler,
    SeededSampler,
    discretisation_loss,
    sampler_for,
)

__all__ = [
    "AheadSampler",
    "DiscreteNoise",
    "OpenDPSampler",
    "Sampler",
    "SecureSampler",
    "SeededSampler",
    "discretisation_loss",
    "sampler_for",
]
