"""How hard each task is, measured; which tasks look broken; and a training run that starts from it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chat_server import ChatServer, error, in_thread, sums
from hypothesis import given
from hypothesis import strategies as st

from snoozing_env.cli import main
from snoozing_env.errors import CatalogueError, StateError
from snoozing_env.report.stratification import buckets, histogram
from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.schedulers import build_scheduler
from snoozing_env.schedulers.priors import Priors, bucket, load_priors, measure, save_priors
from snoozing_env.types import Floats

MATH: dict[str, Any] = {"style": "bare", "split": "train"}


def by_operation(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
    """Sums are solved, products never, differences half of the time."""
    prompt = str(body["messages"][-1]["content"])
    if "*" in prompt or (not re.fullmatch(r"\d+\+\d+=", prompt) and body["seed"] % 2):
        return "no idea"
    return sums(body)


def words(output: Path, *more: str) -> list[str]:
    given = ["--environments", "snooze-math", "--taskset.style", "bare", "--output", str(output)]
    return ["stratify", *given, "--backoff-s", "0.01", *more]


def alone(rewards: dict[str, list[float]]) -> Priors:
    return measure({key: {"m": given} for key, given in rewards.items()})


class TestMeasure:
    def test_the_standard_error_of_four_of_eight_is_177(self) -> None:
        found = alone({"t": [1, 0] * 4})
        assert found.prior_N[0] == 0.5
        assert found.se_N[0] == pytest.approx(0.177, abs=5e-4)

    @given(st.integers(1, 40), st.data())
    def test_for_binary_rewards_it_is_the_binomial_one(self, k: int, data) -> None:
        passes = data.draw(st.integers(0, k))
        p = passes / k
        found = alone({"t": [1.0] * passes + [0.0] * (k - passes)})
        assert found.se_N[0] == pytest.approx(math.sqrt(p * (1 - p) / k), abs=1e-12)
        assert bool(found.postponed_N[0]) == (passes == 0)
        assert bool(found.removable_N[0]) == (passes == k)

    def test_models_count_the_same_however_often_each_was_asked(self) -> None:
        found = measure({"t": {"strong": [1.0] * 8, "weak": [0.0, 1.0]}})
        assert found.prior_N[0] == 0.75
        assert found.se_N[0] == pytest.approx(math.sqrt(0.25 / 2) / 2)
        assert {model: float(rates[0]) for model, rates in found.rates.items()} == {
            "strong": 1.0,
            "weak": 0.5,
        }
        assert found.k_N[0] == 10

    def test_a_task_is_postponed_or_removable_only_when_every_model_agrees(self) -> None:
        found = measure({"t": {"a": [0.0] * 4, "b": [0.0, 1.0]}, "u": {"a": [1.0], "b": [1.0, 0.5]}})
        assert not found.postponed_N.any()
        assert not found.removable_N.any()

    def test_a_task_without_a_valid_rollout_has_no_prior(self) -> None:
        found = measure({"t": {"a": []}, "u": {"a": [1.0], "b": []}})
        assert found.keys == ("u",)
        assert set(found.rates) == {"a", "b"}
        assert math.isnan(found.rates["b"][0])

    def test_a_bucket_holds_its_lower_edge_and_the_last_one_both(self) -> None:
        rates: Floats = np.array([0.0, 0.199, 0.2, 0.4, 3 * 0.2, 0.6, 0.799, 0.8, 1.0])
        assert bucket(rates).tolist() == [0, 0, 1, 2, 3, 3, 3, 4, 4]

    def test_the_bars_say_how_many_tasks_another_k_rollouts_would_move(self) -> None:
        sure = buckets(alone({str(i): [1.0] * 8 for i in range(30)}))
        unsure = buckets(alone({str(i): [1.0, 0.0, 0.0, 1.0, 0.0] for i in range(30)}))
        assert [row.n_tasks for row in sure] == [0, 0, 0, 0, 30]
        assert sure[4].spread == 0
        assert unsure[2].n_tasks == 30
        assert 1 < unsure[2].spread < 3
        assert "30 tasks" in histogram(unsure)


class TestSidecar:
    def test_it_reads_back_as_it_was(self, tmp_path: Path) -> None:
        wrote = measure({"a": {"x": [1.0, 0.0], "y": []}, "b": {"x": [], "y": [0.25]}})
        save_priors(wrote, tmp_path / "deep" / "priors.parquet")
        read = load_priors(tmp_path / "deep" / "priors.parquet")
        assert read.keys == wrote.keys
        for name in ("prior_N", "se_N", "k_N", "bucket_N", "postponed_N", "removable_N"):
            np.testing.assert_array_equal(getattr(read, name), getattr(wrote, name))
        assert set(read.rates) == {"x", "y"}
        np.testing.assert_array_equal(read.rates["y"], [math.nan, 0.25])

    def test_a_catalogue_takes_its_priors_by_key_and_counts_the_rest(self, tmp_path: Path) -> None:
        path = tmp_path / "priors.parquet"
        plain = load_catalogue(EnvironmentConfig(taskset=MATH))
        known = [info.key for info in plain.infos[::2]]
        save_priors(alone({**{key: [1.0, 0.0, 0.0] for key in known}, "gone": [1.0]}), path)
        found = load_catalogue(EnvironmentConfig(taskset=MATH, priors=str(path)))
        assert [i.difficulty_prior for i in found.infos[::2]] == pytest.approx([1 / 3] * len(known))
        assert [i.difficulty_prior for i in found.infos[1::2]] == [
            i.difficulty_prior for i in plain.infos[1::2]
        ]
        assert found.priors is not None
        counts = (found.priors.matched, found.priors.missing, found.priors.unused)
        assert counts == (len(known), len(plain) - len(known), 1)

    def test_a_scheduler_starts_from_the_measured_priors(self, tmp_path: Path) -> None:
        path = tmp_path / "priors.parquet"
        keys = [info.key for info in load_catalogue(EnvironmentConfig(taskset=MATH)).infos]
        middling = set(keys[:40])
        save_priors(alone({key: [1.0, 0.0] if key in middling else [1.0] for key in keys}), path)
        tasks = load_catalogue(EnvironmentConfig(taskset=MATH, priors=str(path))).infos
        scheduler = build_scheduler({"kind": "band", "epsilon": 0.01}, tasks, seed=0)
        drawn = [keys[i] for i in scheduler.draw(20)]
        assert sum(key in middling for key in drawn) >= 18, (
            "but for the floor, it draws where p is near one half"
        )

    def test_the_file_of_other_tasks_is_refused(self, tmp_path: Path) -> None:
        save_priors(alone({"a": [1.0]}), tmp_path / "p.parquet")
        with pytest.raises(
            CatalogueError, match=r"priors of 1 tasks and none of the \d+ tasks here .*same task-set options"
        ):
            load_catalogue(EnvironmentConfig(taskset=MATH, priors=str(tmp_path / "p.parquet")))

    def test_the_wrong_file_is_refused(self, tmp_path: Path) -> None:
        from snoozing_env.schedulers.parquet import dump

        with pytest.raises(
            StateError, match=r"cannot read the priors .*No such file.*`snooze stratify` writes"
        ):
            load_priors(tmp_path / "nowhere.parquet")
        (tmp_path / "text").write_text("priors")
        with pytest.raises(
            StateError, match=r"is no parquet file of priors .*wanted what `snooze stratify` wrote"
        ):
            load_priors(tmp_path / "text")
        (tmp_path / "state").write_bytes(dump(["a"], {"s": np.ones(1)}))
        with pytest.raises(
            StateError, match=r"has columns key, s and lacks prior, se, .*not a scheduler state"
        ):
            load_priors(tmp_path / "state")


class TestCommand:
    def test_it_writes_priors_suspects_with_transcripts_and_a_plot(
        self, tmp_path: Path, capsys, monkeypatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "250")
        with in_thread(ChatServer(by_operation)) as server:
            main(words(tmp_path / "s", "--endpoint.url", server.url, "--tasks", "40", "--rollouts", "6"))
        priors = load_priors(tmp_path / "s" / "priors.parquet")
        assert len(priors.keys) == 40
        assert set(priors.k_N.tolist()) == {6}
        suspects = [json.loads(line) for line in (tmp_path / "s" / "suspects.jsonl").read_text().splitlines()]
        never = [s for s in suspects if s["why"] == "never solved"]
        assert {s["key"] for s in never} == {
            k for k, p in zip(priors.keys, priors.postponed_N, strict=True) if p
        }
        assert any(s["domain"] == "multiply" for s in never)
        said = never[0]["said"]
        assert len(said) == 3
        assert said[0]["transcript"]["reply"] == "no idea"
        assert said[0]["transcript"]["gold"].lstrip("-").isdigit()
        assert (
            (tmp_path / "s" / "priors.svg").read_text().startswith('<svg xmlns="http://www.w3.org/2000/svg"')
        )
        page = (tmp_path / "s" / "report.html").read_text()
        assert "no idea" in page
        assert "never solved: postponed" in capsys.readouterr().out
        main(
            [
                "train",
                "@",
                "demo.toml",
                "--dry-run",
                "--environment.priors",
                str(tmp_path / "s" / "priors.parquet"),
            ]
        )
        assert re.search(r"[1-9]\d* tasks matched, \d+ missing in it", capsys.readouterr().out)

    def test_a_model_that_is_down_holds_up_no_other_and_resumes_alone(self, tmp_path: Path, capsys) -> None:
        config = tmp_path / "s.toml"
        with in_thread(ChatServer(by_operation)) as good, in_thread(ChatServer(lambda *_: error(503))) as bad:
            config.write_text(
                f'output = "{tmp_path / "s"}"\ntasks = 10\nrollouts = 4\nbackoff_s = 0.01\ngive_up_after = 3\n'
                f'environments = ["snooze-math"]\ntaskset.style = "bare"\n'
                f'[[endpoints]]\nname = "org/good"\nurl = "{good.url}"\nmodel = "policy"\n'
                f'[[endpoints]]\nname = "bad"\nurl = "{bad.url}"\nmodel = "policy-large"\n'
            )
            with pytest.raises(SystemExit, match="2"):
                main(["stratify", "@", str(config)])
            assert "failed 3 times in a row" in capsys.readouterr().err
            bad.rule = lambda _server, body, _before: sums(body)
            assert sum(good.answered.values()) == 40
            main(["stratify", "@", str(config), "--resume"])
            assert sum(good.answered.values()) == 40, "finished rollouts were asked again"
        priors = load_priors(tmp_path / "s" / "priors.parquet")
        assert set(priors.rates) == {"org/good", "bad"}
        assert set(priors.rates["bad"].tolist()) == {1.0}
        assert (tmp_path / "s" / "org--good" / "snooze-math" / "traces.jsonl").is_file()
        expected = (priors.rates["org/good"] + priors.rates["bad"]) / 2
        np.testing.assert_allclose(priors.prior_N, expected)

    def test_it_stratifies_the_training_split_unless_told_otherwise(self, tmp_path: Path, capsys) -> None:
        main(words(tmp_path / "s", "--dry-run"))
        assert "split train" in capsys.readouterr().out

    def test_without_a_single_verdict_there_are_no_priors(self, tmp_path: Path, capsys) -> None:
        with (
            in_thread(ChatServer(lambda *_: error(400, "too long"))) as server,
            pytest.raises(SystemExit, match="2"),
        ):
            main(words(tmp_path / "s", "--endpoint.url", server.url, "--tasks", "2", "--rollouts", "2"))
        assert "no rollout of 4 got a verdict; the first failure was: Fault" in capsys.readouterr().err
        assert not (tmp_path / "s" / "priors.parquet").exists()

    def test_one_model_twice_needs_two_names(self) -> None:
        from snoozing_env.evaluate.config import StratifyConfig

        with pytest.raises(ValueError, match=r"policy is listed more than once; give each \[\[endpoints\]\]"):
            StratifyConfig(endpoints=[{"url": "http://a"}, {"url": "http://b"}])
