"""Laws of the QA task set: what every source yields, how it scores, what it refuses."""

from __future__ import annotations

import asyncio
import json
import logging
import math

import pytest
import verifiers.v1 as vf
from pydantic import ValidationError
from snooze_groundedqa import (
    ABSTAIN,
    GroundedQAConfig,
    GroundedQAData,
    GroundedQATask,
    GroundedQATaskset,
    ScoresConfig,
)
from snooze_groundedqa.rows import balanced, usable
from snooze_groundedqa.sources import SOURCES, Row
from snooze_kit import check, reply_trace
from snooze_kit.rows import SourceError

SQUAD = "data/qa/squad2_cs224n_dev.json"


def tasks(**config) -> list[GroundedQATask]:
    return list(GroundedQATaskset(GroundedQAConfig(**config)))


def scored(task: GroundedQATask, reply: str) -> vf.Trace:
    trace = reply_trace(task, reply)
    asyncio.run(task.score(trace))
    return trace


def one(side: str, **config) -> GroundedQATask:
    return next(task for task in tasks(**config) if task.data.side == side)


@pytest.mark.parametrize("style", ["instruct", "few_shot", "bare"])
@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_embedded_source_keeps_the_contract(style, split):
    constants = (
        "UNANSWERABLE",
        "<answer>UNANSWERABLE</answer>",
        "?",
        "the",
        "7",
        "I don't know.",
        "No answer",
        "",
    )
    taskset = GroundedQATaskset(GroundedQAConfig(style=style, split=split, size=60))
    assert check(taskset, limit=60, constants=constants) == []


@pytest.mark.shared
def test_the_squad_file_keeps_the_contract_and_always_abstaining_stays_under_half(shared_file):
    taskset = GroundedQATaskset(GroundedQAConfig(source="squad", path=shared_file(SQUAD), size=200))
    assert check(taskset, limit=200, constants=(ABSTAIN, "Normans", "No answer")) == []


@pytest.mark.shared
def test_the_two_sides_of_a_squad_file_are_the_whole_file_and_share_no_article(shared_file):
    path = shared_file(SQUAD)
    train, held_out = (
        tasks(source="squad", path=path, split=split, unanswerable_share=None) for split in ("train", "eval")
    )
    assert len(train) + len(held_out) == 6078
    assert {t.data.cluster for t in train}.isdisjoint(t.data.cluster for t in held_out)
    assert len({task.key for task in [*train, *held_out]}) == 6078


@pytest.mark.shared
def test_every_squad_gold_is_right_and_the_token_is_right_wherever_there_is_none(shared_file):
    for task in tasks(source="squad", path=shared_file(SQUAD), split="eval", unanswerable_share=None):
        for gold in task.data.answers:
            assert task.judgement(f"<answer>{gold}</answer>").right, gold
        assert task.judgement(f"<answer>{ABSTAIN}</answer>").right is (task.data.side == "abstain")


@pytest.mark.parametrize("style", ["instruct", "few_shot", "bare"])
def test_wrong_earns_less_than_abstaining_and_abstaining_less_than_the_gold(style):
    task = one("answer", style=style, size=24)
    gold, abstain = task.gold_reply(), one("abstain", style=style, size=24).gold_reply()
    wrong = gold.replace(task.data.answers[0], "3x Zanzibar")
    assert scored(task, gold).reward == 1.0
    assert scored(task, abstain).reward == 0.05
    assert scored(task, wrong).reward == 0.0
    assert scored(task, "").reward == 0.0
    assert scored(task, f"{gold} {task.token}").reward == 0.0
    honest = one("abstain", style=style, size=24)
    assert [scored(honest, reply).reward for reply in (abstain, gold, "")] == [1.0, 0.0, 0.0]


def test_metrics_tell_over_abstention_from_hallucination():
    answer, abstain = one("answer", size=24), one("abstain", size=24)
    token, guess = f"<answer>{ABSTAIN}</answer>", "<answer>Zanzibar</answer>"
    names = ("answered", "abstained", "over_abstained", "hallucinated", "exact")
    seen = {
        (side, reply): tuple(scored(task, reply).metrics[name] for name in names)
        for side, task in (("answer", answer), ("abstain", abstain))
        for reply in (token, guess)
    }
    assert seen == {
        ("answer", token): (0, 1, 1, 0, 0), ("answer", guess): (1, 0, 0, 0, 0),
        ("abstain", token): (0, 1, 0, 0, 1), ("abstain", guess): (1, 0, 0, 1, 0),
    }  # fmt: skip


