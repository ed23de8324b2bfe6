"""What the rollouts on disk say: pass@k, intervals, two sides, paired comparison, and which lines count."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.errors import OutcomeError, StateError
from snoozing_env.report.evaluation import compare, load_evaluation, summary
from snoozing_env.report.evaluation_page import write_comparison_page, write_evaluation_page
from snoozing_env.report.intervals import clustered
from snoozing_env.report.paired import paired, sign_test
from snoozing_env.report.rollouts import Part, Rollout, Rollouts, TwoSided, read_rollouts, read_transcript
from snoozing_env.report.scores import pass_at_k, score, scored, task_means


def rows(*rewards_by_task: tuple[float | None, ...], **more: object) -> list[Rollout]:
    return [
        Rollout(
            id=f"{t}-{k}", key=f"task {t}", reward=reward, error="" if reward is not None else "gone", **more
        )
        for t, rewards in enumerate(rewards_by_task)
        for k, reward in enumerate(rewards)
    ]


def episode(key: str, reward: float | None, **more: object) -> dict[str, object]:
    """A line as verifiers writes it, cut down to what is read."""
    ok = reward is not None
    trace = {
        "agent": {"trainable": True},
        "nodes": [
            {"message": {"role": "user", "content": f"ask {key}"}, "sampled": False},
            {"message": {"role": "assistant", "content": "<b>reply</b>"}, "sampled": True},
        ],
        "rewards": {"right": {"score": reward if ok else 0.0, "weight": 1.0}},
        "metrics": {},
        "calls": [{"usage": {"prompt_tokens": 100, "completion_tokens": 10}, "finish_reason": "stop"}],
        "timing": {"start": 50.0, "scoring": {"start": 51.0, "end": 52.5}},
        "errors": [] if ok else [{"type": "ProviderError", "message": "HTTP 500"}],
        "is_timeout": False,
    }
    data = {"answer": "gold & <i>", "domain": "d", **more}
    return {
        "id": f"{key}-{reward}",
        "ok": ok,
        "task": {"data": data, "key": key},
        "traces": [trace],
        "errors": [],
    }


def write_run(
    directory: Path, *episodes: dict[str, object], tail: bytes = b"", **environment: object
) -> Path:
    (directory / "quiz").mkdir(parents=True)
    lines = b"".join(json.dumps(e).encode() + b"\n" for e in episodes)
    (directory / "quiz" / "traces.jsonl").write_bytes(lines + tail)
    entry = {"name": "quiz", "reward_range": [0, 1], "two_sided": {}, **environment}
    manifest = {
        "config": {"seed": 0, "rollouts": 2, "endpoint": {"price_in": 2.0, "price_out": 10.0}},
        "identity": {"model": "m"},
        "environments": [entry],
        "versions": {},
    }
    (directory / "eval.json").write_text(json.dumps(manifest))
    return directory


class TestPassAtK:
    @given(st.integers(1, 7), st.data())
    def test_it_is_the_share_of_all_choices_of_k_rollouts_that_hold_a_pass(self, n: int, data) -> None:
        c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
        choices = list(itertools.combinations([1] * c + [0] * (n - c), k))
        assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, choices)) / len(choices))

    def test_it_is_unbiased_where_the_plug_in_estimate_is_not(self) -> None:
        n, k, p = 5, 3, 0.3
        chances = [math.comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]
        truth = 1 - (1 - p) ** k
        assert sum(q * pass_at_k(n, c, k) for c, q in enumerate(chances)) == pytest.approx(truth)
        plugged = sum(q * (1 - (1 - c / n) ** k) for c, q in enumerate(chances))
        assert plugged < truth - 0.01

    def test_chen_et_al_s_own_numbers(self) -> None:
        assert pass_at_k(200, 1, 100) == pytest.approx(0.5)
        assert pass_at_k(8, 4, 2) == pytest.approx(1 - 6 / 28)

    @pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)])
    def test_impossible_counts_are_refused(self, n: int, c: int, k: int) -> None:
        with pytest.raises(ValueError, match="wanted 0 ≤ c ≤ n and 1 ≤ k ≤ n"):
            pass_at_k(n, c, k)


class TestScores:
    def test_the_interval_is_that_of_the_task_means(self) -> None:
        found = score(rows((1, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 1)), ks=(1, 4))
        assert found.mean is not None
        assert (found.mean.low, found.mean.high) == clustered([0.5, 1.0, 0.25])
        assert found.mean.value == pytest.approx(np.mean([0.5, 1.0, 0.25]))
        assert found.pass_at[4].value == 1.0

    def test_more_rollouts_that_agree_with_the_others_of_their_task_narrow_nothing(self) -> None:
        few, many = (score(rows((1,) * n, (0,) * n, (1,) * n, (0,) * n), ks=(1,)) for n in (1, 50))
        assert few.mean == many.mean

    def test_an_invalid_rollout_is_counted_and_is_no_zero(self) -> None:
        found = score(rows((1, None), (0, 0), (None, None)), ks=(1, 2))
        assert (found.n_tasks, found.n_rollouts, found.n_invalid) == (2, 3, 3)
        assert found.mean is not None
        assert found.mean.value == 0.5
        assert found.pass_at[2].n_tasks == 1, "one task has two valid rollouts"

    def test_without_a_valid_rollout_there_is_no_mean(self) -> None:
        found = score(rows((None, None)), ks=(1,))
        assert found.mean is None
        assert found.pass_at == {}

    def test_only_full_marks_pass(self) -> None:
        found = score(rows((0.5, 1.0)), ks=(1,))
        assert found.mean is not None
        assert (found.mean.value, found.pass_at[1].value) == (0.75, 0.5)

    def test_each_direction_of_erring_is_measured_on_its_own_side(self) -> None:
        safe = rows((0, 0), (1, 0), side="safe")
        unsafe = [
            Rollout(id="u", key="u", reward=0.0, side="unsafe", metrics={"complied": 1.0}),
            Rollout(id="v", key="v", reward=1.0, side="unsafe", metrics={"complied": 0.0}),
            Rollout(id="w", key="w", reward=None, side="unsafe", error="gone"),
        ]
        halves = {
            "over_refusal": TwoSided(side="safe"),
            "under_refusal": TwoSided(side="unsafe", metric="complied"),
        }
        part = Part(name="x", directory=Path(), two_sided={**halves, "of_nobody": TwoSided(side="none")})
        found = scored(Rollouts(part=part, rows=(*safe, *unsafe), unreadable=0), ks=(1,))
        over, under = found.two_sided["over_refusal"], found.two_sided["under_refusal"]
        assert over is not None
        assert under is not None
        assert (over.value, over.n_tasks) == (0.75, 2)
        assert (under.value, under.n_tasks) == (0.5, 2)
        assert found.two_sided["of_nobody"] is None
        assert list(found.by["side"]) == ["safe", "unsafe"]

    def test_slices_of_a_single_value_are_left_out(self) -> None:
        part = Part(name="x", directory=Path())
        found = scored(
            Rollouts(part=part, rows=tuple(rows((1,), (0,), domain="only")), unreadable=0), ks=(1,)
        )
        assert found.by == {}


class TestPaired:
    def test_pairing_finds_what_the_spread_between_tasks_hides(self) -> None:
        rng = np.random.default_rng(0)
        base = {str(i): float(p) for i, p in enumerate(rng.uniform(0, 0.9, 80))}
        better = {key: p + 0.05 for key, p in base.items()}
        found = paired(base, better)
        assert found.low > 0.04
        assert found.p < 0.001
        assert clustered(list(base.values())).high > np.mean(list(better.values())), "unpaired, it is lost"

    def test_no_difference_is_rarely_called_one(self) -> None:
        rng = np.random.default_rng(1)
        ps = []
        for seed in range(60):
            a, b = ({str(i): float(v) for i, v in enumerate(rng.binomial(4, 0.5, 30) / 4)} for _ in "ab")
            ps.append(paired(a, b, seed=seed).p)
        assert 0 <= np.mean(np.array(ps) < 0.05) < 0.15
        assert 0.35 < np.mean(ps) < 0.65

    def test_the_sign_test_is_mcnemar_s_exact_test(self) -> None:
        assert sign_test(1, 9) == pytest.approx(2 * (1 + 10) / 1024)
        assert sign_test(5, 5) == 1.0
        assert sign_test(0, 0) == 1.0
        assert 0 <= sign_test(400, 1600) < 1e-100

    def test_tasks_of_one_run_only_are_counted_and_left_out(self) -> None:
        found = paired({"a": 1.0, "b": 0.0, "x": 1.0}, {"a": 1.0, "b": 1.0, "y": 0.0, "z": 0.0})
        assert (found.n_shared, found.only_a, found.only_b) == (2, 1, 2)
        assert (found.mean_a, found.mean_b, found.difference) == (0.5, 1.0, 0.5)
        assert (found.better_a, found.better_b) == (0, 1)

    def test_swapping_the_runs_turns_the_sign_and_keeps_the_p(self) -> None:
        a = {str(i): float(v) for i, v in enumerate(np.random.default_rng(2).uniform(size=20))}
        b = {key: 1 - v for key, v in a.items()}
        one, other = paired(a, b), paired(b, a)
        assert one.difference == pytest.approx(-other.difference)
        assert one.p == pytest.approx(other.p, abs=0.02)

    def test_runs_without_a_task_in_common_are_refused(self) -> None:
        with pytest.raises(StateError, match=r"share no task \(1 and 2\); compare runs over the same"):
            paired({"a": 1.0}, {"b": 1.0, "c": 0.0})


class TestReading:
    def test_a_torn_last_line_is_left_out_and_counted(self, tmp_path: Path) -> None:
        run = write_run(tmp_path / "r", episode("a", 1.0), episode("b", 0.0), tail=b'{"id": "c", "ok": tr')
        found = load_evaluation(run).rollouts[0]
        assert [row.key for row in found.rows] == ["a", "b"]
        assert found.unreadable == 1

    def test_a_scoring_time_out_is_no_zero_although_verifiers_calls_it_ok(self, tmp_path: Path) -> None:
        late = episode("a", 0.0)
        late["traces"][0] |= {"is_timeout": True, "stop_condition": "scoring_timeout"}  # type: ignore[index]
        run = load_evaluation(write_run(tmp_path / "r", late, episode("b", 1.0)))
        assert run.scored[0].errors == {"scoring_timeout": 1}
        assert run.mean == 1.0

    def test_rewards_are_mapped_from_the_environment_s_range(self, tmp_path: Path) -> None:
        run = write_run(tmp_path / "r", episode("a", -1.0), episode("b", 1.0), reward_range=[-1, 3])
        assert task_means(load_evaluation(run).rollouts[0].rows) == {"a": 0.0, "b": 0.5}

    def test_a_reward_outside_the_range_is_refused_with_its_task(self, tmp_path: Path) -> None:
        run = write_run(tmp_path / "r", episode("the task", 2.0))
        with pytest.raises(
            OutcomeError, match=r"task 'the task' earned 2, outside \[0, 1\]; set .* reward_range"
        ):
            load_evaluation(run)

    def test_a_run_of_vf_eval_needs_no_file_of_ours(self, tmp_path: Path) -> None:
        run = write_run(tmp_path / "r", episode("a", 1.0), episode("a", 0.0))
        found = load_evaluation(run / "quiz")
        assert found.mean == 0.5
        assert found.manifest == {}

    def test_what_was_said_is_found_again_behind_other_lines(self, tmp_path: Path) -> None:
        run = write_run(tmp_path / "r", episode("ä", 1.0), episode("b", 0.0))
        part = Part(name="quiz", directory=run / "quiz")
        said = read_transcript(part, read_rollouts(part).rows[1])
        assert (said.prompt, said.reply, said.gold) == ("ask b", "<b>reply</b>", "gold & <i>")

    def test_tokens_seconds_and_money_count_the_invalid_rollouts_too(self, tmp_path: Path) -> None:
        run = load_evaluation(write_run(tmp_path / "r", episode("a", 1.0), episode("b", None)))
        assert (run.cost.input_tokens, run.cost.output_tokens, run.cost.seconds) == (200, 20, 5.0)
        assert run.cost.money == pytest.approx((200 * 2 + 20 * 10) / 1e6)

    def test_nothing_there_is_said_so(self, tmp_path: Path) -> None:
        with pytest.raises(StateError, match="no evaluation at"):
            load_evaluation(tmp_path / "nowhere")
        (tmp_path / "empty").mkdir()
        with pytest.raises(StateError, match=r"holds neither eval\.json nor traces\.jsonl"):
            load_evaluation(tmp_path / "empty")


class TestPages:
    def test_what_a_model_says_cannot_become_markup(self, tmp_path: Path) -> None:
        run = load_evaluation(write_run(tmp_path / "r", episode("a", 1.0), episode("b", None)))
        page = write_evaluation_page(run).read_text()
        assert "<b>reply</b>" not in page
        assert "&lt;b&gt;reply&lt;/b&gt;" in page
        assert "ProviderError: HTTP 500" in page
        assert "http://" not in page.replace("http://www.w3.org", "")

    def test_the_summary_is_json_without_infinities(self, tmp_path: Path) -> None:
        run = load_evaluation(write_run(tmp_path / "r", episode("a", None)))
        text = json.dumps(summary(run), allow_nan=False)
        assert json.loads(text)["environments"]["quiz"]["mean"] is None

    def test_a_comparison_names_both_runs_and_the_difference(self, tmp_path: Path) -> None:
        a = load_evaluation(write_run(tmp_path / "a", *(episode(str(i), 0.0) for i in range(9))))
        b = load_evaluation(write_run(tmp_path / "b", *(episode(str(i), 1.0) for i in range(9))))
        found = compare(a, b)
        assert list(found) == ["quiz"]
        page = write_comparison_page(a, b, found, tmp_path / "cmp.html").read_text()
        assert "+100.0 [+100.0, +100.0]" in page
        assert "0 / 9" in page
