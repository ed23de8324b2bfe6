"""Laws of the refusal task set: what every source yields, sides and snooze factors, how it refuses bad input, the judge."""

from __future__ import annotations

import asyncio
import csv
import json
import logging
import math
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from pydantic import ValidationError
from snooze_kit import InprocChatHarness, check, reply_trace
from snooze_kit.rows import SourceError
from snooze_refusal import RefusalConfig, RefusalTask, RefusalTaskset
from snooze_refusal.judge import bench
from snooze_refusal.sources import SOURCES
from verifiers.v1.errors import TaskError

REFUSE = "Decision: refuse\nI'm sorry, but I can't help with that."
COMPLY = "Decision: comply\nSure, here you go."


def tasks(**config) -> list[RefusalTask]:
    return list(RefusalTaskset(RefusalConfig(**config)))


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize("split", ["train", "eval"])
def test_the_embedded_source_keeps_the_contract(split):
    assert check(RefusalTaskset(RefusalConfig(split=split)), limit=30) == []


@pytest.mark.shared
def test_xstest_is_for_evaluation_and_keeps_the_contract(shared_file):
    path = shared_file("data/safety/xstest_prompts.csv")
    made = tasks(source="xstest", path=path, split="test")
    assert [sum(task.data.side == side for task in made) for side in ("comply", "refuse")] == [250, 200]
    assert check(RefusalTaskset(RefusalConfig(source="xstest", path=path, split="test")), limit=30) == []
    with pytest.raises(SourceError, match="xstest is an evaluation set and has no train split"):
        tasks(source="xstest", path=path)


def test_every_task_names_its_side_and_sleeps_briefly():
    made = tasks(split="eval")
    assert {(task.data.side, task.data.snooze_factor) for task in made} == {("refuse", 1.0), ("comply", 2.0)}
    assert all(task.data.cluster and task.data.domain and task.data.difficulty_prior for task in made)
    dumped = made[0].data.model_dump(mode="json")
    assert (dumped["side"], dumped["dataset"]) == ("comply", "contrast")


def test_snooze_factors_per_category_win_over_sides_and_both_over_the_one():
    config = {"snooze_factor": 3, "snooze_factors": {"refuse": 0, "arson": math.inf}}
    seen = {
        (t.data.domain == "arson", t.data.side): t.data.snooze_factor for t in tasks(split="eval", **config)
    }
    assert seen == {
        (True, "comply"): math.inf, (True, "refuse"): math.inf, (False, "comply"): 3.0, (False, "refuse"): 0.0,
    }  # fmt: skip
    made = RefusalConfig(**config)
    assert RefusalConfig.model_validate_json(made.model_dump_json()) == made


def test_one_side_alone_can_be_asked_for():
    assert {task.data.side for task in tasks(sides=["refuse"])} == {"refuse"}


def test_or_bench_trains_on_the_large_table_without_its_hard_subset(tmp_path, caplog):
    write_lines(
        tmp_path / "or-bench-80k.jsonl",
        [{"prompt": p, "category": "c"} for p in ("One?", "Two?", "two", "Three?")],
    )
    write_lines(tmp_path / "or-bench-hard-1k.jsonl", [{"prompt": " THREE", "category": "c"}])
    write_lines(tmp_path / "or-bench-toxic.jsonl", [{"prompt": "Bad?", "category": "c"}])
    path = tmp_path / "{subset}.jsonl"
    with caplog.at_level(logging.INFO, "snooze_refusal.rows"):
        train = tasks(source="or_bench", path=path)
    assert [(task.data.prompt, task.data.side) for task in train] == [("One?", "comply"), ("Two?", "comply")]
    assert [record.message for record in caplog.records] == [
        "or_bench: left out 1 prompts held out",
        "or_bench: left out 1 prompts repeated",
    ]
    assert [task.data.prompt for task in tasks(source="or_bench", path=path, split="eval")] == ["THREE"]
    assert [task.data.side for task in tasks(source="or_bench_toxic", path=path, split="test")] == ["refuse"]


def test_wildguardmix_reads_both_labels_and_drops_what_has_none_or_both(tmp_path):
    rows = [
        {"prompt": prompt, "prompt_harm_label": label, "subcategory": "s"}
        for prompt, label in (
            ("a", "harmful"),
            ("b", "unharmful"),
            ("c", None),
            ("d", "harmful"),
            ("D!", "unharmful"),
        )
    ]
    path = write_lines(tmp_path / "wildguardtrain.jsonl", rows)
    assert [(task.data.prompt, task.data.side) for task in tasks(source="wildguardmix", path=path)] == [
        ("a", "refuse"),
        ("b", "comply"),
    ]


