"""The success buffer where less than one rollout in a hundred succeeds: held-out accuracy at equal generated tokens
without it (plain, and with whole batches by refilling), with it as importance-corrected rollouts and as anchors; and what
becomes of poisoned entries (must-show 7).

The full set runs `rare_lab.toml`. The reduced one shows the mechanism on a policy that is barely warmed up.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from transformers import AutoModelForCausalLM, AutoTokenizer

from snoozing_env.buffers.store import dump_groups, parse_groups
from snoozing_env.buffers.success import Success, SuccessBuffer, SuccessConfig
from snoozing_env.intervals import clustered
from snoozing_env.report.compare import Run
from snoozing_env.rollout.catalogue import Catalogue, load_catalogue
from snoozing_env.rollout.engines.local import LocalEngine, LocalEngineConfig
from snoozing_env.rollout.runner import GroupRunner, run_all
from snoozing_env.train.checkpoints import MARK, STATE_DIR, last_whole_checkpoint
from snoozing_env.train.recipe import Recipe, load_recipe
from snoozing_env.train.reuse import SUCCESS_FILE
from snoozing_env.train.run import RunOptions, policy_path, train
from snoozing_env.train.session import Session
from snoozing_env.types import Group, Trajectory
from tests.bench.reuse_runs import QUIET, Curve, mean_and_interval, mean_of, rounded, run_recipe
from tests.train.small import small_recipe

SEEDS = (0, 1, 2)
"""Settings were chosen on others."""
ARMS = ("none", "refill", "importance", "anchor")
ROLLOUTS = 40
"""Per task, to measure the success rate before training."""


def figures(quick: bool) -> dict[str, Any]:
    """The success rate before training, the arms with their gains over seeds, and the poisoned entries."""
    with tempfile.TemporaryDirectory() as folder:
        made = _small(Path(folder)) if quick else load_recipe(["@", "rare_lab.toml", "--output", folder])
        return {
            "success_rate_before": _success_rate(made, rollouts=8 if quick else ROLLOUTS),
            **({"arms": "not in the reduced set: an accuracy takes minutes"} if quick else _arms(made)),
            "poisoned": poisoned(made.for_arm("anchor"), steps=2 if quick else 30),
        }


def _arms(recipe: Recipe) -> dict[str, Any]:
    """Per seed the arms at equal tokens, the gains over seeds, and how the run without would end by default."""
    rows = {f"seed {seed}": _seed(recipe, seed) for seed in SEEDS}
    gains = {
        f"{name}, {arm} - none": mean_and_interval([row["gains"][arm][name] for row in rows.values()])
        for name in ("at_equal_tokens", "half_way", "mean_until_then")
        for arm in ARMS[1:]
    }
    return {**rows, **gains, "default_dead_steps_without": _saturated(recipe)}


def _small(folder: Path) -> Recipe:
    """An arm on a policy that is barely warmed up, with steps for seconds."""
    steps = {"steps": 4, "batch_groups": 4, "alarms": {"pause_on_collapse": False}}
    anchor = {"success": {"use": "anchor", "share": 0.5, "hard_below": 0.5}}
    ladder = {"widen_after": 0.5, "wake_after": 0.9, "partial_after": 1, "dead_steps": 20}
    taskset = {"source": "arithmetic", "style": "bare", "split": "train", "levels": [4], "size": 60}
    lab = {"hidden_size": 64, "heads": 2, "kv_heads": 2, "warmup": {"steps": 60, "batch": 64}}
    return small_recipe(
        folder,
        environment={"taskset": taskset},
        policy={"lab": lab, "warmup_taskset": {"levels": [2, 3, 4], "size": 600}},
        scheduler={"snooze": {"mode": "off"}},
        train=steps,
        ladder=ladder,
        arms={"anchor": anchor},
    )


def _seed(recipe: Recipe, seed: int) -> dict[str, Any]:
    runs = {arm: run_recipe(_seeded(recipe, arm, seed)) for arm in ARMS}
    curves = {arm: Curve(run) for arm, run in runs.items()}
    tokens = min(curve.end for curve in curves.values())
    measured = {
        arm: {
            "at_equal_tokens": curve.at(tokens),
            "half_way": curve.at(tokens / 2),
            "mean_until_then": curve.mean_until(tokens),
        }
        for arm, curve in curves.items()
    }
    return {
        **{arm: _arm(run) for arm, run in runs.items()},
        "equal_tokens": int(tokens),
        "accuracy": {arm: {k: rounded(v) for k, v in row.items()} for arm, row in measured.items()},
        "gains": {
            arm: {name: round(value - measured["none"][name], 4) for name, value in measured[arm].items()}
            for arm in ARMS[1:]
        },
    }


def _seeded(recipe: Recipe, arm: str, seed: int) -> Recipe:
    made = recipe.for_arm(arm)
    return made.model_copy(update={"seed": seed, "output": f"{made.output}-{seed}"})


def _arm(run: Run) -> dict[str, Any]:
    last, counts = run.evals[-1], (run.steps[-1].buffers if run.steps else None) or {}
    return {
        "steps": len(run.steps),
        "generated_tokens": run.total("generated_tokens"),
        "generated_groups": run.total("generated_groups"),
        "trained_groups": run.total("trained_groups"),
        "trained_groups_per_step": rounded(mean_of(run, lambda s: s.trained_groups), 2),
        "rescued_groups": int(counts.get("success/rescued", 0)),
        "anchored_rows": int(counts.get("success/anchored", 0)),
        "retired": int(counts.get("success/retired", 0)),
        "final_accuracy": [rounded(last.accuracy), rounded(last.low), rounded(last.high)],
        "ended": run.end.reason if run.end else "unfinished",
    }


def _success_rate(recipe: Recipe, *, rollouts: int) -> dict[str, Any]:
    """Of the untrained policy on the training tasks, with the task as the cluster."""
    policy = policy_path(recipe, QUIET)
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(policy, dtype="float32")
    catalogue = load_catalogue(recipe.environment)
    engine = LocalEngine(model, tokenizer, LocalEngineConfig())
    runner = GroupRunner(catalogue, engine, recipe.rollout, seed=12_345)

    async def measure() -> list[Group]:
        await engine.start()
        return await run_all(runner.run(i, group_id=i, n=rollouts) for i in range(len(catalogue)))

    means_N = np.array([group.outcome.valid_rewards.mean() for group in asyncio.run(measure())])
    low, high = clustered(means_N)
    return {
        "mean": rounded(float(means_N.mean())),
        "interval": [rounded(low), rounded(high)],
        "rollouts": rollouts * len(means_N),
        "tasks_ever_solved": rounded(float((means_N > 0).mean()), 3),
    }


def _saturated(recipe: Recipe) -> str:
    """What becomes of the run without the buffer when three searches without a gradient end a run, as by default."""
    made = recipe.for_arm("none")
    ladder = made.ladder.model_copy(update={"dead_steps": 3})
    run = run_recipe(made.model_copy(update={"ladder": ladder, "output": f"{made.output}-dead"}))
    return f"{len(run.steps)} of {made.train.steps} steps: {run.end.reason if run.end else ''}"


# -- poisoned entries ---------------------------------------------------------------------------------------


def poisoned(recipe: Recipe, *, steps: int) -> dict[str, Any]:
    """Stop a run half-way, plant entries that the grader rejects into the checkpoint's buffer, and go on: how many were
    dropped, and how many trained on."""
    made = recipe.model_copy(
        update={
            "output": f"{recipe.output}-poisoned",
            "train": recipe.train.model_copy(update={"steps": steps, "save_every": steps}),
        }
    )
    train(made, RunOptions(), console=QUIET)
    planted = _plant(made, steps)
    longer = made.model_copy(update={"train": made.train.model_copy(update={"steps": 2 * steps})})
    with _watching() as trained:
        train(longer, RunOptions(resume=True), console=QUIET)
    stored = [t for group in trained for t in group.trajectories if t.stored]
    counts = _buffer_of(longer)
    return {
        "planted": len(planted),
        "dropped": counts.dropped,
        "planted_left": sum(s.trajectory.text in planted for s in counts.entries),
        "stored_successes_trained": len(stored),
        "planted_trained": sum(t.text in planted for t in stored),
    }


def _plant(recipe: Recipe, n: int) -> set[str]:
    """Texts of the planted completions, each of one task only and wrong for it; first come tasks that hold good ones."""
    buffer, catalogue = _buffer_of(recipe), load_catalogue(recipe.environment)
    (folder, _) = _checkpoint(recipe)
    held = {success.key for success in buffer.entries}
    tasks = sorted(range(len(catalogue)), key=lambda i: catalogue.infos[i].key not in held)[:n]
    planted = [_wrong(catalogue, i) for i in tasks]
    entries = [*buffer.entries, *planted]
    groups = [success.as_group(i) for i, success in enumerate(entries)]
    (folder / SUCCESS_FILE).write_bytes(dump_groups(groups))
    state = json.loads((folder / MARK).read_bytes())
    state["reuse"]["success"]["entries"] = [[s.pass_rate, s.uses] for s in entries]
    (folder / MARK).write_text(json.dumps(state))
    return {success.trajectory.text for success in planted}


def _wrong(catalogue: Catalogue, index: int) -> Success:
    """A success that never was: its answer is another number, its claim a full reward."""
    data = catalogue.tasks[index].data
    answer = str(int(str(getattr(data, "answer", "0"))) + 1000 * (index + 1))
    claim = Trajectory(
        prompt_ids=(1,), completion_ids=(2, 3), logprobs=(-1.0, -1.0), mask=(1, 1), reward=1.0, text=answer
    )
    return Success(
        key=catalogue.infos[index].key, trajectory=claim, pass_rate=0.0, prompt=data.prompt_text, gold=answer
    )


def _checkpoint(recipe: Recipe) -> tuple[Path, int]:
    found = last_whole_checkpoint(recipe.directory)
    assert found is not None, "the run was stopped after a checkpoint"
    return found[0] / STATE_DIR, found[1]


def _buffer_of(recipe: Recipe) -> SuccessBuffer:
    """What the newest checkpoint holds."""
    folder, _ = _checkpoint(recipe)
    infos = load_catalogue(recipe.environment).infos
    state = json.loads((folder / MARK).read_bytes())["reuse"]["success"]
    buffer = SuccessBuffer(recipe.success or SuccessConfig())
    index_of = {info.key: i for i, info in enumerate(infos)}
    buffer.restore(state, parse_groups((folder / SUCCESS_FILE).read_bytes(), index_of))
    return buffer


@contextmanager
def _watching() -> Iterator[list[Group]]:
    """Every group that a trainer of this process is given."""
    seen: list[Group] = []
    collect = Session.collect

    def watched(self: Session, *args: Any) -> Sequence[Group]:
        groups = collect(self, *args)
        seen.extend(groups)
        return groups

    Session.collect = watched
    try:
        yield seen
    finally:
        Session.collect = collect


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
