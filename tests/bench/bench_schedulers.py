"""`make bench-schedulers`: every scheduler without a model, as a table and as one JSON line keyed by its number."""

from __future__ import annotations

import importlib
from typing import Any

from tests.bench.light import Part, main

PARTS = (
    Part(number="1", title="the chapter's simulation and exercises", module="bench_chapter", quick=True),
    Part(number="2-3", title="simulator: Z12, figures 3 and 4", module="bench_simulator", quick=True),
    Part(number="5", title="difficulty predicted from texts", module="bench_dots", quick=True),
    Part(number="6", title="cost of draws, observations and state", module="bench_draws", quick=True),
    Part(number="8-9", title="resuming; what the contract suite notices", module="bench_laws", quick=True),
)


def figures(quick: bool) -> dict[str, Any]:
    """Every part's figures by number, measured in this process."""
    return {
        part.number: importlib.import_module(f"tests.bench.{part.module}").figures(quick) for part in PARTS
    }


if __name__ == "__main__":
    main(PARTS, "bench-schedulers")
