"""Grounded QA's share of must-shows 1, 3 and 4: normaliser, constant policies, leaks, fuzz, contract, generator.

    python -m tests.bench.bench_groundedqa [--quick]

Prints a table, ends with one JSON line keyed by the must-show numbers. Real data is read from ../shared beside the
repository; figures that need it are None without it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from snooze_groundedqa import (
    ABSTAIN,
    GroundedQAConfig,
    GroundedQAData,
    GroundedQATask,
    GroundedQATaskset,
    grade,
    match,
)
from snooze_groundedqa.generator import LEVELS, Item, items

from tests.bench.groundedqa_leaks import leaks

SHARED = Path(__file__).resolve().parents[3] / "shared"
SQUAD = SHARED / "data/qa/squad2_cs224n_dev.json"
CASES = SHARED / "cases/qa_normalisation.jsonl"
SHINGLE = 5
"""Words in a row that two near-duplicates would share often."""
POLICIES: dict[str, Callable[[GroundedQAData], str]] = {
    "always_abstain": lambda data: f"<answer>{ABSTAIN}</answer>",
    "always_first_entity": lambda data: f"<answer>{_first_entity(data.passage)}</answer>",
    "copy_the_passage": lambda data: f"<answer>{data.passage}</answer>",
    "empty": lambda data: "",
    "answer_and_abstain": lambda data: (
        f"<answer>{(*data.answers, 'Rome')[0]}</answer> <answer>{ABSTAIN}</answer>"
    ),
}


def figures(quick: bool = False) -> dict[str, dict[str, Any]]:
    """The figures by must-show number; about 15 s quick, two minutes in full."""
    return {"1": normaliser_and_policies(quick), "3": contract(quick), "4": generator(quick)}


def normaliser_and_policies(quick: bool) -> dict[str, Any]:
    """Must show 1."""
    found: dict[str, Any] = {"cases_right": None, "cases": None}
    if CASES.is_file():
        cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
        right = sum(match(case["gold"], case["answer"]) is case["correct"] for case in cases)
        found = {"cases_right": right / len(cases), "cases": len(cases)}
    facts = _tasks(size=600 if quick else 6000)
    found["facts_policies"] = _policies(facts)
    if SQUAD.is_file():
        found |= _squad_golds()
        balanced = [
            task for split in ("train", "eval") for task in _tasks(source="squad", path=SQUAD, split=split)
        ]
        found["squad_policies"] = _policies(balanced[::10] if quick else balanced)
    return found | leaks(6000 if quick else 24_000)


def _tasks(**config: Any) -> list[GroundedQATask]:
    return list(GroundedQATaskset(GroundedQAConfig(**config)))


def _squad_golds() -> dict[str, Any]:
    """Over every question of the file, as published."""
    document = json.loads(SQUAD.read_text(encoding="utf-8"))
    questions = [q for article in document["data"] for p in article["paragraphs"] for q in p["qas"]]
    answerable = [q for q in questions if not q["is_impossible"]]
    rest = [q for q in questions if q["is_impossible"]]
    golds = [
        all(grade(a["text"], f"<answer>{a['text']}</answer>").correct for a in q["answers"])
        for q in answerable
    ]
    abstentions = [grade(None, f"<answer>{ABSTAIN}</answer>").correct for _ in rest]
    return {
        "squad_golds_right": sum(golds) / len(golds),
        "squad_abstentions_right": sum(map(bool, abstentions)) / len(rest),
        "squad_questions": len(questions),
    }


def _policies(tasks: Sequence[GroundedQATask]) -> dict[str, float]:
    """Mean reward of each constant policy; the gold earns 1."""
    return {
        name: round(sum(task.points(task.judgement(reply(task.data))) for task in tasks) / len(tasks), 4)
        for name, reply in POLICIES.items()
    }


def _first_entity(passage: str) -> str:
    found = re.search(r"\b[A-Z][\w'-]+(?: [A-Z][\w'-]+)*", passage)
    return found[0] if found else "Rome"


def contract(quick: bool) -> dict[str, Any]:
    """Must show 3."""
    found: dict[str, Any] = {f"vf_validate_{style}": _validated(style) for style in ("instruct", "bare")}
    found |= _keys(300 if quick else 3000)
    return found | _fuzz(1000 if quick else 10_000)


def _validated(style: str) -> str:
    """Tasks that vf-validate's gold and no-op checks found valid, of how many."""
    command = [
        str(Path(sys.executable).parent / "vf-validate"), "snooze-groundedqa", "--runtime.type", "subprocess",
        "--taskset.size", "24", "--taskset.style", style,
    ]  # fmt: skip
    path = os.pathsep.join(filter(None, sys.path))
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        summaries = list(Path(folder).rglob("summary.json"))
        if not summaries:
            return f"failed: {(done.stderr or done.stdout)[-200:]}"
        checks = json.loads(summaries[0].read_text())["checks"]
    return ", ".join(
        f"{name} {checks[name]['valid']} of {sum(checks[name].values())}" for name in ("gold", "noop")
    )


