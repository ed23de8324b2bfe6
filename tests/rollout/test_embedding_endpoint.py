"""Vectors over HTTP, against a small server: batched, retried, and silent about the key."""

import asyncio
import json
import logging
import threading
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from snoozing_env import ConfigError, EmbeddingError
from snoozing_env.embeddings import EndpointConfig, embed

KEY = "sk-very-secret-0123456789"


@dataclass
class Server:
    """An embeddings route that first answers with the statuses in `fails`."""

    url: str = ""
    fails: list[int] = field(default_factory=list)
    batches: list[list[str]] = field(default_factory=list)
    headers: list[str] = field(default_factory=list)
    short: bool = False

    async def answer(self, request: web.Request) -> web.Response:
        body = json.loads(await request.text())
        self.headers.append(request.headers.get("Authorization", ""))
        if self.fails:
            status = self.fails.pop(0)
            return web.json_response(
                {"error": {"message": f"no, {self.headers[-1]}"}},
                status=status,
                headers={"retry-after-ms": "5"},
            )
        self.batches.append(body["input"])
        rows = [
            {"object": "embedding", "index": i, "embedding": [float(len(text)), 1.0]}
            for i, text in enumerate(body["input"])
        ]
        rows = rows[:-1] if self.short else rows[::-1]  # in no particular order
        return web.json_response({"object": "list", "data": rows, "model": body["model"], "usage": {}})


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("EMBED_KEY", KEY)
    found, loop, up = Server(), asyncio.new_event_loop(), threading.Event()

    async def start() -> web.AppRunner:
        app = web.Application()
        app.router.add_post("/v1/embeddings", found.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        found.url = f"http://127.0.0.1:{port}/v1"
        return runner

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=lambda: (loop.call_soon(up.set), loop.run_forever()))
    thread.start()
    up.wait()
    yield found
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def config(server: Server, **changed: object) -> EndpointConfig:
    table = {"base_url": server.url, "model": "m", "key_env": "EMBED_KEY", "surface": 0, "dtype": "float32"}
    return EndpointConfig.model_validate({**table, **changed})


def test_texts_go_out_in_batches_and_rows_come_back_in_order(server: Server) -> None:
    texts = ["a" * (i + 1) for i in range(10)]
    vectors = embed(config(server, batch=4), texts)
    assert sorted(len(batch) for batch in server.batches) == [2, 4, 4]
    assert (vectors[:, 0] / vectors[:, 1]).tolist() == pytest.approx(range(1, 11))
    assert set(server.headers) == {f"Bearer {KEY}"}


def test_a_busy_or_failing_server_is_asked_again(server: Server) -> None:
    server.fails = [429, 503]
    assert embed(config(server), ["abc"]).shape == (1, 2)
    assert len(server.headers) == 3


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, r"answered 401 for the model 'm'; the key in EMBED_KEY was not accepted"),
        (404, r"answered 404 .*; set scheduler\.embedding\.model and base_url"),
        (413, r"answered 413 .*; try a smaller scheduler\.embedding\.batch \(now 128\)"),
        (500, r"answered 500 .*, after 2 attempts"),
    ],
)
def test_a_refusal_says_what_to_do_and_never_shows_the_key(
    server: Server, status: int, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.fails = [status] * 2
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbeddingError, match=message) as caught:
        embed(config(server, retries=1), ["abc"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in caplog.text


def test_a_server_that_is_not_there_is_named_with_the_attempts(server: Server) -> None:
    gone = config(server, base_url="http://127.0.0.1:9/v1", retries=0)
    with pytest.raises(
        EmbeddingError, match=r"127\.0\.0\.1:9/v1/embeddings cannot be reached \(.*, 1 attempts\)"
    ):
        embed(gone, ["abc"])


def test_an_answer_with_too_few_vectors_is_refused(server: Server) -> None:
    server.short = True
    with pytest.raises(EmbeddingError, match=r"answered 2 texts with an array of shape \(1, 2\)"):
        embed(config(server), ["abc", "d"])


def test_a_missing_key_is_asked_for_and_a_server_without_keys_needs_none(server: Server) -> None:
    with pytest.raises(
        ConfigError, match=r"the environment variable NO_SUCH_KEY is not set; export it, or set"
    ):
        embed(config(server, key_env="NO_SUCH_KEY"), ["abc"])
    embed(config(server, key_env=""), ["abc"])
    assert server.headers == ["Bearer none"]
