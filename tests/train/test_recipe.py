"""Recipes: what ships loads, what is wrong is answered with what would be right."""

import subprocess
import sys
from pathlib import Path

import pytest

from snoozing_env import ConfigError, StateError
from snoozing_env.cli import main
from snoozing_env.train.recipe import RECIPES, Recipe, load_recipe
from tests.train.small import small_recipe

SHIPPED = sorted(p.name for p in RECIPES.glob("*.toml"))


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The message of a command that must fail with exit code 2."""
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    return capsys.readouterr().err


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_recipe_loads_with_all_of_its_arms(name: str) -> None:
    recipe = load_recipe(["@", name])
    assert recipe.name == name.removesuffix(".toml")
    for arm in recipe.arms:
        assert recipe.for_arm(arm).output == f"{recipe.output}/{arm}"


def test_the_gpu_recipe_is_a_large_run_over_nccl() -> None:
    recipe = load_recipe(["@", "qwen_gsm8k_gpu.toml"])
    assert (recipe.engine.kind, recipe.weights.kind, recipe.train.bf16, recipe.policy.kind) == (
        "vllm",
        "nccl",
        True,
        "checkpoint",
    )


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    recipe = load_recipe(
        ["@", "demo.toml", "--seed", "7", "--scheduler.snooze.mode", "jittered", "--train.steps=3"]
    )
    assert (recipe.seed, recipe.scheduler.snooze.mode, recipe.train.steps) == (7, "jittered", 3)


def test_arms_change_only_what_they_name() -> None:
    demo = load_recipe(["@", "demo.toml"])
    plain, snooze = demo.for_arm("plain"), demo.for_arm("snooze")
    assert (plain.scheduler.snooze.mode, snooze.scheduler.snooze.mode) == ("off", "deterministic")
    assert plain.model_dump(exclude={"output", "scheduler"}) == snooze.model_dump(
        exclude={"output", "scheduler"}
    )
    with pytest.raises(ConfigError, match=r"no arm 'snoze'\. Did you mean 'snooze'\? Arms: plain, snooze"):
        demo.for_arm("snoze")


def test_the_arms_of_the_conflicting_pair_differ_in_how_long_a_mastered_task_sleeps_and_in_nothing_else() -> (
    None
):
    recipe = load_recipe(["@", "groundedqa_conflict.toml"])
    permanent, snooze = recipe.for_arm("permanent"), recipe.for_arm("snooze")
    assert (permanent.scheduler.snooze.mode, snooze.scheduler.snooze.mode) == ("permanent", "deterministic")
    assert snooze.environment.taskset["snooze_factor"] == snooze.scheduler.snooze.skip_passes == 2
    rest = {"output": True, "scheduler": {"snooze": {"mode"}}}
    assert permanent.model_dump(exclude=rest) == snooze.model_dump(exclude=rest)


def test_unknown_keys_in_a_file_are_refused_with_the_nearest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[scheduler.snooze]\nskip_pases = 3\n[trian]\nsteps = 3\n")
    message = fails(capsys, "train", "@", str(file))
    assert "unknown key 'scheduler.snooze.skip_pases'. Did you mean 'skip_passes'?" in message
    assert "unknown key 'trian'. Did you mean 'train'?" in message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", "@", "demo.toml", "--rollout.group-size", "1"],
            "single rollout is its own baseline, so every advantage is zero; use at least 2",
        ),
        (
            ["train", "@", "demo.toml", "--rollout.grup-size", "4"],
            "unknown key 'rollout.grup_size'. Did you mean 'group_size'?",
        ),
        (["train", "@", "dmo.toml"], "no recipe file 'dmo.toml'. Did you mean 'demo.toml'?"),
        (
            ["train", "@", "demo.toml", "--environment.id", "snooze-mth", "--dry-run"],
            "'snooze-mth' is not installed. Did you mean 'snooze-math'?",
        ),
        (["train", "@", "demo.toml", "--resume", "--overwrite"], "exclude each other"),
        (
            ["train", "@", "demo.toml", "--scheduler.kind", "thompsn"],
            "'scheduler.kind' 'thompsn' is unknown. Did you mean 'thompson'?",
        ),
        (["trian"], "no command 'trian'. Did you mean 'train'?"),
        (["report", "nowhere"], "nowhere"),
        (["check"], "usage: snooze check"),
    ],
)
def test_mistakes_on_the_command_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in fails(capsys, *arguments)


def test_a_dataset_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    taskset = f'{{"source": "gsm8k", "path": "{tmp_path}/nowhere.jsonl", "split": "train"}}'
    message = fails(capsys, "train", "@", "demo.toml", "--environment.taskset", taskset, "--dry-run")
    assert "nowhere.jsonl" in message


def test_a_server_without_a_vllm_engine_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[server\] is set, but engine.kind is 'local'"):
        Recipe.model_validate({"server": {"model": "x"}})
    with pytest.raises(ValueError, match=r"policy.kind 'checkpoint' with path ''; a checkpoint needs a path"):
        Recipe.model_validate({"policy": {"kind": "checkpoint"}})


def test_anchors_are_refused_where_every_token_has_a_ratio() -> None:
    engine = {"own_weights": True}
    with pytest.raises(
        ValueError, match=r"success.use 'anchor' with train.trainer 'async_grpo', whose loss has a"
    ):
        Recipe.model_validate({"success": {}, "train": {"trainer": "async_grpo"}, "engine": engine})
    Recipe.model_validate(
        {"success": {"use": "importance"}, "train": {"trainer": "async_grpo"}, "engine": engine}
    )


def test_a_dry_run_says_what_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    main(["train", "@", "demo.toml", "--dry-run"])
    out = capsys.readouterr().out
    assert "to train on (arithmetic)" in out
    assert "arm plain" in out


def test_help_names_every_table_with_its_defaults(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["train", "--help"])
    out = capsys.readouterr().out
    assert "--scheduler.snooze.skip-passes" in out
    assert "(default: 5.0)" in out


def test_a_checkpoint_of_another_task_set_is_refused_before_a_step_is_trained(tmp_path: Path) -> None:
    from snoozing_env.train.run import RunOptions, train

    recipe = small_recipe(tmp_path / "run", train={"steps": 2})
    train(recipe, RunOptions())
    changed = small_recipe(
        tmp_path / "run", environment={"taskset": {**recipe.environment.taskset, "levels": [4], "size": 200}}
    )
    with pytest.raises(
        StateError, match=r"the checkpoint has 60 tasks, this run has 200, and they share 0; .*--merge-state"
    ):
        train(changed, RunOptions(resume=True))


def test_the_console_script_and_the_module_are_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "snoozing_env", "--help"], capture_output=True, text=True, check=True
    )
    assert "snooze train @ recipe.toml" in done.stdout
