"""Build a lab policy once and find it again by the content of what made it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from snoozing_env.errors import ConfigError
from snoozing_env.train.lab.config import LabConfig
from snoozing_env.train.lab.tokenizer import VOCAB_SIZE, build_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

RECIPE_VERSION = 1
"""Part of the cache key; raise it when the same config would now build other weights."""
ADDED_SINCE = {
    "enough_loss": 0.0,
    "rise_steps": None,
    "final_rate": 0.1,
    "text_weight": 0.0,
    "careless_at": "one",
}
"""Warm-up fields younger than RECIPE_VERSION and the values at which they change nothing, the cache key included."""


def default_cache_dir() -> Path:
    """`$SNOOZE_CACHE/lab`, or `~/.cache/snoozing-env/lab`."""
    root = os.environ.get("SNOOZE_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "snoozing-env") / "lab"


def build_lab_policy(
    config: LabConfig,
    examples: Iterable[tuple[str, str]] | None = None,
    cache_dir: Path | None = None,
    *,
    console: Console | None = None,
) -> Path:
    """The checkpoint directory of this policy, built and warmed up unless it is cached.

    `examples` are (prompt, answer) pairs *of the training split*; they may be left out only when
    `config.warmup.steps` is 0. The directory loads with `AutoModelForCausalLM` and with `vllm serve`.
    Raises `ConfigError` when there is nothing to warm up on or an example exceeds the context.
    """
    pairs = [(str(prompt), str(answer)) for prompt, answer in examples or ()]
    if config.warmup.steps and not pairs:
        raise ConfigError(
            f"the lab policy wants {config.warmup.steps} warm-up steps but got no examples; "
            "pass pairs of the training split, or set warmup.steps = 0"
        )
    target = (cache_dir or default_cache_dir()) / content_key(config, pairs)
    if not target.exists():
        _publish(target, lambda folder: _write_policy(folder, config, pairs, console or Console(stderr=True)))
    return target


def content_key(config: LabConfig, examples: Sequence[tuple[str, str]]) -> str:
    """16 hex digits of everything that decides the weights."""
    shape = config.model_dump(mode="json")
    for name, idle in ADDED_SINCE.items():
        if shape["warmup"][name] == idle:
            del shape["warmup"][name]
    made_of = {"version": RECIPE_VERSION, "config": shape, "examples": examples}
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]


def _publish(target: Path, write: Callable[[Path], None]) -> None:
    """Write a folder beside `target` and rename it: a reader sees all of it or nothing."""
    draft = target.parent / f".{target.name}.{os.getpid()}"
    draft.mkdir(parents=True)
    try:
        write(draft)
        try:
            draft.rename(target)
        except OSError:  # another process finished the same policy first; its files are as good
            if not target.exists():
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def build_model(config: LabConfig, tokenizer: PreTrainedTokenizerFast) -> Qwen3ForCausalLM:
    """Random weights in the shape of `config`, seeded without touching the global generator."""
    import torch
    from transformers import GenerationConfig, Qwen3Config, Qwen3ForCausalLM

    special = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    shape = Qwen3Config(
        vocab_size=VOCAB_SIZE,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_dim,
        max_position_embeddings=config.context,
        tie_word_embeddings=config.tie_embeddings,
        initializer_range=config.initializer_range,
        dtype="float32",
        **special,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        model = Qwen3ForCausalLM(shape)
    model.generation_config = GenerationConfig(do_sample=True, **special)
    return model


def _write_policy(
    folder: Path, config: LabConfig, examples: Sequence[tuple[str, str]], console: Console
) -> None:
    from snoozing_env.train.lab.warmup import tokenize, warm_up

    tokenizer = build_tokenizer(config.context)
    model = build_model(config, tokenizer)
    losses: list[float] = []
    if config.warmup.steps:
        rows = tokenize(examples, tokenizer, context=config.context)
        with _one_thread(), _progress(console, config.warmup.steps) as report:
            losses = warm_up(model, rows, config.warmup, seed=config.seed, on_step=report)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    record = {"config": config.model_dump(mode="json"), "examples": len(examples), "losses": losses}
    (folder / "lab.json").write_text(json.dumps(record, indent=1))


@contextmanager
def _one_thread() -> Iterator[None]:
    """A model this small loses more to thread hand-over than it gains: two busy threads took ten times one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _progress(console: Console, steps: int) -> Iterator[Callable[[int, float], None]]:
    columns = (
        TextColumn("warming up the lab policy"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps, loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        job = bar.add_task("warm-up", total=steps, loss=float("nan"))
        yield lambda step, loss: bar.update(job, completed=step, loss=loss)
