"""The task set verifiers loads as `snooze-code`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import verifiers.v1 as vf
from pydantic import ConfigDict
from snooze_kit.data import SnoozeTask, SnoozeTaskData
from snooze_kit.verdict import GraderError, Verdict

from snooze_code.config import CodeConfig, SandboxConfig
from snooze_code.grading import Grading, Problem, grade_async
from snooze_code.loading import rows_of
from snooze_code.rows import Row
from snooze_code.sandbox import Place
from snooze_code.suite import Suite

SYSTEM_PROMPT = (
    "Solve the problem in Python 3 with the standard library. Reason briefly, then give the whole solution in one "
    "```python block."
)


class CodeData(SnoozeTaskData):
    """A problem and its hidden tests. The tests are data of the grader: no prompt and no box gets to see them."""

    model_config = ConfigDict(frozen=True)

    tests: str = ""
    """A `snooze_code.Suite` as JSON."""
    entry: str = ""
    """Function the tests call, "" for a program that reads stdin."""
    answer: str = ""
    """A right solution, "" where the source has none; in `bare` style the reply that is wanted."""
    before: str = ""
    """Code the prompt shows and replies leave out."""
    after: str = ""
    """Set-up that follows the solution."""
    level: int | None = None
    """Difficulty level in the source's own scale, None = it has none."""
    bare: bool = False
    """The reply is an expression in x and nothing else."""


class CodeTask(SnoozeTask[CodeData, SandboxConfig]):
    """Reward 1 where every hidden test passes, 0 otherwise, no reward at all where the sandbox failed."""

    @vf.metric(priority=1)
    async def grading(self, trace: vf.Trace) -> dict[str, float]:
        """Grades once; the reward reads the verdict. `passed`: share of the hidden tests. `timeout`: out of time."""
        reply = trace.last_reply
        graded = await self.graded(reply)
        verdict = graded.verdict
        if verdict.correct is None:
            raise GraderError(
                f"no verdict for {self.data.id or self.data.prompt_text[:60]!r}: {verdict.reason}"
            )
        trace.info["grading"] = {"correct": verdict.correct, "reason": verdict.reason}
        return {
            "answered": float(bool(reply.strip())),
            "passed": graded.share,
            "timeout": float(verdict.hang),
        }

    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        """1 where all hidden tests pass. Part of them earns nothing: special cases for a few tests must not pay."""
        return float(trace.info["grading"]["correct"])

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """The reference earns full marks; None where the source has no reference."""
        gold = self.gold_reply()
        return None if gold is None else (await self.verdict(gold)).correct

    async def verdict(self, reply: str) -> Verdict:
        """The grader's word on one reply."""
        return (await self.graded(reply)).verdict

    async def graded(self, reply: str) -> Grading:
        """The verdict with counts; programs run where the task's config says."""
        config = self.config
        place = Place(
            backend=config.backend, boxes=config.boxes, hosts=tuple(config.hosts), image=config.image
        )
        return await grade_async(self.problem, reply, place)

    @property
    def problem(self) -> Problem:
        data = self.data
        return Problem(
            suite=Suite.loads(data.tests),
            entry=data.entry,
            before=data.before,
            after=data.after,
            reference=data.answer,
            bare=data.bare,
            cpu_s=self.config.cpu_s,
            wall_s=self.config.wall_s,
            memory_mb=self.config.memory_mb,
        )

    def gold_reply(self) -> str | None:
        if not self.data.answer:
            return None
        return self.data.answer if self.data.bare else _fenced(self.data.answer)

    def lazy_replies(self) -> Mapping[str, str]:
        """Solutions that have understood nothing: constants, and whatever the prompt's example shows."""
        data, prompt = self.data, self.data.prompt_text
        if data.bare:
            return {"x": "x", "zero": "0"}
        if not data.entry:
            shown = prompt.rpartition("Output:\n")[2].strip()
            return {"prints nothing": _fenced("pass"), "prints the example": _fenced(f"print({shown!r})")}
        name = data.entry.rpartition(".")[2]
        example = re.search(rf"{re.escape(name)}\(.*\) == (.+)", prompt)
        values = {"None": "None", "zero": "0", "true": "True", "the example": example[1] if example else "0"}
        return {
            f"returns {what}": _fenced(f"def {name}(*args):\n    return {value}")
            for what, value in values.items()
        }


def _fenced(code: str) -> str:
    return f"```python\n{code}\n```"


class CodeTaskset(vf.Taskset[CodeTask, CodeConfig]):
    """Problems of one or several sources."""

    def load(self) -> Iterator[CodeTask]:
        for source in self.config.chosen:
            for row in rows_of(source, self.config):
                yield CodeTask(self._data(source, row), self.config.task)

    def _data(self, source: str, row: Row) -> CodeData:
        factor = self.config.snooze_factors.get(row.domain, self.config.snooze_factor)
        return CodeData(
            id=row.id,
            prompt=row.prompt,
            system_prompt=SYSTEM_PROMPT if self.config.style == "instruct" else None,
            tests=row.suite.dumps(),
            entry=row.entry,
            answer=row.reference,
            before=row.before,
            after=row.after,
            dataset=source,
            domain=row.domain,
            level=row.level,
            bare=row.bare,
            difficulty_prior=row.prior,
            snooze_factor=factor,
            cluster=row.cluster,
            duration_s=self.config.line_s * len(row.reference.splitlines()) or None,
        )
