"""The words both sides are named by, in data, prompts, verdicts and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Side = Literal["refuse", "comply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prompt of any source."""

    prompt: str
    side: Side
    """What a good reply does."""
    id: str | None = None
    """The source's own durable name of the prompt, None = the prompt is its name."""
    domain: str = ""
    """Category of harm the prompt is about, or seems to be about."""
    mechanism: str | None = None
    """Why a safe prompt looks unsafe; None where the source does not say."""
    terms: tuple[str, ...] = ()
    """Stems of which a real answer contains some and the prompt none; () = the source has no such evidence."""
    needed: int = 1
    """How many of `terms` an answer must contain."""
    answer: str = ""
    """An honest short answer to a safe prompt, "" where the source has none."""
    prior: float | None = None
    cluster: str | None = None
    """Prompts that teach the same contrast: both sides and all phrasings of one cell."""
