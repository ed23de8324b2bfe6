"""What a run may choose: split, size, levels, turns, limits, sandbox."""

from __future__ import annotations

import math
from typing import Literal

import verifiers.v1 as vf
from pydantic import Field, field_serializer, field_validator

from snooze_repair.authored import Split
from snooze_repair.bank import LEVELS


class SandboxConfig(vf.BaseConfig):
    """Where episodes and hidden tests run."""

    backend: Literal["docker", "local"] = "docker"
    """`local` has no walls: commands of the policy run as you. For machines without Docker, and scripted policies only."""
    boxes: int = Field(default=8, ge=1)
    """Boxes at once. An episode holds one for its whole length; further episodes wait."""
    spares: int = Field(default=1, ge=0)
    """Boxes that stand by, so that a lost one costs nobody a start."""
    hosts: list[str] = Field(default_factory=list)
    """Docker endpoints to spread the boxes over; [] = the one of the environment."""
    image: str = "auto"
    """`auto` takes or builds the sandbox's own; anything else is an image with a `python3`."""


class RepairTaskConfig(vf.TaskConfig):
    """`--env.taskset.task.*`: limits of an episode."""

    sandbox: SandboxConfig = SandboxConfig()
    turns: int = Field(default=30, ge=20, le=50)
    """Replies that the policy may give in one episode."""
    command_cpu_s: float = Field(default=10.0, gt=0)
    """CPU seconds of one shell command."""
    command_wall_s: float = Field(default=30.0, gt=0)
    """Wall seconds of one shell command."""
    tools_wall_s: float = Field(default=300.0, gt=0)
    """Wall seconds of all tools of an episode together; over, the episode ends as it stands."""
    output_chars: int = Field(default=6000, ge=500)
    """Characters of a tool's output that the policy is shown: the head and the tail, with a note between them."""
    file_bytes: int = Field(default=65_536, ge=1024)
    """Largest file that can be edited or submitted."""
    tests_cpu_s: float = Field(default=4.0, gt=0)
    """CPU seconds of the hidden tests; the working programs need a tenth of one."""


class RepairConfig(vf.TasksetConfig):
    """`--env.taskset.*` of snooze-repair."""

    task: RepairTaskConfig = RepairTaskConfig()
    split: Split = "train"
    """`eval` holds whole projects that `train` has not."""
    levels: list[int] = Field(default_factory=list)
    """Only these levels, 1 (easy) to 5; [] = all."""
    size: int | None = Field(default=None, gt=0)
    """Tasks, drawn by `seed`; None = all."""
    seed: int = 0
    """Draws the sample and its order."""
    snooze_factor: float | None = 8.0
    """Passes to skip after a too-easy group; None = the scheduler's own.

    Longer than the usual 5: an episode costs some twenty times a single reply, so a re-check is dear, and the other
    bugs of the same project (one `cluster`) stay awake and notice forgetting first.
    """
    turn_s: float = Field(default=3.0, gt=0)
    """Seconds one turn of a rollout is expected to take, generation included; scales `duration_s`."""

    @field_validator("levels")
    @classmethod
    def _levels_exist(cls, levels: list[int]) -> list[int]:
        if unknown := sorted(set(levels) - set(LEVELS)):
            raise ValueError(f"levels go from {LEVELS[0]} to {LEVELS[-1]}, got {unknown}")
        return levels

    @field_validator("snooze_factor")
    @classmethod
    def _factor_counts_passes(cls, factor: float | None) -> float | None:
        if factor is not None and not factor >= 0:
            raise ValueError(f"snooze_factor counts passes to skip and is 0 or more, got {factor}")
        return factor

    @field_serializer("snooze_factor", when_used="json")
    def _infinity_as_text(self, factor: float | None) -> float | str | None:
        """JSON has no infinity: a saved run's "for good" must not come back as null."""
        return "Infinity" if factor is not None and math.isinf(factor) else factor
