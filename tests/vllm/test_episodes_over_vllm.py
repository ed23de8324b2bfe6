"""Episodes of several turns and agents against a real vLLM server: the trainer must be able to trust their log-probs."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import policies
import pytest
import torch
from conftest import Served

from snoozing_env.rollout.catalogue import EnvironmentConfig, load_catalogue
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.runner import GroupRunner, RolloutConfig
from snoozing_env.types import Group

pytestmark = pytest.mark.vllm

# The foreign environments live beside the rollout tests, where verifiers finds them by their module name.
sys.path.insert(0, str(Path(__file__).parents[1] / "rollout"))


def rolled(served: Served, environment: str, **config: object) -> Group:
    async def run() -> Group:
        engine = VllmEngine(VllmEngineConfig(base_url=served.base_url, timeout_s=policies.PATIENCE_S))
        await engine.start()
        runner = GroupRunner(
            load_catalogue(EnvironmentConfig(id=environment, harness="snooze-kit")),
            engine,
            RolloutConfig(**config),
            seed=1,
        )
        try:
            return await runner.run(0, group_id=0)
        finally:
            await runner.close()
            await engine.close()

    return asyncio.run(run())


@pytest.mark.parametrize("environment", ["plain-quiz", "plain-talk"])
def test_every_sampled_token_of_an_episode_has_the_trainer_s_log_prob(served, environment) -> None:
    policy = policies.load_policy(served.path)
    group = rolled(served, environment, group_size=6, max_tokens=6, temperature=0.8)
    assert [t.error for t in group.trajectories] == [""] * 6
    assert len({t.completion_ids for t in group.trajectories}) == 6, "each rollout has noise of its own"
    for t in group.trajectories:
        ids = torch.tensor([t.prompt_ids + t.completion_ids])
        with torch.no_grad():
            logits = policy(input_ids=ids).logits[0, len(t.prompt_ids) - 1 : -1].float() / 0.8
        expected = torch.log_softmax(logits, -1).gather(1, torch.tensor(t.completion_ids)[:, None])[:, 0]
        mask = torch.tensor(t.mask)
        assert mask[0] == 1
        assert (expected * mask - torch.tensor(t.logprobs)).abs().max() < 1e-4
