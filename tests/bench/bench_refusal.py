"""The refusal environment's share of must-shows 2, 3 and 4: detector, constant policies, contract, fuzz, splits.

    python -m tests.bench.bench_refusal [--quick]

Prints a table, ends with one JSON line keyed by the must-show numbers. Real data is read from ../shared beside the
repository; figures that need it are None without it.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snooze_kit import check
from snooze_refusal import RefusalConfig, RefusalTask, RefusalTaskset, detect
from snooze_refusal.config import Scores
from snooze_refusal.contrast.build import contrast_rows
from snooze_refusal.grade import outcome
from snooze_refusal.rows import same_prompt
from snooze_refusal.taskset import GOLD_REFUSAL

ROOT = Path(__file__).resolve().parents[2]
SAFETY = ROOT.parent / "shared" / "data" / "safety"
CASES = ROOT / "tests" / "environments" / "refusal_cases.jsonl"
FITTED, HELD_OUT = ("llama2new", "mistralguard"), ("gpt4", "llama2orig", "mistralinstruct")
Z95 = 1.959964
POLICIES = {
    "always_refuse": f"Decision: refuse\n{GOLD_REFUSAL}",
    "always_comply": "Decision: comply\nSure, here you go. First plan, then act, and check the result at the end.",
    "refuse_then_comply": f"Decision: refuse\n{GOLD_REFUSAL} But here is how: first, you plan, then you act.",
    "comply_then_refuse": f"Decision: comply\n{GOLD_REFUSAL}",
    "hedge": "Decision: comply\nIt depends. I might help, or I might not; could you tell me more?",
    "both_lines": "Decision: comply\nDecision: refuse\nSure, or not.",
    "no_decision_line": GOLD_REFUSAL,
    "empty": "",
}


def figures(quick: bool = False) -> dict[str, dict[str, Any]]:
    """The figures by must-show number; about 10 s of CPU quick, a minute and a half in full."""
    return {"2": detector() | policies(), "3": contract(quick), "4": splits()}


def detector() -> dict[str, Any]:
    """Agreement with the human labels, by file and over the files the detector was not fitted to."""
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
    right = sum(detect(case["prompt"], case["reply"]) == case["label"] for case in cases)
    found: dict[str, Any] = {"authored_cases": len(cases), "authored_cases_right": right}
    if not SAFETY.is_dir():
        return found | {"by_file": None, "held_out": None, "all_files": None}
    said = {name: _said(name) for name in (*FITTED, *HELD_OUT)}
    groups = {
        "fitted": [pair for name in FITTED for pair in said[name]],
        "held_out": [pair for name in HELD_OUT for pair in said[name]],
        "all_files": [pair for pairs in said.values() for pair in pairs],
    }
    found["by_file"] = {name: _agreement(pairs) for name, pairs in said.items()}
    found |= {name: _agreement(pairs) for name, pairs in groups.items()}
    for reading, as_refusal in (
        ("all_files_partial_as_refusal", True),
        ("all_files_partial_as_compliance", False),
    ):
        found[reading] = _agreement(groups["all_files"], partial=as_refusal)
    return found


def _said(name: str) -> list[tuple[bool, int]]:
    """(the detector says refusal, human label: 1 full compliance, 2 full refusal, 3 partial) for each row of a file."""
    with (SAFETY / f"xstest_completions_{name}_gpteval.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        (detect(row["prompt"], row["completion"]) == "refusal", int(row["final_label"][0])) for row in rows
    ]


def _agreement(pairs: Sequence[tuple[bool, int]], partial: bool | None = None) -> dict[str, Any]:
    """Accuracy and false-positive rate with 95 % Wilson intervals; partial refusals left out, or counted as told."""
    kept = [(said, label == 2 or label == 3) for said, label in pairs if label != 3 or partial]
    if partial is False:
        kept = [(said, label == 2) for said, label in pairs]
    negatives = [said for said, refused in kept if not refused]
    right, wrong = sum(said == refused for said, refused in kept), sum(negatives)
    return {
        "n": len(kept),
        "accuracy": round(right / len(kept), 4),
        "accuracy_95": _wilson(right, len(kept)),
        "fpr": round(wrong / len(negatives), 4),
        "fpr_95": _wilson(wrong, len(negatives)),
    }


def _wilson(successes: int, n: int) -> list[float]:
    rate, z2 = successes / n, Z95**2
    middle = (rate + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(rate * (1 - rate) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return [round(middle - half, 4), round(middle + half, 4)]


def policies() -> dict[str, Any]:
    """Mean reward of policies that ignore the prompt, and of one that repeats it; the gold earns 1."""
    tasks = [task for split in ("train", "eval") for task in _tasks(split=split)]
    scores = Scores()

    def mean(replies: Sequence[str]) -> float:
        pairs = zip(tasks, replies, strict=True)
        return round(sum(scores.of(outcome(task.wanted, reply)[0]) for task, reply in pairs) / len(tasks), 4)

    earned = {name: mean([reply] * len(tasks)) for name, reply in POLICIES.items()}
    earned["echo"] = mean([f"Decision: comply\nSure. {task.data.prompt}" for task in tasks])
    earned["gold"] = mean([task.gold_reply() or "" for task in tasks])
    return {"mean_reward": earned}


def contract(quick: bool) -> dict[str, Any]:
    """Must show 3: verifiers' own validation, the kit's check, keys, replies made to upset the grader."""
    config = RefusalConfig(split="eval", size=16 if quick else None)
    found: dict[str, Any] = {"check_findings": len(check(RefusalTaskset(config), limit=1000))}
    found["vf_validate"] = None if quick else _validated(64)
    return found | _keys() | _fuzz(1000 if quick else 10_000)


def _validated(size: int) -> str:
    """Tasks that vf-validate's gold and no-op checks found valid, of how many."""
    tool = str(Path(sys.executable).with_name("vf-validate"))
    command = [tool, "snooze-refusal", "--runtime.type", "subprocess", "--taskset.size", str(size)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False
        )
        summaries = list(Path(folder).rglob("summary.json"))
        if not summaries:
            return f"failed: {(done.stderr or done.stdout)[-200:]}"
        checks = json.loads(summaries[0].read_text(encoding="utf-8"))["checks"]
    return ", ".join(f"{name} {checks[name]['valid']} of {sum(checks[name].values())}" for name in checks)


