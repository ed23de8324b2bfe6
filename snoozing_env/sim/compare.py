"""Schedulers × learners × seeds: every run, and what each comes to in one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, cast

import numpy as np
from pydantic import Field, field_validator, model_validator

from snoozing_env.config import FrozenConfig
from snoozing_env.errors import did_you_mean
from snoozing_env.outcome_log import FILE_NAME, LoggedOutcome, read_outcomes
from snoozing_env.schedulers import KINDS, CurriculumConfig, SchedulerConfig, build_scheduler
from snoozing_env.sim.learner import Learner, LearnerConfig
from snoozing_env.sim.presets import ARM_SETS, PRESETS
from snoozing_env.sim.replay import Replay
from snoozing_env.sim.run import LoopConfig, StepMetrics, Trace, simulate
from snoozing_env.sim.world import World
from snoozing_env.types import Floats


class SimulationConfig(FrozenConfig):
    """What `snooze simulate` compares; every table and flag is optional."""

    schedulers: dict[str, SchedulerConfig] = Field(default_factory=dict)
    """Arms by name, each a recipe's `[scheduler]` table; the first is the baseline. With none and no `kinds`: plain
    dynamic sampling, the permanent filter, snooze 2 and snooze 5."""
    kinds: tuple[str, ...] = ()
    """Also one arm for each of these kinds of scheduler with its defaults, e.g. --kinds uniform,thompson."""
    arm_set: Literal["snoozes", "conflict", "shares"] = "snoozes"
    """Which arms when none are named: `snoozes`, or `conflict`, seed S0's figure 4 with and without the conflict
    monitor and "auto", for --presets conflict. `shares`, figure 3: equal weights before
    filtering beside equal shares of the final batch, on the preset `subsets`."""
    presets: tuple[str, ...] = ("standalone", "subsets", "conflict")
    """Learners that ship with the package; empty = only those of `learners` and `outcomes`."""
    learners: dict[str, LearnerConfig] = Field(default_factory=dict)
    """Learners by name, each with `populations` and rates."""
    outcomes: Path | None = None
    """A log of outcomes (JSON lines), or the directory of a run, to replay as one more learner."""
    seeds: tuple[int, ...] = Field(default=(0, 1, 2), min_length=1)
    """--seeds 0,1,2: each fixes a learner's tasks and rollouts and a scheduler's draws."""
    loop: LoopConfig = LoopConfig()
    """--loop.steps, --loop.batch, --loop.rollouts and the gate, ladder and buffer of a run."""
    target: float = Field(default=0.9, gt=0, le=1)
    """Mean latent pass rate whose price is compared."""
    output: Path = Path("runs/simulate")
    """Directory of runs.jsonl, steps.jsonl and report.html."""

    @field_validator("kinds", "presets", "seeds", mode="before")
    @classmethod
    def _from_words(cls, value: Any) -> Any:
        """A flag's `a,b` is a list of two."""
        return [word for word in value.split(",") if word] if isinstance(value, str) else value

    @field_validator("schedulers", mode="before")
    @classmethod
    def _uniform_by_default(cls, arms: Any) -> Any:
        if not isinstance(arms, Mapping):
            return arms
        return {
            name: {"kind": "uniform", **cast("Mapping[str, Any]", arm)} if isinstance(arm, Mapping) else arm
            for name, arm in cast("Mapping[str, Any]", arms).items()
        }

    @model_validator(mode="after")
    def _known(self) -> Self:
        for what, given, known in (("kind", self.kinds, KINDS), ("preset", self.presets, PRESETS)):
            for name in given:
                if name not in known:
                    raise ValueError(
                        f"no {what} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}."
                    )
        if not self.presets and not self.learners and self.outcomes is None:
            raise ValueError("nothing to learn: give presets, learners or outcomes")
        return self

    @property
    def runs(self) -> int:
        """How many the comparison has."""
        learners = {*self.presets, *self.learners}
        return (len(learners) + (self.outcomes is not None)) * len(self.arms) * len(self.seeds)

    @property
    def arms(self) -> dict[str, CurriculumConfig]:
        """Every scheduler by name, the baseline first."""
        named: dict[str, CurriculumConfig] = {
            **self.schedulers,
            **{kind: KINDS[kind]() for kind in self.kinds},
        }
        return named or dict(ARM_SETS[self.arm_set])


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One run in one row."""

    scheduler: str
    learner: str
    seed: int
    steps: int
    generated: int
    """Groups."""
    trained: int
    """Groups."""
    survival: float
    """ρ over the whole run."""
    tokens_per_trained: float
    """Generated tokens per trained group."""
    regret: float
    """Informative groups missed against the oracle, per generated group."""
    first_rate: float
    final_rate: float
    """Mean latent pass rate after the last step."""
    steps_to_target: int | None
    """None = not reached."""
    groups_to_target: int | None
    """Generated by then."""
    asleep_share: float
    """At the end."""
    woken: int
    forgotten: int
    dips: dict[str, float]
    """Deepest fall of each side's rate below what it had reached before."""
    side_rates: dict[str, float]
    """At the end."""
    shares: dict[str, float]
    """Of each data set in the last quarter of the batches."""
    fallback_share: float
    """Share of the updates that drew uniformly because the evaluation had fallen (S11)."""
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """A run with its steps."""

    summary: Summary
    trace: Trace


