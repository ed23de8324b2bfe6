"""What every buffer of finished groups promises; each adds its own `put` and `take`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from snoozing_env.types import Group


class Buffer(Protocol):
    """Finished groups between generation and training. Pure: no clock but the policy's version, no files, no waiting.

    A buffer hands out what was put in, bit for bit; nothing past its age bound, no group twice in one step, and never
    more than its capacity is held. `restore` with what `groups` and `state` gave goes on as if never stopped. The laws
    in `snoozing_env.testing` check all of it.
    """

    def __len__(self) -> int: ...

    @property
    def groups(self) -> tuple[Group, ...]:
        """What is held, in the order in which `restore` wants it."""
        ...

    def expire(self, *, version: int) -> int:
        """Forget what is too old to be trained at `version`; returns how many."""
        ...

    def state(self) -> dict[str, Any]:
        """What is not in the groups: JSON-able."""
        ...

    def restore(self, state: Mapping[str, Any], groups: Iterable[Group]) -> None:
        """Continue from saved groups and `state`; groups whose task is gone may be missing."""
        ...
