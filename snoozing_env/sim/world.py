"""What the simulated loop trains: anything that gives rewards for tasks and may change when it is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from snoozing_env.types import Floats, Ints, TaskInfo


class World(Protocol):
    """A policy and its tasks as the loop sees them."""

    @property
    def tasks(self) -> Sequence[TaskInfo]: ...

    @property
    def side_N(self) -> Floats:
        """[N] the one-sided behaviour a task rewards: +1, -1, or 0 for none."""
        ...

    def sample(self, task_B: Ints, rollouts: int) -> Floats:
        """[B, G] rewards of fresh rollouts under the current policy."""
        ...

    def train(self, task_B: Ints, rewards_B: Sequence[Floats]) -> None:
        """One weight update on B groups, given the rewards [G] of each."""
        ...

    def rates_N(self) -> Floats:
        """[N] latent pass rates, which no scheduler may read; evaluation and regret do."""
        ...

    def verdicts_N(self) -> Floats:
        """[N] rates at which rollouts are *rewarded*: the latent ones as a noisy grader sees them."""
        ...
