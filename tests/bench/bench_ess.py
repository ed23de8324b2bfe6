"""Effective sample size of log-normal ratios against theory, clamped beside raw, and the bias of small batches (must-show 4)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from snoozing_env.importance import Ess, kish_ess

CLAMP = (0.8, 1.28)
SIGMAS = (0.1, 0.2, 0.5, 1.0)


def figures(quick: bool) -> dict[str, Any]:
    """Large samples for theory, small batches for the bias."""
    rng = np.random.default_rng(0)
    n = 1_000_000 if quick else 10_000_000
    rows: dict[str, Any] = {}
    for sigma in SIGMAS:
        log_ratios = sigma * rng.standard_normal(n) - sigma**2 / 2
        ess = Ess.of(log_ratios, clamp=CLAMP)
        theory = float(np.exp(-(sigma**2)))
        rows[f"sigma {sigma}"] = {
            "theory": round(theory, 5),
            "kish": round(ess.kish, 5),
            "second_moment": round(ess.second_moment, 5),
            "error_percent": round(
                100 * max(abs(ess.kish / theory - 1), abs(ess.second_moment / theory - 1)), 3
            ),
            "kish_clamped": round(ess.kish_clamped, 4),
            "mean_kish_of_batches": {
                size: round(
                    float(
                        np.mean([kish_ess(r) for r in np.exp(log_ratios[: 2000 * size]).reshape(-1, size)])
                    ),
                    4,
                )
                for size in (8, 64, 256)
            },
        }
    return {
        "ess": rows,
        "largest_error_percent": max(row["error_percent"] for row in rows.values()),
    }


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
