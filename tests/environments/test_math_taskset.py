"""Laws of the task set: what every source yields, what it leaves out, how it refuses, how it scores."""

from __future__ import annotations

import asyncio
import json
import logging
import math

import pytest
import verifiers.v1 as vf
from pydantic import ValidationError
from snooze_kit import check, reply_trace
from snooze_kit.rows import SourceError
from snooze_math import MathConfig, MathData, MathTask, MathTaskset
from snooze_math.clusters import NEAR, held_out, near_clusters, words
from snooze_math.corrections import CORRECTIONS, corrected, question_key
from snooze_math.rows import gold_is_sound, usable
from snooze_math.sources import SOURCES, Row, number
from verifiers.v1.errors import TaskError

FILES = {
    "gsm8k": "data/math/gsm8k_test.jsonl",
    "math500": "data/math/math500.jsonl",
    "svamp": "data/math/svamp.jsonl",
    "mawps": "data/math/mawps.jsonl",
}


def tasks(**config) -> list[MathTask]:
    return list(MathTaskset(MathConfig(**config)))


def scored(task: MathTask, reply: str) -> vf.Trace:
    trace = reply_trace(task, reply)
    asyncio.run(task.score(trace))
    return trace


@pytest.mark.parametrize("style", ["instruct", "bare"])
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_embedded_source_keeps_the_contract(style, split):
    assert check(MathTaskset(MathConfig(style=style, split=split, size=40)), limit=40) == []


@pytest.mark.shared
@pytest.mark.parametrize("source", sorted(FILES))
def test_every_file_source_keeps_the_contract(source, shared_file):
    config = MathConfig(source=source, path=shared_file(FILES[source]), split="test")
    assert check(MathTaskset(config), limit=40) == []


@pytest.mark.shared
@pytest.mark.parametrize("source", sorted(FILES))
def test_every_gold_of_every_file_source_is_graded_as_right(source, shared_file):
    for task in tasks(source=source, path=shared_file(FILES[source]), split="test"):
        assert asyncio.run(task.validate(None)) is True, task.data.answer


def test_styles_ask_differently_for_the_same_gold():
    instruct, bare = (tasks(style=style, size=8, seed=5) for style in ("instruct", "bare"))
    assert [task.data.answer for task in instruct] == [task.data.answer for task in bare]
    assert all("boxed" in task.data.system_prompt for task in instruct)
    assert all(task.data.system_prompt is None and task.data.prompt.endswith("=") for task in bare)


def test_a_bare_reply_earns_the_reward_and_another_number_does_not():
    task = tasks(style="bare", size=8)[3]
    assert scored(task, task.data.answer).reward == 1.0
    assert scored(task, f" {task.data.answer}\n").reward == 1.0
    assert scored(task, task.data.answer + "0").reward == 0.0
    assert scored(task, "").reward == 0.0


def test_metrics_tell_an_empty_reply_from_a_wrong_one():
    task = tasks(size=8)[0]
    assert scored(task, "").metrics == {"answered": 0.0, "grader_hang": 0.0}
    wrong = scored(task, "I give up.")
    assert wrong.metrics == {"answered": 1.0, "grader_hang": 0.0}
    assert wrong.info["grading"]["reason"] == "the reply commits to no answer"


def test_an_unknown_verdict_raises_so_the_rollout_is_invalid_never_zero():
    task = MathTask(MathData(prompt="p", answer=r"\frac{1}{"))
    trace = reply_trace(task, r"\boxed{x+1}")
    with pytest.raises(TaskError, match="GraderError: no verdict for gold"):
        asyncio.run(task.score(trace))
    assert trace.rewards == {} or trace.rewards["correct"] is None


def test_curriculum_fields_reach_the_task_data():
    made = tasks(levels=[4, 6], size=10, snooze_factor=2.0, snooze_factors={"multiply": math.inf})
    assert {task.data.dataset for task in made} == {"arithmetic"}
    by_domain = {task.data.domain: task.data for task in made}
    assert by_domain["add"].snooze_factor == 2.0
    assert by_domain["multiply"].snooze_factor == math.inf
    assert by_domain["add"].difficulty_prior > by_domain["multiply"].difficulty_prior
    assert all(task.data.cluster for task in made)


def test_a_config_with_infinite_factors_reads_back_from_the_json_a_run_saves():
    config = MathConfig(snooze_factor=math.inf, snooze_factors={"add": math.inf, "mixed": 2})
    assert MathConfig.model_validate_json(config.model_dump_json()) == config


def test_keys_are_unique_and_do_not_move_with_order_or_size():
    small, large = tasks(size=40), tasks(size=160)
    assert len({task.key for task in large}) == len(large)
    assert {task.key for task in small} <= {task.key for task in large}


def test_train_and_held_out_arithmetic_share_no_key():
    assert {task.key for task in tasks(size=400)}.isdisjoint(
        task.key for task in tasks(split="eval", size=100)
    )


@pytest.mark.shared
@pytest.mark.parametrize("source", ["svamp", "mawps"])
def test_train_and_held_out_share_no_question_and_no_template(source, shared_file):
    path = shared_file(FILES[source])
    train, held_out = (tasks(source=source, path=path, split=split) for split in ("train", "eval"))
    for same in (lambda t: t.key, lambda t: question_key(t.data.prompt), lambda t: t.data.cluster):
        assert set(map(same, train)).isdisjoint(map(same, held_out))
    assert 0.1 < len(held_out) / (len(train) + len(held_out)) < 0.3


