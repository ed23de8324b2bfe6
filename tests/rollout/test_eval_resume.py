"""What ends an evaluation before its first rollout, and what a resumed one finds done."""

from __future__ import annotations

from pathlib import Path

import pytest
from chat_server import error
from eval_runs import right

from snoozing_env.errors import ConfigError, EngineError, StateError
from snoozing_env.evaluate.config import EvalConfig
from snoozing_env.evaluate.folder import locked
from snoozing_env.evaluate.run import Options


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
