"""Replay at δ = .5 beside no replay: tokens and groups per step, how far replayed rows have drifted, and held-out
accuracy at equal generated tokens (must-show 6).

Both arms are `demo.toml` with snoozing; with replay there are twice the steps, for about the same generated tokens.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from snoozing_env.report.compare import Run
from tests.bench.reuse_runs import Curve, mean_and_interval, mean_of, rounded, run_recipe, run_words, source
from tests.train.small import small_recipe

STEPS = 40
SEEDS = (0, 1, 2)
FILLED = 2
"""Steps after which the replay buffer can give half a batch."""


def figures(quick: bool) -> dict[str, Any]:
    """Per seed both arms and their difference; over seeds the mean difference with its interval."""
    pairs = {seed: _small_pair(seed) if quick else _pair(seed) for seed in ((0,) if quick else SEEDS)}
    rows = {f"seed {seed}": _compare(*pair) for seed, pair in pairs.items()}
    return {
        **rows,
        "tokens_per_step_with_replay_over_without": rounded(
            sum(r["tokens_per_step_ratio"] for r in rows.values()) / len(rows), 3
        ),
        "accuracy_at_equal_tokens, replay - none": mean_and_interval(
            [r["gain_at_end"] for r in rows.values()]
        ),
        "accuracy_half_way, replay - none": mean_and_interval([r["gain_half_way"] for r in rows.values()]),
        "mean_accuracy_until_then, replay - none": mean_and_interval([r["gain_mean"] for r in rows.values()]),
    }


def _pair(seed: int) -> tuple[Run, Run]:
    """Without and with replay."""
    words = ["@", "demo.toml", "--seed", str(seed), "--evaluation.every", "5", "--train.save_every", "1000"]
    replay = ["--replay.fresh", "0.5", "--train.steps", str(2 * STEPS + 10)]
    return run_words([*words, "--train.steps", str(STEPS)]), run_words([*words, *replay])


def _small_pair(seed: int) -> tuple[Run, Run]:
    """The same on a policy that is barely warmed up: seconds, and no accuracy to speak of."""
    with tempfile.TemporaryDirectory() as folder:
        train = {"save_every": 1000, "steps": 8}
        plain = run_recipe(small_recipe(Path(folder) / "plain", seed=seed, train=train))
        train["steps"] = 16
        replay = run_recipe(
            small_recipe(Path(folder) / "replay", seed=seed, train=train, replay={"fresh": 0.5})
        )
        return plain, replay


def _compare(plain: Run, replay: Run) -> dict[str, Any]:
    a, b = Curve(plain), Curve(replay)
    tokens = min(a.end, b.end)
    per_step = [
        mean_of(run, lambda s: s.generated_tokens if s.step <= len(plain.steps) else None, after=FILLED)
        for run in (plain, replay)
    ]
    assert per_step[0] is not None
    assert per_step[1] is not None
    return {
        "without": _arm(plain, per_step[0]),
        "with": _arm(replay, per_step[1]),
        "tokens_per_step_ratio": round(per_step[1] / per_step[0], 3),
        "equal_tokens": int(tokens),
        "accuracy_at_equal_tokens": {"without": rounded(a.at(tokens)), "with": rounded(b.at(tokens))},
        "gain_at_end": round(b.at(tokens) - a.at(tokens), 4),
        "gain_half_way": round(b.at(tokens / 2) - a.at(tokens / 2), 4),
        "gain_mean": round(b.mean_until(tokens) - a.mean_until(tokens), 4),
    }


def _arm(run: Run, tokens_per_step: float) -> dict[str, Any]:
    last = run.evals[-1]
    return {
        "steps": len(run.steps),
        "tokens_per_step": round(tokens_per_step),
        "trained_groups_per_step": rounded(mean_of(run, lambda s: s.trained_groups), 2),
        "replayed_groups_per_step": rounded(mean_of(run, lambda s: s.replayed_groups, after=FILLED), 2),
        "ratio_distance_fresh": rounded(mean_of(run, source("ratio_distance", "fresh"))),
        "ratio_distance_replayed": rounded(mean_of(run, source("ratio_distance", "replayed"))),
        "clipped_share_fresh": rounded(mean_of(run, source("clipped", "fresh"))),
        "clipped_share_replayed": rounded(mean_of(run, source("clipped", "replayed"))),
        "ess_sequence": rounded(mean_of(run, lambda s: s.ess_sequence)),
        "lag_mean": rounded(mean_of(run, lambda s: s.lag_mean), 2),
        "final_accuracy": [rounded(last.accuracy), rounded(last.low), rounded(last.high)],
    }


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
