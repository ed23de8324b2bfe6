"""Bad input: the tests that check each message (must-show 9)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CASES = {
    "unknown config key": "tests/train/test_recipe.py::test_unknown_keys_in_a_file_are_refused_with_the_nearest",
    "unknown environment": "tests/rollout/test_rollouts.py::test_an_environment_that_is_not_there_or_an_option_it_does_not_know_is_answered_with_the_nearest",
    "missing dataset": "tests/train/test_recipe.py::test_a_dataset_that_is_not_there_is_named",
    "duplicate task keys": "tests/core/test_state.py::test_duplicate_keys_are_named",
    "NaN reward": "tests/core/test_scheduler_laws.py::test_every_scheduler_keeps_the_law[uniform-impossible_rewards_are_refused]",
    "group size 1": "tests/train/test_recipe.py::test_mistakes_on_the_command_line",
    "checkpoint of another task set": "tests/train/test_recipe.py::test_a_checkpoint_of_another_task_set_is_refused_before_a_step_is_trained",
    "vLLM server down": "tests/rollout/test_vllm_down.py::test_a_server_that_is_down_is_named_with_its_address",
    "no disk space for the sidecar": "tests/core/test_state.py::test_no_space_for_the_sidecar_is_named_and_leaves_the_old_state_whole",
}


def figures(quick: bool) -> dict[str, Any]:
    """How many of the nine messages have a passing test."""
    command = [sys.executable, "-m", "pytest", "-vv", "--no-header", *CASES.values()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    outcomes = dict(
        re.findall(r"^(\S+::\w+)(?:\[.*\])? (PASSED|FAILED|ERROR|SKIPPED)", done.stdout, flags=re.M)
    )
    failed = {
        m for m, r in re.findall(r"^(\S+::\w+)(?:\[.*\])? (FAILED|ERROR)", done.stdout, flags=re.M) if r
    }
    passed = [
        name
        for name, test in CASES.items()
        if outcomes.get(test.split("[")[0]) == "PASSED" and test.split("[")[0] not in failed
    ]
    return {"messages_tested": len(passed), "of": len(CASES), "missing": sorted(set(CASES) - set(passed))}
