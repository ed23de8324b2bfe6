"""How far generation may run ahead of training, as pure decisions: no clock, no event loop, no engine."""

from snoozing_env.pacing.config import PacingConfig
from snoozing_env.pacing.draws import Draws
from snoozing_env.pacing.durations import DurationConfig, Durations
from snoozing_env.pacing.planner import Fate, Flight, Planner
from snoozing_env.pacing.tail import TailConfig

__all__ = ["Draws", "DurationConfig", "Durations", "Fate", "Flight", "PacingConfig", "Planner", "TailConfig"]
