"""One evaluation of a few tasks against a server that fails on demand, and what it left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chat_server import ChatServer, Rule, serve, sums

from snoozing_env.evaluate.config import EvalConfig
from snoozing_env.evaluate.run import Options, Tick, plan, roll_out
from snoozing_env.report.evaluation import EvalRun, load_evaluation

MATH: dict[str, Any] = {"id": "snooze-math", "taskset": {"style": "bare"}}


@dataclass(frozen=True)
class Ran:
    """What one evaluation left behind."""

    run: EvalRun
    server: ChatServer
    ticks: list[Tick]

    @property
    def rows(self) -> list[Any]:
        return [row for one in self.run.rollouts for row in one.rows]

    @property
    def notes(self) -> str:
        return " | ".join(tick.note for tick in self.ticks if tick.note)


def run_evaluation(
    folder: Path,
    rule: Rule,
    *,
    options: Options | None = None,
    key: str = "",
    models: bool = True,
    **settings: Any,
) -> Ran:
    """Evaluate against a server that follows a rule; settings as in a config file."""
    server, ticks = ChatServer(rule, key=key, models=models), list[Tick]()

    async def go() -> None:
        async with serve(server):
            endpoint = {"url": server.url, **settings.pop("endpoint", {})}
            given = {
                "output": str(folder / "run"),
                "environment": [MATH],
                "tasks": 6,
                "rollouts": 2,
                "backoff_s": 0.01,
                **settings,
            }
            config = EvalConfig(endpoint=endpoint, **given)
            planned, output = plan(config), Path(config.output)
            await roll_out(config, config.endpoint, planned, output, options or Options(), ticks.append)

    asyncio.run(go())
    return Ran(load_evaluation(settings.get("output", folder / "run")), server, ticks)


def right(_server: ChatServer, body: dict[str, Any], _before: int) -> str:
    return sums(body)


def at_first(fault: Callable[[], Any], times: int = 1) -> Rule:
    """Fail the first requests of every rollout, then answer rightly."""
    return lambda server, body, before: fault() if before < times else sums(body)


def throw(kind: type[Exception]) -> Callable[[], Any]:
    def fail() -> Any:
        raise kind

    return fail
