"""What a command would roll out, without doing it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from snoozing_env.evaluate.config import EndpointConfig, PlanConfig
from snoozing_env.evaluate.folder import Planned


def describe(config: PlanConfig, models: Sequence[EndpointConfig], planned: Sequence[Planned]) -> Table:
    """Environments, models and how many rollouts; no request is sent."""
    table = Table(title="dry run", show_header=False, title_justify="left")
    for model in models:
        place = f"in this process from {model.local}" if model.local else f"at {model.root}"
        key = f", key from ${model.key_env}" if model.key_env else ""
        table.add_row("model", Text(f"{model.label} {place}{key}"))
    for one in planned:
        split = one.catalogue.config.taskset.get("split")
        names = sorted({info.dataset for info in one.catalogue.infos if info.dataset})
        facts = [
            f"{len(one.drawn)} of {len(one.catalogue)} tasks",
            f"split {split}" if split else "",
            ", ".join(names),
        ]
        table.add_row(Text(one.name), Text("; ".join(f for f in facts if f)))
    drawn = sum(len(one.drawn) for one in planned)
    total = drawn * config.rollouts * len(models)
    table.add_row(
        "rollouts", f"{total} ({config.rollouts} per task), up to {config.sampling.max_tokens} tokens each"
    )
    table.add_row("sampling", f"temperature {config.sampling.temperature:g}, seed {config.seed}")
    table.add_row(
        "at once", f"{config.concurrency}, {config.deadline_s:g} s each, {config.attempts} attempts"
    )
    table.add_row("output", Text(config.output))
    return table
