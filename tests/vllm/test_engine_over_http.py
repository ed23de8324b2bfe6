"""What the engine makes of a server's answers; a small real HTTP server stands in for vLLM, so no vLLM is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from aiohttp import web

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion, SamplingParams
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.server import free_port

PROMPT = [{"role": "user", "content": "hi"}]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def choice(**changes: Any) -> dict[str, Any]:
    content = [
        {"token": t, "logprob": lp, "top_logprobs": [{"logprob": lp}]}
        for t, lp in (("o", -0.5), ("k", -0.25))
    ]
    base = {
        "index": 0,
        "message": {"content": "ok"},
        "logprobs": {"content": content},
        "finish_reason": "stop",
    }
    return {**base, "token_ids": [7, 8], **changes}


def answer(*choices: dict[str, Any]) -> web.Response:
    return web.json_response({"prompt_token_ids": [1, 2, 3], "choices": list(choices)})


def probe_answer(body: dict[str, Any], *, raw: bool = False) -> web.Response:
    """What the start-up probe wants to see: log-probs that move with the temperature."""
    logprob = -1.0 if raw else -1.0 / body["temperature"]
    entry = {"token": "o", "logprob": logprob, "top_logprobs": [{"logprob": logprob}]}
    return answer(choice(token_ids=[7], logprobs={"content": [entry]}))


class Stand:
    """A server that answers the start-up requests properly and everything else from a script."""

    def __init__(self, *script: web.Response | Handler, raw: bool = False, paused: bool = False) -> None:
        self.script = list(script)
        self.raw, self.paused = raw, paused
        self.bodies: list[dict[str, Any]] = []
        self.peers: list[Any] = []
        self.authorization: list[str | None] = []

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("top_logprobs"):
            return probe_answer(body, raw=self.raw)
        self.bodies.append(body)
        self.peers.append(request.transport.get_extra_info("peername") if request.transport else None)
        self.authorization.append(request.headers.get("Authorization"))
        step = self.script.pop(0)
        return step if isinstance(step, web.Response) else await step(request)

    async def serve(self) -> tuple[web.AppRunner, str]:
        async def healthy(request: web.Request) -> web.Response:
            return web.Response()

        async def models(request: web.Request) -> web.Response:
            return web.json_response({"data": [{"id": "policy"}, {"id": "base"}]})

        async def is_paused(request: web.Request) -> web.Response:
            return web.json_response({"is_paused": self.paused})

        app = web.Application()
        app.add_routes(
            [web.get("/health", healthy), web.get("/v1/models", models), web.get("/is_paused", is_paused)]
        )
        app.add_routes([web.post("/v1/chat/completions", self.chat)])
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/v1"  # type: ignore[union-attr]


def sample(
    stand: Stand, *, n: int = 1, temperature: float = 1.0, version: int = 0, expected: int = 0, **config: Any
) -> Sequence[Completion]:
    async def run() -> Sequence[Completion]:
        runner, base_url = await stand.serve()
        engine = VllmEngine(VllmEngineConfig(base_url=base_url, **{"backoff_s": 0.001, **config}))
        try:
            await engine.start()
            engine.set_version(version)
            engine.expect(expected)
            params = SamplingParams(max_tokens=4, temperature=temperature)
            return await engine.sample(PROMPT, n=n, seed=3, params=params)
        finally:
            await engine.close()
            await runner.cleanup()

    return asyncio.run(run())


def test_a_choice_becomes_a_completion_token_by_token():
    (completion,) = sample(Stand(answer(choice())), version=4)
    assert completion == Completion(
        prompt_ids=(1, 2, 3),
        token_ids=(7, 8),
        logprobs=(-0.5, -0.25),
        text="ok",
        finish_reason="stop",
        version=4,
        last_version=4,
    )


def test_a_group_is_one_request_and_overrides_the_checkpoints_own_sampling_defaults():
    stand = Stand(answer(choice(), choice(), choice()))
    assert len(sample(stand, n=3, chat_template_kwargs={"enable_thinking": False})) == 3
    (body,) = stand.bodies
    assert body == {
        "model": "policy",
        "messages": PROMPT,
        "n": 3,
        "seed": 3,
        "temperature": 1.0,
        "max_tokens": 4,
        "logprobs": True,
        "return_token_ids": True,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "chat_template_kwargs": {"enable_thinking": False},
    }


def test_greedy_choices_are_asked_for_once_because_they_are_one_and_the_same():
    stand = Stand(answer(choice()))
    assert len(sample(stand, n=3, temperature=0.0)) == 3
    assert stand.bodies[0]["n"] == 1


def test_the_engines_own_account_of_weight_versions_wins():
    spans = [{"version": "4", "start": 0, "end": 1}, {"version": "5", "start": 1, "end": 2}]
    (completion,) = sample(Stand(answer(choice(weight_versions=spans))), version=9)
    assert (completion.version, completion.last_version) == (4, 5)


def test_weights_on_their_way_may_have_sampled_what_comes_back():
    (completion,) = sample(Stand(answer(choice())), version=4, expected=5)
    assert (completion.version, completion.last_version) == (4, 5)


def test_a_foreign_version_label_falls_back_to_our_own_version():
    spans = [{"version": "default", "start": 0, "end": 2}]
    (completion,) = sample(Stand(answer(choice(weight_versions=spans))), version=9)
    assert (completion.version, completion.last_version) == (9, 9)


def test_after_a_500_the_request_is_retried_on_a_new_connection():
    stand = Stand(web.json_response({"error": {"message": "boom"}}, status=500), answer(choice()))
    sample(stand)
    assert stand.peers[0] != stand.peers[1]


def test_good_answers_share_a_connection():
    stand = Stand(answer(choice()), answer(choice()))

    async def run() -> None:
        runner, base_url = await stand.serve()
        engine = VllmEngine(VllmEngineConfig(base_url=base_url))
        await engine.start()
        for _ in range(2):
            await engine.sample(PROMPT, n=1, seed=0, params=SamplingParams())
        await engine.close()
        await runner.cleanup()

    asyncio.run(run())
    assert stand.peers[0] == stand.peers[1]


def test_retry_after_replaces_the_engines_own_pause():
    """With the engine's own pause of a quarter of an hour this test would time out."""
    busy = web.json_response({"error": {"message": "busy"}}, status=429, headers={"Retry-After": "0"})
    stand = Stand(busy, answer(choice()))
    assert len(sample(stand, backoff_s=900)) == 1


