"""A group runner whose account learns when each group starts and how it ends."""

from __future__ import annotations

from snoozing_env.errors import EngineError
from snoozing_env.goodput import EngineAccount
from snoozing_env.rollout.engines.base import Engine
from snoozing_env.rollout.loop import ServedRunner
from snoozing_env.types import Group


class AccountedRunner:
    """A runner as a loop sees it; one event loop uses it."""

    def __init__(self, runner: ServedRunner, account: EngineAccount) -> None:
        self._runner, self._account = runner, account

    @property
    def engine(self) -> Engine:
        return self._runner.engine

    async def run(self, index: int, *, group_id: int, within_s: float | None = None) -> Group:
        """As the runner's own; a group that raises, or is cancelled, has ended for the account."""
        self._account.start(group_id)
        whole = failed = False
        try:
            group = await self._runner.run(index, group_id=group_id, within_s=within_s)
            whole = True
        except EngineError:
            failed = True
            raise
        finally:
            if whole:
                self._account.land(group_id)
            else:
                self._account.cancel(group_id, failed=failed)
        return group
