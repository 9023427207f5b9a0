"""What every plan reads from the options: its budgets, and its delta."""

import math
from typing import Any

import click

# Where no number of rows says what is small.
_USUAL_DELTA = 1e-6


def budgets_of(text: str) -> list[float]:
    """Seven budgets from low to high, in equal ratios."""
    try:
        low, high = (float(part) for part in text.split(":"))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not LOW:HIGH, such as .05:4.", param_hint="--epsilon-range"
        ) from None
    if not 0 < low <= high < math.inf:
        raise click.BadParameter(f"{text!r} needs 0 < LOW <= HIGH.", param_hint="--epsilon-range")
    steps = 1 if low == high else 7
    return [float(f"{low * (high / low) ** (k / max(steps - 1, 1)):.3g}") for k in range(steps)]


def delta_of(given: dict[str, Any], count: int | None) -> float:
    """The stated delta, or a tenth of one over the number of units."""
    if given["delta"] is not None:
        return float(given["delta"])
    return _USUAL_DELTA if count is None else 0.1 / max(count, 2)
