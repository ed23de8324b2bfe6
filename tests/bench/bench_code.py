"""Every reference solution of HumanEval+ and MBPP+, and three lazy solutions of each problem, graded in containers.

Must-show 2 of the sandbox milestone. CPU seconds stand beside wall seconds because the machine may be shared.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from snooze_code.asserts import visible_calls
from snooze_code.config import CodeConfig
from snooze_code.faults import FAULTS
from snooze_code.grading import Problem, ReferenceFailed, grade_in
from snooze_code.sandbox import Place, close_sandboxes, sandbox_at
from snooze_code.taskset import CodeTask, CodeTaskset
from snoozing_sandboxes import GradeResult

from tests.conftest import engine_missing

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "code"
FILES = {"humaneval_plus": "HumanEvalPlus-Mini.jsonl.gz", "mbpp_plus": "MbppPlus.jsonl.gz"}
LAZY = ("return None", "return 0", "return True", "echo of a visible example")
_QUICK = 60


def figures(quick: bool) -> dict[str, Any]:
    """References passed and failed, lazy solutions accepted, seconds on the wall and of CPU."""
    if engine_missing():
        return {"skipped": engine_missing()}
    if missing := [name for name in FILES.values() if not (DATA / name).is_file()]:
        return {"skipped": f"needs {', '.join(missing)} in {DATA}"}
    tasks = [task for source in FILES for task in _tasks(source)[: _QUICK if quick else None]]
    try:
        return {"problems": len(tasks), **_references(tasks), **_lazy(tasks)}
    finally:
        close_sandboxes()


def _tasks(source: str) -> list[CodeTask]:
    config = CodeConfig(source=source, path=DATA / FILES[source], split="test", faulty=True)  # type: ignore[arg-type]
    return list(CodeTaskset(config))


def _references(tasks: Sequence[CodeTask]) -> dict[str, Any]:
    programs = [(task.problem, task.problem.whole(task.data.answer)) for task in tasks]
    listed = {name for source in FILES for name in FAULTS[source]}
    sound = [n for n, task in enumerate(tasks) if task.data.id not in listed]
    faulty = [n for n, task in enumerate(tasks) if task.data.id in listed]
    # Started before the clock: the engine's image and the boxes are there when training grades.
    sandbox_at(Place()).run_blocking(lambda pool: pool.run("print(1)"))
    first, again = (_timed([programs[n] for n in sound]) for _ in range(2))
    # Apart, because two of them use up four references' worth of CPU before they are given up.
    slow = _timed([programs[n] for n in faulty])
    pairs = [*zip(sound, first["results"], strict=True), *zip(faulty, slow["results"], strict=True)]
    failed = sorted(str(tasks[n].data.id) for n, result in pairs if result is None or not result.ok)
    again_failed = [
        str(tasks[n].data.id) for n, r in zip(sound, again["results"], strict=True) if r is None or not r.ok
    ]
    return {
        "references_passed": len(tasks) - len(failed),
        "references_failed": failed,
        "failed_and_not_listed": sorted({*failed, *again_failed} - listed),
        "sound": len(sound),
        "sound_wall_s": first["wall_s"],
        "sound_cpu_s": first["cpu_s"],
        "again_wall_s": again["wall_s"],
        "again_cpu_s": again["cpu_s"],
        "faulty_wall_s": slow["wall_s"],
        "load": os.getloadavg()[0],
    }


def _timed(programs: Sequence[tuple[Problem, str]]) -> dict[str, Any]:
    """cpu_s: this process and the graded programs, without the runs that ask references for expected values."""
    started, cpu = time.monotonic(), time.process_time()
    results = asyncio.run(_graded(programs))
    boxes = sum(result.cpu_s for result in results if result is not None)
    return {
        "results": results,
        "wall_s": round(time.monotonic() - started, 1),
        "cpu_s": round(time.process_time() - cpu + boxes, 1),
    }


async def _graded(programs: Sequence[tuple[Problem, str]]) -> list[GradeResult | None]:
    """None where the problem's own reference does not answer its tests."""
    sandbox = sandbox_at(Place())

    async def one(problem: Problem, code: str) -> GradeResult | None:
        try:
            return await sandbox.run(lambda pool: grade_in(pool, problem, code))
        except ReferenceFailed:
            return None

    return await asyncio.gather(*(one(problem, code) for problem, code in programs))


def _lazy(tasks: Sequence[CodeTask]) -> dict[str, Any]:
    listed = {name for source in FILES for name in FAULTS[source]}
    sound = [task for task in tasks if task.data.id not in listed]
    accepted: dict[str, list[str]] = {}
    graded = 0
    for kind in LAZY:
        results = asyncio.run(_graded([(task.problem, _solution(task, kind)) for task in sound]))
        graded += len(results)
        accepted[kind] = [
            str(task.data.id)
            for task, result in zip(sound, results, strict=True)
            if result is None or result.ok
        ]
    return {"lazy_graded": graded, "lazy_accepted": accepted}


def _solution(task: CodeTask, kind: str) -> str:
    """A solution that has understood nothing."""
    entry, problem = task.data.entry, task.problem
    if kind.startswith("return"):
        return problem.whole(f"def {entry}(*args): {kind}")
    shown = visible_calls(task.data.prompt_text, entry)[:1]
    reference = task.data.answer
    # The value that the prompt prints beside its first example, whatever the arguments are.
    return problem.whole(f"{reference}\n_reference = {entry}\n_shown = _reference(*{shown[0] if shown else ()!r})\n"
                         f"def {entry}(*args): return _shown")  # fmt: skip
