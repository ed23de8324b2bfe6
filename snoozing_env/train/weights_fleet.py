"""New weights for several servers: one after another or all at once, and a dead one costs only itself.

    one-by-one   drain server i ─▶ push ─▶ serve ─▶ next         the others go on generating
    all-at-once  push to all in threads                          shortest time with mixed versions
    in-flight    push without draining                           requests go on with the new weights

A server that the push does not reach is out of service until it answers again; `refresh` then sends it what the others
have. When no server was reached, the push waits for the first that answers again, for `patience_s`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import torch

from snoozing_env.errors import WeightTransferError
from snoozing_env.rollout.engines.fleet import FleetEngine
from snoozing_env.train.weights import Named, WeightTransfer

log = logging.getLogger(__name__)

Order = Literal["one-by-one", "all-at-once"]
LOOK_S = 0.1
"""Seconds between two looks at a fleet of which no server is up."""
InLoop = Callable[[Coroutine[Any, Any, Any]], Any]
"""Runs a coroutine in the loop that uses the fleet, and waits for it."""


class FleetTransfer:
    """`WeightTransfer` to every server of a fleet; `transfers[i]` reaches `fleet.members[i]`."""

    def __init__(
        self,
        transfers: Sequence[WeightTransfer],
        fleet: FleetEngine,
        in_loop: InLoop,
        *,
        order: Order = "one-by-one",
        drain: bool = True,
        patience_s: float = 0.0,
        keep_alive: Callable[[], None] = lambda: None,
    ) -> None:
        """`patience_s`: seconds that a push waits while no server takes it, once one has taken any; `keep_alive` is
        called meanwhile and may restart them."""
        if len(transfers) != len(fleet.members):
            raise ValueError(
                f"{len(transfers)} transfers for {len(fleet.members)} engines; one each is needed"
            )
        self._transfers, self._fleet, self._in_loop = tuple(transfers), fleet, in_loop
        self._order, self._drain = order, drain
        self._patience_s, self._keep_alive = patience_s, keep_alive
        self.waiting: Callable[[], None] = lambda: None
        """Told, now and then, that a push waits; what it raises ends the push."""
        self._version = 0
        self._took_one = False
        self.pausing: Callable[[float], None] = lambda share: None
        """Told, in the loop, which share of the servers stands still for a push, and minus that share after it."""

    def connect(self) -> None:
        """Take over every server that answers.

        Raises:
            WeightTransferError: none does.
        """
        self._to_each(range(len(self._transfers)), lambda i: self._transfers[i].connect(), "connect")

    def push(self, named_tensors: Iterable[tuple[str, torch.Tensor]], version: int) -> None:
        """Replace the weights of every server that is up.

        Raises:
            WeightTransferError: not one took them, within `patience_s`.
        """
        self._version, tensors = version, list(named_tensors)
        started = time.monotonic()
        while True:
            up = [i for i, m in enumerate(self._fleet.members) if m.condition != "down"]
            try:
                self._push_to(up, tensors)
            except WeightTransferError as error:
                # Weights that no server ever took do not fit, and waiting would not make them.
                if not self._took_one or time.monotonic() - started >= self._patience_s:
                    raise
                log.warning("no server took weights %d, waiting for one: %s", version, error)
                self._await_one(started)
            else:
                self._took_one = True
                return

    def _await_one(self, started: float) -> None:
        """Until the fleet's probe finds a server that answers, or patience ends."""
        while all(m.condition == "down" for m in self._fleet.members):
            self.waiting()
            self._keep_alive()
            if time.monotonic() - started >= self._patience_s:
                return
            time.sleep(LOOK_S)

    def refresh(self, named_tensors: Iterable[tuple[str, torch.Tensor]]) -> list[int]:
        """Send the present weights to servers that came back; returns which ones took them."""
        stale = self._fleet.stale()
        if stale:
            self._push_to(stale, list(named_tensors))
        return [i for i in stale if self._fleet.members[i].condition == "serving"]

    def close(self) -> None:
        for transfer in self._transfers:
            transfer.close()

    def _push_to(self, members: Sequence[int], tensors: Named) -> None:
        if not members:
            raise WeightTransferError("no server is up to take the weights")

        def one(index: int) -> None:
            if self._drain:
                self._in_loop(self._fleet.drain(index))
            self._in_loop(_call(lambda: self._begin(index)))
            try:
                self._transfers[index].push(tensors, self._version)
            finally:
                self._in_loop(_call(lambda: self.pausing(-1 / len(self._transfers))))
            self._in_loop(_call(lambda: self._fleet.served(index, self._version)))

        self._to_each(members, one, "push")

    def _begin(self, index: int) -> None:
        """A server is about to be sent the weights, and stands still for it."""
        self._fleet.expect(index, self._version)
        self.pausing(1 / len(self._transfers))

    def _to_each(self, members: Sequence[int], step: Callable[[int], None], name: str) -> None:
        """Run a step for each member; those that fail are out of service, and all failing is an error."""
        failed: dict[int, str] = {}

        def guarded(index: int) -> None:
            try:
                step(index)
            except WeightTransferError as error:
                failed[index] = str(error)
                reason = f"{name} failed: {error}"
                self._in_loop(_call(lambda: self._fleet.fail(index, reason)))

        if self._order == "all-at-once" and len(members) > 1:
            with ThreadPoolExecutor(len(members), thread_name_prefix="weights") as pool:
                list(pool.map(guarded, members))
        else:
            for index in members:
                guarded(index)
        if len(failed) == len(members):
            why = "; ".join(f"{self._fleet.members[i].name}: {text}" for i, text in failed.items())
            raise WeightTransferError(f"no server took the weights ({why})")


async def _call(action: Callable[[], None]) -> None:
    action()
