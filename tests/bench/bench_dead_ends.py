"""Saturated, impossible, single-task and emptying pools for every kind of scheduler, snooze mode and mixture
(must-show 7)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from snoozing_env.schedulers import KINDS
from snoozing_env.sim.run import Trace
from tests.sim.dead_ends import FLOOR, MIXTURES, MODES, MOST_PER_STEP, floor_share, run, run_emptying
from tests.sim.frozen import HOPELESS, SOLVED, frozen

QUICK_MODES = ("deterministic", "permanent", "off")


def figures(quick: bool) -> dict[str, Any]:
    """How many runs ended how, and the most groups that any step generated; an exception ends the benchmark."""
    modes = QUICK_MODES if quick else MODES
    pools: dict[str, Counter[str]] = {}
    most = 0
    for pool, trace in _traces(modes):
        pools.setdefault(pool, Counter())[_ending(trace)] += 1
        most = max(most, *(step.generated for step in trace.steps), 0)
    floors = [
        floor_share(kind, mode, mixture) for kind in KINDS for mode in modes for mixture in ("draws", "batch")
    ]
    return {
        "kinds": len(KINDS),
        "modes": len(modes),
        **{pool: dict(endings) for pool, endings in pools.items()},
        "most_groups_in_a_step": most,
        "bound": MOST_PER_STEP,
        "floor": FLOOR,
        "trained_share_of_the_floored_dataset": [round(min(floors), 3), round(max(floors), 3)],
    }


def _traces(modes: tuple[str, ...]) -> Iterator[tuple[str, Trace]]:
    for kind in KINDS:
        for mode in modes:
            for mixture in MIXTURES:
                yield "saturated", run(frozen((20, SOLVED), (20, SOLVED)), kind, mode, mixture)
                yield "impossible", run(frozen((20, HOPELESS), (20, HOPELESS)), kind, mode, mixture)
                yield "a dataset turns solved", run_emptying(kind, mode, mixture, SOLVED)[0]
                yield "a dataset turns impossible", run_emptying(kind, mode, mixture, HOPELESS)[0]
            for name, difficulty in (("informative", 0.0), ("solved", SOLVED), ("impossible", HOPELESS)):
                yield f"one task, {name}", run(frozen((1, difficulty)), kind, mode, "none", steps=5)


def _ending(trace: Trace) -> str:
    if trace.ended != "finished":
        return trace.ended.split(":")[0] + ", all " + trace.ended.rsplit(" ", 1)[-1]
    full = all(step.trained == trace.steps[0].trained for step in trace.steps)
    return "finished, every batch full" if full else "finished, some batches partial"


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