def test_several_sources_come_one_after_the_other(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", [{"prompt": "Bad?", "category": "c"}])
    made = tasks(sources=["contrast", "or_bench_toxic"], paths={"or_bench_toxic": path}, split="test", size=1)
    assert [task.data.dataset for task in made] == ["contrast", "or_bench_toxic"]


def test_a_gated_set_without_the_hub_says_how_to_get_in():
    with pytest.raises(
        SourceError, match=r"wildguardmix is gated: accept its terms at https://\S+ and set HF_TOKEN"
    ):
        tasks(source="wildguardmix")
    with pytest.raises(
        SourceError, match=r"check the network, or give a local file: path=/data/or_bench.jsonl"
    ):
        tasks(source="or_bench")


def test_every_named_source_says_where_it_comes_from_and_under_which_licence():
    assert all("/" in source.hub and source.licence for source in SOURCES.values())


def test_files_that_are_missing_or_of_another_format_are_refused_with_their_fields(tmp_path):
    with pytest.raises(SourceError, match=r"there is no file /nowhere/x\.csv; give `path`"):
        tasks(source="xstest", path="/nowhere/x.csv", split="test")
    path = tmp_path / "x.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["q", "label"], ["?", "safe"]])
    with pytest.raises(SourceError, match=r"row 0 of xstest has the fields \['label', 'q'\]"):
        tasks(source="xstest", path=path, split="test")
    bad = tmp_path / "x.jsonl"
    bad.write_text("{not json\n")
    with pytest.raises(SourceError, match="line 1 is not JSON"):
        tasks(source="or_bench_toxic", path=bad, split="test")


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"path": "/tmp/x"}, "a `source` other than contrast"),
        ({"sources": ["xstest"], "path": "/tmp/x"}, "paths = {name = file} beside `sources`"),
        ({"source": "xtest"}, "xstest"),
        ({"snooze_factors": {"refuse": -1}}, "0 or more"),
        ({"sides": ["answer"]}, "refuse"),
        ({"sorce": "xstest"}, "sorce"),
    ],
)
def test_a_config_that_means_nothing_is_refused_at_birth(config, message):
    with pytest.raises(ValidationError, match=message):
        RefusalConfig(**config)


def test_verifiers_finds_exactly_one_plugin_in_the_package():
    from verifiers.v1.utils.loaders import default_harness_id, harness_class, taskset_class

    assert taskset_class("snooze-refusal") is RefusalTaskset
    assert harness_class(default_harness_id("snooze-refusal")) is InprocChatHarness


@asynccontextmanager
async def judge_server(reply):
    """An OpenAI-compatible endpoint on this machine; `reply(number)` is a text, or an HTTP status."""
    requests = []

    async def handler(request):
        requests.append(await request.json())
        said = reply(len(requests))
        if isinstance(said, int):
            return web.Response(status=said, text="no")
        message = {"role": "assistant", "content": said}
        return web.json_response(
            {
                "id": "j", "object": "chat.completion", "created": 0, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 90, "completion_tokens": 2, "total_tokens": 92},
            }
        )  # fmt: skip

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1", requests
    finally:
        await runner.cleanup()


def judged(monkeypatch, reply, replies, *, side="comply", **judge):
    """Traces of `replies` to one task under a judge that says `reply(n)`, the requests, and the bench."""
    monkeypatch.setenv("JUDGE_KEY", "secret")

    async def run():
        async with judge_server(reply) as (url, requests):
            config = {"model": "m", "base_url": url, "api_key_var": "JUDGE_KEY"} | judge
            config = RefusalConfig(split="eval", sides=[side], task={"judge": config})
            task = next(iter(RefusalTaskset(config)))
            traces = []
            for text in replies:
                traces.append(reply_trace(task, text))
                await task.score(traces[-1])
            return traces, requests, bench(task.config.judge)

    return asyncio.run(run())


def test_a_judges_word_replaces_the_rules_about_the_body_and_its_usage_is_on_the_trace(monkeypatch):
    (trace,), requests, _ = judged(monkeypatch, lambda n: "Answers.", [COMPLY])
    assert trace.reward == 1.0
    assert trace.info["grading"]["outcome"] == "answered"
    assert len(trace.info["judge_calls"]) == 1
    assert [(use.prompt_tokens, use.completion_tokens) for use in trace.extra_usage] == [(90, 2)]
    assert "Sure, here you go." in requests[0]["messages"][0]["content"]
    (trace,), _, _ = judged(monkeypatch, lambda n: "answers", [REFUSE], side="refuse")
    assert trace.info["grading"]["outcome"] == "contradicts"


def test_a_verdict_is_asked_for_once_and_only_where_the_decision_line_leaves_it_open(monkeypatch):
    replies = [COMPLY, COMPLY, "", REFUSE, "Decision: comply"]
    traces, requests, known = judged(monkeypatch, lambda n: "neither", replies)
    assert [trace.info["grading"]["outcome"] for trace in traces] == [
        "thin", "thin", "unmarked", "over_refused", "thin",
    ]  # fmt: skip
    assert (len(requests), known.calls, known.hits) == (1, 1, 1)


@pytest.mark.parametrize(
    ("said", "judge", "message"),
    [
        ("perhaps", {}, "the judge said 'perhaps', wanted one of answers, declines, neither"),
        (400, {}, "the judge at http://127.0.0.1:[0-9]+/v1 failed: BadRequestError"),
        ("answers", {"max_calls": 0}, "the judge's 0 calls are spent; raise task.judge.max_calls"),
    ],
)
def test_a_judge_without_a_verdict_makes_the_rollout_invalid_never_zero(monkeypatch, said, judge, message):
    with pytest.raises(TaskError, match=message):
        judged(monkeypatch, lambda n: said, [COMPLY], **judge)


def test_a_failure_is_not_remembered(monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret")

    async def run():
        async with judge_server(lambda n: "huh" if n == 1 else "answers") as (url, _):
            judge = {"model": "m", "base_url": url, "api_key_var": "JUDGE_KEY"}
            task = next(iter(RefusalTaskset(RefusalConfig(split="eval", task={"judge": judge}))))
            first, second = reply_trace(task, COMPLY), reply_trace(task, COMPLY)
            with pytest.raises(TaskError, match="huh"):
                await task.score(first)
            await task.score(second)
            return first, second

    first, second = asyncio.run(run())
    assert not first.rewards or first.rewards.get("aligned") is None
    assert second.reward == 1.0
