"""A policy of a few parameters that learns, forgets and is torn between two behaviours; no network.

Task i is solved with p_i = σ(z_i), a Rasch (item-response) model whose ability has four parts:

    z_i = skill[k_i] + cluster[c_i] + own[i] + side_i · lean − difficulty_i

The policy gradient of a Bernoulli policy with logit z is dE[r]/dz = p(1−p), and a group's estimate of it with
the mean reward as baseline is the variance of its rewards (G rollouts: expectation (1−1/G)·p(1−p)). So a trained
group b pushes by g_b = var(rewards_b), and every parameter moves by its rate times ∂z/∂parameter · g:

    skill[k]   += skill_rate   · mean over the batch of g_b [k_b = k]     what is shared by a whole data set
    cluster[c] += cluster_rate · sum of g_b [c_b = c]                     what near-duplicates share
    own[i]     += own_rate     · g_i                                      what is memorised about one task
    lean       += side_rate    · mean over the batch of side_b · g_b      to answer or to abstain

Nothing else makes the sides conflict: a group of one side raises z on that side and lowers it on the other (seed S0,
figure 4). A group without spread has g = 0 and teaches nothing, whatever the gate says. What is memorised fades by
the factor (1 − forget) at each update. With label noise ν a verdict is flipped with probability ν; the grader then
sees q = p + ν(1 − 2p), and the useful part of the variance is p(1−p)(1−2ν) / (q(1−q)) of it. A broken task is never
solved: its verdict is always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from snoozing_env.config import FrozenConfig
from snoozing_env.types import Bools, Floats, Ints, TaskInfo


class PopulationConfig(FrozenConfig):
    """Tasks of one kind."""

    name: str
    """Labels the tasks' keys."""
    dataset: str | None = None
    """Data set they belong to; None = the name. Two populations of one data set are a hidden mixture (M4)."""
    skill: str = ""
    """Populations that name the same skill learn from each other."""
    tasks: int = Field(default=500, ge=1)
    difficulty: float = 0.0
    """Mean logit that is missing at the start: 0 = half solved, 2 = 12 %."""
    spread: float = Field(default=1.0, ge=0)
    """Standard deviation of the difficulty."""
    side: Literal[-1, 0, 1] = 0
    """Behaviour the tasks reward: +1 answer, -1 abstain, 0 neither."""
    cluster_size: int = Field(default=1, ge=1)
    """Near-duplicates that learn together."""
    label_noise: float = Field(default=0.0, ge=0, lt=0.5)
    """Probability that a verdict is flipped."""
    broken: float = Field(default=0.0, ge=0, le=1)
    """Share of tasks that nothing solves."""


class LearnerConfig(FrozenConfig):
    """The tasks and how fast each part learns."""

    populations: tuple[PopulationConfig, ...] = Field(default=(PopulationConfig(name="tasks"),), min_length=1)
    skill_rate: float = Field(default=0.1, ge=0)
    """Logits per update if the whole batch trained the skill with g = 1; g is at most 1/4."""
    cluster_rate: float = Field(default=0.2, ge=0)
    own_rate: float = Field(default=2.0, ge=0)
    """A group at p = 1/2 (g = .22) then gains .44 logits on its own task: p .5 → .61."""
    side_rate: float = Field(default=0.5, ge=0)
    forget: float = Field(default=0.002, ge=0, lt=1)
    """Share of what is memorised that fades per update."""
    advantage: Literal["centred", "normalised"] = "centred"
    """`normalised` divides by the group's standard deviation, as GRPO does and Dr. GRPO does not."""


