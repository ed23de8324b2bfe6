"""Is this sandbox one? A program that tries the doors, and a judgement of every answer.

Any backend can run it: `self_check` needs only something that runs a Python program and gives back what it printed.

    async def run(program):                                             # a verifiers runtime, for instance
        return (await runtime.run(["python3", "-c", program], {})).stdout
    leaks = failed(await self_check(run))

The probes undo what succeeds, so that they may be run where nothing holds them.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from snoozing_sandboxes.errors import SandboxError

__all__ = ["Check", "failed", "self_check"]

_UNLIMITED = -1
_MAX_PROCESSES = 512
_MAX_WRITABLE_MB = 1024
_TITLES = {
    "network": "no network: internet, container host and cloud metadata are out of reach",
    "socket": "no socket families beyond UNIX and IP (AF_VSOCK reaches the hypervisor past `--network none`)",
    "write": "nothing outside the working folders can be written",
    "process": "init and parent cannot be read or signalled",
    "call": "dangerous system calls are refused",
    "ipc": "no System V or POSIX objects that would outlive a job",
    "engine": "the engine's own socket is not inside",
}


@dataclass(frozen=True, slots=True)
class Check:
    """One promise and whether it was kept."""

    name: str
    ok: bool
    evidence: str
    """What was tried and what came of it."""


def failed(checks: tuple[Check, ...]) -> tuple[Check, ...]:
    return tuple(check for check in checks if not check.ok)


async def self_check(run: Callable[[str], Awaitable[str]]) -> tuple[Check, ...]:
    """Run the probes in a sandbox and judge them; SandboxError if they did not run to their end."""
    program = resources.files("snoozing_sandboxes").joinpath("probes.py").read_text(encoding="utf-8")
    printed = await run(program)
    try:
        found = json.loads(printed.strip().rpartition("\n")[2])
        return tuple(_judged(found))
    except (ValueError, KeyError, TypeError) as error:
        raise SandboxError(
            f"the check did not finish in the sandbox: {error}; it printed {printed[-300:]!r}"
        ) from None


def _judged(found: Mapping[str, Any]) -> Iterator[Check]:
    for group, title in _TITLES.items():
        doors = {name: answer for name, answer in found.items() if name.split(" ")[0] == group}
        opened = [f"{name}: {answer}" for name, answer in doors.items() if answer.startswith("open")]
        shut = f"{len(doors)} tried, all shut"
        yield Check(title, bool(doors) and not opened, "; ".join(opened) or shut)
    facts = found["facts"]
    yield from _identity(facts)
    yield from _limits(facts)


def _identity(facts: Mapping[str, Any]) -> Iterator[Check]:
    status = facts["status"]
    yield Check("programs do not run as root", facts["uid"] != 0, f"uid {facts['uid']}")
    powers = {name: status[name] for name in ("CapEff", "CapPrm", "CapAmb") if int(status[name] or "0", 16)}
    yield Check("programs hold no capabilities", not powers, str(powers or "none"))
    yield Check("no new privileges, ever", status["NoNewPrivs"] == "1", f"NoNewPrivs {status['NoNewPrivs']}")
    yield Check("system calls are filtered", status["Seccomp"] == "2", f"Seccomp mode {status['Seccomp']}")
    others = [name for name in facts["interfaces"] if name not in ("lo", "tunl0", "sit0", "ip6tnl0")]
    yield Check("no network interface but loopback", not others, ", ".join(facts["interfaces"]) or "none")


def _limits(facts: Mapping[str, Any]) -> Iterator[Check]:
    limits = facts["limits"]
    free = [name for name in ("AS", "NPROC", "NOFILE", "FSIZE", "CPU") if limits[name] == _UNLIMITED]
    yield Check("memory, CPU, files and processes are limited", not free, f"unlimited: {free or 'none'}")
    yield Check("no core dumps", limits["CORE"] == 0, f"RLIMIT_CORE {limits['CORE']}")
    yield Check("no message queues", limits["MSGQUEUE"] == 0, f"RLIMIT_MSGQUEUE {limits['MSGQUEUE']}")
    yield Check(
        "a fork bomb hits a wall", facts["forks"] < _MAX_PROCESSES, f"{facts['forks']} forks got through"
    )
    large = {path: room for path, room in facts["writable"].items() if room[0] > _MAX_WRITABLE_MB}
    yield Check("the disk cannot be filled", not large, f"[MB, files] {large or facts['writable']}")
