"""What a run may choose: sources, split, size, levels, prompt style, snooze factors, and where programs run."""

from __future__ import annotations

from typing import ClassVar, Literal

import verifiers.v1 as vf
from pydantic import Field
from snooze_kit.options import SourceOptions
from snooze_kit.rows import Split

SourceName = Literal[
    "authored",
    "expressions",
    "mbpp",
    "mbpp_plus",
    "humaneval",
    "humaneval_plus",
    "deepcoder",
    "livecodebench",
]

DEFAULT_SNOOZE_FACTOR = 4.0
"""Passes a too-easy problem sleeps. A whole group that passes every hidden test is strong evidence: unlike a number,
a program is hardly ever right by luck, and a rollout costs hundreds of tokens and a sandbox. Not longer, because what
is mastered on one problem is lost again through training on others, and only a new group shows that."""


class SandboxConfig(vf.TaskConfig):
    """`--env.taskset.task.*`: where the programs of a run are executed."""

    backend: Literal["docker", "local"] = "docker"
    """`docker`: hardened containers; `local`: a subprocess with limits and no walls, UNSAFE for programs nobody read."""
    boxes: int = Field(4, ge=1)
    """Programs that run at once; one pool per process serves all its rollouts."""
    hosts: list[str] = Field(default_factory=list)
    """Docker endpoints to spread the boxes over; [] = the one of the environment."""
    image: str = "auto"
    """An image with a `python3`; "auto" takes or builds the one of snoozing-sandboxes."""
    cpu_s: float = Field(4.0, gt=0)
    """CPU seconds for all calls of a function, or for one run of a program."""
    wall_s: float = Field(60.0, gt=0)
    """Wall seconds of the same, a backstop for programs that sleep; on a machine busy with training three CPU seconds
    have taken over 40."""
    memory_mb: int = Field(256, gt=0)
    """Address space of a program beyond the bare interpreter's."""


class CodeConfig(SourceOptions[SourceName]):
    """`--env.taskset.*` of snooze-code."""

    EMBEDDED: ClassVar[tuple[str, ...]] = ("authored", "expressions")

    source: SourceName = "authored"
    """The data set; `authored` and `expressions` are embedded, the others need `path` or the hub."""
    split: Split = "train"
    """`eval` and `test` are the held-out side: the publisher's, or one problem in five where there is none."""
    size: int | None = Field(None, gt=0)
    """Problems per source, drawn by `seed`; None = all (expressions: 240 to train on, 120 held out)."""
    levels: list[int] = Field(default_factory=list)
    """Only these levels (authored 1-6, expressions 1-3); [] = all."""
    kinds: list[Literal["function", "program"]] = Field(default_factory=list)
    """Only functions, or only programs that read stdin; [] = both."""
    style: Literal["instruct", "bare"] = "instruct"
    """`instruct` asks for a fenced block; `bare` has no system prompt, and expressions are just `f(1)=3 f(4)=9;`."""
    faulty: bool = False
    """Keep the problems that snooze_code.faults lists as wrong, unsolvable or too slow."""
    snooze_factor: float | None = DEFAULT_SNOOZE_FACTOR
    """Passes to skip after a too-easy group, for every task; None = the scheduler's own."""
    snooze_factors: dict[str, float] = Field(default_factory=dict)
    """The same per domain; wins over `snooze_factor`."""
    line_s: float = Field(1.0, gt=0)
    """Seconds that one line of a solution is expected to take to generate. Times the lines of the reference it is the
    `duration_s` of a problem, by which a trainer starts long ones first; a problem without a reference has none."""
    task: SandboxConfig = SandboxConfig()
    """Where programs run."""
