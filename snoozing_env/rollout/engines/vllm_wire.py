"""What a vLLM server's answers mean: a choice becomes a `Completion` or an `EngineError`, never a guess."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, cast

from snoozing_env.errors import EngineError
from snoozing_env.rollout.engines.base import Completion
from snoozing_env.types import FinishReason

Choice = Mapping[str, Any]


def read_completion(choice: Choice, prompt_ids: tuple[int, ...], *, span: tuple[int, int]) -> Completion:
    reason = choice.get("finish_reason")
    if reason not in ("stop", "length"):
        raise EngineError(
            f"a completion ended with {reason!r}, wanted 'stop' or 'length'; it was cut off and is not used"
        )
    token_ids = choice.get("token_ids")
    if token_ids is None or not prompt_ids:
        raise EngineError(
            "the server returned no token ids; serve with vLLM ≥ 0.31, which honours return_token_ids"
        )
    if not token_ids:
        raise EngineError(
            "the server returned a completion without a single token; training on it is impossible"
        )
    content = (choice.get("logprobs") or {}).get("content") or ()
    logprobs = tuple(float(entry["logprob"]) for entry in content)
    if len(logprobs) != len(token_ids):
        raise EngineError(f"the server returned {len(token_ids)} token ids but {len(logprobs)} log-probs")
    if not math.isfinite(sum(logprobs)):
        raise EngineError("the server returned a log-prob that is not finite; its weights are damaged")
    first, last = reported_span(choice) or span
    return Completion(
        prompt_ids=prompt_ids,
        token_ids=tuple(token_ids),
        logprobs=logprobs,
        text=choice["message"].get("content") or "",
        finish_reason=cast(FinishReason, reason),
        version=first,
        last_version=last,
    )


def reported_span(choice: Choice) -> tuple[int, int] | None:
    """(first, last) weight version by the engine's own account, None where it gives none.

    vLLM 0.32 lists spans {"version", "start", "end"} over the output tokens. Before the first push the label is
    "default", which is not one of our numbers.
    """
    labels = [str(span.get("version")) for span in choice.get("weight_versions") or ()]
    if not labels or not all(label.isdecimal() for label in labels):
        return None
    return int(labels[0]), int(labels[-1])


def read_json(raw: bytes, root: str) -> dict[str, Any]:
    try:
        answer = json.loads(raw)
    except ValueError as error:
        raise EngineError(f"{root} answered with something that is not JSON: {raw[:80]!r}") from error
    return cast(dict[str, Any], answer)


def error_text(raw: bytes) -> str:
    """The server's own words, at most 300 characters."""
    try:
        answer = json.loads(raw)
        text = str(answer["error"]["message"])
    except (ValueError, KeyError, TypeError):
        text = raw.decode(errors="replace")
    return text[:300]


def retry_after(header: str | None) -> float | None:
    """Seconds from a Retry-After header, at most 60; None when absent or a date."""
    return min(float(header), 60.0) if header and header.strip().isdigit() else None
