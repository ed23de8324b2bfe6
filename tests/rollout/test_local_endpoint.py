"""The local engine's loopback server, asked as vLLM's engine client, OpenAI's SDK and a curious user would."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import openai
import pytest
import torch
from transformers import AutoTokenizer

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Endpoint, SamplingParams
from snoozing_env.rollout.engines.local import LocalEngine
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.engines.vllm_wire import read_completion
from snoozing_env.train.lab import LabConfig, build_tokenizer
from snoozing_env.train.lab.policy import build_model

torch.set_num_threads(1)

T = TypeVar("T")
CHAT = [{"role": "user", "content": "23+45="}]
CHAT_BODY = {"model": "lab", "messages": CHAT}
GREEDY = SamplingParams(max_tokens=6, temperature=0.0)


@pytest.fixture(scope="module")
def policy():
    tokenizer = build_tokenizer(64)
    return build_model(LabConfig(context=64, layers=1, seed=3, initializer_range=0.12), tokenizer), tokenizer


def served(policy, ask: Callable[[LocalEngine, Endpoint], Awaitable[T]]) -> T:
    """What `ask` returns while an engine serves."""

    async def run() -> T:
        engine = LocalEngine(*policy, name="lab")
        await engine.start()
        try:
            return await ask(engine, await engine.endpoint())
        finally:
            await engine.close()

    return asyncio.run(run())


def post(path: str, body: dict[str, Any]) -> Callable[[LocalEngine, Endpoint], Awaitable[tuple[int, Any]]]:
    async def ask(_: LocalEngine, endpoint: Endpoint) -> tuple[int, Any]:
        url = endpoint.base_url.removesuffix("/v1") + path
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            return response.status, await response.json()

    return ask


def test_its_answer_reads_like_a_vllm_server_s(policy):
    async def ask(engine: LocalEngine, endpoint: Endpoint):
        engine.set_version(3)
        options = {"max_tokens": 6, "temperature": 0.0, "logprobs": True, "return_token_ids": True}
        _, answer = await post("/v1/chat/completions", CHAT_BODY | options)(engine, endpoint)
        seen = read_completion(answer["choices"][0], tuple(answer["prompt_token_ids"]), span=(0, 0))
        return seen, await engine.sample(CHAT, n=1, seed=0, params=GREEDY)

    seen, [own] = served(policy, ask)
    assert seen.logprobs == pytest.approx(own.logprobs, abs=1e-6)
    assert replace(seen, logprobs=()) == replace(own, logprobs=())
    assert own.version == 3


def test_openai_s_client_gets_n_choices_that_repeat_under_their_seed(policy):
    async def ask(_: LocalEngine, endpoint: Endpoint):
        client = openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)
        async with client:
            options = {"model": "lab", "messages": CHAT, "n": 5, "max_tokens": 6, "logprobs": True}
            first, again = [await client.chat.completions.create(**options, seed=4) for _ in range(2)]
            free, other = [await client.chat.completions.create(**options) for _ in range(2)]
            names = [m.id async for m in client.models.list()]
            return first, again, free, other, names

    first, again, free, other, names = served(policy, ask)
    assert names == ["lab"]
    texts = [[c.message.content for c in answer.choices] for answer in (first, again, free, other)]
    assert texts[0] == texts[1]
    assert texts[2] != texts[3]
    assert len(set(texts[0])) > 1
    sizes = [len(c.logprobs.content) for c in first.choices]
    assert first.usage.completion_tokens == sum(sizes)
    assert max(sizes) <= 6


def test_a_stream_carries_the_same_words_as_the_plain_answer(policy):
    async def ask(_: LocalEngine, endpoint: Endpoint):
        async with openai.AsyncOpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0) as client:
            options = {"model": "lab", "messages": CHAT, "n": 2, "max_completion_tokens": 6, "seed": 1}
            plain = await client.chat.completions.create(**options)
            usage = {"include_usage": True}
            stream = await client.chat.completions.create(**options, stream=True, stream_options=usage)
            return plain, [chunk async for chunk in stream]

    plain, chunks = served(policy, ask)
    for choice in plain.choices:
        parts = [c for chunk in chunks for c in chunk.choices if c.index == choice.index]
        assert "".join(p.delta.content or "" for p in parts) == choice.message.content
        assert [p.finish_reason for p in parts] == [None, choice.finish_reason]
    assert chunks[-1].usage == plain.usage


def test_the_tokenizer_directory_renders_what_the_engine_renders(policy):
    messages = [{"role": "system", "content": "Sum."}, *CHAT, {"role": "assistant", "content": "68"}, *CHAT]

    async def ask(engine: LocalEngine, endpoint: Endpoint):
        assert endpoint == await engine.endpoint(), "one server for every caller"
        tokenizer = AutoTokenizer.from_pretrained(endpoint.tokenizer)
        rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)
        return tuple(rendered["input_ids"]), engine.render(messages)

    theirs, ours = served(policy, ask)
    assert theirs == ours
    assert policy[1].decode(ours) == "<system>Sum.<user>23+45=<assistant>68<eos><user>23+45=<assistant>"


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/v1/chat/completions", {"top_p": 0.9}, 400, r"request: 'top_p': .* \(got 0\.9\)"),
        ("/v1/chat/completions", {"stop": ["\n"]}, 400, r"request: 'stop': .*at most 0 items"),
        ("/v1/chat/completions", {"tools": [{}]}, 400, r"request: 'tools': .*at most 0 items"),
        ("/v1/chat/completions", {"messages": []}, 400, r"request: 'messages': .*at least 1 item"),
        ("/v1/chat/completions", {"model": "labb"}, 404, r"this server serves 'lab', not 'labb'"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": "1" * 80}]},
            400,
            r"the prompt has 82 tokens, the context is 64 .*shorten the prompt",
        ),
        ("/inference/v1/generate", {"token_ids": [1, 128]}, 400, r"token ids go from 0 to 127, got 1 to 128"),
        (
            "/inference/v1/generate",
            {"token_ids": [5], "sampling_params": {"stop_token_ids": [9]}},
            400,
            r"stop_token_ids \[9\] do not end a completion here; the model's own are \[2\]",
        ),
    ],
)
def test_what_it_cannot_honour_is_refused_in_words(policy, path, body, status, message):
    full = {"model": "lab", **({"messages": CHAT} if "chat" in path else {}), **body}
    got, answer = served(policy, post(path, full))
    assert got == status
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(answer["error"]["message"])


def test_one_seed_gives_every_prompt_noise_of_its_own(policy):
    """A flat policy, so that the same noise would draw the same tokens whatever the prompt."""
    flat = build_model(LabConfig(context=64, layers=1, initializer_range=1e-6), policy[1])
    body = {"sampling_params": {"seed": 11, "max_tokens": 12, "stop_token_ids": []}}
    drawn = [
        served((flat, policy[1]), post("/inference/v1/generate", body | {"token_ids": ids}))[1]["choices"][0]
        for ids in ([5, 8], [5, 9], [5, 8])
    ]
    assert drawn[0]["token_ids"] == drawn[2]["token_ids"] != drawn[1]["token_ids"]


def test_a_closed_engine_answers_no_more_and_leaves_no_files(policy):
    async def run() -> Endpoint:
        engine = LocalEngine(*policy)
        with pytest.raises(EngineError, match=r"'local' is not running; await start\(\) first"):
            await engine.endpoint()
        await engine.start()
        endpoint = await engine.endpoint()
        await engine.close()
        with pytest.raises(aiohttp.ClientConnectorError, match="Cannot connect"):
            async with aiohttp.ClientSession() as http:
                await http.get(f"{endpoint.base_url}/models")
        return endpoint

    endpoint = asyncio.run(run())
    assert not Path(endpoint.tokenizer).exists()


def test_a_vllm_server_that_names_no_checkpoint_asks_for_the_tokenizer():
    with pytest.raises(EngineError, match=r"names no checkpoint, .*set engine\.tokenizer"):
        asyncio.run(VllmEngine(VllmEngineConfig()).endpoint())
