"""After every weight update the engine samples from the trainer's policy, to 1e-4 nats, whatever happened before."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from snoozing_env.errors import EngineError, WeightTransferError
from snoozing_env.rollout.engines.base import SamplingParams
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.train.vllm_routes import VllmRoutes
from snoozing_env.train.weights import WeightTransfer, build_transfer
from snoozing_env.train.weights_config import DirTransferConfig, GlooTransferConfig, NcclTransferConfig

policies = pytest.importorskip("policies", reason="tests/vllm/conftest.py puts its helpers on the path")

pytestmark = [pytest.mark.vllm, pytest.mark.timeout(600)]
PARITY = 1e-4


def transfer_to(base_url: str, route: str) -> WeightTransfer:
    if route == "gloo":
        return build_transfer(GlooTransferConfig(base_url=base_url, timeout_s=60))
    return build_transfer(DirTransferConfig(base_url=base_url, timeout_s=60))


@pytest.mark.parametrize("route", ["gloo", "dir"])
def test_after_every_update_the_engine_agrees_with_the_trainer(served, route):
    policy = policies.load_policy(served.path)
    transfer = transfer_to(served.base_url, route)
    seen = []
    for version in range(1, 5):
        policies.nudge(policy, seed=version)
        transfer.push(policy.named_parameters(), version)
        completions = policies.completions_of(served.base_url, seed=3)
        assert policies.delta(policy, completions) <= PARITY
        assert VllmRoutes(served.base_url, timeout_s=10).request("ask", "GET", "/weight_info")[
            "weight_version"
        ] == str(version)
        seen.append(tuple(c.token_ids for c in completions))
    assert len(set(seen)) == len(seen), "the same tokens came out before and after an update"
    transfer.close()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_sampled_ids_and_logprobs_are_the_trainers_own_at_the_sampling_temperature(tied, temperature):
    policy = policies.load_policy(tied.path)
    transfer = transfer_to(tied.base_url, "dir")
    transfer.push(policy.named_parameters(), 0)

    async def run():
        engine = VllmEngine(VllmEngineConfig(base_url=tied.base_url))
        await engine.start()
        engine.set_version(5)
        params = SamplingParams(max_tokens=32, temperature=temperature)
        twice = [await engine.sample(policies.PROMPTS[0], n=8, seed=11, params=params) for _ in range(2)]
        await engine.close()
        return twice

    first, second = asyncio.run(run())
    assert policies.delta(policy, first, temperature) <= PARITY
    assert {(c.version, c.last_version) for c in first} == {(5, 5)}
    assert [c.token_ids for c in first] == [c.token_ids for c in second]
    assert len({c.token_ids for c in first}) == 8
    transfer.close()


def test_an_updated_server_answers_like_a_fresh_server_on_the_new_weights(tied, unrepaired):
    before = policies.completions_of(tied.base_url, seed=3)
    transfer = transfer_to(tied.base_url, "gloo")
    transfer.push(policies.load_policy(unrepaired.path).named_parameters(), 1)
    updated = policies.completions_of(tied.base_url, seed=3)
    fresh = policies.completions_of(unrepaired.base_url, seed=3)
    assert [c.token_ids for c in updated] == [c.token_ids for c in fresh]
    assert [c.token_ids for c in updated] != [c.token_ids for c in before]
    gaps = (torch.tensor(a.logprobs) - torch.tensor(b.logprobs) for a, b in zip(updated, fresh, strict=True))
    assert max(gap.abs().max().item() for gap in gaps) <= PARITY
    transfer.close()


def test_without_the_tied_head_repair_the_parity_law_breaks(unrepaired):
    policy = policies.load_policy(unrepaired.path)
    assert policies.delta(policy, policies.completions_of(unrepaired.base_url, seed=3)) <= PARITY
    policies.nudge(policy, seed=8)
    transfer = transfer_to(unrepaired.base_url, "gloo")
    transfer.push(policy.named_parameters(), 1)
    assert policies.delta(policy, policies.completions_of(unrepaired.base_url, seed=3)) > 100 * PARITY
    transfer.close()


def test_a_request_in_flight_during_an_update_keeps_the_logprobs_of_the_weights_that_sampled_each_token(
    untied,
):
    old, new = policies.load_policy(untied.path), policies.load_policy(untied.path)
    policies.nudge(new, seed=5)
    transfer = transfer_to(untied.base_url, "gloo")
    transfer.push(old.named_parameters(), 1)

    async def run():
        engine = VllmEngine(VllmEngineConfig(base_url=untied.base_url))
        await engine.start()
        engine.set_version(1)
        params = SamplingParams(max_tokens=900)
        running = asyncio.create_task(engine.sample(policies.PROMPTS[0], n=24, seed=2, params=params))
        await policies.until_running(untied.base_url)
        await asyncio.to_thread(transfer.push, list(new.named_parameters()), 2)
        engine.set_version(2)
        completions = await running
        await engine.close()
        return completions

    completions = asyncio.run(run())
    assert {(c.version, c.last_version) for c in completions} == {(1, 2)}
    spanning = 0
    for completion in completions:
        engine = torch.tensor(completion.logprobs)
        under_old = (policies.trainer_logprobs(old, completion) - engine).abs() <= PARITY
        under_new = (policies.trainer_logprobs(new, completion) - engine).abs() <= PARITY
        switch = int(under_old.int().cumprod(0).sum())
        assert under_new[switch:].all(), f"token {switch} on is neither the old nor the new policy's"
        spanning += 0 < switch < len(engine)
    assert spanning > 0, "no completion was in flight during the update; the test proved nothing"
    transfer.close()


@pytest.mark.parametrize("route", ["gloo", "dir"])
def test_a_trainer_killed_in_the_middle_of_a_transfer_leaves_a_usable_server(tied, route):
    policy = policies.load_policy(tied.path)
    mine = transfer_to(tied.base_url, route)
    mine.push(policy.named_parameters(), 1)
    script = Path(__file__).with_name("killed_trainer.py")
    command = [sys.executable, str(script), route, tied.base_url, str(tied.path)]
    killed = subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=120, check=False)
    assert killed.returncode == -signal.SIGKILL

    impatient = VllmEngine(VllmEngineConfig(base_url=tied.base_url, wait_s=0))
    with pytest.raises(
        EngineError, match=r"paused for a weight update; when its trainer died, connecting a new one resumes"
    ):
        asyncio.run(impatient.start())
    mine.connect()
    assert policies.delta(policy, policies.completions_of(tied.base_url, seed=4)) <= PARITY
    policies.nudge(policy, seed=6)
    mine.push(policy.named_parameters(), 2)
    assert policies.delta(policy, policies.completions_of(tied.base_url, seed=4)) <= PARITY
    mine.close()


@pytest.mark.parametrize("route", ["gloo", "dir"])
def test_tensors_that_do_not_fit_are_refused_and_nothing_changes(tied, route):
    policy = policies.load_policy(tied.path)
    transfer = transfer_to(tied.base_url, route)
    transfer.push(policy.named_parameters(), 1)
    good = dict(policies.load_policy(tied.path).named_parameters())
    norm = "model.norm.weight"
    with pytest.raises(
        WeightTransferError, match=r"step 'check'.*'model\.norm\.weight' comes with shape \[3\].*has \[64\]"
    ):
        transfer.push({**good, norm: torch.zeros(3)}.items(), 2)
    with pytest.raises(
        WeightTransferError,
        match=r"step 'check'.*no tensor 'stranger'; serve the model that is being trained",
    ):
        transfer.push({**good, "stranger": torch.zeros(3)}.items(), 2)
    with pytest.raises(
        WeightTransferError,
        match=r"step 'check'.*1 of \d+ tensors never arrived, first 'model\.norm\.weight'",
    ):
        transfer.push([(n, t) for n, t in good.items() if n != norm], 2)
    assert policies.delta(policy, policies.completions_of(tied.base_url, seed=4)) <= PARITY
    transfer.close()


def test_a_directory_that_cannot_be_written_is_an_error_before_the_server_is_paused(tied, tmp_path):
    policy = policies.load_policy(tied.path)
    transfer_to(tied.base_url, "gloo").push(policy.named_parameters(), 1)
    (tmp_path / "file").touch()
    transfer = build_transfer(
        DirTransferConfig(base_url=tied.base_url, path=str(tmp_path / "file" / "below"))
    )
    with pytest.raises(
        WeightTransferError, match=r"step 'write' of the weight update could not write .*Not a directory"
    ):
        transfer.push(policy.named_parameters(), 2)
    assert policies.delta(policy, policies.completions_of(tied.base_url, seed=4)) <= PARITY


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # importing vLLM raises a few of torch's
def test_vllms_own_nccl_sender_accepts_our_client_and_our_source(vllm_installed):
    """The NCCL route needs two GPUs to run; this holds what it hands to vLLM against vLLM's own types."""
    worker = importlib.import_module("snoozing_env.train.vllm_worker")
    base = importlib.import_module("vllm.distributed.weight_transfer.base")
    nccl = importlib.import_module("vllm.distributed.weight_transfer.nccl_engine")
    assert isinstance(VllmRoutes("http://127.0.0.1:1", timeout_s=1), base.VLLMWeightSyncClient)
    source = worker.TensorSource()
    source.tensors = [("a", torch.zeros(2, 3)), ("b", torch.ones(4))]
    sender = nccl.NCCLTrainerWeightTransferEngine(client=None, source=source, is_sender=True)
    sent = list(sender._checked_iter(source, source.metadata()))
    assert [name for name, _ in sent] == ["a", "b"]
    info = nccl.NCCLTrainerInitInfo(master_address="127.0.0.1", master_port=1, world_size=2, rank=0)
    assert info.is_sender


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_nccl_without_a_gpu_is_refused_with_the_alternatives(vllm_installed):
    transfer = build_transfer(NcclTransferConfig())
    with pytest.raises(
        WeightTransferError,
        match=r"'nccl' needs a CUDA GPU in the trainer, none is visible; use 'gloo' or 'dir'",
    ):
        transfer.connect()


