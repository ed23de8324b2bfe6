"""Must show 5: `snooze pool` on GSM8K, on contest items that share boilerplate only, on copies, and on 100,000 prompts.

    python -m tests.bench.light bench_pool [--quick]

Real data is read from ../shared beside the repository; figures that need it are None without it.
"""

from __future__ import annotations

import importlib.util
import json
import random
import re
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snoozing_env.pool import contamination
from snoozing_env.pool.config import PoolConfig
from snoozing_env.pool.inspection import Inspection, inspect_pool
from snoozing_env.pool.rows import PoolRow, Side
from snoozing_env.pool.text import text_hash, words

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data" / "math"


def figures(quick: bool = False) -> dict[str, Any]:
    """Every number of must show 5."""
    result = {**_contest(), **_gsm8k(), **_recall(quick)}
    return {**result, **_scale(10_000 if quick else 100_000)}


def _inspect(train: Sequence[str], evaluation: Sequence[str] = (), **options: Any) -> Inspection:
    config = PoolConfig(train=["in memory"], **options)
    return inspect_pool([*_rows(train, "train"), *_rows(evaluation, "evaluation")], config)


def _rows(texts: Sequence[str], side: Side) -> list[PoolRow]:
    return [
        PoolRow(text=text, source=side, revision="", row=place, key=f"{side}-{place}", hash=text_hash(text), side=side)
        for place, text in enumerate(texts)
    ]  # fmt: skip


def _flagged(found: Inspection) -> set[int]:
    return {evidence["row"] for exclusion in found.exclusions for evidence in exclusion.evidence}


def _contest() -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("contest", ROOT / "tests" / "pool" / "contest.py")
    contest = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(contest)
    items, copies = zip(*contest.COPIES, strict=True)
    trained = set().union(*(_13_grams(text) for text in contest.TRAINING))
    return {
        "boilerplate_items": len(contest.BOILERPLATE_ONLY),
        "boilerplate_flagged": len(_flagged(_inspect(contest.TRAINING, contest.BOILERPLATE_ONLY))),
        "boilerplate_flagged_by_one_shared_13_gram": sum(bool(_13_grams(t) & trained) for t in contest.BOILERPLATE_ONLY),
        "copies": len(items),
        "copies_flagged": len(_flagged(_inspect([*contest.TRAINING, *copies], items))),
    }  # fmt: skip


def _13_grams(text: str) -> set[tuple[str, ...]]:
    spelled = words(text)
    return {tuple(spelled[i : i + 13]) for i in range(len(spelled) - 12)}


def _questions(name: str) -> list[str]:
    path = SHARED / f"{name}.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return [json.loads(line)["question"] for line in lines]


def _gsm8k() -> dict[str, Any]:
    train, test = _questions("gsm8k_train"), _questions("gsm8k_test")
    if not train:
        return {"gsm8k": None}
    began, cpu = time.monotonic(), time.process_time()
    found = _inspect(train, test)
    crossing = [
        f"train {pair.one} ~ test {pair.other - len(train)}: {pair.similarity:.3f}"
        for pair in found.pairs
        if pair.one < len(train) <= pair.other
    ]
    return {
        "gsm8k_seconds": round(time.monotonic() - began, 1),
        "gsm8k_cpu_s": round(time.process_time() - cpu, 1),
        "gsm8k_near_duplicates": crossing,
        "gsm8k_excluded": [exclusion.row.row for exclusion in found.exclusions],
    }


def _recall(quick: bool) -> dict[str, Any]:
    """Share of GSM8K test items found when a training text is a copy with words replaced."""
    items = _questions("gsm8k_test")[: 200 if quick else 600]
    rng, shares = random.Random(0), {}
    for every in (50, 20):
        copies = [" ".join(rng.choice(("some", "big", "item")) if rng.random() < 1 / every else w for w in text.split()) for text in items]  # fmt: skip
        by_grams = _inspect(copies, items, near=1.0)
        shares[f"recall_one_word_in_{every}"] = (
            round(len(_flagged(_inspect(copies, items))) / len(items), 3) if items else None
        )
        shares[f"recall_one_word_in_{every}_13_grams_alone"] = (
            round(len(_flagged(by_grams)) / len(items), 3) if items else None
        )
    return {**shares, "coverage": contamination.OverlapRule().coverage}


def _scale(count: int) -> dict[str, Any]:
    """Prompts made of sentences of real questions (of invented words without them), a tenth of them near-copies."""
    rng = random.Random(0)
    sentences = [s for q in _questions("gsm8k_train") for s in re.split(r"(?<=[.?!]) ", q) if len(s) > 20]
    sentences = sentences or [" ".join(f"w{rng.randrange(5000)}" for _ in range(12)) for _ in range(20_000)]
    prompts = [" ".join(rng.sample(sentences, rng.randint(3, 5))) for _ in range(count * 9 // 10)]
    prompts += [f"{rng.choice(prompts)} Explain." for _ in range(count - len(prompts))]
    began, cpu = time.monotonic(), time.process_time()
    found = _inspect(prompts, _questions("gsm8k_test"))
    return {
        "prompts": len(prompts),
        "prompts_seconds": round(time.monotonic() - began, 1),
        "prompts_cpu_s": round(time.process_time() - cpu, 1),
        "prompts_rss_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "prompts_clusters": sum(size > 1 for size in found.cluster_sizes.values()),
    }
