"""What every backend does: results, limits, episodes. One suite for the local backend and for Docker."""

from __future__ import annotations

import asyncio

import pytest
from snoozing_sandboxes import BoxLost, FileTooLarge, PoolClosed, open_pool


@pytest.mark.parametrize(
    ("code", "status", "stdout"),
    [
        ("print(input()[::-1])", "ok", "cba\n"),
        ("print(1 / 0)", "error", ""),
        ("import sys; sys.exit(3)", "error", ""),
        ("import os; print('x', flush=True); os.abort()", "crash", "x\n"),
        ("x = bytearray(1 << 30)", "memory", ""),
        ("import sys; print(__name__, __file__, sys.argv[1:])", "ok", "__main__ solution.py ['a b']\n"),
        (
            "import threading; e = threading.Event(); threading.Thread(target=lambda: print(e.wait())).start(); print('early'); e.set()",
            "ok",
            "early\nTrue\n",
        ),
        ("print(open('data/in.txt').read())", "ok", "here\n"),
    ],
)
def test_a_program_ends_as_python_would_end_it(pool, loop, code, status, stdout):
    result = loop.run(pool.run(code, stdin="abc", argv=["a b"], files={"data/in.txt": "here"}))

    assert (result.status, result.stdout) == (status, stdout)
    assert result.cpu_s < 2.0


def test_a_traceback_shows_the_program_and_nothing_of_the_runner(pool, loop):
    result = loop.run(pool.run("def f():\n    raise KeyError('k')\nf()"))

    assert result.exit_code == 1
    assert "KeyError: 'k'" in result.stderr
    assert 'File "solution.py", line 2' in result.stderr
    assert "runner" not in result.stderr


def test_cpu_is_limited_for_the_whole_tree_and_wall_for_those_who_sleep(pool, loop):
    busy = "import os\nfor _ in range(3): os.fork()\nwhile True: pass"
    assert loop.run(pool.run(busy, cpu_s=0.3)).status == "timeout"
    assert loop.run(pool.run("import time; time.sleep(60)", wall_s=0.3)).status == "timeout"


def test_output_is_kept_up_to_its_limit_and_a_flood_ends_the_program(pool, loop):
    result = loop.run(pool.run("while True: print('x' * 100)", output_bytes=1000))

    assert (result.status, len(result.stdout), result.truncated) == ("output", 1000, True)


def test_nothing_of_a_job_is_left_for_the_next(pool, loop):
    leave = "import os, sys\nopen('left', 'w').write('x'); os.makedirs('a/b'); sys.modules['json'] = None; os.environ['K'] = 'v'"
    look = "import json, os\nprint(os.listdir('.'), 'K' in os.environ)"

    async def both():
        for _ in range(4):
            await pool.run(leave)
        return {(await pool.run(look)).stdout for _ in range(4)}

    assert loop.run(both()) == {"[] False\n"}


def test_queued_jobs_each_get_their_own_answer(pool, loop):
    async def many():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(pool.run(f"print({n} ** 2)")) for n in range(100)]
        return [task.result().stdout for task in tasks]

    assert loop.run(many()) == [f"{n**2}\n" for n in range(100)]


def test_an_episode_keeps_its_files_and_processes_until_its_end(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.write({"src/a.py": "print('hi')", "run.sh": b"#!/bin/sh\necho ran"})
            first = await box.run_shell(
                "python3 src/a.py; ./run.sh; (while true; do echo x >> log; sleep 0.01; done) & echo $K",
                env={"K": "v"},
            )
            await box.run_shell("while [ ! -s log ]; do sleep 0.01; done", cpu_s=5)
            swept = await box.sweep(), await box.sweep()
            files = await box.read(["src", "log", "absent"])
            python = await box.python("print(open('src/a.py').read())")
            await box.reset()
            return first, swept, files, python, await box.read(["src", "log"])

    first, swept, files, python, after = loop.run(episode())
    assert first.stdout == "hi\nran\nv\n"
    assert swept == (True, False)
    assert files["src/a.py"] == b"print('hi')"
    assert set(files) == {"src/a.py", "log"}
    assert python.stdout == "print('hi')\n"
    assert after == {}


def test_reading_is_bounded_and_follows_no_link(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.run_shell(
                "head -c 100000 /dev/zero > big; ln -s /etc/passwd link; mkfifo pipe; mkdir d; ln -s /etc d/etc"
            )
            with pytest.raises(FileTooLarge, match="more than 1000 bytes"):
                await box.read(["big"], max_bytes=1000)
            with pytest.raises(ValueError, match="no path within a box"):
                await box.read(["../x"])
            return await box.read(["big", "link", "pipe", "d"]), await box.read(
                ["big"], max_bytes=10, truncate=True
            )

    everything, truncated = loop.run(episode())
    assert {name: len(content) for name, content in everything.items()} == {"big": 100000}
    assert truncated == {"big": bytes(10)}


def test_writing_replaces_a_link_instead_of_following_it(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.run_shell("echo safe > target; ln -s target a; mkfifo b")
            await box.write({"a": "new", "b": "new"})
            return await box.read(["target", "a", "b"])

    assert loop.run(episode()) == {"target": b"safe\n", "a": b"new", "b": b"new"}


def test_a_command_that_prints_much_is_cut_not_killed(pool, loop):
    async def episode():
        async with pool.box() as box:
            return await box.run_shell("head -c 300000 /dev/zero; echo >&2 done")

    result = loop.run(episode())
    assert (result.status, len(result.stdout), result.truncated, result.stderr) == (
        "ok",
        65536,
        True,
        "done\n",
    )


def test_a_cancelled_job_costs_its_box_and_nothing_else(pool, loop):
    async def cancel():
        before = pool.statistics.replaced
        task = asyncio.create_task(pool.run("import time; time.sleep(60)", wall_s=60.0))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return (await pool.run("print(1)")).stdout, pool.statistics.replaced - before

    assert loop.run(cancel()) == ("1\n", 1)


def test_a_box_that_is_lost_under_an_episode_raises_and_is_replaced(pool, loop):
    async def episode():
        async with pool.box() as box:
            await box.kill()
            await box.run_shell("true")

    with pytest.raises(BoxLost, match="gone"):
        loop.run(episode())
    assert loop.run(pool.run("print(1)")).ok


def test_a_closed_pool_and_an_impossible_one_say_so(backend, loop):
    with pytest.raises(ValueError, match="at least one box"):
        open_pool(backend=backend, boxes=0)
    with pytest.raises(ValueError, match='choose "docker" or "local"'):
        open_pool(backend="podman")

    async def closed():
        async with open_pool(backend=backend, boxes=1, spares=0) as pool:
            pass
        await pool.run("print(1)")

    with pytest.raises(PoolClosed, match="open another"):
        loop.run(closed())