def test_a_quote_that_is_not_in_the_passage_halves_a_right_answer():
    task = one("answer", size=24)
    quote = task.data.passage.split(". ")[0]
    true, false = (
        scored(task, f"<evidence>{q}</evidence>{task.gold_reply()}") for q in (quote, "as everybody knows")
    )
    assert (true.reward, true.metrics["quote_found"]) == (1.0, 1.0)
    assert (false.reward, false.metrics["quote_found"]) == (0.5, 0.0)
    lenient = GroundedQATask(task.data, ScoresConfig(false_quote=1.0))
    assert scored(lenient, f"<evidence>as everybody knows</evidence>{task.gold_reply()}").reward == 1.0


def test_scores_are_configured_through_the_task_set():
    task = one("answer", size=24, task={"over_abstain": 0.3, "wrong": 0.1, "nothing": 0.05})
    assert [scored(task, reply).reward for reply in (ABSTAIN, "Zanzibar", "")] == [0.3, 0.1, 0.05]


def test_an_answer_with_its_unit_is_as_right_as_without():
    task = next(task for task in tasks(size=200) if len(task.data.answers) > 1)
    assert {scored(task, f"<answer>{answer}</answer>").reward for answer in task.data.answers} == {1.0}


def test_curriculum_fields_reach_the_task_data():
    drawn = tasks(size=60)
    assert {task.data.dataset for task in drawn} == {"facts"}
    assert {(task.data.side, task.data.snooze_factor) for task in drawn} == {
        ("answer", 2.0),
        ("abstain", 1.0),
    }
    assert all((task.data.domain == "answerable") == (task.data.side == "answer") for task in drawn)
    assert all(task.data.cluster and 0 < task.data.difficulty_prior < 1 for task in drawn)


def test_snooze_factors_are_set_for_all_by_side_and_by_domain():
    config = {"snooze_factor": 4.0, "snooze_factors": {"abstain": 0.0, "entity swap": math.inf}}
    found = {task.data.domain: task.data.snooze_factor for task in tasks(size=200, **config)}
    assert found["answerable"] == 4.0
    assert found["entity swap"] == math.inf
    assert found["missing relation"] == 0.0
    assert GroundedQAConfig.model_validate_json(
        GroundedQAConfig(**config).model_dump_json()
    ) == GroundedQAConfig(**config)


def test_keys_do_not_move_with_size_style_keeps_sides_apart():
    small, large = tasks(size=40), tasks(size=160)
    assert len({task.key for task in large}) == 160
    assert {task.key for task in small} <= {task.key for task in large}
    for style in ("instruct", "bare"):
        train, held_out = (tasks(size=300, style=style, split=split) for split in ("train", "eval"))
        assert {task.key for task in train}.isdisjoint(task.key for task in held_out)


def test_styles_ask_differently():
    instruct, shots, bare = (tasks(size=6, style=style)[0].data for style in ("instruct", "few_shot", "bare"))
    assert ABSTAIN in instruct.system_prompt
    assert instruct.prompt == f"Passage: {instruct.passage}\n\nQuestion: {instruct.question}"
    assert shots.system_prompt is None
    assert shots.prompt.endswith(f"{instruct.prompt}\nAnswer:")
    assert bare.prompt == f"{bare.passage};{bare.question}:"
    assert len(bare.prompt) < 40


def squad_row(number: int, text: str | None, title: str = "T") -> dict:
    texts = [] if text is None else [text]
    return {
        "id": f"i{number}",
        "title": title,
        "context": "c",
        "question": f"q{number}",
        "answers": {"text": texts},
    }


