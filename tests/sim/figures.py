"""Seed S0's figures 3 and 4 in the simulator."""

from functools import lru_cache

import numpy as np

from snoozing_env import build_scheduler
from snoozing_env.gates import LadderConfig
from snoozing_env.sim.compare import dip
from snoozing_env.sim.learner import Learner
from snoozing_env.sim.presets import PRESETS
from snoozing_env.sim.run import LoopConfig, Trace, simulate

ARMS: dict[str, dict[str, object]] = {
    "plain": {"mode": "off"},
    "N=2": {"skip_passes": 2},
    "N=3": {"skip_passes": 3},
    "N=5": {"skip_passes": 5},
    "permanent": {"mode": "permanent"},
}
"""From the shallowest dip to the deepest."""
STEPS = 150
FRESH_SEEDS = (100, 101, 102, 103, 104)
"""Not those on which the preset's constants were chosen."""


@lru_cache(maxsize=64)
def run(learner: str, arm: str, seed: int) -> Trace:
    world = Learner(PRESETS[learner], seed)
    return simulate(world, build_scheduler({"snooze": ARMS[arm]}, world.tasks, seed), LoopConfig(steps=STEPS))


SHARES: dict[str, dict[str, object]] = {
    "before filtering": {"shares_of": "draws"},
    "final batch": {"shares_of": "batch"},
    "final batch, patient": {"shares_of": "batch", "lend_after": 100.0},
}
"""Figure 3's two readings of "equally weighted", under plain dynamic sampling; the last never lends a place before a
hundred groups were generated for it."""
PATIENT = LadderConfig(partial_after=200.0)


@lru_cache(maxsize=64)
def hard_shares(shares: str, seed: int) -> tuple[float, ...]:
    """Figure 3: share of the hard subset in every batch, both subsets weighted equally."""
    world = Learner(PRESETS["subsets"], seed)
    mixture = {"weights": {"easy": 1, "hard": 1}, **SHARES[shares]}
    scheduler = build_scheduler({"snooze": ARMS["plain"], "mixture": mixture}, world.tasks, seed)
    ladder = PATIENT if shares.endswith("patient") else LadderConfig()
    trace = simulate(world, scheduler, LoopConfig(steps=STEPS, ladder=ladder))
    return tuple(step.shares["hard"] for step in trace.steps)


def hard_share(arm: str, seed: int) -> tuple[float, float]:
    """Figure 3: share of the hard subset in the first and in the last tenth of the batches."""
    shares = [step.shares["hard"] for step in run("subsets", arm, seed).steps]
    tenth = STEPS // 10
    return float(np.mean(shares[:tenth])), float(np.mean(shares[-tenth:]))


def answerable(arm: str, seed: int) -> dict[str, float]:
    """Figure 4: the deepest dip of the answerable side, its lowest rate after step 10, its mean over the second
    half and over the last ten steps, the best it came back to, and the other side's highest share of the batch."""
    trace = run("conflict", arm, seed)
    rate = [step.side_rates["+1"] for step in trace.steps]
    # A run that found nothing more to train on stays where it stopped.
    rate += rate[-1:] * (STEPS - len(rate))
    share = np.convolve([step.sides["-1"] for step in trace.steps], np.ones(5) / 5, "valid")
    return {
        "dip": dip(trace, "+1"),
        "lowest": min(rate[10:]),
        "late": float(np.mean(rate[STEPS // 2 :])),
        "last": float(np.mean(rate[-10:])),
        "recovered": max(rate[int(np.argmin(rate)) :]),
        "unanswerable_share": float(share.max()),
    }
