"""The simulated loop: its arithmetic against theory, and that it always ends."""

import numpy as np
import pytest

from snoozing_env.buffers.fresh import FreshConfig
from snoozing_env.sim.learner import Learner, LearnerConfig, PopulationConfig
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import LoopConfig, simulate
from tests.core.appearances import Z12
from tests.sim.frozen import HOPELESS, SOLVED, frozen, gain, scheduler_of

OFF: dict[str, object] = {"mode": "off"}


def test_survival_of_the_chapters_pool_is_that_of_its_exercise() -> None:
    world = frozen((4000, 0.0), (4000, -np.log(9.0)))
    trace = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=60, batch=256))
    generated = sum(step.generated for step in trace.steps)
    rho = sum(step.survival * step.generated for step in trace.steps) / generated
    assert rho == pytest.approx(0.78086, abs=0.01)
    assert generated / 60 == pytest.approx(328, rel=0.02)


@pytest.mark.parametrize(("passes", "snooze", "wanted"), [row for row in Z12 if row[0] <= 240])
def test_the_gain_over_plain_sampling_is_the_tables(
    passes: int, snooze: dict[str, object], wanted: float
) -> None:
    assert gain(passes, snooze) == pytest.approx(wanted, rel=0.03)


@pytest.mark.parametrize("difficulty", [SOLVED, HOPELESS])
@pytest.mark.parametrize("snooze", [OFF, {"mode": "permanent"}, {"skip_passes": 5}])
def test_a_pool_with_nothing_to_learn_ends_with_the_reason(
    difficulty: float, snooze: dict[str, object]
) -> None:
    world = frozen((50, difficulty))
    trace = simulate(world, scheduler_of(world, snooze), LoopConfig(steps=50, batch=8))
    assert trace.steps == ()
    reason = "all_max" if difficulty < 0 else "all_min"
    # Three dead searches of 32 groups per batch group, each to its end.
    assert trace.ended == f"saturated after 0 updates: {3 * 32 * 8} {reason}"


def test_a_pool_of_one_task_trains_what_there_is() -> None:
    world = frozen((1, 0.0))
    trace = simulate(world, scheduler_of(world, {}), LoopConfig(steps=5, batch=4))
    assert [step.trained for step in trace.steps] == [4] * 5


def test_a_scarce_pool_trains_partial_batches_rather_than_searching_on() -> None:
    world = frozen((200, HOPELESS), (1, 0.0))
    trace = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=3, batch=8))
    assert all(step.rung == "partial" and step.generated <= 8 * 32 for step in trace.steps)
    assert all(0 < step.trained < 8 for step in trace.steps)


def test_nothing_is_regretted_where_every_task_is_alike() -> None:
    world = frozen((100, 1.0))
    trace = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=5, batch=8))
    assert all(step.regret == pytest.approx(0.0, abs=1e-12) for step in trace.steps)


def test_regret_is_the_informative_share_that_the_drawn_groups_fell_short_of() -> None:
    world = frozen((5000, SOLVED), (5000, 0.0))
    trace = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=40, batch=32))
    regret = np.average([s.regret for s in trace.steps], weights=[s.generated for s in trace.steps])
    assert regret == pytest.approx(0.5 * (1 - 2 * 0.5**8), abs=0.03)


def test_a_step_trains_at_one_version_only_when_nothing_may_wait() -> None:
    world = frozen((500, 0.0))
    config = LoopConfig(steps=10, batch=16, buffer=FreshConfig(max_staleness=0))
    assert all(step.trained == 16 for step in simulate(world, scheduler_of(world, OFF), config).steps)


def test_shares_of_the_batch_are_those_of_the_pool_where_nothing_is_filtered() -> None:
    world = frozen((900, 0.0), (300, 0.0))
    trace = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=50, batch=24))
    assert np.mean([step.shares["d0"] for step in trace.steps]) == pytest.approx(0.75, abs=0.02)
    assert all(sum(step.shares.values()) == pytest.approx(1.0) for step in trace.steps)


def test_the_evaluation_is_the_mean_latent_rate_of_every_task_and_side() -> None:
    config = LearnerConfig(
        populations=(
            PopulationConfig(name="yes", tasks=30, side=1),
            PopulationConfig(name="no", tasks=10, side=-1),
            PopulationConfig(name="else", tasks=10),
        )
    )
    world = Learner(config, 0)
    step = simulate(world, scheduler_of(world, OFF), LoopConfig(steps=4, batch=4)).steps[-1]
    p = world.rates_N()
    assert step.rate == pytest.approx(p.mean())
    assert step.rates == pytest.approx({"yes": p[:30].mean(), "no": p[30:40].mean(), "else": p[40:].mean()})
    assert step.side_rates == pytest.approx({"+1": p[:30].mean(), "-1": p[30:40].mean()})


@pytest.mark.parametrize("name", PRESETS)
def test_the_same_seed_gives_the_same_run(name: str) -> None:
    def run() -> object:
        world = Learner(PRESETS[name], 5)
        return simulate(world, scheduler_of(world, {}, seed=5), LoopConfig(steps=15))

    assert run() == run()
