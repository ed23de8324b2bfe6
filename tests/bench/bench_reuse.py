"""What a run trains on more than once: replay (must-show 6) and stored successes (7), in one process."""

from __future__ import annotations

import json
from typing import Any

from tests.bench import bench_replay, bench_success


def figures(quick: bool) -> dict[str, Any]:
    """Both, keyed by number."""
    return {"6": bench_replay.figures(quick), "7": bench_success.figures(quick)}


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