OnRun = Callable[[str, str, int], None]
OnStep = Callable[[StepMetrics], None]


def simulate_all(
    config: SimulationConfig, on_run: OnRun | None = None, on_step: OnStep | None = None
) -> Iterator[SimulatedRun]:
    """Every arm on every learner and seed; arms of one learner and seed see the same tasks."""
    for learner, build in worlds(config).items():
        for name, arm in config.arms.items():
            for seed in config.seeds:
                if on_run is not None:
                    on_run(name, learner, seed)
                world = build(seed)
                trace = simulate(world, build_scheduler(arm, world.tasks, seed), config.loop, on_step)
                summary = summarize(
                    trace, scheduler=name, learner=learner, seed=seed, target=config.target, loop=config.loop
                )
                yield SimulatedRun(summary=summary, trace=trace)


def worlds(config: SimulationConfig) -> dict[str, Callable[[int], World]]:
    """Learners by name, each built from a seed."""
    learners = {name: PRESETS[name] for name in config.presets} | dict(config.learners)
    built: dict[str, Callable[[int], World]] = {name: _learner(c) for name, c in learners.items()}
    if config.outcomes is not None:
        built[_name(config.outcomes)] = _replay(read_outcomes(config.outcomes))
    return built


def _name(log: Path) -> str:
    """A log's name; that of its run where it is called what every run's is."""
    return log.resolve().parent.name if log.name == FILE_NAME else log.stem


def _learner(config: LearnerConfig) -> Callable[[int], World]:
    return lambda seed: Learner(config, seed)


def _replay(outcomes: Sequence[LoggedOutcome]) -> Callable[[int], World]:
    return lambda seed: Replay(outcomes, seed)


def summarize(
    trace: Trace, *, scheduler: str, learner: str, seed: int, target: float, loop: LoopConfig
) -> Summary:
    """The row of one run."""
    steps = trace.steps
    made_S = np.array([step.generated for step in steps], np.float64)
    generated, trained = int(made_S.sum()), sum(step.trained for step in steps)
    reached = next((i for i, step in enumerate(steps) if step.rate >= target), None)
    late = steps[-max(len(steps) // 4, 1) :]
    last = steps[-1] if steps else None
    return Summary(
        scheduler=scheduler,
        learner=learner,
        seed=seed,
        steps=len(steps),
        generated=generated,
        trained=trained,
        survival=_per_group([step.survival for step in steps], made_S),
        tokens_per_trained=generated * loop.rollouts * loop.tokens / max(trained, 1),
        regret=_per_group([step.regret for step in steps], made_S),
        first_rate=trace.first_rate,
        final_rate=last.rate if last else trace.first_rate,
        steps_to_target=None if reached is None else steps[reached].step,
        groups_to_target=None if reached is None else int(made_S[: reached + 1].sum()),
        asleep_share=last.asleep_share if last else 0.0,
        woken=last.woken if last else 0,
        forgotten=last.forgotten if last else 0,
        dips={side: dip(trace, side) for side in trace.first_side_rates},
        side_rates=dict(last.side_rates if last else trace.first_side_rates),
        shares={name: float(np.mean([step.shares[name] for step in late])) for name in late[0].shares}
        if late
        else {},
        fallback_share=sum(step.fallback for step in steps) / max(len(steps), 1),
        ended=trace.ended,
    )


def dip(trace: Trace, side: str) -> float:
    """Deepest fall of a side's rate below its highest value before; 0 = it never fell."""
    rate_S = np.array([trace.first_side_rates[side], *(step.side_rates[side] for step in trace.steps)])
    return float((np.maximum.accumulate(rate_S) - rate_S).max())


def _per_group(values: Sequence[float], made_S: Floats) -> float:
    """Mean over generated groups of a per-step mean."""
    return float(np.asarray(values) @ made_S / made_S.sum()) if made_S.sum() else 0.0
