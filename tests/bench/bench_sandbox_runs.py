"""Must show 1: what a run costs beside a warm exec and a cold container, and that speed bought no weakness.

Wall times depend on who else uses the machine, so ours and theirs are taken in turns and compared as ratios; CPU per
run counts everything that works for it: this process, the daemons, their shims and the boxes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from snoozing_sandboxes import Pool, open_pool
from snoozing_sandboxes.check import failed, self_check
from snoozing_sandboxes.hardening import OWNER_LABELS, Hardening
from snoozing_sandboxes.image import ensure_image
from snoozing_sandboxes.runtime import PoolRuntime

from tests.sandboxes.forging import FORGERIES, NAIVE, SAFE, UNITTEST, forged

_DAEMONS = ("dockerd", "containerd", "containerd-shim")
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_IN_A_ROW = 100
_NUMPY = "import numpy as np; print(np.arange(3).sum())"
_HOST = """
import asyncio
from snoozing_sandboxes import open_pool
async def main():
    async with open_pool(boxes=2, spares=0) as pool:
        print("open", flush=True)
        await pool.run("import time; time.sleep(60)", wall_s=60.0)
asyncio.run(main())
"""


def figures(quick: bool = False) -> dict[str, Any]:
    """Every number; about 40 s quick, two minutes in full."""
    client = docker.DockerClient.from_env(timeout=60)
    try:
        client.ping()
    except docker.errors.DockerException as error:
        return {"skipped": f"needs a Docker engine: {error}"}
    try:
        return asyncio.run(_figures(client, quick))
    finally:
        client.close()


async def _figures(client: docker.DockerClient, quick: bool) -> dict[str, Any]:
    rounds = 2 if quick else 8
    result: dict[str, Any] = {}
    async with open_pool(boxes=4, spares=0) as pool:
        # One job at a time uses one box only: the box that came back last is lent first.
        result["print(1), one box"] = await _beside(client, pool, rounds)
        result["timeout overshoot s"] = await _overshoot(pool, 1 if quick else 5)
        result["verifiers runtime ms"] = await _runtime(pool, 20 * rounds)
        result["print(1), four boxes"] = await _rate(client, pool, lambda: pool.run("print(1)"), rounds, 4)
        graded = lambda: pool.grade("def f(x): return 2 * x", UNITTEST, "tests")  # noqa: E731
        result["tests in a second process, four boxes"] = await _rate(client, pool, graded, rounds, 4)
        result["queued"] = await _queued(pool, 200 if quick else 1000)
        result["forged"] = await _forged(pool, ("exit code", "sentinel") if quick else tuple(NAIVE))
    async with open_pool(boxes=1, spares=0, packages=["numpy"], preload=["numpy"]) as pool:
        result["numpy preloaded, one box"] = await _rate(client, pool, lambda: pool.run(_NUMPY), rounds, 1)
        async with pool.box() as box:
            checks = await self_check(lambda program: _printed(box.python, program))
        result["promises that hold"] = f"{len(checks) - len(failed(checks))} of {len(checks)}"
    result["left after SIGKILL"] = _left_after_kill(client)
    return result


async def _printed(python: Callable[[str], Awaitable[Any]], program: str) -> str:
    return (await python(program)).stdout


async def _beside(client: docker.DockerClient, pool: Pool, rounds: int) -> dict[str, Any]:
    """Ours, an exec in a warm container and a cold hardened container, in turns."""
    image = ensure_image(client, "auto")
    ours: list[float] = []
    execs: list[float] = []
    colds: list[float] = []
    cpu_s = 0.0
    command = ["python3", "-I", "-S", "-c", "print(1)"]
    warm = client.containers.run(image, ["sleep", "1000"], detach=True, **_bare_options())
    try:
        for _ in range(rounds):
            for _ in range(10):
                await pool.run("print(1)")  # the machine's caches are the previous round's
            with _cpu(client) as spent:
                ours += [await _timed(lambda: pool.run("print(1)")) for _ in range(_IN_A_ROW)]
            cpu_s += spent[0]
            execs += [await _timed(lambda: asyncio.to_thread(warm.exec_run, command)) for _ in range(6)]
            colds += [
                await _timed(
                    lambda: asyncio.to_thread(client.containers.run, image, command, **_bare_options())
                )
                for _ in range(2)
            ]
    finally:
        warm.remove(force=True)
    batched = [ours[start : start + _IN_A_ROW] for start in range(0, len(ours), _IN_A_ROW)]
    p50, exec_p50, cold_p50 = (statistics.median(times) for times in (ours, execs, colds))
    return {
        "p50 ms": round(1e3 * p50, 2),
        "per second": round(1 / statistics.mean(ours), 1),
        "per second, best round": round(max(_IN_A_ROW / sum(r) for r in batched), 1),
        "CPU ms per run": round(1e3 * cpu_s / len(ours), 2),
        "warm exec p50 ms": round(1e3 * exec_p50, 1),
        "cold run p50 ms": round(1e3 * cold_p50, 1),
        "times a warm exec": round(exec_p50 / p50, 1),
        "times a cold run": round(cold_p50 / p50, 1),
    }


def _bare_options() -> dict[str, Any]:
    """A box's flags, for a container that is not a box: with its own output, and nobody's to reap."""
    options = Hardening().options(0)
    return {
        name: value for name, value in options.items() if name not in ("labels", "log_config", "auto_remove")
    } | {"remove": True}


async def _timed(work: Callable[[], Awaitable[Any]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def _rate(
    client: docker.DockerClient, pool: Pool, work: Callable[[], Awaitable[Any]], rounds: int, at_once: int
) -> dict[str, Any]:
    """Runs per second with `at_once` in flight; the mean, and the best round, which others disturbed least."""
    each = 25

    async def worker() -> list[float]:
        times = []
        for _ in range(each):
            began = time.perf_counter()
            result = await work()
            times.append(time.perf_counter() - began)
            if not result.ok:
                raise RuntimeError(f"a run that had to succeed did not: {result}")
        return times

    rates, times, cpu_s = [], [], 0.0
    for _ in range(rounds):
        with _cpu(client) as spent:
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(worker()) for _ in range(at_once)]
            rates.append(at_once * each / (time.perf_counter() - began))
        cpu_s += spent[0]
        times += [t for task in tasks for t in task.result()]
    return {
        "p50 ms": round(1e3 * statistics.median(times), 2),
        "per second": round(statistics.mean(rates), 1),
        "per second, best round": round(max(rates), 1),
        "CPU ms per run": round(1e3 * cpu_s / len(times), 2),
    }


@contextmanager
def _cpu(client: docker.DockerClient) -> Iterator[list[float]]:
    """[CPU seconds] of the block: this process, the daemons and our boxes."""
    spent: list[float] = []
    # Asking the engine costs CPU too: it is asked outside what is measured.
    before = {**_cpu_of_boxes(client), **_cpu_of_processes()}
    yield spent
    after = {**_cpu_of_processes(), **_cpu_of_boxes(client)}
    spent.append(sum(after[name] - before.get(name, 0.0) for name in after))


def _cpu_of_processes() -> dict[str, float]:
    """This one and the daemons."""
    found = {"this process": time.process_time()}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                head, _, tail = (folder / "stat").read_text().rpartition(")")
            except OSError:
                continue
            if head.partition("(")[2].startswith(_DAEMONS):
                found[folder.name] = sum(map(int, tail.split()[11:13])) * _TICK_S
    return found


def _cpu_of_boxes(client: docker.DockerClient) -> dict[str, float]:
    """By the kernel's own count; the engine's statistics take a second per container."""
    found = {}
    for box in _boxes_of(client, os.getpid()):
        pid = client.api.inspect_container(box)["State"]["Pid"]
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            number, controllers, group = line.split(":", 2)
            if "cpuacct" in controllers.split(","):
                usage = Path(f"/sys/fs/cgroup/{controllers}{group}/cpuacct.usage").read_text()
                found[box] = int(usage) * 1e-9
            elif number == "0" and (statistic := Path(f"/sys/fs/cgroup{group}/cpu.stat")).exists():
                found[box] = int(statistic.read_text().split()[1]) * 1e-6
    return found


def _boxes_of(client: docker.DockerClient, pid: int) -> list[str]:
    label = {"label": f"{OWNER_LABELS[1]}={pid}"}
    return [c.id for c in client.containers.list(all=True, filters=label, ignore_removed=True)]


async def _overshoot(pool: Pool, times: int) -> dict[str, float]:
    """Seconds beyond a wall limit of half a second until the result is here and the box is clean."""
    programs = {
        "sleep": "import time; time.sleep(60)",
        "busy": "while True: pass",
        "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    }
    over = {}
    for name, program in programs.items():
        took = [
            await _timed(lambda program=program: pool.run(program, wall_s=0.5, cpu_s=30.0)) - 0.5
            for _ in range(times)
        ]
        over[name] = round(max(took), 3)
    return over


async def _runtime(pool: Pool, count: int) -> dict[str, float]:
    """p50 of commands through the verifiers runtime."""
    runtime = PoolRuntime(pool)
    await runtime.start()
    commands = {
        "true": ["true"],
        "sh": ["sh", "-c", "echo hi"],
        "python": ["python3", "-I", "-S", "-c", "print(1)"],
    }
    result = {}
    for name, argv in commands.items():
        times = [await _timed(lambda argv=argv: runtime.run(argv, {})) for _ in range(count)]
        result[f"{name} p50"] = round(1e3 * statistics.median(times), 2)
    python = [await _timed(lambda: runtime.box.python("print(1)")) for _ in range(count)]
    result["python, forked p50"] = round(1e3 * statistics.median(python), 2)
    await runtime.stop()
    return result


async def _queued(pool: Pool, count: int) -> dict[str, Any]:
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(pool.run(f"print({n})")) for n in range(count)]
    right = sum(task.result().stdout == f"{n}\n" for n, task in enumerate(tasks))
    return {"jobs": count, "right": right, "seconds": round(time.perf_counter() - began, 2)}


async def _forged(pool: Pool, naive: tuple[str, ...]) -> Mapping[str, str]:
    """How many of the forgeries passed, by protocol; the naive ones are the control."""
    passed = {**await forged(pool, SAFE), **await forged(pool, {name: NAIVE[name] for name in naive})}
    kinds = {**dict.fromkeys(SAFE, "safe"), **dict.fromkeys(naive, "naive")}
    return {f"{kinds[name]}: {name}": f"{len(names)} of {len(FORGERIES)}" for name, names in passed.items()}


def _left_after_kill(client: docker.DockerClient) -> dict[str, Any]:
    host = subprocess.Popen([sys.executable, "-c", _HOST], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert host.stdout is not None
    with host.stdout:
        host.stdout.readline()
    boxes = len(_boxes_of(client, host.pid))
    host.send_signal(signal.SIGKILL)
    host.wait()
    began = time.perf_counter()
    while (left := len(_boxes_of(client, host.pid))) and time.perf_counter() - began < 10:
        time.sleep(0.02)
    return {
        "boxes before": boxes,
        "boxes left": left,
        "seconds until none": round(time.perf_counter() - began, 2),
    }
