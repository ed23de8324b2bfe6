"""Rollouts against a real HTTP endpoint that fails in every way an endpoint can."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Die, Hang, Rule, completion, error, serve, sums
from verifiers.v1.trace import WireTrace
from verifiers.v1.utils.trace_store import read_episodes

from snoozing_env.errors import ConfigError, EngineError, OutcomeError, StateError
from snoozing_env.evaluate.config import EvalConfig
from snoozing_env.evaluate.folder import locked
from snoozing_env.evaluate.run import Options, Tick, draw, plan, roll_out
from snoozing_env.report.evaluation import EvalRun, load_evaluation

MATH: dict[str, Any] = {"id": "snooze-math", "taskset": {"style": "bare"}}


@dataclass(frozen=True)
class Ran:
    """What one evaluation left behind."""

    run: EvalRun
    server: ChatServer
    ticks: list[Tick]

    @property
    def rows(self) -> list[Any]:
        return [row for one in self.run.rollouts for row in one.rows]

    @property
    def notes(self) -> str:
        return " | ".join(tick.note for tick in self.ticks if tick.note)


@pytest.fixture
def evaluated(tmp_path: Path) -> Callable[..., Ran]:
    """Evaluate against a server that follows a rule; settings as in a config file."""

    def run(
        rule: Rule, *, options: Options | None = None, key: str = "", models: bool = True, **settings: Any
    ) -> Ran:
        server, ticks = ChatServer(rule, key=key, models=models), []

        async def go() -> None:
            async with serve(server):
                endpoint = {"url": server.url, **settings.pop("endpoint", {})}
                given = {
                    "output": str(tmp_path / "run"),
                    "environment": [MATH],
                    "tasks": 6,
                    "rollouts": 2,
                    "backoff_s": 0.01,
                    **settings,
                }
                config = EvalConfig(endpoint=endpoint, **given)
                planned = plan(config)
                output = Path(config.output)
                await roll_out(config, config.endpoint, planned, output, options or Options(), ticks.append)

        asyncio.run(go())
        return Ran(load_evaluation(settings.get("output", tmp_path / "run")), server, ticks)

    return run


def right(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
    return sums(body)


def at_first(fault: Callable[[], Any], times: int = 1) -> Rule:
    """Fail the first requests of every rollout, then answer rightly."""
    return lambda server, body, before: fault() if before < times else sums(body)


def throw(kind: type[Exception]) -> Callable[[], Any]:
    def fail() -> Any:
        raise kind

    return fail


class TestScores:
    def test_right_answers_pass_and_every_rollout_is_asked_once(self, evaluated) -> None:
        ran = evaluated(right)
        assert [row.reward for row in ran.rows] == [1.0] * 12
        assert set(ran.server.asked.values()) == {1}
        assert len(ran.server.asked) == 12, "rollouts of a task draw noise of their own"
        assert len({row.key for row in ran.rows}) == 6
        assert (ran.run.cost.input_tokens, ran.run.cost.output_tokens) == (120, 48)
        assert ran.ticks[-1].done == ran.ticks[-1].total == 12

    def test_a_wrong_answer_is_a_zero_and_a_cut_off_one_is_marked(self, evaluated) -> None:
        from aiohttp import web

        ran = evaluated(lambda *_: web.json_response(completion("no idea", finish_reason="length")))
        assert [row.reward for row in ran.rows] == [0.0] * 12
        assert all(row.truncated for row in ran.rows)

    def test_sampling_settings_reach_the_endpoint(self, evaluated) -> None:
        sampling = {"temperature": 0.3, "top_p": 0.9, "max_tokens": 17, "stop": ["\n"]}
        endpoint = {
            "token_limit": "max_completion_tokens",
            "extra_body": {"chat_template_kwargs": {"think": False}},
        }
        [body, *_] = evaluated(right, sampling=sampling, endpoint=endpoint).server.bodies
        wanted = {
            "temperature": 0.3,
            "top_p": 0.9,
            "max_completion_tokens": 17,
            "stop": ["\n"],
            "model": "policy",
        }
        assert wanted.items() <= body.items()
        assert body["chat_template_kwargs"] == {"think": False}
        assert "max_tokens" not in body

    def test_an_endpoint_that_refuses_seeds_gets_none(self, evaluated) -> None:
        ran = evaluated(right, endpoint={"seeded": False})
        assert all("seed" not in body for body in ran.server.bodies)

    def test_the_same_seed_draws_the_same_tasks_and_noise(self, evaluated, tmp_path: Path) -> None:
        one, two, other = (
            evaluated(right, output=str(tmp_path / name), seed=seed)
            for name, seed in (("one", 1), ("two", 1), ("other", 2))
        )
        assert one.server.asked.keys() == two.server.asked.keys()
        assert not one.server.asked.keys() & other.server.asked.keys()

    def test_no_more_than_the_cap_run_at_once(self, evaluated) -> None:
        async def slow(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
            await asyncio.sleep(0.02)
            return sums(body)

        assert evaluated(slow, concurrency=3).server.busiest == 3

    def test_several_environments_run_side_by_side_each_in_its_folder(self, evaluated) -> None:
        easy = {**MATH, "name": "easy", "taskset": {"style": "bare", "levels": [1], "size": 20}}
        ran = evaluated(right, environment=[MATH, easy], tasks=3)
        assert [one.name for one in ran.run.scored] == ["snooze-math", "easy"]
        assert [len(one.rows) for one in ran.run.rollouts] == [6, 6]
        assert ran.run.mean == 1.0

    def test_an_episode_through_a_harness_is_scored_like_a_direct_one(self, evaluated) -> None:
        ran = evaluated(right, environment=[{**MATH, "harness": "snooze-kit"}], tasks=2)
        assert [row.reward for row in ran.rows] == [1.0] * 4
        assert len(ran.server.asked) == 4
        assert ran.run.cost.output_tokens == 16


class TestFailures:
    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param(lambda: error(500), id="500"),
            pytest.param(lambda: error(503), id="503"),
            pytest.param(throw(Die), id="connection lost in the answer"),
            pytest.param(lambda: error(200, "half a"), id="JSON that is no completion"),
        ],
    )
    def test_a_passing_failure_is_tried_again_and_leaves_no_trace(self, evaluated, fault) -> None:
        ran = evaluated(at_first(fault))
        assert [row.reward for row in ran.rows] == [1.0] * 12
        assert set(ran.server.asked.values()) == {2}
        assert set(ran.server.answered.values()) == {1}

    def test_a_hanging_request_ends_at_its_deadline_and_is_tried_again(self, evaluated) -> None:
        ran = evaluated(at_first(throw(Hang)), deadline_s=0.15, tasks=2)
        assert [row.reward for row in ran.rows] == [1.0] * 4

    def test_what_keeps_failing_is_invalid_with_its_reason_and_never_a_zero(self, evaluated) -> None:
        first: list[int] = []

        def one_broken(_server: ChatServer, body: dict[str, Any], _before: int) -> Any:
            first.append(body["seed"])
            return error(500, "out of memory") if body["seed"] == first[0] else sums(body)

        ran = evaluated(one_broken, attempts=3)
        broken = [row for row in ran.rows if row.reward is None]
        assert [row.error for row in broken] == [f"Fault: {ran.server.url} answered HTTP 500: out of memory"]
        assert ran.server.asked[first[0]] == 3
        score = ran.run.scored[0].score
        assert (score.n_rollouts, score.n_invalid, score.mean.value) == (11, 1, 1.0)

    def test_a_request_at_fault_is_not_asked_again(self, evaluated) -> None:
        ran = evaluated(lambda *_: error(400, "the prompt exceeds the context"), attempts=5)
        assert set(ran.server.asked.values()) == {1}
        assert {row.reward for row in ran.rows} == {None}

    def test_a_429_is_waited_out_and_is_no_attempt(self, evaluated) -> None:
        limit = at_first(lambda: error(429, "slow down", retry_after_ms="20"), times=4)
        ran = evaluated(limit, attempts=1, tasks=3)
        assert [row.reward for row in ran.rows] == [1.0] * 6

    def test_a_limit_that_never_lifts_ends_with_the_patience(self, evaluated) -> None:
        ran = evaluated(
            lambda *_: error(429, "slow down", retry_after_ms="20"), patience_s=0.2, tasks=2, rollouts=1
        )
        assert [row.reward for row in ran.rows] == [None, None]
        assert "slow down" in ran.rows[0].error

    def test_a_grader_that_fails_leaves_no_verdict(self, evaluated) -> None:
        quiz = {"id": "plain-quiz", "taskset": {"words": ["raises", "red"]}}
        ran = evaluated(lambda *_: "odd", environment=[quiz], tasks=None, rollouts=1, attempts=2)
        errors = sorted(row.error for row in ran.rows)
        assert [e[:60] for e in errors[:2]] == ["", ""]
        assert all("ZeroDivisionError" in e or "grader fell over" in e for e in errors[2:])

    def test_a_grader_that_hangs_ends_at_the_deadline(self, evaluated) -> None:
        quiz = {"id": "plain-quiz", "taskset": {"words": ["slow"]}}
        ran = evaluated(lambda *_: "odd", environment=[quiz], tasks=1, rollouts=1, attempts=1, deadline_s=0.2)
        assert [row.error for row in ran.rows] == ["scoring_timeout"]

    def test_an_episode_that_hangs_ends_at_the_deadline_too(self, evaluated) -> None:
        quiz = {"id": "plain-quiz", "harness": "snooze-kit", "taskset": {"words": ["slow"]}}
        ran = evaluated(lambda *_: "odd", environment=[quiz], tasks=1, rollouts=1, attempts=1, deadline_s=0.6)
        assert [row.error for row in ran.rows] == ["TimeoutError: not finished within 0.6 s"]

    def test_an_episode_s_429_is_waited_out_and_its_grader_s_failure_is_no_zero(self, evaluated) -> None:
        quiz = {"id": "plain-quiz", "harness": "snooze-kit", "taskset": {"words": ["raises"]}}
        limit = at_first(lambda: error(429, "slow down"), times=1)
        ran = evaluated(
            lambda server, body, before: limit(server, body, before) if before < 1 else "odd",
            environment=[quiz], tasks=1, rollouts=1, attempts=1,
        )  # fmt: skip
        [row] = ran.rows
        assert row.reward is None
        assert "the grader fell over" in row.error
        assert set(ran.server.asked.values()) == {2}

    def test_an_endpoint_that_goes_down_stops_the_run_and_keeps_what_is_finished(
        self, evaluated, tmp_path
    ) -> None:
        def dies_after_five(server: ChatServer, body: dict[str, Any], _before: int) -> Any:
            return sums(body) if sum(server.answered.values()) < 5 else error(503, "gone")

        with pytest.raises(EngineError, match=r"failed 8 times in a row, last: .*gone.*go on with --resume"):
            evaluated(dies_after_five, give_up_after=8, attempts=50, concurrency=1)
        assert len(load_evaluation(tmp_path / "run").rollouts[0].rows) == 5

    def test_a_reward_outside_the_range_stops_the_run_at_the_first(self, evaluated) -> None:
        with pytest.raises(
            OutcomeError, match=r"earned 0, outside \[1, 2\]; set the environment's reward_range"
        ):
            evaluated(lambda *_: "no", environment=[{**MATH, "reward_range": (1.0, 2.0)}])


class TestRefusals:
    """What every request would meet ends the run before the first, with the way out."""

    def test_nothing_answers(self, evaluated) -> None:
        with pytest.raises(
            EngineError, match=r"no endpoint answers at http://127\.0\.0\.1:9/v1 .*snooze serve MODEL"
        ):
            evaluated(right, endpoint={"url": "http://127.0.0.1:9"})

    def test_a_key_is_wanted(self, evaluated) -> None:
        with pytest.raises(
            EngineError, match=r"HTTP 401: .*; name the environment variable .* endpoint\.key_env"
        ):
            evaluated(right, key="sesame")

    def test_a_refused_key_is_never_repeated(self, evaluated, monkeypatch) -> None:
        monkeypatch.setenv("SOME_KEY", "sk-secret-42")
        with pytest.raises(
            EngineError, match=r"Incorrect API key provided: •••; the key in SOME_KEY is refused"
        ):
            evaluated(right, key="sesame", endpoint={"key_env": "SOME_KEY"})

    def test_a_key_that_is_not_set(self, evaluated, monkeypatch) -> None:
        monkeypatch.delenv("SOME_KEY", raising=False)
        with pytest.raises(
            EngineError, match=r"key_env names SOME_KEY, which is not set in the environment; export"
        ):
            evaluated(right, endpoint={"key_env": "SOME_KEY"})

    def test_the_right_key_is_accepted_and_written_nowhere(
        self, evaluated, monkeypatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("SOME_KEY", "sk-secret-42")
        evaluated(right, key="sk-secret-42", endpoint={"key_env": "SOME_KEY"}, tasks=2)
        written = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
        assert b"SOME_KEY" in written
        assert b"sk-secret-42" not in written

    def test_an_unknown_model_is_answered_with_those_that_are_served(self, evaluated) -> None:
        with pytest.raises(
            EngineError, match=r"serves 'policy', 'policy-large', not 'polcy'; Did you mean 'policy'\?"
        ):
            evaluated(right, endpoint={"model": "polcy"})

    def test_an_endpoint_without_a_list_of_models_is_asked_anyway(self, evaluated) -> None:
        assert evaluated(right, models=False, tasks=2).run.mean == 1.0

    def test_an_environment_that_is_not_installed(self, evaluated) -> None:
        with pytest.raises(
            ConfigError, match=r"'snooze-maths' is not installed\. Did you mean 'snooze-math'\?"
        ):
            evaluated(right, environment=[{"id": "snooze-maths"}])

    def test_no_environment_at_all(self, evaluated) -> None:
        with pytest.raises(ConfigError, match=r"no environment was named; use --environments snooze-math"):
            evaluated(right, environment=[])

    def test_one_environment_twice_needs_two_names(self) -> None:
        with pytest.raises(ValueError, match=r"snooze-math is listed more than once; give each .* `name`"):
            EvalConfig(environments=["snooze-math", "snooze-math"])

    def test_pass_at_more_than_the_rollouts(self) -> None:
        with pytest.raises(
            ValueError, match=r"pass@8 needs at least that many rollouts per task, rollouts is 4"
        ):
            EvalConfig(rollouts=4, pass_at=[8])


class TestResume:
    def test_a_run_is_not_overwritten_by_accident(self, evaluated) -> None:
        evaluated(right)
        with pytest.raises(StateError, match=r"already holds an evaluation; pass --resume .* --overwrite"):
            evaluated(right)

    def test_a_finished_run_asks_for_nothing(self, evaluated) -> None:
        evaluated(right)
        again = evaluated(right, options=Options(resume=True))
        assert not again.server.asked
        assert again.notes == "12 of 12 rollouts were done already"

    def test_overwriting_starts_anew(self, evaluated) -> None:
        evaluated(right)
        assert len(evaluated(right, options=Options(overwrite=True)).server.asked) == 12

    def test_a_torn_last_line_is_run_again_and_the_others_are_not(self, evaluated, tmp_path: Path) -> None:
        evaluated(right)
        path = tmp_path / "run" / "snooze-math" / "traces.jsonl"
        whole = path.read_bytes()
        path.write_bytes(whole[:-40])
        again = evaluated(right, options=Options(resume=True))
        assert len(again.server.asked) == 1
        assert "1 invalid or torn ones run again" in again.notes
        assert path.read_bytes().startswith(whole[: whole[:-1].rindex(b"\n") + 1])
        assert len({row.id for row in again.rows}) == len(again.rows) == 12
        assert again.run.rollouts[0].unreadable == 0

    def test_a_line_that_lacks_only_its_end_counts_and_is_not_glued_to_the_next(
        self, evaluated, tmp_path
    ) -> None:
        evaluated(right, tasks=3)
        path = tmp_path / "run" / "snooze-math" / "traces.jsonl"
        path.write_bytes(path.read_bytes()[:-1])
        again = evaluated(right, options=Options(resume=True), tasks=4)
        assert len(again.server.asked) == 2
        assert len(again.rows) == 8
        assert again.run.rollouts[0].unreadable == 0

    def test_invalid_rollouts_are_owed_again(self, evaluated) -> None:
        evaluated(lambda *_: error(400, "not now"))
        again = evaluated(right, options=Options(resume=True))
        assert len(again.server.asked) == 12
        assert [row.reward for row in again.rows] == [1.0] * 12

    def test_more_tasks_and_rollouts_keep_what_is_there(self, evaluated) -> None:
        first = evaluated(right, tasks=3, rollouts=1)
        more = evaluated(right, options=Options(resume=True), tasks=5, rollouts=2)
        assert len(more.server.asked) == 10 - 3
        assert not first.server.asked.keys() & more.server.asked.keys()
        assert len(more.rows) == 10

    def test_fewer_are_refused(self, evaluated) -> None:
        evaluated(right, tasks=3)
        with pytest.raises(
            StateError, match=r"was run with more tasks \(3\); a resumed run may only ask for more"
        ):
            evaluated(right, options=Options(resume=True), tasks=2)

    def test_other_settings_are_refused_with_both_values(self, evaluated) -> None:
        evaluated(right)
        with pytest.raises(
            StateError, match=r"sampling was .*'temperature': 1\.0.*, now .*'temperature': 0\.5"
        ):
            evaluated(right, options=Options(resume=True), sampling={"temperature": 0.5})

    def test_two_processes_do_not_write_into_one_run(self, evaluated, tmp_path: Path) -> None:
        with (
            locked(tmp_path / "run"),
            pytest.raises(
                StateError, match=r"another process writes to .*wait for it or choose another output"
            ),
        ):
            evaluated(right)


class TestDrawing:
    def test_a_larger_draw_starts_with_the_smaller_in_whatever_order_the_pool_is(self) -> None:
        keys = [f"task {i}" for i in range(50)]
        few, many = draw(keys, 10, seed=3), draw(keys, 30, seed=3)
        assert many[:10] == few
        turned = keys[::-1]
        assert [turned[i] for i in draw(turned, 10, seed=3)] == [keys[i] for i in few]
        assert draw(keys, 10, seed=4) != few
        assert sorted(draw(keys, None, seed=0)) == list(range(50))

    def test_the_held_out_split_is_the_default_where_the_task_set_has_one(self) -> None:
        [math, quiz] = plan(EvalConfig(environments=["snooze-math", "plain-quiz"]))
        assert math.catalogue.config.taskset == {"split": "eval"}
        assert quiz.catalogue.config.taskset == {}
        [train] = plan(EvalConfig(environments=["snooze-math"], split=None))
        assert not {i.key for i in train.catalogue.infos} & {i.key for i in math.catalogue.infos}


class TestTraces:
    def test_verifiers_own_reader_reads_every_line(self, evaluated, tmp_path: Path) -> None:
        ran = evaluated(at_first(lambda: error(400), times=0), tasks=3)
        episodes = read_episodes(tmp_path / "run" / "snooze-math", WireTrace)
        assert [e.id for e in episodes] == [row.id for row in ran.rows]
        [trace] = episodes[0].traces
        assert trace.reward == 1.0
        assert trace.usage is not None
        assert trace.usage.completion_tokens == 4
        assert trace.last_reply == str(episodes[0].task.data.model_extra["answer"])
        assert episodes[0].group.id == ran.rows[0].key

    def test_vf_replay_scores_our_run_to_the_same_rewards(self, evaluated, tmp_path: Path) -> None:
        from verifiers.v1.cli.replay import ReplayConfig, run_replay

        evaluated(lambda s, body, n: sums(body) if body["seed"] % 2 else "no idea", tasks=5)
        source = tmp_path / "run" / "snooze-math"
        saved = json.loads((source / "configs" / "resolved" / "eval.json").read_text())
        config = ReplayConfig.model_validate({**saved, "rich": False})
        traces = asyncio.run(run_replay(config, source, tmp_path / "replay"))
        ours = [row.reward for row in load_evaluation(source).rollouts[0].rows]
        assert sorted(t.reward for t in traces) == sorted(ours)
        assert 0 < sum(ours) < len(ours)