def test_an_error_that_stays_is_reported_with_the_servers_words():
    boom = [web.json_response({"error": {"message": f"boom {i}"}}, status=503) for i in range(3)]
    with pytest.raises(
        EngineError, match=r"failed 3 times, last: HTTP 503: boom 2; is the server still running"
    ):
        sample(Stand(*boom), retries=2)


def test_a_refused_request_is_not_repeated():
    stand = Stand(web.json_response({"error": {"message": "prompt too long"}}, status=400))
    with pytest.raises(EngineError, match=r"refused the request with HTTP 400: prompt too long"):
        sample(stand)


def test_a_silent_server_is_an_error_after_the_time_limit():
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    with pytest.raises(EngineError, match=r"no answer from .* within 0\.1 s; raise engine\.timeout_s"):
        sample(Stand(silent), timeout_s=0.1)


def test_a_server_that_hangs_up_is_an_error():
    async def hang_up(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    with pytest.raises(
        EngineError, match=r"failed 2 times, last: Server disconnected; is the server still running"
    ):
        sample(Stand(hang_up, hang_up), retries=1)


NAN = web.Response(
    text=json.dumps(
        {
            "prompt_token_ids": [1],
            "choices": [choice(token_ids=[7], logprobs={"content": [{"logprob": float("nan")}]})],
        }
    ),
    content_type="application/json",
)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(
            lambda: answer(choice(finish_reason="abort")), r"ended with 'abort'.*not used", id="aborted"
        ),
        pytest.param(
            lambda: answer(choice(token_ids=[])), r"a completion without a single token", id="empty"
        ),
        pytest.param(lambda: answer(choice(token_ids=None)), r"no token ids; serve with vLLM", id="no ids"),
        pytest.param(lambda: answer(choice(token_ids=[7])), r"1 token ids but 2 log-probs", id="misaligned"),
        pytest.param(
            lambda: answer(choice(logprobs=None)), r"2 token ids but 0 log-probs", id="no log-probs"
        ),
        pytest.param(lambda: answer(choice(), choice()), r"returned 2 choices, asked for 1", id="too many"),
        pytest.param(lambda: NAN, r"a log-prob that is not finite", id="not a number"),
        pytest.param(
            lambda: web.Response(text="<html>"), r"something that is not JSON: b'<html>'", id="not JSON"
        ),
    ],
)
def test_no_completion_is_made_up_from(reply, message):
    with pytest.raises(EngineError, match=message):
        sample(Stand(reply()))


def test_a_server_that_is_down_is_named_with_the_fix():
    port = free_port()
    engine = VllmEngine(VllmEngineConfig(base_url=f"http://127.0.0.1:{port}/v1", wait_s=0))
    message = (
        rf"^no vLLM server answers at http://127\.0\.0\.1:{port} \(connection refused\); "
        r"start one with `snooze serve MODEL` or set engine\.base_url$"
    )
    with pytest.raises(EngineError, match=message):
        asyncio.run(engine.start())


def test_a_model_that_is_not_served_is_named_with_those_that_are():
    with pytest.raises(
        EngineError,
        match=r"serves 'policy', 'base', not 'polcy'; set engine\.model\. Did you mean 'policy'\?",
    ):
        sample(Stand(), model="polcy")


def test_raw_logprobs_are_refused_at_the_start():
    with pytest.raises(EngineError, match=r"raw log-probs.*serve with --logprobs-mode processed_logprobs"):
        sample(Stand(raw=True))


def test_a_paused_server_is_an_error_at_the_start_instead_of_a_request_that_never_ends():
    with pytest.raises(
        EngineError,
        match=r"paused for a weight update; when its trainer died, connecting a new one resumes it",
    ):
        sample(Stand(paused=True), wait_s=0)


def test_the_api_key_comes_from_the_environment_and_stays_out_of_messages(monkeypatch):
    monkeypatch.setenv("POLICY_KEY", "s3cret")
    stand = Stand(web.json_response({"error": {"message": "no"}}, status=400))
    with pytest.raises(EngineError, match="HTTP 400: no") as caught:
        sample(stand, api_key_var="POLICY_KEY")
    assert stand.authorization == ["Bearer s3cret"]
    assert "s3cret" not in str(caught.value)


def test_an_api_key_that_is_not_set_is_named(monkeypatch):
    monkeypatch.delenv("POLICY_KEY", raising=False)
    with pytest.raises(
        EngineError,
        match=r"engine\.api_key_var names POLICY_KEY, which is not set in the environment; export it",
    ):
        sample(Stand(), api_key_var="POLICY_KEY")


def test_sampling_before_start_is_named():
    engine = VllmEngine(VllmEngineConfig())
    with pytest.raises(EngineError, match=r"not started; await engine\.start\(\)"):
        asyncio.run(engine.sample(PROMPT, n=1, seed=0, params=SamplingParams()))


def test_the_root_may_be_given_with_or_without_v1():
    for given in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"):
        assert VllmEngine(VllmEngineConfig(base_url=given)).base_url == "http://h:1/v1"
