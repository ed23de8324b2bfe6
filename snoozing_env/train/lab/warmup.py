"""The supervised warm-up: next-token steps on prompt, answer and end of sequence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch.nn import functional

from snoozing_env.errors import ConfigError
from snoozing_env.train.lab.config import WarmupConfig
from snoozing_env.types import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM

Example = tuple[str, str]
"""(prompt, answer), both plain text."""
LOOK_EVERY, LOOK_AT = 50, 20
"""Steps between two looks at whether the loss is low enough, and the steps whose mean is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The examples as padded token rows, M examples."""

    ids_M_T: Ints
    """[M, T] prompt, answer, <eos>, then <pad>."""
    start_M: Ints
    """[M] place of the answer's first token."""
    end_M: Ints
    """[M] place of <eos>, the last token."""
    prompts: tuple[str, ...]
    """M prompts as the user wrote them."""


def tokenize(examples: Sequence[Example], tokenizer: PreTrainedTokenizerFast, *, context: int) -> Rows:
    """Rows for `warm_up`; refuses an example that does not fit the model's context."""
    prompts = [_prompt_ids(prompt, tokenizer) for prompt, _ in examples]
    answers = [tokenizer(answer)["input_ids"] + [tokenizer.eos_token_id] for _, answer in examples]
    starts = np.array([len(prompt) for prompt in prompts])
    ends = starts + np.array([len(answer) for answer in answers]) - 1
    worst = int(ends.argmax())
    if ends[worst] >= context:
        raise ConfigError(
            f"a warm-up example has {ends[worst] + 1} tokens, the lab policy's context is {context}: "
            f"{examples[worst][0][:60]!r} → {examples[worst][1][:20]!r}; raise `context` or use the "
            "environment's bare prompt style"
        )
    ids = np.full((len(examples), int(ends[worst]) + 1), tokenizer.pad_token_id)
    for row, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        ids[row, : ends[row] + 1] = prompt + answer
    return Rows(ids_M_T=ids, start_M=starts, end_M=ends, prompts=tuple(prompt for prompt, _ in examples))


def _prompt_ids(prompt: str, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    chat = [{"role": "user", "content": prompt}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def rate_at(step: int, config: WarmupConfig) -> float:
    """Share of the peak learning rate at a step: linear rise, then a cosine fall to `final_rate`."""
    steps, final = config.steps, config.final_rate
    rise = config.rise_steps or max(1, steps // 10)
    if step < rise:
        return (step + 1) / rise
    return (1 + final) / 2 + (1 - final) / 2 * math.cos(math.pi * (step - rise) / max(1, steps - rise))


def _enough(losses: Sequence[float], config: WarmupConfig) -> bool:
    """Whether this is a step at which to look, and the loss is low enough to stop."""
    return len(losses) % LOOK_EVERY == 0 and float(np.mean(losses[-LOOK_AT:])) <= config.enough_loss


class Demonstrations:
    """Batches of the rows, some of them with a slip."""

    def __init__(self, rows: Rows, config: WarmupConfig, *, seed: int) -> None:
        self.rows, self.config = rows, config
        self.rng = np.random.default_rng(np.random.SeedSequence([seed, len(rows.start_M)]))
        places = np.arange(rows.ids_M_T.shape[1])
        is_answer_M_T = (places >= rows.start_M[:, None]) & (places < rows.end_M[:, None])
        self.may_slip_M = np.array([config.careless_on in prompt for prompt in rows.prompts])
        self.alphabet = np.unique(rows.ids_M_T[is_answer_M_T])

    def draw(self, *, careless: float) -> tuple[torch.Tensor, torch.Tensor]:
        """([b, T] ids, [b, T - 1] whether predicting token t + 1 counts: the answer and its <eos>)."""
        rows = self.rows
        picked = self.rng.integers(len(rows.start_M), size=self.config.batch)
        start, end = rows.start_M[picked], rows.end_M[picked]
        ids = rows.ids_M_T[picked, : end.max() + 1].copy()
        slips = self.rng.random(len(picked)) < careless
        slips &= self.may_slip_M[picked] & (end > start)
        where = start + np.floor(self.rng.random(len(picked)) * (end - start)).astype(np.int64)
        if self.config.careless_at == "one":
            self._slip(ids, slips.nonzero()[0], where[slips])
        else:
            for place in range(int((end - start).max())):
                rows_here = (slips & (start + place < end)).nonzero()[0]
                self._slip(ids, rows_here, start[rows_here] + place)
        places = np.arange(1, ids.shape[1])
        counts = (places >= start[:, None]) & (places <= end[:, None])
        return torch.from_numpy(ids), torch.from_numpy(counts.astype(np.float32))

    def _slip(self, ids: Ints, rows: Ints, places: Ints) -> None:
        """Put another character of the answers' alphabet at one place of each of these rows."""
        if len(self.alphabet) < 2:
            return
        right = np.searchsorted(self.alphabet, ids[rows, places])
        away = self.rng.integers(1, len(self.alphabet), size=len(rows))
        ids[rows, places] = self.alphabet[(right + away) % len(self.alphabet)]


def warm_up(
    model: Qwen3ForCausalLM,
    rows: Rows,
    config: WarmupConfig,
    *,
    seed: int,
    on_step: Callable[[int, float], None],
) -> list[float]:
    """Train `model` in place and return the loss of every step taken; `on_step(step, loss)` reports progress.

    Rows are padded on the right and attention is causal, so no attention mask is needed: no token
    whose loss counts looks at padding.
    """
    batches = Demonstrations(rows, config, seed=seed)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    losses: list[float] = []
    model.train()
    for step in range(config.steps):
        late = step >= config.steps - config.careless_steps
        ids, counts = batches.draw(careless=config.careless if late else 0.0)
        logits = model(input_ids=ids[:, :-1], use_cache=False).logits
        loss_each = functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        loss = (loss_each * counts).sum() / counts.sum()
        if config.text_weight:
            written = ids[:, 1:] != model.config.pad_token_id
            loss = loss + config.text_weight * loss_each[written].mean()
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * rate_at(step, config)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        on_step(step + 1, losses[-1])
        if _enough(losses, config):
            break
    model.eval()
    return losses
