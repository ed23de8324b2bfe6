"""Goodput: which part of a run's time and tokens became training, and where the rest went (A9).

    trainer   starting · training · waiting · syncing · evaluating · saving · undone      TrainerTime
    engine    generating · waiting · paused · evaluating · failed · undone                EngineTime
    tokens    generated = trained + lost to staleness, filters, failures + still waiting   Fates

Both sides are in one state at any instant, so their seconds add up to the wall time; tokens are whole numbers, so
their sum is exact. The engine's generating seconds are shared out among the groups in flight and follow them to what
becomes of them, which gives time, too, the three causes of loss.

    goodput/trainer = training / wall time
    goodput/engine  = seconds of generating that ended in a trained group / wall time
    goodput/time    = mean of the two: useful time of two workers over what both were there for
    goodput/tokens  = trained / (trained + lost), of the tokens whose fate is known

Source: requirement A9; useful over wall time is the runtime part of Google's ML Productivity Goodput (2024), here for
each side. A synchronous run, whose sides take turns, cannot pass 1/2 in `goodput/time`; what overlap wins is there.
Pure: a clock is passed in, and nothing waits.
"""

from snoozing_env.goodput.account import Account, EngineAccount, Undone, step_metrics
from snoozing_env.goodput.fates import LOST, Cause, Fates
from snoozing_env.goodput.times import PHASES, STATES, EngineTime, Phase, State, TrainerTime

__all__ = [
    "LOST",
    "PHASES",
    "STATES",
    "Account",
    "Cause",
    "EngineAccount",
    "EngineTime",
    "Fates",
    "Phase",
    "State",
    "TrainerTime",
    "Undone",
    "step_metrics",
]
