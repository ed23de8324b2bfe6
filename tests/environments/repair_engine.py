"""An engine whose policy plays a script in tokens: it reads prompt ids, samples a tool call, and gives exact ids back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from snooze_repair.scripted import Call
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, Endpoint, Message, OneAddress, SamplingParams

MARKS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
TEMPLATE = """\
{%- if tools -%}<|im_start|>system
{% for tool in tools %}{{ tool['function']['name'] if tool['function'] else tool['name'] }} {% endfor %}<|im_end|>
{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ 'user' if message['role'] == 'tool' else message['role'] }}
{% if message['role'] == 'tool' %}<tool_response>{{ message['content'] }}</tool_response>
{%- else %}{{ message['content'] if message['content'] else '' }}{% endif -%}
{%- for call in message['tool_calls'] or [] -%}
{% set f = call['function'] if call['function'] else call %}<tool_call>{"name": "{{ f['name'] }}", "arguments": {{ f['arguments'] if f['arguments'] is string else f['arguments'] | tojson }}}</tool_call>
{%- endfor -%}
<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% endif -%}
"""


def build_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """One token per byte, so that every text has one reading."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    raw = Tokenizer(models.BPE(vocab={letter: n for n, letter in enumerate(letters)}, merges=[]))
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw,
        eos_token="<|im_end|>",
        pad_token="<|im_end|>",
        extra_special_tokens=list(MARKS),
        model_max_length=1 << 20,
        clean_up_tokenization_spaces=False,
        chat_template=TEMPLATE,
    )
    tokenizer.save_pretrained(folder)
    return tokenizer


class ScriptedToolEngine(OneAddress):
    """Plays `script(prompt)`, a list of turns of calls, over the tokens-in, tokens-out protocol."""

    model = "scripted"

    def __init__(
        self, folder: Path, script: Callable[[str], Sequence[Sequence[Call]]], *, context: int = 1 << 20
    ) -> None:
        self._folder, self._script, self._context = folder, script, context
        self._tokenizer = build_tokenizer(folder)
        self._runner: web.AppRunner | None = None
        self.version = 0
        self.turns = 0

    def set_version(self, version: int) -> None:
        self.version = version

    async def start(self) -> None: ...

    async def sample(
        self, messages: Sequence[Message], *, n: int, seed: int, params: SamplingParams
    ) -> list[Completion]:
        raise EngineError("this engine plays whole episodes only")

    async def endpoint(self) -> Endpoint:
        if self._runner is None:
            app = web.Application(client_max_size=64 << 20)
            app.router.add_get("/v1/models", self._models)
            app.router.add_post("/inference/v1/generate", self._generate)
            self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
            await self._runner.setup()
            await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        port = self._runner.addresses[0][1]
        return Endpoint(
            base_url=f"http://127.0.0.1:{port}/v1", tokenizer=str(self._folder), tool_parser="qwen3"
        )

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _models(self, _: web.Request) -> web.Response:
        card = {"id": self.model, "object": "model", "max_model_len": self._context}
        return web.json_response({"object": "list", "data": [card]})

    async def _generate(self, http: web.Request) -> web.Response:
        request = await http.json()
        if len(request["token_ids"]) >= self._context:
            message = f"the prompt has {len(request['token_ids'])} tokens, the context is {self._context}"
            return web.json_response({"error": {"message": message, "code": 400}}, status=400)
        self.turns += 1
        conversation = self._tokenizer.decode(request["token_ids"])
        ids = self._tokenizer.encode(self._reply(conversation), add_special_tokens=False)
        logprobs = {
            "content": [{"token": f"token_id:{t}", "logprob": -0.25, "top_logprobs": []} for t in ids]
        }
        choice: dict[str, Any] = {
            "index": 0,
            "token_ids": ids,
            "logprobs": logprobs,
            "finish_reason": "stop",
            "weight_versions": [{"version": str(self.version), "start": 0, "end": len(ids)}],
        }
        return web.json_response({"request_id": "scripted", "choices": [choice]})

    def _reply(self, conversation: str) -> str:
        turns = self._script(conversation)
        number = conversation.count("<|im_start|>assistant") - 1
        calls = turns[number] if number < len(turns) else ()
        return "".join(map(_called, calls)) + "<|im_end|>"


def _called(call: Call) -> str:
    return f"<tool_call>{json.dumps({'name': call.name, 'arguments': call.arguments})}</tool_call>"
