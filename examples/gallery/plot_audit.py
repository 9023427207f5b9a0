"""
Auditing a claim
================

An attack that distinguishes two neighbouring tables gives a lower bound on epsilon. Here are three
mechanisms that all claim epsilon 2; one of them forgot half of its noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from hushfit.audit import Claim, audit
from hushfit.privacy import gaussian_mu

claim = Claim.gaussian(2.0, 1e-5)
scale = 1 / gaussian_mu(2.0, 1e-5)


def noisy_sum(share_of_noise):
    """A sum that one record moves by 1, with that share of the noise it needs."""

    def mechanism(world, seed):
        return float(np.random.default_rng(seed).normal(1.0 - world, share_of_noise * scale))

    return mechanism


# %%
found = {
    name: audit(noisy_sum(share), claim, trials=20_000, seed=1)
    for name, share in {"as proved": 1.0, "half the noise": 0.5, "twice the noise": 2.0}.items()
}
for name, result in found.items():
    print(f"{name}: {result.verdict}")

# %%
rng = np.random.default_rng(0)
figure, places = plt.subplots(1, 3, figsize=(8, 3), layout="constrained", sharey=True)
for place, (name, share) in zip(
    places, {"as proved": 1.0, "half": 0.5, "twice": 2.0}.items(), strict=False
):
    for world, color in ((0, "#0b6e69"), (1, "#b4540a")):
        draws = rng.normal(1.0 - world, share * scale, 20_000)
        place.hist(draws, 80, (-8, 9), color=color, alpha=0.5, density=True)
    place.set_title(f"{name}: {[*found.values()][[1.0, 0.5, 2.0].index(share)].verdict}")
plt.show()
