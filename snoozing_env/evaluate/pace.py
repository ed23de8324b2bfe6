"""How fast an endpoint may be asked: a cap on what runs at once, and pauses when it says so.

    slot() ──▶ wait until the pause is over and a slot is free ──▶ request ──▶ succeeded / limited
                 ▲ woken by: a finished request, or the clock

Half the cap after each 429, one more per cap's worth of successes: additive increase, multiplicative decrease, as
in TCP. The decision is `Pace`, pure and without a clock; `Gate` only waits.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

LONGEST_S = 60.0
"""No pause is longer, whatever the endpoint asks: it is asked again then."""
UNITS = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Pace:
    """When the next request may go. `now` is any clock in seconds that never runs backwards."""

    def __init__(self, concurrency: int, *, backoff_s: float) -> None:
        self.concurrency, self.backoff_s = concurrency, backoff_s
        self.cap = float(concurrency)
        """Requests at once, at least 1."""
        self.opens_at = 0.0
        self.running = 0
        self.streak = 0
        """Pauses in a row without a success in between."""

    def wait(self, now: float) -> float | None:
        """Seconds until a request may go, 0 = at once, None = when one finishes."""
        if self.opens_at > now:
            return self.opens_at - now
        return 0.0 if self.running < int(self.cap) else None

    def limited(self, now: float, pause: float | None) -> None:
        """A request came back with 429; `pause` is what the endpoint asked for."""
        if now >= self.opens_at:  # what was in flight when the limit hit says nothing new
            self.cap = max(1.0, self.cap / 2)
            self.streak += 1
        asked = self.backoff_s * 2 ** (self.streak - 1) if pause is None else pause
        self.opens_at = max(self.opens_at, now + min(asked, LONGEST_S))

    def succeeded(self, now: float, headers: Mapping[str, str]) -> None:
        """A request was answered; its headers may announce that the allowance is used up."""
        self.streak = 0
        self.cap = min(float(self.concurrency), self.cap + 1.0 / self.cap)
        if (pause := exhausted(headers)) is not None:
            self.opens_at = max(self.opens_at, now + min(pause, LONGEST_S))


class Gate:
    """Lets requests through at a `Pace`."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold one of the slots; waits for it, woken by the clock or by whoever leaves."""
        async with self._changed:
            while (wait := self.pace.wait(time.monotonic())) != 0.0:
                try:
                    async with asyncio.timeout(wait):
                        await self._changed.wait()
                except TimeoutError:
                    continue
            self.pace.running += 1
        try:
            yield
        finally:
            self.pace.running -= 1
            async with self._changed:
                self._changed.notify_all()

    def limited(self, pause: float | None) -> None:
        self.pace.limited(time.monotonic(), pause)

    def succeeded(self, headers: Mapping[str, str]) -> None:
        self.pace.succeeded(time.monotonic(), headers)


def retry_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that `retry-after-ms`, `Retry-After` (seconds or a date) or a rate-limit reset asks to wait; None = none does."""
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    after = headers.get("Retry-After")
    if after is None:
        return exhausted(headers)
    if (seconds := _number(after)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def exhausted(headers: Mapping[str, str]) -> float | None:
    """Seconds until an allowance that `x-ratelimit-remaining-*` reports as used up is filled again."""
    pauses = [
        pause
        for what in ("requests", "tokens")
        if (left := _number(headers.get(f"x-ratelimit-remaining-{what}"))) is not None
        and left <= 0
        and (pause := span(headers.get(f"x-ratelimit-reset-{what}", ""))) is not None
    ]
    return max(pauses, default=None)


def span(text: str) -> float | None:
    """Seconds of `12`, `1.5s`, `88ms` or `6m0s`, as the reset headers spell them; None = unreadable."""
    if (plain := _number(text)) is not None:
        return plain
    pieces = re.findall(r"([\d.]+)(ms|s|m|h|d)", text)
    if not pieces or "".join(a + b for a, b in pieces) != text.strip():
        return None
    return sum(float(number) * UNITS[unit] for number, unit in pieces)


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) else None