class Learner:
    """The world of `LearnerConfig`; the seed fixes its tasks and its rollouts."""

    def __init__(self, config: LearnerConfig, seed: int) -> None:
        self.config = config
        build = np.random.default_rng(np.random.SeedSequence([seed, 0]))
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, 1]))
        kinds = config.populations
        size = [kind.tasks for kind in kinds]
        n = sum(size)
        skills = list(dict.fromkeys(kind.skill for kind in kinds))
        self.difficulty_N: Floats = np.concatenate(
            [kind.difficulty + kind.spread * build.standard_normal(kind.tasks) for kind in kinds]
        )
        self.broken_N: Bools = np.concatenate([build.random(kind.tasks) < kind.broken for kind in kinds])
        self.noise_N = np.repeat([kind.label_noise for kind in kinds], size)
        self._side_N = np.repeat([float(kind.side) for kind in kinds], size)
        self.skill_of_N = np.repeat([skills.index(kind.skill) for kind in kinds], size)
        self.cluster_of_N = _clusters(kinds)
        self.skill_K = np.zeros(len(skills))
        self.cluster_C = np.zeros(int(self.cluster_of_N[-1]) + 1)
        self.own_N = np.zeros(n)
        self.lean = 0.0
        """Inclination to the +1 side."""
        self._tasks = _tasks(kinds, self.cluster_of_N)
        self._rates_N: Floats | None = None

    @property
    def tasks(self) -> Sequence[TaskInfo]:
        return self._tasks

    @property
    def side_N(self) -> Floats:
        return self._side_N

    def rates_N(self) -> Floats:
        if self._rates_N is None:
            z = self.skill_K[self.skill_of_N] + self.cluster_C[self.cluster_of_N] + self.own_N
            z += self._side_N * self.lean - self.difficulty_N
            self._rates_N = np.where(self.broken_N, 0.0, 0.5 * (1.0 + np.tanh(0.5 * z)))
        return self._rates_N

    def verdicts_N(self) -> Floats:
        p = self.rates_N()
        return np.where(self.broken_N, 0.0, p + self.noise_N * (1.0 - 2.0 * p))

    def sample(self, task_B: Ints, rollouts: int) -> Floats:
        rate_B = self.verdicts_N()[task_B]
        return (self._rng.random((len(task_B), rollouts)) < rate_B[:, None]).astype(np.float64)

    def train(self, task_B: Ints, rewards_B: Sequence[Floats]) -> None:
        gain_B = self._gains(task_B, rewards_B)
        share_B = gain_B / max(len(task_B), 1)
        self.own_N *= 1.0 - self.config.forget
        # add.at, not +=: a task may be in a batch twice, once carried over and once fresh.
        np.add.at(self.skill_K, self.skill_of_N[task_B], self.config.skill_rate * share_B)
        np.add.at(self.cluster_C, self.cluster_of_N[task_B], self.config.cluster_rate * gain_B)
        np.add.at(self.own_N, task_B, self.config.own_rate * gain_B)
        self.lean += self.config.side_rate * float(self._side_N[task_B] @ share_B)
        self._rates_N = None

    def _gains(self, task_B: Ints, rewards_B: Sequence[Floats]) -> Floats:
        """[B] how far each group pushes the logit of its task: g in the module's text."""
        variance_B = np.array([float(rewards.var()) for rewards in rewards_B])
        p, q, noise = self.rates_N()[task_B], self.verdicts_N()[task_B], self.noise_N[task_B]
        useful = p * (1.0 - p) * (1.0 - 2.0 * noise) / np.maximum(q * (1.0 - q), 1e-12)
        gain_B = variance_B * np.where(noise > 0, useful, ~self.broken_N[task_B])
        if self.config.advantage == "normalised":
            gain_B = gain_B / np.sqrt(np.maximum(variance_B, 1e-12))
        return gain_B


def _clusters(kinds: Sequence[PopulationConfig]) -> Ints:
    """[N] cluster of each task; clusters never cross a population."""
    parts: list[Ints] = []
    first = 0
    for kind in kinds:
        part = first + np.arange(kind.tasks) // kind.cluster_size
        parts.append(part)
        first = int(part[-1]) + 1
    return np.concatenate(parts)


def _tasks(kinds: Sequence[PopulationConfig], cluster_of_N: Ints) -> tuple[TaskInfo, ...]:
    names = [(kind, i) for kind in kinds for i in range(kind.tasks)]
    return tuple(
        TaskInfo(
            key=f"{kind.name}/{i}",
            dataset=kind.name if kind.dataset is None else kind.dataset,
            cluster=str(cluster) if kind.cluster_size > 1 else None,
            side=kind.name if kind.side else None,
            # What a text can tell here is the population and the near-duplicates; a task's own difficulty is hidden.
            text=f"{kind.name} {kind.skill} c{cluster}",
        )
        for (kind, i), cluster in zip(names, cluster_of_N, strict=True)
    )
