"""`make bench-schedulers`: every scheduler without a model, as a table and as one JSON line keyed by the number of
what it shows."""

from __future__ import annotations

import importlib
from typing import Any

from tests.bench.light import Part, main

PARTS = (
    Part(number="1", title="the chapter's simulation and exercises", module="bench_chapter", quick=True),
    Part(number="2", title="what snoozing saves, and mean skips", module="bench_gain", quick=True),
    Part(number="3", title="figures 3 and 4 of the post", module="bench_simulator", quick=True),
    Part(number="4", title="auto and the conflict monitor", module="bench_conflict", quick=True),
    Part(number="5", title="difficulty predicted from texts", module="bench_dots", quick=True),
    Part(number="6", title="cost of draws, observations and state", module="bench_draws", quick=True),
    Part(number="7", title="pools with nothing to learn", module="bench_dead_ends", quick=True),
    Part(number="8-9", title="resuming; what the contract suite notices", module="bench_laws", quick=True),
    Part(number="10", title="selectors at equal generated tokens", module="bench_selectors", quick=True),
)


def figures(quick: bool) -> dict[str, Any]:
    """Every part's figures by number, measured in this process."""
    return {
        part.number: importlib.import_module(f"tests.bench.{part.module}").figures(quick) for part in PARTS
    }


if __name__ == "__main__":
    main(PARTS, "bench-schedulers")
