"""The torch side of a run, put together from its recipe."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import (
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import GRPOConfig

from snoozing_env.errors import ConfigError
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.rollout.engines.fleet import FleetEngine
from snoozing_env.rollout.engines.local import LocalEngine, LocalEngineConfig
from snoozing_env.rollout.engines.vllm import VllmEngine, VllmEngineConfig
from snoozing_env.rollout.loop_thread import LoopThread
from snoozing_env.rollout.server import ServerKeeper, VllmServer, VllmServerConfig
from snoozing_env.train.checkpoints import last_whole_checkpoint
from snoozing_env.train.grpo import async_grpo_arguments, grpo_arguments
from snoozing_env.train.health import RateByEss
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.sync import SnoozingGRPOTrainer
from snoozing_env.train.weights import WeightTransfer, build_transfer
from snoozing_env.train.weights_copy import CopyTransfer
from snoozing_env.train.weights_fleet import FleetTransfer

if TYPE_CHECKING:
    from snoozing_env.train.async_grpo import SnoozingAsyncGRPOTrainer
    from snoozing_env.train.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The engine side of a run."""

    engine: Engine
    transfer: WeightTransfer | None
    """How its weights are replaced; None = it shares the trainer's."""
    keep_alive: Callable[[], None] = lambda: None
    """Restarts the run's own servers that died."""


def build_loop(recipe: Recipe) -> asyncio.Runner | LoopThread:
    """The event loop that uses the engine: one that never stops where generation overlaps with training, or where
    several servers are looked after."""
    several = isinstance(recipe.engine, VllmEngineConfig) and (
        recipe.engine.more_urls or (recipe.server is not None and recipe.server.replicas > 1)
    )
    return (
        LoopThread(stall_s=recipe.pacing.stall_s)
        if recipe.pacing.max_staleness or several
        else asyncio.Runner()
    )


def build_engine(
    recipe: Recipe,
    policy: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    stack: ExitStack,
    loop: asyncio.Runner | LoopThread,
    *,
    say: Callable[[str], None],
) -> Built:
    """The engine of a recipe and, for vLLM servers, the way their weights are replaced.

    Raises:
        EngineError: a server does not start, or none answers.
    """
    if isinstance(recipe.engine, LocalEngineConfig):
        return _build_local(recipe.engine, model, tokenizer, recipe, loop)
    engine, servers = recipe.engine, list[VllmServer]()
    urls = (engine.base_url, *engine.more_urls)
    if recipe.server is not None:
        servers = _start_servers(recipe, recipe.server, policy, stack, say)
        urls = tuple(server.base_url for server in servers)
    transfers = [build_transfer(recipe.weights.model_copy(update={"base_url": url})) for url in urls]
    for transfer in transfers:
        stack.callback(transfer.close)
    clients = {url: VllmEngine(engine.model_copy(update={"base_url": url}), progress=say) for url in urls}
    if not isinstance(loop, LoopThread):
        return Built(engine=clients[urls[0]], transfer=transfers[0])
    fleet = FleetEngine(clients)
    drain = recipe.pacing.weight_updates == "drain"
    keeper = ServerKeeper(servers, say)
    transfer = FleetTransfer(
        transfers,
        fleet,
        loop.run,
        drain=drain,
        patience_s=recipe.pacing.patience_s,
        keep_alive=keeper.restart_dead,
    )
    return Built(engine=fleet, transfer=transfer, keep_alive=keeper.restart_dead)


def _build_local(
    config: LocalEngineConfig,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    recipe: Recipe,
    loop: asyncio.Runner | LoopThread,
) -> Built:
    """The engine in this process: over the trainer's model itself, or over a copy that updates replace."""
    if not config.own_weights:
        return Built(engine=LocalEngine(model, tokenizer, config), transfer=None)
    engine = LocalEngine(copy.deepcopy(model).requires_grad_(False).eval(), tokenizer, config)
    transfer = CopyTransfer(engine)
    if not isinstance(loop, LoopThread):
        return Built(engine=engine, transfer=transfer)
    fleet = FleetEngine({"local engine": engine})
    drain = recipe.pacing.weight_updates == "drain"
    return Built(engine=fleet, transfer=FleetTransfer([transfer], fleet, loop.run, drain=drain))


def _start_servers(
    recipe: Recipe, config: VllmServerConfig, policy: str, stack: ExitStack, say: Callable[[str], None]
) -> list[VllmServer]:
    """Start every replica side by side; each takes half a minute."""
    backend = "nccl" if recipe.weights.kind == "nccl" else "snooze"
    update = {"model": policy, "name": recipe.engine.model, "weight_backend": backend}
    servers: list[VllmServer] = []
    for i in range(config.replicas):
        port = config.port + i if config.port else 0
        log = None if config.log is None else (f"{config.log}.{i}" if i else config.log)
        server = VllmServer(config.model_copy(update={**update, "port": port, "log": log}), progress=say)
        stack.callback(server.stop)
        server.launch()
        servers.append(server)
    for server in servers:
        server.wait_ready()
    return servers


def build_trainer(
    recipe: Recipe,
    policy: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    session: Session,
    reporter: LossReporter,
) -> SnoozingGRPOTrainer | SnoozingAsyncGRPOTrainer:
    """TRL's trainer over a session; the asynchronous one loads `policy` itself, the other trains `model`.

    Raises:
        ConfigError: the batch does not split, or TRL refuses an argument.
    """
    rollout = recipe.rollout
    try:
        arguments = grpo_arguments(
            recipe.train,
            group_size=rollout.group_size,
            max_tokens=rollout.max_tokens,
            temperature=rollout.temperature,
            output=recipe.directory,
            seed=recipe.seed,
        )
        callbacks = [RateByEss(session.health), reporter]
        common = {"config": recipe.train, "health": session.health, "callbacks": callbacks}
        if recipe.train.trainer == "async_grpo":
            from snoozing_env.train.async_grpo import AsyncGRPOConfig, SnoozingAsyncGRPOTrainer

            args = AsyncGRPOConfig(**async_grpo_arguments(arguments))
            trainer = SnoozingAsyncGRPOTrainer(policy, args, tokenizer, session, **common)
        else:
            batch = recipe.train.batch_groups
            trainer = SnoozingGRPOTrainer(
                model, GRPOConfig(**arguments), tokenizer, session, batch_groups=batch, **common
            )
    except ValueError as error:
        raise ConfigError(f"[train]: {error}") from error
    trainer.remove_callback(PrinterCallback)  # the run log and the progress say it better
    return trainer


def save_now(trainer: SnoozingGRPOTrainer | SnoozingAsyncGRPOTrainer) -> None:
    """A checkpoint between two steps, unless the last step has one."""
    step, directory = trainer.state.global_step, Path(str(trainer.args.output_dir))
    found = last_whole_checkpoint(directory)
    if step > (found[1] if found else 0):
        trainer._save_checkpoint(trainer.model, trial=None)


class LossReporter(TrainerCallback):
    """Hands what TRL logs for a step to the session, which owns the run log; ends the run when asked to or when the
    policy collapsed, with a checkpoint."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: Any,
    ) -> None:
        if logs and "loss" in logs:
            self._session.report_step(state.global_step, logs)
            if self._session.health.collapse:
                control.should_save = control.should_training_stop = True

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        if self._session.stop_asked:
            control.should_save = control.should_training_stop = True
        return control
