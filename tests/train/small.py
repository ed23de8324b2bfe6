"""A run that takes seconds: the lab policy barely warmed up, on embedded arithmetic."""

from pathlib import Path
from typing import Any

from snoozing_env.train.recipe import Recipe

LEVELS = {"source": "arithmetic", "style": "bare", "levels": [1, 2], "size": 60}


def small_recipe(output: Path, **changes: Any) -> Recipe:
    """Twelve steps of four groups; `changes` are top-level tables merged over it."""
    base: dict[str, Any] = {
        "name": "small",
        "output": str(output),
        "environment": {"id": "snooze-math", "taskset": {**LEVELS, "split": "train"}},
        "evaluation": {"every": 6, "taskset": {"split": "eval", "size": 20}},
        "policy": {
            "lab": {
                "hidden_size": 64,
                "layers": 2,
                "heads": 2,
                "kv_heads": 2,
                "warmup": {"steps": 120, "batch": 64},
            }
        },
        "rollout": {"group_size": 4, "max_tokens": 5},
        "scheduler": {"snooze": {"mode": "jittered", "skip_passes": 3}},
        "train": {"steps": 12, "batch_groups": 4, "learning_rate": 1e-3, "save_every": 2, "device": "cpu"},
    }
    for table, value in changes.items():
        base[table] = {**base.get(table, {}), **value} if isinstance(value, dict) else value
    return Recipe.model_validate(base)
