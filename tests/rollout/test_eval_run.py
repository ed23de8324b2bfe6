"""Rollouts against a real HTTP endpoint that fails in every way an endpoint can."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, Die, Hang, completion, error, sums
from eval_runs import MATH, at_first, right, throw
from verifiers.v1.trace import WireTrace
from verifiers.v1.utils.trace_store import read_episodes

from snoozing_env.errors import EngineError, OutcomeError
from snoozing_env.evaluate.config import EvalConfig
from snoozing_env.evaluate.run import draw, plan
from snoozing_env.report.evaluation import load_evaluation


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
