"""What importing the package costs, what it pulls in, and how its config answers mistakes."""

import subprocess
import sys

import pytest

from snoozing_env import ConfigError, TaskInfo, build_scheduler

HEAVY = ("torch", "verifiers", "transformers", "trl", "vllm", "docker", "aiohttp", "datasets")


def modules_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    return set(
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
    )


def test_importing_the_package_pulls_in_no_trainer_and_no_environment() -> None:
    assert modules_after("import snoozing_env").isdisjoint(HEAVY)


def test_the_import_check_can_fail() -> None:
    assert "aiohttp" in modules_after("import aiohttp")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"snoze": {}}, r"scheduler: unknown key 'snoze'\. Did you mean 'snooze'\?"),
        ({"snooze": {"skip_pases": 3}}, r"unknown key 'snooze\.skip_pases'\. Did you mean 'skip_passes'\?"),
        ({"kind": "unifrom"}, r"scheduler\.kind 'unifrom' is unknown\. Did you mean 'uniform'\?"),
        ({"snooze": {"skip_passes": -1}}, r"'snooze\.skip_passes': .*greater than or equal to 0 \(got -1\)"),
        ({"snooze": {"mode": "sometimes"}}, r"'snooze\.mode': .*'deterministic'.* \(got 'sometimes'\)"),
        ({"xyzzy": 1}, r"unknown key 'xyzzy'\. Known keys: .*min_valid"),
    ],
)
def test_a_config_mistake_is_answered_with_what_would_be_right(
    config: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        build_scheduler(config, [TaskInfo(key="a")], 0)


def test_a_config_is_not_changed_by_reading_it() -> None:
    config = {"snooze": {"mode": "off", "datasets": {"a": "3"}}}
    build_scheduler(config, [TaskInfo(key="a")], 0)
    assert config == {"snooze": {"mode": "off", "datasets": {"a": "3"}}}
