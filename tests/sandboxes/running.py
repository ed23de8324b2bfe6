"""Coroutines in tests: one event loop each."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

_T = TypeVar("_T")


def run(work: Coroutine[None, None, _T]) -> _T:
    return asyncio.run(work)
