"""The intervals that reports show; they live in the core, for a falling evaluation is judged there too."""

from snoozing_env.intervals import Interval, clustered, wilson

__all__ = ["Interval", "clustered", "wilson"]
