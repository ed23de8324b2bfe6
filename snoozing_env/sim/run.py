"""The training loop of a run, with a world in place of engine and trainer.

    step.next_draw() ─▶ tasks ─▶ world.sample ─▶ step.add(groups) ─▶ still places open? draw again
                                                        │ no
                                                        ▼
                                                  world.train ─▶ version + 1

The decisions are those of `snoozing_env.collect`, which the rollout loop makes too; a law runs both and compares.
Schedulers, gate, ladder and buffer are the real ones, so what is measured here is what a run would do with these
rewards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from snoozing_env.buffers.fresh import FreshBuffer, FreshConfig
from snoozing_env.collect import Collection, Collector
from snoozing_env.config import FrozenConfig
from snoozing_env.fallback import FallbackConfig, FallbackMonitor, FallsBack, apply
from snoozing_env.gates import Admission, GateConfig, Ladder, LadderConfig, Rung
from snoozing_env.schedulers import Curriculum, Scheduler
from snoozing_env.sim.world import World
from snoozing_env.types import Floats, Group, GroupOutcome, Ints


class EvaluationConfig(FrozenConfig):
    """The fixed, unfiltered evaluation that a fallback watches; a run can only sample it, so it is sampled here too."""

    every: int = Field(default=10, ge=1)
    """Updates between two evaluations."""
    tasks: int = Field(default=200, ge=2)
    """Fixed tasks, spread over the pool."""
    samples: int = Field(default=4, ge=1)
    """Verdicts per task, drawn at its latent pass rate."""
    seed: int = Field(default=0, ge=0)
    """Of the choice of tasks and of the verdicts."""


class LoopConfig(FrozenConfig):
    """One simulated run."""

    steps: int = Field(default=200, ge=1)
    """Weight updates."""
    batch: int = Field(default=24, ge=1)
    """B: informative groups per update."""
    rollouts: int = Field(default=8, ge=2)
    """G."""
    tokens: int = Field(default=256, ge=1)
    """Generated tokens per rollout."""
    gate: GateConfig = GateConfig()
    """--gate.band LO HI also drops nearly solved and nearly hopeless groups."""
    ladder: LadderConfig = LadderConfig()
    """--ladder.wake-after and the other rungs of a step that finds too little."""
    buffer: FreshConfig = FreshConfig()
    """--buffer.max-staleness: how long surplus groups may wait."""
    fallback: FallbackConfig | None = None
    """Uniform draws while the evaluation is below its best (S11); None = never. --loop.fallback.patience and others."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """What the fallback watches; without one, nothing is evaluated by samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics:
    """One update: what it cost, what it trained, and how good the policy is after it."""

    step: int
    generated: int
    """Groups."""
    trained: int
    """Groups."""
    survival: float
    """ρ of the generated groups; 0 when none was generated (F5)."""
    regret: float
    """Informative groups that an oracle with the latent rates would have expected on top, per generated group."""
    asleep_share: float
    woken: int
    """Re-checks so far."""
    forgotten: int
    """Of those, no longer mastered."""
    shares: dict[str, float]
    """Share of each data set in the trained batch."""
    sides: dict[str, float]
    """Share of each side in the trained batch; "+1" and "-1"."""
    rate: float
    """Mean latent pass rate over every task: the fixed, unfiltered evaluation (F6)."""
    rates: dict[str, float]
    """The same per data set."""
    side_rates: dict[str, float]
    """The same per side."""
    rung: Rung
    """Highest rung of the ladder."""
    fallback: bool = False
    """Whether the scheduler drew uniformly because the evaluation had fallen (S11)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A whole simulated run."""

    first_rate: float
    """Mean latent pass rate before training."""
    first_side_rates: dict[str, float]
    steps: tuple[StepMetrics, ...]
    ended: str
    """"finished", or why the loop stopped early."""


OnStep = Callable[[StepMetrics], None]


def simulate(world: World, scheduler: Scheduler, config: LoopConfig, on_step: OnStep | None = None) -> Trace:
    """Run `config.steps` updates, or fewer when nothing informative is left."""
    loop = SimulatedLoop(world, scheduler, config)
    first, first_sides = float(world.rates_N().mean()), loop.by_side(world.rates_N())
    steps: list[StepMetrics] = []
    ended = "finished"
    for _ in range(config.steps):
        metrics = loop.step()
        if metrics is None:
            ended = loop.report()
            break
        steps.append(metrics)
        if on_step is not None:
            on_step(metrics)
    return Trace(first_rate=first, first_side_rates=first_sides, steps=tuple(steps), ended=ended)


