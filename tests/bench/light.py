"""`make bench-light`: every figure of the first milestone as a table, and as one JSON line keyed by its number.

Each part runs in a process of its own (`python -m tests.bench.light PART`), so that none inherits another's
imports, threads or caches. QUICK=1 leaves out the parts that install, serve or train for minutes, and takes under one.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).parents[2]
VLLM_PYTHON = ROOT / ".venv-vllm" / "bin" / "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One must-show line and the module that measures it."""

    number: str
    title: str
    module: str
    quick: bool
    """Whether QUICK=1 includes it."""
    vllm: bool = False
    """Runs in .venv-vllm, which `make setup-vllm` builds; its reduced set, where it has one, does without."""


PARTS = (
    Part(number="6", title="snooze arithmetic", module="bench_snooze", quick=True),
    Part(number="8", title="CPU per rollout", module="bench_rollout", quick=True),
    Part(number="7", title="math grader", module="bench_grader", quick=True),
    Part(number="9", title="messages for bad input", module="bench_messages", quick=False),
    Part(number="5", title="kill and resume", module="bench_resume", quick=True),
    Part(number="1", title="plain beside snoozing, per seed", module="bench_demo", quick=False),
    Part(number="3", title="engine and trainer log-probs", module="bench_vllm", quick=False, vllm=True),
    Part(number="4", title="SmolLM2 on word problems", module="bench_smollm2", quick=False, vllm=True),
    Part(number="2", title="fresh clone", module="bench_clone", quick=False),
)


def main(parts: Sequence[Part] = PARTS, title: str = "bench-light") -> None:
    """Run the parts, show their figures as a table and print them as one JSON line."""
    quick = os.environ.get("QUICK", "") not in ("", "0")
    chosen = [p for p in parts if p.quick or not quick]
    console = Console()

    def measure(part: Part) -> dict[str, Any]:
        console.print(f"[dim]{part.number}: {part.title} ...[/dim]")
        started = time.monotonic()
        return {**_run(part, quick), "seconds": round(time.monotonic() - started, 1)}

    # The full set runs alone, part by part; the quick one is for a look and shares the two cores.
    with ThreadPoolExecutor(max_workers=2 if quick else 1) as pool:
        results = {p.module: r for p, r in zip(chosen, pool.map(measure, chosen), strict=True)}
    console.print(_table(chosen, results, title))
    print(json.dumps(_by_number(chosen, results)))


def _by_number(parts: Sequence[Part], results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Figures by must-show number. A module may measure several ("3-4", or figures keyed by number itself), and several
    may add to one, which then has an entry for each."""
    merged: dict[str, dict[str, Any]] = {}
    for part in parts:
        row = results[part.module]
        own = {key: value for key, value in row.items() if key.isdigit()}
        for number, value in (own or dict.fromkeys(part.number.split("-"), row)).items():
            merged.setdefault(number, {})[part.module] = value
    ordered = sorted(merged.items(), key=lambda item: (not item[0].isdigit(), item[0].zfill(3)))
    return {number: next(iter(v.values())) if len(v) == 1 else v for number, v in ordered}


def _run(part: Part, quick: bool) -> dict[str, Any]:
    """The part's figures, or what went wrong."""
    python = str(VLLM_PYTHON) if part.vllm and not quick else sys.executable
    if not Path(python).exists():
        return {"skipped": "no .venv-vllm; run `make setup-vllm` first"}
    command = [python, "-m", "tests.bench.light", part.module, *(["--quick"] if quick else [])]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        tail = " | ".join((done.stderr or done.stdout).strip().splitlines()[-4:])
        return {"failed": f"code {done.returncode}: {tail}"}
    return json.loads(lines[-1])


def _table(parts: Sequence[Part], results: Mapping[str, Mapping[str, Any]], title: str) -> Table:
    table = Table("", "figure", "value", title=title, title_justify="left")
    for part in parts:
        table.add_row(
            part.number,
            f"[bold]{part.title}[/bold]",
            f"{results[part.module]['seconds']} s",
            end_section=False,
        )
        for name, value in results[part.module].items():
            if isinstance(value, Mapping):
                for key, entry in value.items():
                    table.add_row("", f"{name} · {key}", _short(entry))
            elif name != "seconds":
                table.add_row("", name, _short(value))
        table.add_section()
    return table


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 160 else text[:157] + "..."


def run_part(module: str, quick: bool) -> None:
    """Print one part's figures as JSON; everything else it prints goes to stderr."""
    out, sys.stdout = sys.stdout, sys.stderr
    figures = importlib.import_module(f"tests.bench.{module}").figures(quick)
    sys.stdout = out
    print(json.dumps(figures))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_part(sys.argv[1], "--quick" in sys.argv[2:])
    else:
        main()
