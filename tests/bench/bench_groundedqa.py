"""Grounded QA's share of must-shows 1, 3 and 4: normaliser, constant policies, leaks, fuzz, contract, generator.

    python -m tests.bench.bench_groundedqa [--quick]

Prints a table, ends with one JSON line keyed by the must-show numbers. Real data is read from ../shared beside the
repository; figures that need it are None without it.
"""

from __future__ import annotations

import argparse
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

from tests.bench.groundedqa_items import generator
from tests.bench.groundedqa_leaks import even, leaks

SHARED = Path(__file__).resolve().parents[3] / "shared"
SQUAD = SHARED / "data/qa/squad2_cs224n_dev.json"
CASES = SHARED / "cases/qa_normalisation.jsonl"
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
    return found | leaks(even(6000 if quick else 24_000))


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
    styles = () if quick else ("instruct", "few_shot", "bare")
    found: dict[str, Any] = {f"vf_validate_{style}": _validated(style) for style in styles}
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
