"""What a recipe would do, without doing it."""

from __future__ import annotations

from rich.table import Table

from snoozing_env.rollout.catalogue import load_catalogue
from snoozing_env.rollout.evaluation import check_held_out
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import load_held_out


def describe(recipe: Recipe) -> Table:
    """Tasks, arms and sizes of a run; loads both task sets and so finds what is wrong with them.

    Raises:
        SnoozingError: the recipe cannot run as it is.
    """
    train, held_out = load_catalogue(recipe.environment), load_held_out(recipe)
    check_held_out(train, held_out)
    rollout, steps = recipe.rollout, recipe.train
    table = Table(title=f"{recipe.name} (dry run)", show_header=False, title_justify="left")
    datasets = sorted({info.dataset for info in train.infos})
    table.add_row("tasks", f"{len(train)} to train on ({', '.join(datasets)}), {len(held_out)} held out")
    if train.priors is not None:
        table.add_row("priors", str(train.priors))
    table.add_row("policy", f"{recipe.policy.kind} {recipe.policy.path}".strip())
    table.add_row("engine", recipe.engine.kind)
    table.add_row(
        "step",
        f"{steps.batch_groups} groups of {rollout.group_size} rollouts, up to {rollout.max_tokens} tokens each",
    )
    table.add_row(
        "length", f"{steps.steps} steps, {steps.algorithm}, evaluation every {recipe.evaluation.every}"
    )
    table.add_row("snoozing", f"{recipe.scheduler.snooze.mode}, N = {recipe.scheduler.snooze.skip_passes:g}")
    for arm in recipe.arms:
        changed = ", ".join(f"{k} = {v!r}" for k, v in recipe.arms[arm].items()) or "the recipe as it is"
        recipe.for_arm(arm)
        table.add_row(f"arm {arm}", changed)
    table.add_row("output", str(recipe.directory))
    return table
