"""The task set verifiers loads as `letters-template`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import verifiers.v1 as vf
from pydantic import ConfigDict
from snooze_kit import SnoozeTask, SnoozeTaskData

from letters_template.config import SNOOZE_FACTORS, LettersTemplateConfig
from letters_template.grading import right, said
from letters_template.words import Problem, problems

SYSTEM_PROMPT = (
    "You get an operation and a word. `first` asks for the first letter, `reverse` for the letters backwards, "
    "`sort` for the letters in alphabetical order. End your reply with the result alone on the last line."
)
PRIORS: Mapping[int, float] = {2: 0.9, 3: 0.8, 4: 0.7, 5: 0.6, 6: 0.5, 7: 0.4, 8: 0.3}
"""Expected pass rate by length of the word; `snooze stratify` measures it for a model of yours."""


class LettersTemplateData(SnoozeTaskData):
    """A problem and its gold; the scheduler's fields come from snooze-kit."""

    model_config = ConfigDict(frozen=True)

    word: str = ""
    answer: str = ""
    """The gold, which `snooze train` also warms tiny policies up on."""


class LettersTemplateTask(SnoozeTask[LettersTemplateData, vf.TaskConfig]):
    """Reward 1 for the gold, 0 for anything else."""

    @vf.reward
    async def correct(self, trace: vf.Trace) -> float:
        """1 where the reply ends with the gold."""
        return float(right(self.data.answer, trace.last_reply))

    @vf.metric
    async def answered(self, trace: vf.Trace) -> float:
        """1 where the reply says anything."""
        return float(bool(said(trace.last_reply)))

    async def validate(self, runtime: vf.Runtime) -> bool | None:
        """The gold earns full marks (`vf-validate`)."""
        return right(self.data.answer, self.gold_reply())

    def gold_reply(self) -> str:
        return self.data.answer

    def lazy_replies(self) -> Mapping[str, str]:
        """Policies that do not do the task; each may earn at most half."""
        return {"copy the word": self.data.word, "its last letter": self.data.word[-1]}


class LettersTemplateTaskset(
    vf.Taskset[LettersTemplateTask, LettersTemplateConfig],
):
    """Operations on made-up words."""

    @classmethod
    def generator_options(cls, split: str, size: int) -> dict[str, Any]:
        """Options that make `size` problems, for the check that the two sides share none."""
        return {"split": split, "size": size, "lengths": [6, 7, 8]}

    def load(self) -> Iterator[LettersTemplateTask]:
        config = self.config
        train = config.split == "train"
        for problem in problems(train=train, size=config.size, lengths=config.lengths, seed=config.seed):
            yield LettersTemplateTask(self._data(problem), config.task)

    def _data(self, problem: Problem) -> LettersTemplateData:
        operation, length = problem.operation, len(problem.word)
        factor = self.config.snooze_factors.get(operation, self.config.snooze_factor)
        return LettersTemplateData(
            prompt=problem.text,
            system_prompt=SYSTEM_PROMPT if self.config.style == "instruct" else None,
            word=problem.word,
            answer=problem.answer,
            dataset="letters-template",
            domain=operation,
            difficulty_prior=PRIORS[length],
            snooze_factor=SNOOZE_FACTORS[operation] if factor is None else factor,
            cluster=f"{operation} {length}",
        )
