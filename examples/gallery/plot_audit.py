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
shares = {"as proved": 1.0, "half the noise": 0.5, "twice the noise": 2.0}
found = {
    name: audit(noisy_sum(share), claim, trials=20_000, seed=1) for name, share in shares.items()
}
for name, result in found.items():
    print(f"{name}: {result.verdict}")

# %%
# What the attacker sees: the sum with the record, and without it.
rng = np.random.default_rng(0)
figure, places = plt.subplots(3, 1, sharex=True)
for place, (name, share) in zip(places, shares.items(), strict=True):
    for world, color in ((0, "#0b6e69"), (1, "#b4540a")):
        draws = rng.normal(1.0 - world, share * scale, 20_000)
        place.hist(draws, 80, (-8, 9), color=color, alpha=0.5, density=True)
    place.set_title(f"{name}: {found[name].verdict}", loc="left")
    place.set_yticks([])
places[-1].set_xlabel("noisy sum")
plt.show()
