"""Round axis ticks, and how numbers are written beside them."""

from __future__ import annotations

import math

TINY = 1e-30
"""A spread below this is none: an axis cannot be cut finer without running out of floats."""


def nice_ticks(low: float, high: float, target: int = 5) -> list[float]:
    """Round values (1, 2, 2.5 or 5 times a power of ten apart) that cover [low, high]; about `target` of them."""
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError(f"got the range [{low}, {high}]; wanted finite bounds")
    size = max(abs(low), abs(high))
    if high - low <= max(1e-12 * size, TINY):
        pad = size * 0.1 if size > TINY else 1.0
        low, high = low - pad, high + pad
    raw = (high - low) / max(1, target - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    # Quarters read well as shares (25 %) or hundreds, not as counts (2.5 groups).
    factors = (1, 2, 5, 10) if power == 1.0 else (1, 2, 2.5, 5, 10)
    step = next(power * m for m in factors if power * m >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    digits = 2 - math.floor(math.log10(step))
    return [round(i * step, digits) for i in range(first, last + 1)]


def short(value: float) -> str:
    """Two or three significant digits: `0.012`, `4.2`, `1.25k`, `3.1M`."""
    size, sign = abs(value), "−" if value < 0 else ""
    for limit, unit, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= limit:
            return f"{sign}{size / unit:.3g}{letter}"
    if 0 < size < 1e-3:
        return f"{sign}{size:.1e}"
    if size == round(size) or size >= 1000:
        return f"{sign}{size:.0f}"
    return f"{sign}{size:.3g}" if size >= 0.1 else f"{sign}{size:.2g}"


def share(value: float) -> str:
    """A share as per cent, one decimal below ten points of precision."""
    points = round(100 * value, 1)
    return f"{points:.0f} %" if points == round(points) else f"{points:.1f} %"


def spread(n: int, most: int) -> list[int]:
    """At most `most` indices into n things, evenly apart, the first and the last always among them."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]
