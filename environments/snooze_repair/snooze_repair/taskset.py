"""The task set verifiers loads as `snooze-repair`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from pydantic import BaseModel, ConfigDict
from snooze_kit.data import SnoozeTask, SnoozeTaskData
from snoozing_sandboxes import GradeResult

from snooze_repair.bank import Bug, bank
from snooze_repair.config import RepairConfig, RepairTaskConfig
from snooze_repair.grading import grade
from snooze_repair.lending import shared_pool
from snooze_repair.prompt import SYSTEM, task_prompt
from snooze_repair.workspace import ToolError, Workspace

_PRIORS = {1: 0.6, 2: 0.5, 3: 0.4, 4: 0.3, 5: 0.2}
"""Order is meant, not the numbers: no policy was measured. A stratification run replaces them."""
_TURNS = {1: 6, 2: 7, 3: 9, 4: 11, 5: 14}
"""Turns that an episode of a level is expected to take: look around, read each file, change, try, submit."""


class EpisodeLimits(BaseModel):
    """What the harness needs to know of a RepairTaskConfig, on the wire."""

    model_config = ConfigDict(frozen=True)

    turns: int = 30
    tools_wall_s: float = 300.0
    output_chars: int = 6000
    file_bytes: int = 65_536


class RepairData(SnoozeTaskData):
    """A broken program; the program itself is looked up by the bug's name, and so is its repair."""

    model_config = ConfigDict(frozen=True)

    bug: str = ""
    """Name in the bank; also the task's id."""
    level: int = 1
    """1 (easy) to 5."""
    kind: str = ""
    """Kind of mistake; not in the prompt."""
    limits: EpisodeLimits = EpisodeLimits()


class RepairTask(SnoozeTask[RepairData, RepairTaskConfig]):
    """Reward 1 when every hidden test passes on the submitted files, else 0; none at all where a sandbox failed."""

    @property
    def bug(self) -> Bug:
        return bank()[self.data.bug]

    async def setup(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """The broken program into the episode's folder."""
        for path, text in self.bug.files().items():
            await runtime.write(path, text.encode())

    async def finalize(self, trace: vf.Trace, runtime: vf.Runtime) -> None:
        """The submitted files onto the trace, so that it can be scored without the box.

        A harness that knows no `submit` has handed in by ending. Only the program's own files are taken: whatever else
        was left in the box stays there.
        """
        if trace.info.get("repair", {}).get("ended", "submitted") != "submitted":
            return
        workspace = self._workspace(runtime)
        await workspace.quiet()
        try:
            trace.info["files"] = {path: await workspace.read(path) for path in self.bug.files()}
        except ToolError as error:
            trace.info["unreadable"] = str(error)

    @vf.metric(priority=1)
    async def grading(self, trace: vf.Trace) -> dict[str, float]:
        """Tests once; the reward reads the verdict. `tests_passed`: share of hidden tests. `submitted`: files arrived."""
        info = trace.info.get("repair", {})
        files = trace.info.get("files")
        metrics = {"submitted": float(files is not None), "tests_passed": 0.0}
        metrics |= {name: float(info[name]) for name in ("turns", "tool_calls") if name in info}
        trace.info["grading"] = {"ok": False, "reason": trace.info.get("unreadable", "nothing was submitted")}
        if files is not None:
            graded = await self.test(files)
            total = graded.passed + graded.failed
            metrics["tests_passed"] = graded.passed / total if total else 0.0
            trace.info["grading"] = {
                "ok": graded.ok,
                "reason": f"{graded.passed} of {total} hidden tests passed",
            }
        return metrics

    @vf.reward
    async def fixed(self, trace: vf.Trace) -> float:
        """1 where all hidden tests pass."""
        return float(trace.info["grading"]["ok"])

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """Gold: undoing the bug in the prepared folder earns full marks."""
        workspace = self._workspace(runtime)
        files = {path: await workspace.read(path) for path in self.bug.files()}
        undo = self.bug.edit.inverse()
        files[undo.path] = undo.apply(files[undo.path])
        return (await self.test(files)).ok

    async def test(self, files: dict[str, str]) -> GradeResult:
        """The hidden tests in a fresh box. Raises sandboxes.SandboxError where no box could decide."""
        async with shared_pool(self.config.sandbox) as pool:
            return await grade(pool, self.bug.home(), files, cpu_s=self.config.tests_cpu_s)

    def _workspace(self, runtime: vf.Runtime) -> Workspace:
        return Workspace(runtime, file_bytes=self.data.limits.file_bytes)


class RepairTaskset(vf.Taskset[RepairTask, RepairConfig]):
    """Bugs of the bank."""

    def load(self) -> Iterator[RepairTask]:
        config = self.config
        chosen = [bug for bug in bank().values() if bug.home().split == config.split]
        if config.levels:
            chosen = [bug for bug in chosen if bug.level in config.levels]
        random.Random(f"{config.seed}/{config.split}").shuffle(chosen)
        if config.size is not None and config.size > len(chosen):
            raise ValueError(
                f"{config.size} tasks were asked for, the {config.split} split has {len(chosen)} at levels "
                f"{config.levels or 'of all kinds'}; ask for fewer, or leave `size` out"
            )
        for bug in chosen[: config.size]:
            yield RepairTask(self._data(bug), config.task)

    def _data(self, bug: Bug) -> RepairData:
        config, limits = self.config, self.config.task
        return RepairData(
            id=bug.id,
            name=bug.id,
            prompt=task_prompt(bug, limits.turns),
            system_prompt=SYSTEM,
            bug=bug.id,
            level=bug.level,
            kind=bug.edit.kind,
            limits=EpisodeLimits(**_shared_fields(limits)),
            dataset="snooze-repair",
            domain=f"level {bug.level}",
            difficulty_prior=_PRIORS[bug.level],
            snooze_factor=config.snooze_factor,
            cluster=bug.project,
            duration_s=config.turn_s * _TURNS[bug.level],
        )


def _shared_fields(limits: RepairTaskConfig) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in EpisodeLimits.model_fields}
