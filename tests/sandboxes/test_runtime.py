"""A verifiers runtime over the pool: what verifiers asks of one, and the check run through it."""

from __future__ import annotations

import pytest
import verifiers.v1 as vf
from snoozing_sandboxes import open_pool
from snoozing_sandboxes.check import failed, self_check
from snoozing_sandboxes.runtime import PoolRuntime
from verifiers.v1.errors import SandboxError
from verifiers.v1.runtimes import SubprocessConfig, SubprocessRuntime

from tests.sandboxes.running import run

BACKENDS = ["local", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_commands_files_and_environment_work_and_the_next_rollout_finds_nothing(backend):
    async def two_rollouts():
        async with open_pool(backend=backend, boxes=1, spares=0) as pool:
            first = PoolRuntime(pool)
            await first.start()
            first.env = {"WHERE": "here"}
            await first.write("src/a.txt", b"hello")
            results = (
                await first.run(["sh", "-c", "cat src/a.txt; echo $WHERE $EXTRA; exit 3"], {"EXTRA": "too"}),
                await first.read("src/a.txt"),
                await first.alive(),
            )
            with pytest.raises(SandboxError, match="over the 3 byte limit"):
                await first.read("src/a.txt", max_bytes=3)
            with pytest.raises(SandboxError, match="no such file"):
                await first.read("absent")
            await first.stop()
            second = PoolRuntime(pool)
            await second.start()
            left = (await second.run(["ls", "-A"], {})).stdout
            await second.stop()
            with pytest.raises(SandboxError, match="has no box"):
                await second.run(["true"], {})
            return results, left

    (result, content, alive), left = run(two_rollouts())
    assert (result.exit_code, result.stdout) == (3, "hellohere too\n")
    assert content == b"hello"
    assert alive
    assert left == ""


def test_a_lost_box_is_a_sandbox_error_that_verifiers_records():
    async def lost():
        async with open_pool(backend="local", boxes=1, spares=0) as pool:
            runtime = PoolRuntime(pool)
            await runtime.start()
            await runtime.box.kill()
            try:
                assert not await runtime.alive()
                await runtime.run(["true"], {})
            finally:
                await runtime.stop()

    with pytest.raises(vf.SandboxError, match="gone"):
        run(lost())


def test_a_command_out_of_time_exits_as_timeout_does():
    async def slow():
        async with open_pool(backend="local", boxes=1, spares=0) as pool:
            runtime = PoolRuntime(pool, wall_s=0.3)
            await runtime.start()
            result = await runtime.run(["sleep", "30"], {})
            await runtime.stop()
            return result.exit_code

    assert run(slow()) == 124


def test_the_check_runs_on_any_runtime_and_finds_that_a_plain_subprocess_is_no_sandbox(tmp_path):
    async def checked():
        runtime = SubprocessRuntime(SubprocessConfig())
        runtime.workdir = tmp_path

        async def program(text: str) -> str:
            return (await runtime.run(["python3", "-c", text], {})).stdout

        return await self_check(program)

    names = [leak.name for leak in failed(run(checked()))]
    assert any("filtered" in name for name in names), names
    assert any("limited" in name for name in names), names


@pytest.mark.docker
def test_the_check_passes_through_the_runtime_on_this_engine():
    async def checked():
        async with open_pool(boxes=1, spares=0) as pool:
            runtime = PoolRuntime(pool)
            await runtime.start()
            try:
                # Limits of a verifiers command are the runtime's, and a probe is a command like any other.
                return await self_check(lambda text: _printed(runtime, text))
            finally:
                await runtime.stop()

    assert failed(run(checked())) == ()


async def _printed(runtime: PoolRuntime, text: str) -> str:
    return (await runtime.run(["python3", "-I", "-c", text], {})).stdout