@pytest.mark.shared
@pytest.mark.parametrize("source", ["svamp", "mawps"])
def test_no_held_out_question_is_a_near_duplicate_of_a_training_question(source, shared_file):
    path = shared_file(FILES[source])
    seen = [words(task.data.prompt) for task in tasks(source=source, path=path)]
    for task in tasks(source=source, path=path, split="eval"):
        mine = words(task.data.prompt)
        assert max(len(mine & other) / len(mine | other) for other in seen) < NEAR, task.data.prompt


def test_clusters_join_near_duplicates_through_others_and_ignore_order():
    story = "Joan found 70 seashells on the long white beach near her home and gave Sam some of them"
    chain = [story, f"Then {story} today", f"Then {story} today and again later", "Tom eats 3 pies"]
    ids = near_clusters(chain)
    assert len(set(ids[:3])) == 1
    assert ids[3] != ids[0]
    assert near_clusters(chain[::-1]) == ids[::-1]
    assert 0.15 < sum(held_out(str(n)) for n in range(2000)) / 2000 < 0.25


@pytest.mark.shared
@pytest.mark.parametrize(("name", "places"), [("gsm8k_test", [1038]), ("gsm8k_train", [356, 2770, 4796])])
def test_corrections_apply_to_the_questions_they_were_proved_for(name, places, shared_lines):
    rows = shared_lines(f"data/math/{name}.jsonl")
    changed = {}
    for place, row in enumerate(rows):
        gold = row["answer"].rpartition("####")[2].strip()
        if (right := corrected(row["question"], gold)) != gold:
            changed[place] = right
            # The publisher's own last calculation already says so.
            assert f"{right}>>" in row["answer"]
    assert sorted(changed) == places


def test_a_correction_leaves_a_source_alone_that_has_already_fixed_the_gold():
    assert all(fix.proof and fix.right != fix.wrong for fix in CORRECTIONS.values())
    assert corrected("some other question", "4") == "4"


def test_repetitions_contradictions_and_unsound_golds_are_left_out_and_counted(caplog):
    rows = [
        Row(question="a", answer="1"), Row(question="A ", answer="1"), Row(question="b", answer="1"),
        Row(question="b", answer="2"), Row(question="c", answer="."), Row(question="d", answer="\\frac{1}{"),
    ]  # fmt: skip
    with caplog.at_level(logging.INFO, "snooze_math.rows"):
        assert [row.question for row in usable("set", rows)] == ["a"]
    assert [record.message for record in caplog.records] == [
        "set: left out 1 problems repeated",
        "set: left out 1 problems contradicted by a repetition",
        "set: left out 2 problems with a gold that fails its own check",
    ]
    assert gold_is_sound("\\frac{1}{2}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (43.0, "43"),
        (11.5, "11.5"),
        (0.6666666667, "2/3"),
        (10.3333333333, "31/3"),
        ("1,234", "1234"),
        (7, "7"),
    ],
)
def test_golds_are_read_as_the_number_that_was_meant(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"source": "gsm8k", "path": "/nowhere/g.jsonl"}, "there is no file /nowhere/g.jsonl; give `path`"),
        (
            {"source": "math500", "path": "/nowhere/m.jsonl"},
            "math500 is an evaluation set and has no train split",
        ),
    ],
)
def test_a_missing_data_set_says_which_option_helps(config, message):
    with pytest.raises(SourceError, match=message):
        tasks(**config)


def test_a_file_of_another_format_is_refused_with_its_fields(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"q": "?", "a": "!"}) + "\n")
    with pytest.raises(SourceError, match=r"row 0 of svamp has the fields \['a', 'q'\]"):
        tasks(source="svamp", path=path)
    path.write_text("{not json\n")
    with pytest.raises(SourceError, match="line 1 is not JSON"):
        tasks(source="svamp", path=path)


def test_asking_for_more_than_there_is_says_how_many_there_are(tmp_path):
    path = tmp_path / "gsm8k_test.jsonl"
    path.write_text(
        "".join(json.dumps({"question": f"q{n}", "answer": f"#### {n}"}) + "\n" for n in range(5))
    )
    placeholder = tmp_path / "gsm8k_{split}.jsonl"
    assert len(tasks(source="gsm8k", path=placeholder, split="eval", size=3)) == 3
    with pytest.raises(SourceError, match="gsm8k has 5 problems in split 'test', 6 were asked for"):
        tasks(source="gsm8k", path=placeholder, split="test", size=6)


def test_several_sources_come_one_after_the_other(tmp_path):
    path = tmp_path / "g.jsonl"
    path.write_text(json.dumps({"question": "q", "answer": "#### 3"}) + "\n")
    made = tasks(sources=["arithmetic", "gsm8k"], paths={"gsm8k": path}, split="test", size=1)
    assert [task.data.dataset for task in made] == ["arithmetic", "gsm8k"]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"path": "/tmp/x"}, "a `source` other than arithmetic"),
        ({"sources": ["svamp", "mawps"], "path": "/tmp/x"}, "paths = {name = file} beside `sources`"),
        ({"source": "gsm9k"}, "gsm8k"),
        ({"snooze_factors": {"add": -1}}, "0 or more"),
        ({"size": 0}, "greater than 0"),
        ({"sorce": "gsm8k"}, "sorce"),
    ],
)
def test_a_config_that_means_nothing_is_refused_at_birth(config, message):
    with pytest.raises(ValidationError, match=message):
        MathConfig(**config)


def test_every_named_source_says_where_it_comes_from_and_under_which_licence():
    for name, source in SOURCES.items():
        assert "/" in source.hub, name
        assert source.licence, name


def test_the_hub_unreachable_or_datasets_missing_is_told_with_the_way_out():
    with pytest.raises(SourceError, match=r"give a local JSON-lines file: path=/data/deepscaler.jsonl"):
        tasks(source="deepscaler")