class SimulatedLoop:
    """Collects and trains, one step a call."""

    def __init__(self, world: World, scheduler: Scheduler, config: LoopConfig) -> None:
        self.world, self.scheduler, self.config = world, scheduler, config
        self.buffer = FreshBuffer(config.buffer)
        self.collector = Collector(scheduler, self.buffer, gate=config.gate, ladder=Ladder(config.ladder))
        self.version = 0
        self._next_id = 0
        self._last: Counter[Admission] = Counter()
        datasets = [task.dataset for task in world.tasks]
        self._datasets = list(dict.fromkeys(datasets))
        index = {name: d for d, name in enumerate(self._datasets)}
        self._dataset_N = np.array([index[name] for name in datasets], np.int64)
        self._watch = None if config.fallback is None else Watch(world, config.fallback, config.evaluation)

    def step(self) -> StepMetrics | None:
        """One update; None when `dead_steps` full searches found nothing to train on."""
        if self._watch is not None and isinstance(self.scheduler, Curriculum):
            self._watch.look(self.version, self.scheduler)
        step, regret = self.collector.begin(self.config.batch, version=self.version), 0.0
        while len(drawn_B := step.next_draw()):
            regret += self._regret(drawn_B)
            step.add(self._rollouts(drawn_B))
        if not step.groups:
            self._last = step.verdicts
            return None
        task_B = np.array([group.outcome.task for group in step.groups], np.int64)
        self.world.train(task_B, [group.outcome.rewards_G for group in step.groups])
        self.version += 1
        return self._metrics(task_B, step, regret)

    def report(self) -> str:
        """Why the last step found nothing."""
        found = ", ".join(f"{n} {verdict}" for verdict, n in self._last.most_common())
        return f"saturated after {self.version} updates: {found}"

    def _rollouts(self, task_B: Ints) -> list[Group]:
        rewards_B_G = self.world.sample(task_B, self.config.rollouts)
        first, self._next_id = self._next_id, self._next_id + len(task_B)
        tokens = self.config.tokens * self.config.rollouts
        return [
            Group(
                id=first + b,
                key=self.world.tasks[task].key,
                outcome=GroupOutcome(
                    task=task, rewards_G=rewards_B_G[b], version=self.version, tokens=tokens
                ),
                trajectories=(),
            )
            for b, task in enumerate(map(int, task_B))
        ]

    def _regret(self, drawn_B: Ints) -> float:
        """Expected informative groups that were missed: the best n tasks of the pool against the n drawn ones.

        A group of G has spread with probability 1 − q^G − (1−q)^G (seed S3).
        """
        n = len(drawn_B)
        if n == 0:
            return 0.0
        q, g = self.world.verdicts_N(), self.config.rollouts
        informative_N = 1.0 - q**g - (1.0 - q) ** g
        best = np.partition(informative_N, len(q) - n)[len(q) - n :]
        return float(best.sum() - informative_N[drawn_B].sum())

    def _metrics(self, task_B: Ints, step: Collection, regret: float) -> StepMetrics:
        rates_N, seen = self.world.rates_N(), self.scheduler.metrics()
        trained = len(task_B)
        in_batch = np.bincount(self._dataset_N[task_B], minlength=len(self._datasets)) / trained
        size = np.bincount(self._dataset_N)
        total = np.bincount(self._dataset_N, weights=rates_N)
        side_B = self.world.side_N[task_B]
        return StepMetrics(
            step=self.version,
            generated=step.generated,
            trained=trained,
            survival=step.survival,
            regret=regret / max(step.generated, 1),
            asleep_share=seen.get("asleep_share", 0.0),
            woken=int(seen.get("woken", 0)),
            forgotten=int(seen.get("forgotten", 0)),
            shares={name: float(in_batch[d]) for d, name in enumerate(self._datasets)},
            sides={name: float((side_B == s).mean()) for name, s in SIDES if (self.world.side_N == s).any()},
            rate=float(rates_N.mean()),
            rates={name: float(total[d] / size[d]) for d, name in enumerate(self._datasets)},
            side_rates=self.by_side(rates_N),
            rung=step.rung,
            fallback=self._watch is not None and self._watch.monitor.fallen_back,
        )

    def by_side(self, rates_N: Floats) -> dict[str, float]:
        """Mean rate per side; empty where no task takes one."""
        side_N = self.world.side_N
        return {name: float(rates_N[side_N == s].mean()) for name, s in SIDES if (side_N == s).any()}


class Watch:
    """Samples the evaluation of a world and tells the scheduler what it says (S11)."""

    def __init__(self, world: World, fallback: FallbackConfig, config: EvaluationConfig) -> None:
        self.monitor = FallbackMonitor(fallback)
        self._world, self._config = world, config
        self._rng = np.random.default_rng(np.random.SeedSequence([config.seed, 2]))
        n = len(world.tasks)
        self._task_E: Ints = np.sort(self._rng.permutation(n)[: min(config.tasks, n)])
        self._keys = [world.tasks[int(task)].key for task in self._task_E]

    def look(self, version: int, scheduler: FallsBack) -> None:
        """Evaluate, if it is time to."""
        if version % self._config.every:
            return
        solved_E = self._rng.binomial(self._config.samples, self._world.rates_N()[self._task_E])
        judged = self.monitor.judge(version, self._keys, solved_E / self._config.samples)
        apply(judged.action, scheduler)


SIDES = (("+1", 1.0), ("-1", -1.0))
"""Names of the two sides in metrics."""
