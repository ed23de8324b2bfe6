"""Z12's tables of what snoozing saves, by the scheduler alone and through the whole loop, and the mean skips of every
mode (must-show 2)."""

from __future__ import annotations

import json
from typing import Any

from tests.bench import bench_snooze
from tests.core.appearances import Z12
from tests.sim.frozen import gain


def figures(quick: bool) -> dict[str, Any]:
    """Gains over plain dynamic sampling: measured, theory, and the largest relative error."""
    rows = [row for row in Z12 if row[0] <= (12 if quick else 600)]
    gains = {f"{p} passes, {s}": (gain(p, dict(s)), wanted) for p, s, wanted in rows}
    alone = bench_snooze.figures(quick)
    skips = {name: value for name, value in alone.items() if name.endswith("_skips")}
    wanted = {
        "deterministic_skips": 5.0,
        "probabilistic_skips": 5.0,
        "literal_skips": 0.25,
        "jittered_skips": 5.0,
    }
    return {
        "gains_through_the_loop": {name: f"{got:.3f} ({theory:g})" for name, (got, theory) in gains.items()},
        "max_relative_error": round(max(abs(got / theory - 1) for got, theory in gains.values()), 4),
        "max_relative_error_of_the_scheduler_alone": alone["gain_table_max_relative_error"],
        "mean_skips_at_5": skips,
        "max_relative_error_of_mean_skips": round(max(abs(skips[n] / w - 1) for n, w in wanted.items()), 4),
    }


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