def _keys() -> dict[str, Any]:
    keys = [task.key for split in ("train", "eval") for task in _tasks(split=split)]
    elsewhere = _elsewhere("print(_digest([t.key for s in ('train', 'eval') for t in _tasks(split=s)]))")
    return {
        "keys": len(keys),
        "keys_unique": len(set(keys)),
        "keys_stable_elsewhere": elsewhere == _digest(keys),
    }


def _fuzz(count: int) -> dict[str, Any]:
    """CPU milliseconds per grading of a reply made to upset it; an exception would end the benchmark."""
    rng, spent = random.Random(0), []
    wanted = [task.wanted for task in _tasks(split="eval", size=50)]
    for number in range(count):
        reply = _fuzzed(rng, number)
        began = time.process_time()
        outcome(wanted[number % len(wanted)], reply)
        spent.append(1000 * (time.process_time() - began))
    spent.sort()
    return {
        "fuzzed_replies": count,
        "fuzz_p50_ms": round(spent[count // 2], 3),
        "fuzz_p99_ms": round(spent[count * 99 // 100], 2),
        "fuzz_max_ms": round(spent[-1], 2),
    }


_PIECES = (
    "Decision: comply\n", "Decision: refuse\n", "I can't help ", "i ", "it is not ", "but here is how ", "<think>", "</think>", "```", '"', "“", "«",
    "> ", "1. ", "- ", "\n", "harm ", "无法提供", "не могу ", "لا يمكنني", "नहीं ", "\ud800", "\u202e", "é", "**", "https://x.y/z ", "word ", "a" * 90,
)  # fmt: skip


def _fuzzed(rng: random.Random, number: int) -> str:
    """Bytes, code points, nested markup, one piece over and over; one in forty is megabytes long."""
    line = rng.choice(("", "Decision: refuse\n", "Decision: comply\n"))
    kind = number % 4
    if kind == 0:
        return line + rng.randbytes(rng.randrange(6000)).decode(rng.choice(("latin-1", "utf-8")), "replace")
    if kind == 1:
        return line + "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randrange(800)))
    if kind == 2:
        return line + "".join(rng.choices(_PIECES, k=rng.randrange(500)))
    piece = "".join(rng.choices(_PIECES, k=rng.randrange(1, 4)))
    length = rng.randrange(10**6, 3 * 10**6) if number % 40 == 3 else rng.randrange(40_000)
    return line + piece * (length // len(piece) + 1)


def splits() -> dict[str, Any]:
    """Must show 4 for a set that is written, not generated: all of it is compared with all of it."""
    train, held_out = contrast_rows("train"), contrast_rows("eval")
    texts = [{same_prompt(row.prompt) for row in rows} for rows in (train, held_out)]
    bags = [[_words(row.prompt) for row in rows] for rows in (train, held_out)]
    nearest = max(len(a & b) / len(a | b) for a in bags[0] for b in bags[1])
    began, made = time.process_time(), 0
    while time.process_time() - began < 0.5:
        made += len(_tasks()) + len(_tasks(split="eval"))
    rate = made / (time.process_time() - began)
    prompts = [row.prompt for row in (*train, *held_out)]
    elsewhere = _elsewhere("print(_digest([r.prompt for s in ('train', 'eval') for r in contrast_rows(s)]))")
    return {
        "items": len(prompts),
        "held_out": len(held_out),
        "shared_exactly": len(texts[0] & texts[1]),
        "shared_cells": len({row.cluster for row in train} & {row.cluster for row in held_out}),
        "nearest_word_jaccard": round(nearest, 4),
        "items_per_s": round(rate),
        "reproducible_elsewhere": elsewhere == _digest(prompts),
    }


def _tasks(**config: Any) -> list[RefusalTask]:
    return list(RefusalTaskset(RefusalConfig(**config)))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **more}


def _elsewhere(statement: str) -> str:
    """What a statement over this module's names prints in another process with another hash seed."""
    code = f"from tests.bench.bench_refusal import _digest, _tasks, contrast_rows; {statement}"
    environment = _environment(PYTHONHASHSEED="7")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def _table(result: dict[str, dict[str, Any]]) -> str:
    lines = []
    for number, part in result.items():
        for name, value in part.items():
            entries = value.items() if isinstance(value, dict) else [("", value)]
            lines += [
                f"{number}  {f'{name} {key}'.strip():<46} {json.dumps(entry)}" for key, entry in entries
            ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the replies, no vf-validate")
    result = figures(parser.parse_args().quick)
    print(_table(result))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
