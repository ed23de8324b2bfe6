"""Laws of task data, keys, the in-process harness and the contract check."""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys

import pytest
import verifiers.v1 as vf
from aiohttp import web
from pydantic import ValidationError
from snooze_kit import InprocChatHarness, SnoozeTask, SnoozeTaskData, Verdict, check, reply_trace
from snooze_kit.harness import InprocChatConfig
from verifiers.v1.errors import MODEL_TRANSPORT_ERROR_EXIT_CODE


class EchoData(SnoozeTaskData):
    answer: str = ""


class EchoTask(SnoozeTask[EchoData, vf.TaskConfig]):
    @vf.reward
    async def same(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == self.data.answer)

    def gold_reply(self) -> str:
        return self.data.answer


class EchoTaskset(vf.Taskset[EchoTask, vf.TasksetConfig]):
    task_class = EchoTask

    def load(self):
        for number in range(4):
            data = EchoData(
                prompt=f"Say {number}", answer=f"n{number}", dataset="echo", snooze_factor=math.inf
            )
            yield self.task_class(data, self.config.task)


def test_keys_depend_on_content_never_on_position():
    one = EchoTask(EchoData(prompt="Say 1", dataset="echo", idx=0))
    assert one.key == EchoTask(EchoData(prompt="Say 1", dataset="echo", idx=9, difficulty_prior=0.5)).key
    assert one.key != EchoTask(EchoData(prompt="Say 2", dataset="echo", idx=0)).key
    assert one.key != EchoTask(EchoData(prompt="Say 1", dataset="other", idx=0)).key


def test_a_source_id_is_the_identity_where_there_is_one():
    first, reworded = (
        EchoTask(EchoData(id="a-1", prompt=prompt, dataset="echo")) for prompt in ("old", "new")
    )
    assert first.key == reworded.key
    assert first.key != EchoTask(EchoData(prompt="a-1", dataset="echo")).key


@pytest.mark.parametrize("factor", [None, 0.0, 2.5, math.inf])
def test_curriculum_fields_survive_json_into_wire_data(factor):
    data = EchoData(
        prompt="p",
        dataset="d",
        domain="o",
        difficulty_prior=0.25,
        snooze_factor=factor,
        cluster="c",
        side="refuse",
    )
    wire = vf.WireTaskData.model_validate(
        json.loads(json.dumps(data.model_dump(mode="json"), allow_nan=False))
    )
    extra = wire.model_extra
    assert (extra["dataset"], extra["domain"], extra["difficulty_prior"], extra["cluster"]) == (
        "d",
        "o",
        0.25,
        "c",
    )
    assert extra["side"] == "refuse"
    assert extra["snooze_factor"] is None if factor is None else float(extra["snooze_factor"]) == factor
    assert EchoData.model_validate_json(data.model_dump_json()) == data


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("difficulty_prior", 1.5, r"difficulty_prior is 1.5; it is an expected pass rate"),
        ("difficulty_prior", math.nan, r"difficulty_prior is nan"),
        ("snooze_factor", -1.0, r"snooze_factor is -1.0; it counts passes to skip"),
        ("snooze_factor", math.nan, r"snooze_factor is nan"),
    ],
)
def test_values_that_mean_nothing_are_refused_with_what_would(field, value, message):
    with pytest.raises(ValidationError, match=message):
        EchoData(**{field: value})


def test_task_data_and_verdicts_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        EchoData(prompt="p").dataset = "other"
    with pytest.raises(AttributeError, match="cannot assign to field"):
        Verdict(True, "r").correct = False


def test_the_contract_check_finds_nothing_wrong_with_a_sound_environment():
    assert check(EchoTaskset(vf.TasksetConfig())) == []


class GenerousTask(EchoTask):
    @vf.reward
    async def same(self, trace: vf.Trace) -> float:
        return 1.0


class IndexedTask(EchoTask):
    @property
    def key(self) -> str:
        return str(self.data.idx)


class OneKeyTask(EchoTask):
    @property
    def key(self) -> str:
        return "same"


class WrongGoldTask(EchoTask):
    def gold_reply(self) -> str:
        return "something else"


@pytest.mark.parametrize(
    ("task_class", "rules"),
    [
        (GenerousTask, {"empty-at-most-half", "constant-at-most-half"}),
        (IndexedTask, {"keys-stable"}),
        (OneKeyTask, {"keys-unique"}),
        (WrongGoldTask, {"gold-scores-1"}),
    ],
)
def test_the_contract_check_names_each_broken_promise(task_class, rules):
    taskset = EchoTaskset(vf.TasksetConfig())
    taskset.task_class = task_class
    assert {finding.rule for finding in check(taskset)} == rules


