"""Random schedules of an asynchronous run, driven through a planner by a clock that jumps from event to event."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from snoozing_env.pacing import Flight, PacingConfig, Planner
from snoozing_env.types import Group, GroupOutcome


def group(id: int, version: int) -> Group:
    outcome = GroupOutcome(task=id, rewards_G=np.array([0.0, 1.0]), version=version)
    return Group(id=id, key=f"task-{id}", outcome=outcome, trajectories=())


@dataclass
class Run:
    """What a schedule did."""

    planner: Planner
    lags: list[int] = field(default_factory=list)
    trained: list[int] = field(default_factory=list)
    partial: int = 0


def play(planner: Planner, *, seed: int, steps: int = 12) -> Run:
    """Durations of every scale, one group in ten lost, one in four filtered, engines that start late."""
    rng, run = np.random.default_rng(seed), Run(planner)
    now, next_id, training_until = 0.0, 0, 0.0
    events: list[tuple[float, int, str]] = []
    first_version: dict[int, int] = {}
    train_s = float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    while planner.step < steps:
        assert next_id < 5000, "livelock: groups are generated, none is trained"
        if now >= training_until:
            planner.publish(planner.step)
        for _ in range(planner.room()):
            planner.start(
                Flight(
                    id=next_id, task=next_id, key=f"task-{next_id}", version=planner.version, started_s=now
                )
            )
            first_version[next_id] = planner.version
            seconds = float(np.exp(rng.normal(0.0, rng.choice([0.1, 2.0]))))
            heapq.heappush(events, (now + seconds, next_id, rng.choice(["ok", "lost"], p=[0.9, 0.1])))
            next_id += 1
        if now >= training_until and planner.ready():
            step = planner.step
            taken = planner.take()
            run.partial += len(taken) < planner.batch
            run.lags += [step - g.outcome.version for g in taken]
            run.trained += [g.id for g in taken]
            training_until = now + train_s
            heapq.heappush(events, (training_until, -1, "trained"))
            continue
        assert events, "deadlock: nothing runs, nothing is trained"
        now, id, what = heapq.heappop(events)
        if what == "ok":
            planner.finish(id, group(id, first_version[id]), admitted=bool(rng.random() < 0.75))
        elif what == "lost":
            planner.lose(id)
    return run


def random_config(seed: int) -> PacingConfig:
    rng = np.random.default_rng([seed, 1])
    return PacingConfig(
        max_staleness=int(rng.choice([0, 1, 2, 8])),
        stragglers=str(rng.choice(["wait", "let-go"])),  # type: ignore[arg-type]
        over_age=str(rng.choice(["drop", "keep-corrected"])),  # type: ignore[arg-type]
        max_running=int(rng.choice([3, 8, 64])),
    )
