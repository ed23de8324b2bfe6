"""Must show 3 and 4: every installed environment against the contract, fuzzed replies, and generators over 100,000 items.

python -m tests.bench.light bench_contract [--quick]
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from snooze_kit import check_async, check_processes, grade_fuzzed

from snoozing_env.errors import SnoozingError
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.rollout.contract import check_generator


def environments() -> list[str]:
    """Installed snooze environments."""
    names = {(d.metadata["Name"] or "").lower().replace("_", "-") for d in distributions()}
    return sorted(name for name in names if name.startswith("snooze-") and name != "snooze-kit")


def figures(quick: bool = False) -> dict[str, Any]:
    """Per environment: findings, fuzzing, processes, vf-validate; and its generator."""
    return {name: _one(name, quick) for name in environments()}


def _one(name: str, quick: bool) -> dict[str, Any]:
    try:
        tasks = list(load_catalogue(EnvironmentConfig(id=name, limit=64)).tasks)
        taskset = load_catalogue(EnvironmentConfig(id=name, limit=64)).env.taskset
        findings = asyncio.run(check_async(taskset, limit=12 if quick else 64, fuzzed=0))
        report = asyncio.run(grade_fuzzed(tasks, 300 if quick else 10_000))
        generator = check_generator(name, 2_000 if quick else 100_000)
        processes = [] if quick else check_processes({"id": name}, limit=200)
    # A must-show line of an environment that does not run here says so instead of hiding the others.
    except SnoozingError as error:
        return {"failed": str(error)}
    return {
        "findings": [f"{finding.rule}: {finding.text}" for finding in (*findings, *processes)],
        "fuzzed": report.replies,
        "crashes": len(report.crashes),
        "first_crash": report.crashes[0] if report.crashes else None,
        "impossible_rewards": len(report.wrong_rewards),
        "without_verdict": report.unknown,
        "p99_ms": round(report.p99_ms, 2),
        "slowest_ms": round(report.slowest_ms, 1),
        "vf_validate": None if quick else _vf_validate(name),
        "generator": None
        if generator is None
        else {
            "train": generator.train,
            "held_out": generator.held_out,
            "per_cpu_second": round(generator.per_second),
            "shared_exact": generator.shared.exact,
            "shared_canonical": generator.shared.canonical,
            "shared_near": generator.shared.near,
        },
    }


def _vf_validate(name: str) -> str:
    """What verifiers' own gold and no-op checks say of 16 tasks."""
    command = Path(sys.executable).with_name("vf-validate")
    with tempfile.TemporaryDirectory() as where:
        done = subprocess.run(
            [str(command), name, "--runtime.type", "subprocess", "-n", "16", "--rich", "false", "-o", where],
            capture_output=True,
            text=True,
            check=False,
        )
        summaries = list(Path(where).rglob("summary.json"))
        if done.returncode or not summaries:
            return f"code {done.returncode}: {done.stderr.strip()[-200:]}"
        return " ".join(summaries[0].read_text().split())[:300]
