"""A run that is killed goes on as if it never stopped (B4)."""

from pathlib import Path

import pytest

from snoozing_env.train.checkpoints import MARK, STATE_DIR, last_whole_checkpoint
from tests.train.killing import differences, run_to_the_end, run_with_kills, trail_of
from tests.train.small import small_recipe


def test_kills_at_random_points_change_neither_draws_nor_snoozes_nor_trained_tasks_nor_weights(
    tmp_path: Path,
) -> None:
    whole = small_recipe(tmp_path / "whole")
    run_to_the_end(whole)
    killed = small_recipe(tmp_path / "killed")
    assert len(list(run_with_kills(killed, kills=3, seed=1))) == 3
    expected, got = trail_of(whole), trail_of(killed)
    assert len(expected.tasks) == 12
    assert differences(expected, got) == []
    other = small_recipe(tmp_path / "other", seed=5)
    run_to_the_end(other)
    assert differences(expected, trail_of(other)), "the comparison can tell runs apart"


def test_a_checkpoint_that_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    for step, whole in ((2, True), (4, True), (10, False)):
        state = tmp_path / f"checkpoint-{step}" / STATE_DIR
        state.mkdir(parents=True)
        if whole:
            (state / MARK).write_text("{}")
    assert last_whole_checkpoint(tmp_path) == (tmp_path / "checkpoint-4", 4)
    assert last_whole_checkpoint(tmp_path / "nowhere") is None


def test_a_directory_with_a_run_in_it_is_never_overwritten_by_accident(tmp_path: Path) -> None:
    from snoozing_env import StateError
    from snoozing_env.train.run import RunOptions, train

    state = tmp_path / "checkpoint-2" / STATE_DIR
    state.mkdir(parents=True)
    (state / MARK).write_text("{}")
    with pytest.raises(
        StateError, match=r"already holds a run at step 2; pass --resume to go on, or --overwrite"
    ):
        train(small_recipe(tmp_path), RunOptions())