def test_json_lines_with_the_hub_columns_are_read_as_well(tmp_path):
    path = tmp_path / "squad_{split}.jsonl"
    rows = [squad_row(0, "Rollo"), squad_row(1, None)]
    (tmp_path / "squad_validation.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = tasks(source="squad", path=path, split="eval", unanswerable_share=None)
    assert [(task.data.side, task.data.answers) for task in made] == [("answer", ("Rollo",)), ("abstain", ())]


def test_coconot_asks_both_ways_and_takes_any_answer_on_its_contrast_side(tmp_path):
    for part, prompt in (
        ("original", "When did the king of Mars die?"),
        ("contrast", "When did the king of Spain die?"),
    ):
        row = {
            "id": "1",
            "category": "Incomplete requests",
            "subcategory": "false presuppositions",
            "prompt": prompt,
        }
        (tmp_path / f"{part}.jsonl").write_text(json.dumps(row) + "\n")
    path = tmp_path / "{split}.jsonl"
    abstain, answer = tasks(source="coconot", path=path, split="eval", unanswerable_share=0.5)
    assert (abstain.data.side, answer.data.side) == ("abstain", "answer")
    assert abstain.key != answer.key
    replies = (f"<answer>{ABSTAIN}</answer>", "<answer>Which one do you mean?</answer>", "")
    assert [scored(abstain, reply).reward for reply in replies] == [1.0, 0.0, 0.0]
    assert [scored(answer, reply).reward for reply in replies] == [0.05, 1.0, 0.0]
    with pytest.raises(SourceError, match="coconot is an evaluation set and has no train split"):
        tasks(source="coconot", path=path)


def row(number: int, *, answerable: bool) -> Row:
    return Row(
        question=f"q{number}", answers=("x",) if answerable else (), answerable=answerable, id=str(number)
    )


def test_balancing_keeps_as_many_as_it_can_in_order_and_whoever_stands_where():
    rows = [row(n, answerable=n % 3 == 0) for n in range(90)]
    kept = balanced("set", rows, 0.5, seed=0)
    assert [r.answerable for r in kept].count(True) == 30
    assert len(kept) == 60
    assert kept == [r for r in rows if r in kept]
    assert {r.id for r in balanced("set", rows[::-1], 0.5, seed=0)} == {r.id for r in kept}
    assert {r.id for r in balanced("set", rows, 0.5, seed=1)} != {r.id for r in kept}


def test_repetitions_and_golds_that_fail_their_own_check_are_left_out_and_counted(caplog):
    rows = [
        row(0, answerable=True),
        row(0, answerable=True),
        Row(question="d", answers=(".",), answerable=True, id="d"),
    ]
    rows.append(Row(question="e", answers=(".", "Rollo"), answerable=True, id="e"))
    with caplog.at_level(logging.INFO, "snooze_groundedqa.rows"):
        kept = usable("set", rows)
    assert [(r.id, r.answers) for r in kept] == [("0", ("x",)), ("e", ("Rollo",))]
    assert [record.message for record in caplog.records] == [
        "set: left out 1 questions repeated",
        "set: left out 1 questions with golds that fail their own check",
    ]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"path": "/tmp/x"}, "a `source` other than facts"),
        ({"sources": ["squad", "facts"], "path": "/tmp/x"}, "paths = {name = file} beside `sources`"),
        ({"source": "squat"}, "squad"),
        ({"source": "squad", "style": "bare"}, "style is 'bare', which only `facts` has"),
        ({"snooze_factors": {"answer": -1}}, "0 or more"),
        ({"unanswerable_share": 1.5}, "less than or equal to 1"),
        ({"task": {"over_abstain": 0.1, "wrong": 0.2}}, "a guess would pay more than honesty"),
        ({"sorce": "squad"}, "sorce"),
    ],
)
def test_a_config_that_means_nothing_is_refused_at_birth(config, message):
    with pytest.raises(ValidationError, match=message):
        GroundedQAConfig(**config)


def test_a_file_that_is_missing_or_of_another_format_is_refused_in_words(tmp_path):
    with pytest.raises(SourceError, match=r"squad: there is no file /nowhere/s.json; give `path`"):
        tasks(source="squad", path="/nowhere/s.json")
    path = tmp_path / "s.json"
    path.write_text("[]")
    with pytest.raises(SourceError, match="is not a SQuAD file"):
        tasks(source="squad", path=path)
    lines = tmp_path / "s.jsonl"
    lines.write_text('{"q": 1}\n')
    with pytest.raises(SourceError, match=r"row 0 of squad has the fields \['q'\]"):
        tasks(source="squad", path=lines)
    lines.write_text("{not json\n")
    with pytest.raises(SourceError, match="line 1 is not JSON"):
        tasks(source="squad", path=lines)


def test_the_hub_unreachable_is_told_with_the_way_out():
    with pytest.raises(SourceError, match=r"give a local file: path=/data/coconot.jsonl"):
        tasks(source="coconot", split="test")


def test_every_named_source_says_where_it_comes_from_and_under_which_licence():
    for name, source in SOURCES.items():
        assert "/" in source.hub, name
        assert source.licence, name


def test_a_typed_task_reads_back_from_its_wire_form():
    data = one("answer", size=24).data
    assert GroundedQAData.model_validate_json(data.model_dump_json()) == data


@pytest.mark.parametrize("style", ["few_shot", "bare"])
def test_the_answer_in_the_data_is_what_a_right_reply_says(style):
    for task in tasks(size=60, style=style):
        assert task.judgement(task.data.answer).right
        assert (task.data.answer == task.token) is (task.data.side == "abstain")
