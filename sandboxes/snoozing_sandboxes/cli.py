"""`snoozing-sandboxes`: what this machine's engine guarantees, its image, and boxes left behind."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from snoozing_sandboxes.backend import Backend
from snoozing_sandboxes.box import Box
from snoozing_sandboxes.check import Check, failed, self_check
from snoozing_sandboxes.errors import SandboxError
from snoozing_sandboxes.local import LocalBackend

__all__ = ["main"]

_LEAKY, _UNAVAILABLE = 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0: all promises kept; 1: a leak; 2: no engine."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.command(options))
    except SandboxError as error:
        print(f"snoozing-sandboxes: {error}", file=sys.stderr)
        return _UNAVAILABLE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="snoozing-sandboxes", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    check = commands.add_parser("check", help="start a box, try its doors, print what holds")
    check.add_argument(
        "--backend", choices=("docker", "local"), default="docker", help="local has no walls: see it fail"
    )
    check.add_argument("--image", default="auto", help="auto packs this machine's Python (default)")
    check.set_defaults(command=_check)
    image = commands.add_parser(
        "image", help="build the image: packed from this Python, or a Dockerfile for registries"
    )
    image.add_argument("--package", action="append", default=[], help="also put in this package (repeatable)")
    image.add_argument(
        "--out", type=Path, help="write an archive for `docker load` here instead of loading it"
    )
    image.add_argument(
        "--registry", metavar="BASE", nargs="?", const="python:3.12-slim", help="print a Dockerfile"
    )
    image.set_defaults(command=_image)
    reap = commands.add_parser("reap", help="remove boxes whose owner no longer runs")
    reap.set_defaults(command=_reap)
    for command in (check, image, reap):
        command.add_argument(
            "--host", help="Docker endpoint, unix:// or tcp:// (default: DOCKER_HOST or the local one)"
        )
    return parser


def _check(options: argparse.Namespace) -> int:
    checks = asyncio.run(_checked(options))
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"{'holds' if check.ok else 'LEAKS'}  {check.name:<{width}}  {check.evidence}")
    leaks = failed(checks)
    print(f"{len(checks) - len(leaks)} of {len(checks)} promises hold", end="")
    print(
        ""
        if not leaks
        else "; a pool would refuse to start on this engine"
        if options.backend == "docker"
        else ""
    )
    return _LEAKY if leaks else 0


async def _checked(options: argparse.Namespace) -> tuple[Check, ...]:
    backend = _backend(options)
    await backend.open()
    box = await backend.start_box()
    try:
        return await self_check(lambda program: _printed(box, program))
    finally:
        await box.kill()
        await backend.close()


async def _printed(box: Box, program: str) -> str:
    return (await box.python(program)).stdout


def _backend(options: argparse.Namespace) -> Backend:
    if options.backend == "local":
        return LocalBackend()
    from snoozing_sandboxes.engine import DockerBackend

    hosts = (options.host,) if options.host else ()
    return DockerBackend(hosts=hosts, image=options.image, check=False)


def _image(options: argparse.Namespace) -> int:
    from snoozing_sandboxes.image import dockerfile, load_packed, packed_tag
    from snoozing_sandboxes.rootfs import build_archive

    if options.registry:
        print(dockerfile(options.registry, options.package), end="")
        return 0
    tag = packed_tag(options.package)
    if options.out:
        print(build_archive(tag, options.package, options.out), tag)
        return 0
    from snoozing_sandboxes.engine import connect

    with connect(options.host) as client:
        print(load_packed(client, tag, options.package), tag)
    return 0


def _reap(options: argparse.Namespace) -> int:
    from snoozing_sandboxes.engine import connect
    from snoozing_sandboxes.reaper import reap

    with connect(options.host) as client:
        print(f"removed {reap(client)} boxes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
