"""`snooze eval` as it is typed: killed and resumed, compared, explained."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, error, in_thread, sums

from snoozing_env.cli import main
from snoozing_env.report.evaluation import load_evaluation
from snoozing_env.report.rollouts import TRACES, lines_of, parse_line

PATIENCE_S = 120.0


def words(server: ChatServer, output: Path, *more: str) -> list[str]:
    given = ["--environments", "snooze-math", "--taskset.style", "bare", "--endpoint.url", server.url]
    return ["eval", *given, "--output", str(output), "--backoff-s", "0.01", *more]


def half_right(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
    return sums(body) if body["seed"] % 2 else "no idea"


def finished(run: Path) -> list[str]:
    """Ids of the whole lines on disk."""
    lines = [line for _, line in lines_of(run / "snooze-math" / TRACES)]
    return [str(episode["id"]) for line in lines if (episode := parse_line(line)) is not None]


def test_killed_at_any_moment_and_resumed_it_asks_only_for_what_is_missing(tmp_path: Path) -> None:
    async def slowly(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
        await asyncio.sleep(0.05)
        return sums(body)

    with in_thread(ChatServer(slowly)) as server:
        arguments = words(server, tmp_path / "run", "--tasks", "20", "--rollouts", "3", "--concurrency", "4")
        process = subprocess.Popen(
            [sys.executable, "-m", "snoozing_env", *arguments], stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + PATIENCE_S
        while len(finished(tmp_path / "run")) < 7 and time.monotonic() < deadline:
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        before, asked = finished(tmp_path / "run"), dict(server.asked)
        assert 7 <= len(before) < 60, "it was killed in the middle"
        main([*arguments, "--resume"])
    after = finished(tmp_path / "run")
    assert after[: len(before)] == before
    assert len(after) == len(set(after)) == 60
    again = {seed: n - asked.get(seed, 0) for seed, n in server.asked.items()}
    assert sum(again.values()) == 60 - len(before), "a finished rollout was asked again"
    assert load_evaluation(tmp_path / "run").mean == 1.0


def test_what_it_prints_and_writes(tmp_path: Path, capsys) -> None:
    with in_thread(ChatServer(half_right)) as server:
        prices = ["--endpoint.price-in", "1", "--endpoint.price-out", "10"]
        main(words(server, tmp_path / "run", "--tasks", "12", "--rollouts", "4", *prices))
    told = capsys.readouterr().out
    assert "snooze-math" in told
    assert "pass@4" in told
    assert "\x1b" not in told, "no terminal, no escape codes"
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    one = summary["environments"]["snooze-math"]
    mean = one["mean"]
    assert one["rollouts"] == 48
    assert 0 < mean["low"] < mean["value"] < mean["high"] < 1
    assert set(one["by"]) == {"domain", "level"}
    assert one["cost"]["money"] == pytest.approx((48 * 10 * 1 + 48 * 4 * 10) / 1e6)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "What" not in page or "no idea" in page
    assert str(round(100 * mean["value"], 1)) in page


def test_two_runs_are_compared_over_the_tasks_they_share(tmp_path: Path, capsys) -> None:
    with in_thread(ChatServer(half_right)) as server:
        main(words(server, tmp_path / "a", "--tasks", "12"))
        server.rule = lambda _server, body, _before: sums(body)
        main(words(server, tmp_path / "b", "--tasks", "15"))
    capsys.readouterr()
    out = tmp_path / "cmp.html"
    main(["eval", "--compare", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(out)])
    told = capsys.readouterr().out
    assert "shared tasks" in told
    assert "12" in told
    assert "0 / 3" in told
    assert "100.0 %" in told
    assert out.read_text().startswith("<!doctype html>")


def test_a_dry_run_sends_nothing_and_writes_nothing(tmp_path: Path, capsys) -> None:
    with in_thread(ChatServer(half_right)) as server:
        main(words(server, tmp_path / "run", "--tasks", "12", "--rollouts", "4", "--dry-run"))
        assert not server.asked
    told = capsys.readouterr().out
    assert "12 of 100 tasks; split eval" in told
    assert "48 (4 per task)" in told
    assert not (tmp_path / "run").exists()


def test_environments_and_their_options_come_from_a_file_too(tmp_path: Path, capsys) -> None:
    config = tmp_path / "eval.toml"
    config.write_text(
        'tasks = 3\nsampling.max_tokens = 9\n[[environment]]\nid = "snooze-math"\nname = "sums"\n'
        '[environment.taskset]\nstyle = "bare"\nlevels = [3]\nsize = 30\n'
    )
    main(["eval", "@", str(config), "--tasks", "5", "--dry-run"])
    told = capsys.readouterr().out
    assert "sums" in told
    assert "5 of 30 tasks" in told
    assert "up to 9 tokens" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tsks", "3"], r"unknown key 'tsks'\. Did you mean 'tasks'\?"),
        (["--endpoint.modl", "m"], r"unknown key 'endpoint\.modl'\. Did you mean 'model'\?"),
        ([], "no environment was named"),
        (["--environments", "snooze-maths"], r"not installed\. Did you mean 'snooze-math'\?"),
        (["--environments", "snooze-math", "--taskset.styl", "x"], "styl"),
        (["--resume", "--overwrite"], "exclude each other"),
        (["--compare", "only-one"], r"usage: snooze eval --compare RUN_A RUN_B"),
        (["--compare", "nowhere", "elsewhere"], "no evaluation at nowhere"),
    ],
)
def test_a_slip_of_the_keyboard_is_answered_with_the_fix(arguments: list[str], message: str, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["eval", *arguments])
    assert __import__("re").search(message, capsys.readouterr().err)


def test_a_run_without_a_single_verdict_fails_and_says_why(tmp_path: Path, capsys) -> None:
    with (
        in_thread(ChatServer(lambda *_: error(400, "too long"))) as server,
        pytest.raises(SystemExit, match="2"),
    ):
        main(words(server, tmp_path / "run", "--tasks", "3"))
    told = capsys.readouterr()
    assert "too long" in told.out
    assert "no rollout got a verdict" in told.err


def test_the_help_lists_every_key_with_its_unit_and_the_flags(capsys) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["eval", "--help"])
    told = capsys.readouterr().out
    for word in (
        "--endpoint.key-env",
        "--deadline-s",
        "Seconds one attempt",
        "--compare RUN_A RUN_B",
        "--dry-run",
    ):
        assert word in told


def test_a_model_in_this_process_is_evaluated_like_any_other(tmp_path: Path, capsys) -> None:
    torch = pytest.importorskip("torch")
    from snoozing_env.train.lab import LabConfig, build_tokenizer
    from snoozing_env.train.lab.policy import build_model

    torch.set_num_threads(1)
    tokenizer = build_tokenizer(64)
    build_model(LabConfig(context=64, layers=1, seed=3), tokenizer).save_pretrained(tmp_path / "policy")
    tokenizer.save_pretrained(tmp_path / "policy")
    given = ["--environments", "snooze-math", "--taskset.style", "bare", "--output", str(tmp_path / "run")]
    local = ["--endpoint.local", str(tmp_path / "policy"), "--sampling.max-tokens", "6"]
    main(["eval", *given, *local, "--tasks", "8", "--rollouts", "2"])
    run = load_evaluation(tmp_path / "run")
    assert run.model == "policy"
    assert (run.scored[0].score.n_rollouts, run.n_invalid) == (16, 0)
    assert run.cost.output_tokens > 16
