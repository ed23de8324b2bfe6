"""Exact shares of the trained batch through the whole loop: kept, lent, repaid, and always bounded (M1, M2)."""

from typing import Any

import numpy as np
import pytest

from snoozing_env import build_scheduler
from snoozing_env.gates import LadderConfig
from snoozing_env.schedulers import KINDS
from snoozing_env.sim.learner import Learner, LearnerConfig, PopulationConfig
from snoozing_env.sim.run import LoopConfig, StepMetrics, simulate
from tests.sim.frozen import HOPELESS, SOLVED, frozen

WEIGHTS = {"d0": 0.5, "d1": 0.3, "d2": 0.2}
OFF = {"mode": "off"}


def run(world: Learner, mixture: dict[str, Any], config: LoopConfig, **more: Any) -> tuple[StepMetrics, ...]:
    table = {"mixture": {"shares_of": "batch", **mixture}, "snooze": OFF, **more}
    return simulate(world, build_scheduler(table, world.tasks, 0), config).steps


def counts(steps: tuple[StepMetrics, ...], name: str) -> list[int]:
    """Groups of a dataset in each trained batch."""
    return [round(step.shares[name] * step.trained) for step in steps]


@pytest.mark.parametrize("kind", KINDS)
def test_every_batch_has_exactly_the_shares_while_every_dataset_can_give(kind: str) -> None:
    world = frozen((300, -2.5), (200, 0.0), (200, 2.5))
    steps = run(world, {"weights": WEIGHTS}, LoopConfig(steps=40, batch=20), kind=kind)
    assert len(steps) == 40
    for name, weight in WEIGHTS.items():
        assert counts(steps, name) == [round(20 * weight)] * 40


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_a_rounded_share_is_carried_to_the_next_batch(staleness: int) -> None:
    world = frozen((100, 0.0), (100, 0.0), (100, 0.0))
    config = LoopConfig.model_validate({"steps": 30, "batch": 7, "buffer": {"max_staleness": staleness}})
    steps = run(world, {"weights": {"d0": 1, "d1": 1, "d2": 1}}, config)
    for name in WEIGHTS:
        running = np.cumsum(counts(steps, name))
        assert (np.abs(running - 7 / 3 * np.arange(1, 31)) <= 1 + 1e-9).all()


def test_weights_before_filtering_give_no_exact_shares() -> None:
    world = frozen((300, -2.5), (200, 0.0), (200, 2.5))
    steps = run(world, {"weights": WEIGHTS, "shares_of": "draws"}, LoopConfig(steps=40, batch=20))
    shares = {name: np.mean([s.shares[name] for s in steps]) for name in WEIGHTS}
    assert shares["d0"] < 0.45, "the easiest is filtered most"
    assert len(set(counts(steps, "d0"))) > 1


def test_a_dataset_that_never_gives_lends_its_places_and_then_costs_only_probes() -> None:
    world = frozen((300, 0.0), (100, HOPELESS))
    config = LoopConfig(steps=20, batch=20)
    steps = run(world, {"weights": {"d0": 1, "d1": 1}, "lend_after": 4.0}, config)
    assert all(step.trained == 20 and step.shares["d0"] == 1 for step in steps)
    assert 60 <= steps[0].generated <= 90, (
        "ten places at four groups each, twenty that d0 fills, some surplus"
    )
    later = np.mean([step.generated for step in steps[1:]])
    assert later < 20 + 4 * 2 + 4, "one place a batch is asked for"


def test_what_was_lent_is_repaid_once_the_dataset_gives_again() -> None:
    """d1 sleeps for three passes after a solved first one; then its tasks are half solved."""
    world = frozen((400, 0.0), (40, SOLVED))
    table = {
        "mixture": {"shares_of": "batch", "weights": {"d0": 1, "d1": 1}, "owe_at_most": 50},
        "snooze": {"skip_passes": 3},
    }
    scheduler = build_scheduler(table, world.tasks, 0)
    trained: list[int] = []

    def watch(step: StepMetrics) -> None:
        trained.append(round(step.shares["d1"] * step.trained))
        if step.step == 15:
            world.difficulty_N[400:] = 0.0
            world.train(np.zeros(0, np.int64), [])

    simulate(world, scheduler, LoopConfig(steps=60, batch=20), watch)
    first = next(i for i, n in enumerate(trained) if n)
    assert sum(trained[:first]) == 0
    assert first < 35, "its clock runs on while it sleeps"
    after = np.array(trained[first:])
    assert after.max() == 15, "half its share again, no more"
    assert sum(after - 10) == pytest.approx(50, abs=2)
    assert set(after[-5:].tolist()) == {10}


@pytest.mark.parametrize("kind", ["uniform", "band"])
def test_a_sleeping_dataset_costs_nothing_while_the_others_fill_its_places(kind: str) -> None:
    world = frozen((300, 0.0), (60, SOLVED))
    config = LoopConfig(steps=25, batch=20)
    steps = run(world, {"weights": {"d0": 1, "d1": 1}}, config, kind=kind, snooze={"mode": "permanent"})
    assert all(step.trained == 20 for step in steps)
    assert sum(step.generated for step in steps) < 25 * 20 * 1.25 + 60


def test_a_partial_batch_takes_what_the_others_have_left_over() -> None:
    world = frozen((40, 0.0), (40, HOPELESS))
    ladder = LadderConfig(widen_after=1, wake_after=1.5, partial_after=2)
    config = LoopConfig(steps=3, batch=10, ladder=ladder)
    steps = run(world, {"weights": {"d0": 3, "d1": 7}, "lend_after": 100.0}, config)
    assert all(0 < step.trained <= 10 and step.generated <= 20 for step in steps)


def test_the_floor_of_a_rare_dataset_holds_in_every_batch() -> None:
    world = frozen((900, 0.0), (30, -1.0))
    steps = run(world, {"floors": {"d1": 0.2}}, LoopConfig(steps=30, batch=20))
    assert counts(steps, "d1") == [4] * 30


def test_a_resumed_run_has_the_same_batches() -> None:
    def fresh(state: dict[str, Any] | None) -> Any:
        world = Learner(
            LearnerConfig(
                populations=(
                    PopulationConfig(name="a", tasks=50),
                    PopulationConfig(name="b", tasks=30, difficulty=9.0),
                )
            ),
            0,
        )
        scheduler = build_scheduler(
            {"mixture": {"shares_of": "batch", "weights": {"a": 1, "b": 2}}}, world.tasks, 0
        )
        if state is not None:
            scheduler.load_state_dict(state)
        return scheduler

    one = fresh(None)
    for _ in range(4):
        one.settle_batch(one.batch_shares(7), {"a": 7}, {"b"})
    other = fresh(one.state_dict())
    for _ in range(6):
        asked = one.batch_shares(7)
        assert other.batch_shares(7) == asked
        for scheduler in (one, other):
            scheduler.settle_batch(asked, {"a": 5, "b": 2})
