"""The model in this process, behind the same kind of endpoint as any other: torch is imported only for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from snoozing_env.errors import ConfigError, EngineError
from snoozing_env.evaluate.config import EndpointConfig
from snoozing_env.rollout.engines.local import LocalEngine


@asynccontextmanager
async def serving(endpoint: EndpointConfig) -> AsyncIterator[tuple[str, str]]:
    """(root of the API, model name) while a local model serves; empty strings where the endpoint is elsewhere.

    Raises:
        ConfigError: torch or transformers is missing.
        EngineError: there is no such checkpoint, or it has no chat template.
    """
    if not endpoint.local:
        yield "", ""
        return
    engine = _load(endpoint)
    await engine.start()
    try:
        yield (await engine.endpoint()).base_url, engine.model
    finally:
        await engine.close()


def _load(endpoint: EndpointConfig) -> LocalEngine:
    try:
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ModuleNotFoundError as error:
        raise ConfigError(
            "endpoint.local runs the model here and needs torch and transformers; pip install 'snoozing-env[train]'"
        ) from error
    try:
        tokenizer = AutoTokenizer.from_pretrained(endpoint.local)
        model = AutoModelForCausalLM.from_pretrained(endpoint.local)
    except (OSError, ValueError) as error:
        raise EngineError(
            f"cannot load a model from {endpoint.local!r}: {error}; endpoint.local is a checkpoint directory or hub name"
        ) from error
    return LocalEngine(model.eval(), tokenizer, name=endpoint.label)
