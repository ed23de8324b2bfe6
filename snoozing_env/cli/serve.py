"""`snooze serve`: a vLLM server in the foreground, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence

from snoozing_env.cli.options import parse_options
from snoozing_env.errors import SnoozingError


def main(arguments: Sequence[str]) -> None:
    import signal

    from snoozing_env.rollout.server import VllmServer, VllmServerConfig

    words = list(arguments)
    if words and not words[0].startswith("-"):
        words[:1] = ["--model", words[0]]
    config = parse_options(
        VllmServerConfig,
        words,
        prog="snooze serve",
        description="A vLLM server that takes weights.",
        where="server",
    )
    if not config.model:
        raise SnoozingError(
            "usage: snooze serve MODEL [--key value ...]; MODEL is a checkpoint directory or hub name"
        )
    with VllmServer(config, progress=print) as server:
        print(f"serving {config.model} as {config.name!r} at {server.base_url}; Ctrl-C stops it")
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
