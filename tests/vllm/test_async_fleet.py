"""Bounded staleness over two real servers, one of which is killed on the way (issue: asynchronous rollouts, must-show 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vllm.fleet_accident import (
    check_first_tokens,
    fleet_recipe,
    problems_of,
    run_with_accident,
    steps_of,
)

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.usefixtures("vllm_installed"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.mark.timeout(900)
def test_training_goes_on_when_a_server_dies_and_it_serves_again_with_the_present_weights(
    tmp_path: Path,
) -> None:
    recipe = fleet_recipe(tmp_path / "run")
    seen = run_with_accident(recipe)
    assert not seen.problem, seen.problem
    steps = steps_of(recipe)
    print(f"killed at step {seen.killed_at}, back at {seen.back_at}, {len(steps)} steps")
    assert [s.step for s in steps] == list(range(1, len(steps) + 1))
    assert seen.back_at > seen.killed_at, "it trained while one server was down"
    assert problems_of(recipe) == [], "no group lost, trained twice or trained past the bound"
    assert max(s.lag_mean or 0.0 for s in steps) > 0
    versions = check_first_tokens(recipe)
    assert versions.wrong == [], "each first token has the log-prob of the version on its label"
    assert versions.right > versions.tokens / 2
