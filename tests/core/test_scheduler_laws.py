"""The contract suite over every kind, and the proof that it can fail."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snoozing_env import KINDS, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum, LoadReport
from snoozing_env.schedulers.band import BandConfig
from snoozing_env.schedulers.selector import Pool, RankingSelector, Selector
from snoozing_env.schedulers.shared import SelectedConfig
from snoozing_env.testing import LAWS, MODES, Build, Law, Subject, check_scheduler, outcome

VARIANTS: dict[str, dict[str, Any]] = {kind: {"kind": kind} for kind in sorted(KINDS)} | {
    "thompson over all": {"kind": "thompson", "shortlist": 0},
    "learnability by variance": {"kind": "learnability", "formula": "variance"},
    "lze signed": {"kind": "lze", "signed": True, "difficulty": {"estimate": "last"}},
    "progress unsigned": {"kind": "progress", "signed": False},
    "staged lze, newest tier only": {"kind": "staged", "inner": {"kind": "lze"}, "keep_open": False},
    "staged thompson on a schedule": {
        "kind": "staged",
        "advance": "schedule",
        "inner": {"kind": "thompson"},
    },
    "uniform in a mixture": {"kind": "uniform", "mixture": {}},
    "lze in a mixture": {"kind": "lze", "mixture": {"owe_at_most": 0, "count_asleep": False}},
    "dots by ridge with a task's own rollouts": {
        "kind": "dots",
        "rule": "ridge",
        "own_prior": 8,
        "reference": 8,
        "refresh_updates": 2,
        "embedding": {"surface": 0.5, "characters": (3, 4)},
    },
    "dots refreshed by draws": {"kind": "dots", "reference": 2, "refresh_groups": 9, "repeat": True},
    "dots in a mixture": {"kind": "dots", "reference": 4, "refresh_updates": 1, "mixture": {}},
    "staged dots": {"kind": "staged", "inner": {"kind": "dots", "reference": 3, "refresh_groups": 12}},
    "band without reversion": {"kind": "band", "half_life": float("inf")},
}


def build_of(config: Mapping[str, Any]) -> Build:
    def build(tasks: Sequence[TaskInfo], seed: int, snooze: Mapping[str, Any]) -> Curriculum:
        told = [replace(task, text=f"What is {i % 7} plus {i // 7}?") for i, task in enumerate(tasks)]
        return build_scheduler({**config, "snooze": dict(snooze)}, told, seed)

    return build


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_scheduler_keeps_the_law(name: str, law: Law) -> None:
    config = VARIANTS[name]
    law(Subject(build=build_of(config), floor=1.0 if name.startswith("uniform") else 0.02))


@pytest.mark.parametrize("mode", MODES)
def test_uniform_draws_every_awake_task_within_one_pass_of_draws_in_every_snooze_mode(mode: str) -> None:
    tasks = [TaskInfo(key=str(i)) for i in range(97)]
    scheduler = build_scheduler({"snooze": {"mode": mode}}, tasks, 3)
    seen: set[int] = set()
    for _ in range(14):  # 14 draws of 7 = one pass of 97
        drawn = scheduler.draw(7)
        seen |= set(drawn.tolist())
        scheduler.observe_many([outcome(int(t), 2) for t in drawn])
    assert seen == set(range(97))


# -- the suite can fail: one mutant per promise -----------------------------------------------------------


class ByPosition(RankingSelector):
    """Wants the first tasks of the list, whatever happens."""

    def keys(self, part: slice) -> np.ndarray:
        return np.arange(len(self.pool.tasks), dtype=np.float32)[part]


class IgnoresOpen(ByPosition):
    def choose(self, n: int, open_N: np.ndarray) -> np.ndarray:
        return np.arange(min(n, len(open_N)))


class StubbornConfig(SelectedConfig):
    kind: str = "stubborn"

    def selector(self, pool: Pool) -> Selector:
        return ByPosition(pool)


class BusyConfig(SelectedConfig):
    kind: str = "busy"

    def selector(self, pool: Pool) -> Selector:
        return IgnoresOpen(pool)


class ForgetsItsGenerator(Curriculum):
    def load_state_dict(self, state: Mapping[str, Any], *, merge: bool = False) -> LoadReport:
        selector_rng = self._selector_rng.bit_generator.state
        report = super().load_state_dict(state, merge=merge)
        self._selector_rng.bit_generator.state = selector_rng
        return report


def mutant(config: type[SelectedConfig], cls: type[Curriculum] = Curriculum, **fixed: Any) -> Subject:
    def build(tasks: Sequence[TaskInfo], seed: int, snooze: Mapping[str, Any]) -> Curriculum:
        return cls(config(**{"snooze": dict(snooze), **fixed}), tasks, seed)

    return Subject(build=build, floor=0.02)


MUTANTS = {
    "ignores busy tasks": (mutant(BusyConfig), "any_history"),
    "has no floor and starves": (mutant(StubbornConfig, epsilon=1e-9), "no_starvation"),
    "never ends a sleep": (
        mutant(BandConfig, snooze={"mode": "permanent"}),
        "a_sleeper_skips_its_passes_and_returns",
    ),
    "never sleeps": (
        mutant(StubbornConfig, snooze={"mode": "off"}),
        "a_sleeper_skips_its_passes_and_returns",
    ),
    "never forgets": (mutant(BandConfig, difficulty={"decay": 1.0}), "estimates_follow_the_policy"),
    "does not save its generator": (mutant(BandConfig, ForgetsItsGenerator), "any_history"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_suite_catches_a_scheduler_that(name: str) -> None:
    subject, law = MUTANTS[name]
    with pytest.raises(AssertionError, match=r"\w"):
        LAWS[law](subject)


def test_a_third_party_selector_that_is_merely_stubborn_passes_thanks_to_the_floor() -> None:
    check_scheduler(mutant(StubbornConfig))
