"""TRL's own asynchronous worker beside ours under a slow trainer: true staleness and what was generated for nothing (must-show 2).

Same lab policy, tasks, batch, bound and trainer class; the same local engine, which TRL's worker reaches over HTTP as if
it were vLLM. Staleness is measured where the loss is computed: policy versions between a sample's label and the weights
in training.
"""

from __future__ import annotations

import copy
import io
import json
import logging
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from aiohttp import web
from datasets import Dataset
from rich.console import Console
from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback

from snoozing_env.pacing.ledger import FILE_NAME as LEDGER
from snoozing_env.pacing.ledger import audit, read_ledger
from snoozing_env.rollout.catalogue import load_catalogue
from snoozing_env.rollout.engines.base import SamplingParams
from snoozing_env.rollout.engines.local import LocalEngine, LocalEngineConfig
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.train import compat
from snoozing_env.train.async_grpo import (
    AsyncGRPOConfig,
    AsyncGRPOTrainer,
    DataCollatorForRollout,
    SnoozingAsyncGRPOTrainer,
)
from snoozing_env.train.grpo import async_grpo_arguments, grpo_arguments
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.run import RunOptions, policy_path, train
from tests.train.small import small_recipe

# isort: split
from trl.experimental.async_grpo import async_rollout_worker as worker_module

BOUND = 4
HALF_WAY = {
    "hidden_size": 64,
    "layers": 2,
    "heads": 2,
    "kv_heads": 2,
    "warmup": {"steps": 60, "batch": 64},
}
"""A policy stopped early in its warm-up, so that most groups have both outcomes: TRL trains the others too, we do not."""
QUIET = Console(file=io.StringIO())


def figures(quick: bool) -> dict[str, Any]:
    """One run each, with a trainer that takes `train_s` longer than the loss needs."""
    torch.set_num_threads(1)
    logging.getLogger("trl").setLevel(logging.ERROR)
    steps, train_s = (7, 0.2) if quick else (60, 0.5)
    with tempfile.TemporaryDirectory() as folder:
        recipe = small_recipe(
            Path(folder) / "ours",
            engine={"kind": "local", "own_weights": True},
            pacing={"max_staleness": BOUND},
            evaluation={"every": 10**6},
            policy={"lab": HALF_WAY},
            rollout={"group_size": 8, "max_tokens": 5},
            train={"steps": steps, "trainer": "async_grpo", "learning_rate": 1e-4, "save_every": 10**6},
        )
        policy = policy_path(recipe, QUIET)
        trls = _trls(recipe, policy, Path(folder) / "trl", train_s)
        ours = _ours(recipe, train_s)
    return {"bound": BOUND, "steps": steps, "slow_trainer_s": train_s, "trl": trls, "ours": ours}


# -- TRL's worker -------------------------------------------------------------------------------------------


class Stub:
    """`/v1/completions` of vLLM, token ids in and out, over a local engine."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine, self._loop = engine, LoopThread("stub")
        self.completions = 0
        self.url = self._loop.run(self._start())

    async def _start(self) -> str:
        await self._engine.start()
        app = web.Application()
        app.add_routes([web.post("/v1/completions", self._complete)])
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _complete(self, request: web.Request) -> web.Response:
        body = await request.json()
        params = SamplingParams(max_tokens=body["max_tokens"], temperature=body["temperature"])
        (made,) = await self._engine.sample_ids(body["prompt"], n=1, seed=body["seed"] % 2**31, params=params)
        self.completions += 1
        choice = {"token_ids": made.token_ids, "logprobs": {"token_logprobs": made.logprobs}}
        return web.json_response({"choices": [choice]})

    def close(self) -> None:
        self._loop.run(self._stop())
        self._loop.close()

    async def _stop(self) -> None:
        await self._runner.cleanup()
        await self._engine.close()


class StubWeights:
    """TRL's weight-transfer protocol into the stub's engine."""

    def __init__(self, engine: LocalEngine) -> None:
        self._engine, self._version = engine, 0

    def init_weight_transfer(self) -> None: ...

    def pause(self) -> None: ...

    def send_weights(self, iterator: Iterator[tuple[str, torch.Tensor]]) -> None:
        self._version += 1
        self._engine.replace_weights(dict(iterator), self._version)

    def resume(self) -> None: ...

    def destroy(self) -> None: ...


class Tap:
    """TRL's queue, noting the version of every group that passes."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.version_of: dict[int, int] = {}
        self.taken = 0

    def get(self, *args: Any, **kwargs: Any) -> Any:
        sample = self._real.get(*args, **kwargs)
        self.version_of[sample.group_id] = sample.model_version
        self.taken += 1
        return sample

    def qsize(self) -> int:
        return self._real.qsize()