def test_the_contract_check_of_an_empty_set_says_so():
    assert [finding.rule for finding in check(EchoTaskset(vf.TasksetConfig()).take(0))] == ["not-empty"]


async def launched(handler, *, prompt, system="Be brief.", mcp_urls=None, after=None) -> vf.ProgramResult:
    """What the harness returns when the interception endpoint behaves as `handler`.

    `after` = (reply, next user message): the second segment of a conversation, through `resume`.
    """
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    endpoint = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"
    task = EchoTask(EchoData(prompt=prompt, system_prompt=system))
    ctx = vf.ModelContext(
        model="m", client=vf.EvalClientConfig(base_url=endpoint), sampling=vf.SamplingConfig()
    )
    harness = InprocChatHarness(InprocChatConfig(id="snooze-kit"))
    where = (None, endpoint, "secret", mcp_urls or {}, task.data)
    try:
        if after is not None:
            reply, user = after
            return await harness.resume(ctx, reply_trace(task, reply), *where, [vf.UserMessage(content=user)])
        return await harness.launch(ctx, reply_trace(task), *where)
    finally:
        await runner.cleanup()


def test_the_harness_sends_system_and_user_messages_with_the_rollouts_secret():
    seen = {}

    async def handler(request):
        seen.update(await request.json(), auth=request.headers["Authorization"])
        return web.json_response({"choices": []})

    assert asyncio.run(launched(handler, prompt="Hello")).exit_code == 0
    assert seen["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello"},
    ]
    assert (seen["model"], seen["auth"]) == ("m", "Bearer secret")


def test_the_harness_sends_a_conversation_as_it_stands():
    seen = {}

    async def handler(request):
        seen.update(await request.json())
        return web.json_response({"choices": []})

    turns = [vf.UserMessage(content="a"), vf.AssistantMessage(content="b"), vf.UserMessage(content="c")]
    assert asyncio.run(launched(handler, prompt=turns, system=None)).exit_code == 0
    assert [(m["role"], m["content"]) for m in seen["messages"]] == [
        ("user", "a"),
        ("assistant", "b"),
        ("user", "c"),
    ]


def test_a_second_turn_sends_the_whole_conversation_with_one_system_message():
    seen = {}

    async def handler(request):
        seen.update(await request.json())
        return web.json_response({"choices": []})

    assert asyncio.run(launched(handler, prompt="Hello", after=("Hi.", "And now?"))).exit_code == 0
    assert [(message["role"], message["content"]) for message in seen["messages"]] == [
        ("system", "Be brief."),
        ("user", "Hello"),
        ("assistant", "Hi."),
        ("user", "And now?"),
    ]


def test_a_refused_model_call_is_a_failed_program_with_the_servers_words():
    async def handler(request):
        return web.Response(status=429, text="slow down")

    result = asyncio.run(launched(handler, prompt="Hello"))
    assert result.exit_code == 1
    assert "HTTP 429: slow down" in result.stderr


def test_a_dropped_connection_is_a_transport_failure():
    async def handler(request):
        request.transport.close()
        return web.Response()

    result = asyncio.run(launched(handler, prompt="Hello"))
    assert result.exit_code == MODEL_TRANSPORT_ERROR_EXIT_CODE


def test_tools_are_refused_with_a_harness_that_has_them():
    async def handler(request):
        return web.json_response({})

    with pytest.raises(ValueError, match=r"has no tools, the task brings \['search'\]"):
        asyncio.run(launched(handler, prompt="Hello", mcp_urls={"search": "http://x"}))


def test_verifiers_finds_exactly_one_plugin_in_each_package():
    from verifiers.v1.utils.loaders import default_harness_id, harness_class, taskset_class

    assert harness_class("snooze-kit") is InprocChatHarness
    assert taskset_class("snooze-math").__name__ == "MathTaskset"
    assert default_harness_id("snooze-math") == "snooze-math"
    assert harness_class("snooze-math") is InprocChatHarness


def test_grading_needs_no_verifiers():
    script = "import sys, snooze_math; assert snooze_math.grade('42', 'A: 42').correct; assert 'verifiers' not in sys.modules"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