def _keys(size: int) -> dict[str, Any]:
    """Whether every process and hash seed makes the same keys, and no key twice."""
    code = (
        "import hashlib; from snooze_groundedqa import GroundedQAConfig as C, GroundedQATaskset as T; "
        f"k = [t.key for s in ('instruct', 'bare') for t in T(C(style=s, size={size}))]; "
        "print(len(k), len(set(k)), hashlib.sha256(''.join(k).encode()).hexdigest())"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    seen = [
        subprocess.run(
            [sys.executable, "-c", code],
            env={**env, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for seed in ("1", "2")
    ]
    return {"keys": int(seen[0][0]), "keys_unique": int(seen[0][1]), "keys_stable": seen[0] == seen[1]}


def _fuzz(count: int) -> dict[str, Any]:
    """CPU milliseconds per grading of replies made to upset it; an exception would end the benchmark."""
    rng, spent, right = random.Random(0), [], 0
    golds = ("Rollo", "1,000", "July 4, 1776", None)
    for number in range(count):
        reply = _fuzzed(rng, number)
        began = time.process_time()
        right += grade(golds[number % len(golds)], reply).correct is True
        spent.append(1e3 * (time.process_time() - began))
    p50, p99 = np.percentile(spent, [50, 99])
    return {
        "fuzzed_replies": count,
        "fuzz_p50_ms": round(float(p50), 3),
        "fuzz_p99_ms": round(float(p99), 2),
        "fuzz_max_ms": round(max(spent), 2),
        "fuzz_graded_right": right,
    }


def _fuzzed(rng: random.Random, number: int) -> str:
    pieces = (
        "<answer>", "</answer>", "<evidence>", "</evidence>", "<think>", "</think>", "Answer: ", "\n", "UNANSWERABLE", "?", "**", "½", "-", "1,", "A.",
        "one hundred and ", "million ", "$1 ", "July ", "4, ", ", and ", "from 3 to ", "\ud800", "\u202e", "﷽", "IV ", "°", "^", "'", '"', "the ", "…",
    )  # fmt: skip
    kind = number % 5
    if kind == 0:
        return rng.randbytes(rng.randrange(4000)).decode(rng.choice(("latin-1", "utf-8")), "replace")
    if kind == 1:
        return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(600)))
    if kind == 2:
        return "".join(rng.choices(pieces, k=rng.randrange(400)))
    if kind == 3:
        inside = "".join(rng.choices(pieces[8:], k=rng.randrange(90)))
        return "<answer>" * rng.randrange(1, 4) + inside + "</answer>"
    piece = "".join(rng.choices(pieces, k=rng.randrange(1, 4)))
    # One reply in fifty is megabytes long.
    length = rng.randrange(10**6, 3 * 10**6) if number % 50 == 4 else rng.randrange(40_000)
    return piece * (length // len(piece) + 1)


def generator(quick: bool) -> dict[str, Any]:
    """Must show 4; over 100,000 items, a quarter of them held out."""
    total = 6000 if quick else 100_000
    found: dict[str, Any] = {"items": total}
    for bare in (False, True):
        name = "bare" if bare else "facts"
        began = time.process_time()
        train = _drawn("train", total * 3 // 4, bare)
        held_out = _drawn("eval", total // 4, bare)
        found[f"{name}_items_per_s"] = round(total / (time.process_time() - began))
        found[f"{name}_reproducible"] = _digest(train[:600]) == _elsewhere(600, bare)
        texts = [{_key(item, bare) for item in side} for side in (train, held_out)]
        found[f"{name}_shared_exactly"] = len(texts[0] & texts[1])
        if not bare:
            found["facts_nearest_jaccard"] = _nearest(train, held_out)
    return found


def _drawn(side: Any, size: int, bare: bool) -> list[Item]:
    return list(items(side=side, size=size, levels=sorted(LEVELS), unanswerable_share=0.45, bare=bare))


def _key(item: Item, bare: bool) -> str:
    """Bare items are compared by their facts alone, in any order: another question about them counts as the same."""
    return ",".join(sorted(item.passage.split(","))) if bare else f"{item.passage}\n{item.question}"


def _digest(drawn: Sequence[Item]) -> str:
    return hashlib.sha256("".join(f"{i.passage}|{i.question}|{i.answer}" for i in drawn).encode()).hexdigest()


def _elsewhere(size: int, bare: bool) -> str:
    """The digest of the same items in another process with another hash seed."""
    code = f"from tests.bench.bench_groundedqa import _digest, _drawn; print(_digest(_drawn('train', {size}, {bare})))"
    env = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _nearest(train: Sequence[Item], held_out: Sequence[Item]) -> float:
    """The largest Jaccard similarity of a training and a held-out item, over sets of five-word shingles; exact.

    Few shingles are shared at all, so an index from the shared ones to the held-out items finds every pair with any.
    """
    owners: dict[int, list[int]] = {}
    sizes = []
    for place, item in enumerate(held_out):
        found = _shingles(item)
        sizes.append(len(found))
        for shingle in found:
            owners.setdefault(shingle, []).append(place)
    nearest = 0.0
    for item in train:
        found = _shingles(item)
        shared: dict[int, int] = {}
        # Shingles of the bare language ("closed for repairs in March it") have hundreds of owners: they bound, not count.
        common = [owners[shingle] for shingle in found if shingle in owners]
        if len(common) <= nearest * len(found):
            continue
        for places in common:
            for place in places:
                shared[place] = shared.get(place, 0) + 1
        nearest = max(nearest, *(n / (len(found) + sizes[place] - n) for place, n in shared.items()), 0.0)
    return round(nearest, 4)


def _shingles(item: Item) -> set[int]:
    words = f"{item.passage} {item.question}".lower().split()
    return {hash(tuple(words[place : place + SHINGLE])) for place in range(len(words) - SHINGLE + 1)}


def _table(result: dict[str, dict[str, Any]]) -> str:
    rows = []
    for number, part in result.items():
        for name, value in part.items():
            entries = value.items() if isinstance(value, dict) else [("", value)]
            for key, entry in entries:
                shown = f"{entry:.4f}" if isinstance(entry, float) else str(entry)
                rows.append(f"{number}  {f'{name} {key}'.strip():<48}{shown:>14}")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the replies, a twentieth of the items"
    )
    result = figures(parser.parse_args().quick)
    print(_table(result))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
