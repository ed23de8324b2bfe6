"""The torch side of a run, put together from its recipe."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
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
from snoozing_env.rollout.engines.local import LocalEngine, LocalEngineConfig
from snoozing_env.rollout.engines.vllm import VllmEngine
from snoozing_env.rollout.server import VllmServer
from snoozing_env.train.grpo import grpo_arguments
from snoozing_env.train.recipe import Recipe
from snoozing_env.train.sync import SnoozingGRPOTrainer
from snoozing_env.train.weights import WeightTransfer, build_transfer

if TYPE_CHECKING:
    from snoozing_env.train.session import Session


def build_engine(
    recipe: Recipe,
    policy: str,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    stack: ExitStack,
    *,
    say: Callable[[str], None],
) -> tuple[Engine, WeightTransfer | None]:
    """The engine of a recipe and, for a vLLM server, the way its weights are replaced.

    Raises:
        EngineError: the server does not start, or none answers.
    """
    if isinstance(recipe.engine, LocalEngineConfig):
        return LocalEngine(model, tokenizer, recipe.engine), None
    engine, weights = recipe.engine, recipe.weights
    if recipe.server is not None:
        backend = "nccl" if weights.kind == "nccl" else "snooze"
        config = recipe.server.model_copy(
            update={"model": policy, "name": engine.model, "weight_backend": backend}
        )
        server = stack.enter_context(VllmServer(config, progress=say))
        engine = engine.model_copy(update={"base_url": server.base_url})
    transfer = build_transfer(weights.model_copy(update={"base_url": engine.base_url}))
    stack.callback(transfer.close)
    client = VllmEngine(engine, progress=say)
    return client, transfer


def build_trainer(
    recipe: Recipe,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    session: Session,
    reporter: LossReporter,
) -> SnoozingGRPOTrainer:
    """TRL's trainer over a session.

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
        args = GRPOConfig(**arguments)
    except ValueError as error:
        raise ConfigError(f"[train]: {error}") from error
    trainer = SnoozingGRPOTrainer(
        model, args, tokenizer, session, batch_groups=recipe.train.batch_groups, callbacks=[reporter]
    )
    trainer.remove_callback(PrinterCallback)  # the run log and the progress say it better
    return trainer


class LossReporter(TrainerCallback):
    """Hands what TRL logs for a step to the session, which owns the run log; ends the run when asked to."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.stop_asked = False

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

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any
    ) -> TrainerControl:
        if self.stop_asked:
            control.should_save = control.should_training_stop = True
        return control