class SlowTrls(AsyncGRPOTrainer):
    """TRL's trainer as it is, slow, with a note of how stale each trained sample was."""

    train_s = 0.0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.lags: list[int] = []
        self.batches: list[list[int]] = []
        super().__init__(*args, **kwargs)
        self.rollout_queue = self.tap = Tap(self.rollout_queue)

    def compute_loss(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        groups = self.batches.pop(0)
        self.lags += [self.model_version - self.tap.version_of[g] for g in groups]
        time.sleep(self.train_s)
        return super().compute_loss(*args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None: ...


def reward(prompts: list[Any], completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """A module's function, because TRL sends it to another process."""
    return [float(c[0]["content"].strip() == a) for c, a in zip(completions, answer, strict=True)]


def _trls(recipe: Recipe, policy: str, output: Path, train_s: float) -> dict[str, Any]:
    tokenizer = AutoTokenizer.from_pretrained(policy, padding_side="left")
    tokenizer.response_template = {}  # TRL refuses templates it does not know; it then decodes plain text
    model = AutoModelForCausalLM.from_pretrained(policy, dtype="float32")
    engine = LocalEngine(copy.deepcopy(model).requires_grad_(False).eval(), tokenizer, LocalEngineConfig())
    stub = Stub(engine)
    arguments = grpo_arguments(
        recipe.train,
        group_size=recipe.rollout.group_size,
        max_tokens=recipe.rollout.max_tokens,
        temperature=1.0,
        output=output,
        seed=0,
    )
    own = {"save_strategy": "no", "max_staleness": BOUND, "vllm_server_base_url": stub.url}
    tasks = load_catalogue(recipe.environment).tasks
    rows = [
        {"prompt": [{"role": "user", "content": t.data.prompt_text}], "answer": str(t.data.answer)}
        for t in tasks
    ]
    try:
        with compat.without_cuda(), _without_vllm():
            trainer = SlowTrls(
                model=policy,
                reward_funcs=reward,
                args=AsyncGRPOConfig(**async_grpo_arguments(arguments) | own),
                train_dataset=Dataset.from_list(rows),
                processing_class=tokenizer,
                weight_transfer=StubWeights(engine),
            )
        trainer.remove_callback(PrinterCallback)
        compat.use_sdpa_attention()
        trainer.train_s = train_s
        with _noting_groups(trainer.batches):
            started = time.monotonic()
            trainer.train()
            seconds = time.monotonic() - started
    finally:
        stub.close()
    dropped = trainer.tap.taken - len(trainer.lags) - _fetched_ahead(trainer)
    return {
        "largest_lag_trained": max(trainer.lags),
        "lags": dict(sorted(Counter(trainer.lags).items())),
        "dropped_percent_of_delivered": round(100 * dropped / trainer.tap.taken, 1),
        "trained_percent_of_generated": round(100 * len(trainer.lags) / stub.completions, 1),
        "completions": stub.completions,
        "seconds": round(seconds, 1),
    }


def _fetched_ahead(trainer: SlowTrls) -> int:
    """Samples in the batch that the dataloader fetched and the run's end left untrained."""
    return sum(len(batch) for batch in trainer.batches)


@contextmanager
def _without_vllm() -> Iterator[None]:
    """TRL's worker wants vLLM installed, though it only speaks HTTP to it."""
    real, worker_module.is_vllm_available = worker_module.is_vllm_available, lambda *_, **__: True
    try:
        yield
    finally:
        worker_module.is_vllm_available = real


@contextmanager
def _noting_groups(batches: list[list[int]]) -> Iterator[None]:
    """Inside, every packed batch appends the groups of its samples."""
    real = DataCollatorForRollout.torch_call

    def noting(self: DataCollatorForRollout, examples: Sequence[Any]) -> dict[str, Any]:
        batches.append([s["group_id"] for row in examples[0] for s in row.samples])
        return real(self, examples)

    DataCollatorForRollout.torch_call = noting
    try:
        yield
    finally:
        DataCollatorForRollout.torch_call = real


# -- ours ---------------------------------------------------------------------------------------------------


def _ours(recipe: Recipe, train_s: float) -> dict[str, Any]:
    started = time.monotonic()
    with _slow(train_s):
        train(recipe, RunOptions(), console=QUIET)
    seconds = time.monotonic() - started
    events = read_ledger(recipe.directory / LEDGER)
    finished = {e["id"]: e for e in events if e["event"] == "finish"}
    lags = [e["step"] - finished[i]["version"] for e in events if e["event"] == "take" for i in e["ids"]]
    dropped = sum(e["fate"] == "over_age" for e in finished.values())
    dropped += sum(len(e["ids"]) for e in events if e["event"] == "expire")
    filtered = sum(e["fate"] == "filtered" for e in finished.values())
    return {
        "largest_lag_trained": max(lags),
        "lags": dict(sorted(Counter(lags).items())),
        "dropped_percent_of_delivered": round(100 * dropped / max(len(finished) - filtered, 1), 1),
        "lost_in_flight": sum(e["event"] == "lose" for e in events),
        "trained_percent_of_generated": round(100 * len(lags) / len(finished), 1),
        "dead_groups_percent": round(100 * filtered / len(finished), 1),
        "ledger_problems": audit(events, bound=BOUND),
        "seconds": round(seconds, 1),
    }


@contextmanager
def _slow(seconds: float) -> Iterator[None]:
    """Inside, our trainer takes that much longer for a loss."""
    real = SnoozingAsyncGRPOTrainer.compute_loss

    def slow(self: SnoozingAsyncGRPOTrainer, *args: Any, **kwargs: Any) -> torch.Tensor:
        time.sleep(seconds)
        return real(self, *args, **kwargs)

    SnoozingAsyncGRPOTrainer.compute_loss = slow
    try:
        yield
    finally:
        SnoozingAsyncGRPOTrainer.compute_loss = real


if __name__ == "__main__":
    print(json.dumps(figures(quick=True)))
