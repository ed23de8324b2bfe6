"""A vLLM server that does not answer is named, with what to do."""

import asyncio
import socket

import pytest

from snoozing_env import EngineError
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig


def unused_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_server_that_is_down_is_named_with_its_address() -> None:
    config = VllmEngineConfig(base_url=f"http://127.0.0.1:{unused_port()}/v1", wait_s=0.0, retries=0)

    async def main() -> None:
        engine = VllmEngine(config)
        try:
            await engine.start()
        finally:
            await engine.close()

    with pytest.raises(EngineError, match=r"no vLLM server answers at http://127\.0\.0\.1:\d+"):
        asyncio.run(main())