def test_two_trainers_take_the_server_over_from_each_other(tied):
    policy = policies.load_policy(tied.path)
    one, other = transfer_to(tied.base_url, "gloo"), transfer_to(tied.base_url, "dir")
    for version, transfer in enumerate([one, other, one, other]):
        policies.nudge(policy, seed=version)
        transfer.push(policy.named_parameters(), version)
        assert policies.delta(policy, policies.completions_of(tied.base_url, seed=4)) <= PARITY
    one.close()
    other.close()


def test_a_server_killed_during_a_request_is_an_error_soon_and_after_its_restart_takes_the_next_push(
    unrepaired,
):
    """Last: it ends the server that the tests above compare with."""
    policy = policies.load_policy(unrepaired.path)
    transfer = transfer_to(unrepaired.base_url, "dir")
    transfer.connect()

    async def run():
        engine = VllmEngine(VllmEngineConfig(base_url=unrepaired.base_url, retries=2, backoff_s=0.05))
        await engine.start()
        params = SamplingParams(max_tokens=900)
        running = asyncio.create_task(engine.sample(policies.PROMPTS[0], n=24, seed=2, params=params))
        await policies.until_running(unrepaired.base_url)
        os.killpg(unrepaired.server.pid, signal.SIGKILL)
        try:
            async with asyncio.timeout(20):
                with pytest.raises(
                    EngineError,
                    match=r"failed 3 times, last: connection refused; is the server still running",
                ):
                    await running
        finally:
            await engine.close()

    asyncio.run(run())
    with pytest.raises(
        WeightTransferError,
        match=r"got no answer from http://127\.0\.0\.1:\d+/collective_rpc: connection refused",
    ):
        transfer.push(policy.named_parameters(), 1)
    unrepaired.server.stop()
    unrepaired.server.start()
    transfer.push(policy.named_parameters(), 2)
    assert policies.delta(policy, policies.completions_of(unrepaired.base_url, seed=3)) <= PARITY
    transfer.close()
