"""Snooze arithmetic with the real scheduler: mean skips of each mode, the gain table of Z12 (must-show 6)."""

from __future__ import annotations

import json
from typing import Any

from tests.core.appearances import Z12, build, draws_per_pass, gain_over_plain, gaps, half_easy


def _mean_skips(mode: str, passes: int) -> float:
    n = 400
    drawn = draws_per_pass(build({"mode": mode, "skip_passes": 5}, n), n, passes, half_easy, batch=100)
    return float(gaps(drawn[:, 1::2]).mean())


def figures(quick: bool) -> dict[str, Any]:
    """Mean skips at N = 5 and the largest relative distance from the table."""
    passes = 800 if quick else 4000
    rows = [row for row in Z12 if row[0] <= 12] if quick else Z12
    gains = {f"{p} passes, {s}": round(gain_over_plain(p, dict(s)), 3) for p, s, _ in rows}
    errors = [abs(gain_over_plain(p, dict(s)) / wanted - 1) for p, s, wanted in rows]
    return {
        "deterministic_skips": _mean_skips("deterministic", 200),
        "probabilistic_skips": round(_mean_skips("probabilistic", passes), 4),
        "literal_skips": round(_mean_skips("literal", passes), 4),
        "jittered_skips": round(_mean_skips("jittered", passes), 4),
        "gain_table_max_relative_error": round(max(errors), 4),
        "gains": gains,
    }


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
