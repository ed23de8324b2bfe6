"""What breaks around a job never becomes a verdict on it, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest
from snoozing_sandboxes import BoxLost, EngineUnavailable, ImageMissing, LeakyEngine, Pool, open_pool
from snoozing_sandboxes.engine import DockerBackend
from snoozing_sandboxes.hardening import LABEL, OWNER_LABELS, boot_id, owner_labels
from snoozing_sandboxes.image import packed_tag

from tests.sandboxes.daemon import Daemon, cannot_start
from tests.sandboxes.running import run

SLOW = "import time\nfor _ in range(20): time.sleep(0.1)\nprint('whole')"
DRIVER = """
import asyncio, sys
from snoozing_sandboxes import open_pool
async def main():
    async with open_pool(boxes=2, spares=0) as pool:
        print("open", flush=True)
        await pool.run("import time; time.sleep(60)", wall_s=60.0)
asyncio.run(main())
"""


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    client = docker.DockerClient.from_env(timeout=30)
    yield client
    client.close()


def boxes_of(client: docker.DockerClient, pid: int) -> list[str]:
    found = client.containers.list(
        all=True, filters={"label": f"{OWNER_LABELS[1]}={pid}"}, ignore_removed=True
    )
    return [container.id for container in found]


def within(seconds: float, condition) -> float:
    """Seconds until the condition held; a failure if it never did."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began


def test_no_daemon_is_a_clear_message(tmp_path: Path):
    with pytest.raises(EngineUnavailable, match=r"nothing listens at unix://.*Install Docker and start it"):
        run(open_pool(hosts=[f"unix://{tmp_path}/none.sock"]).__aenter__())
    with pytest.raises(ValueError, match="unix:// or tcp:// endpoints only"):
        open_pool(hosts=["ssh://elsewhere"])


def test_a_daemon_that_hangs_is_noticed_in_bounded_time(tmp_path: Path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path}/hung.sock")
        listener.listen()
        backend = DockerBackend(hosts=[f"unix://{tmp_path}/hung.sock"], timeout_s=0.3)
        with pytest.raises(EngineUnavailable, match="does not answer in time"):
            run(backend.open())


@pytest.mark.docker
def test_an_image_that_cannot_be_had_is_a_clear_message():
    with pytest.raises(ImageMissing, match=r"'localhost:1/none:1' is not on the engine .* pass image='auto'"):
        run(open_pool(image="localhost:1/none:1").__aenter__())


@pytest.mark.docker
@pytest.mark.parametrize(
    ("weakness", "leak"),
    [
        ({"network_mode": "host", "hostname": None}, "no network interface but loopback"),
        ({"volumes": ["/var/run/docker.sock:/var/run/docker.sock"]}, "the engine's own socket"),
        ({"tmpfs": {"/box": "mode=1777", "/tmp": "mode=1777"}}, "the disk cannot be filled"),
        ({"volumes": ["/tmp:/host"]}, "the disk cannot be filled"),
    ],
)
def test_an_engine_that_leaks_is_refused(weakness, leak, client):
    with pytest.raises(LeakyEngine, match=leak):
        run(Pool(DockerBackend(weaken=weakness), boxes=1, spares=0).__aenter__())
    assert within(5, lambda: not boxes_of(client, os.getpid())) < 5


@pytest.mark.docker
def test_a_container_removed_under_a_job_is_retried_once_and_then_lost(client):
    async def removed(times: int):
        async with open_pool(boxes=1, spares=0) as pool:
            task = asyncio.create_task(pool.run(SLOW))
            gone: set[str] = set()
            while len(gone) < times and not task.done():
                for name in set(boxes_of(client, os.getpid())) - gone:
                    await asyncio.sleep(0.15)
                    await asyncio.to_thread(client.api.remove_container, name, force=True)
                    gone.add(name)
                    break
                await asyncio.sleep(0.05)
            return (await task).stdout, pool.statistics.retries

    assert run(removed(1)) == ("whole\n", 1)


@pytest.mark.docker
def test_a_container_removed_under_an_episode_makes_it_lost(client):
    async def removed(pool: Pool) -> None:
        async with pool.box() as box:
            job = asyncio.create_task(box.run_shell("sleep 30"))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(client.api.remove_container, box.name, force=True)
            await job

    async def episode():
        async with open_pool(boxes=1, spares=0) as pool:
            with pytest.raises(BoxLost, match="channel broke"):
                await removed(pool)
            return (await pool.run("print(1)")).stdout

    assert run(episode()) == "1\n"


@pytest.mark.docker
def test_a_gradings_box_that_is_lost_twice_raises_and_gives_no_verdict():
    class Vanishing(DockerBackend):
        async def start_box(self):
            box = await super().start_box()
            asyncio.get_running_loop().call_later(0.5, lambda: asyncio.ensure_future(box.kill()))
            return box

    async def graded():
        pool = Pool(Vanishing(check=False), boxes=1, spares=0)
        async with pool:
            await pool.grade(
                "import time\ntime.sleep(5)\ndef f(x): return 2 * x", "assert f(2) == 4", "tests"
            )

    with pytest.raises(BoxLost, match=r"channel broke|gone"):
        run(graded())


@pytest.mark.docker
def test_a_pool_that_closes_while_it_builds_leaves_no_container(client):
    async def hasty():
        async with open_pool(boxes=1, spares=2) as pool, pool.box() as box:
            await box.kill()

    run(hasty())
    assert within(3.0, lambda: not boxes_of(client, os.getpid())) < 3.0


@pytest.mark.docker
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_host_process_that_ends_in_a_job_leaves_no_container(how, client):
    host = subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ}
    )
    assert host.stdout is not None
    with host.stdout:
        assert host.stdout.readline() == b"open\n"
    assert len(boxes_of(client, host.pid)) == 2
    host.send_signal(getattr(signal, how))
    host.wait(timeout=20)

    assert within(3.0, lambda: not boxes_of(client, host.pid)) < 3.0


@pytest.mark.docker
def test_what_a_dead_owner_left_is_reaped_and_what_a_living_one_has_is_not(client):
    client.images.get(packed_tag())
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = dict(zip(OWNER_LABELS, (boot_id(), str(ended.pid), "1"), strict=True))
    left = client.containers.create(packed_tag(), ["python3"], labels={LABEL: "1", **dead})
    mine = client.containers.create(packed_tag(), ["python3"], labels={LABEL: "1", **owner_labels()})
    try:
        run(_opened_and_closed())
        found = {
            container.id for container in client.containers.list(all=True, filters={"label": f"{LABEL}=1"})
        }
        assert left.id not in found
        assert mine.id in found
    finally:
        mine.remove(force=True)


async def _opened_and_closed() -> None:
    async with open_pool(boxes=1, spares=0):
        pass


@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
@pytest.mark.parametrize(("group", "outcome"), [("docker", "ran 1"), ("nogroup", "permission denied")])
def test_a_user_in_the_docker_group_may_and_another_is_told_what_to_do(group, outcome):
    script = f"""
import asyncio, grp, os
from snoozing_sandboxes import EngineUnavailable, open_pool
import snoozing_sandboxes.engine, docker.transport
async def main():
    async with open_pool(boxes=1, spares=0) as pool:
        print('ran', (await pool.run('print(1)')).stdout.strip(), flush=True)
asyncio.run(main())  # as root, so that every module is imported: the other user may not read this Python
os.setgroups([grp.getgrnam({group!r}).gr_gid])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
try: asyncio.run(main())
except EngineUnavailable as error: print(error, flush=True)
os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert outcome in done.stdout.splitlines()[-1], done


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    if cannot_start():
        pytest.skip(cannot_start())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    daemon = Daemon(tmp_path_factory.mktemp("dockerd"), port)
    daemon.start()
    yield daemon
    daemon.close()


@pytest.mark.docker
def test_boxes_are_spread_over_several_engines(daemon: Daemon):
    async def spread():
        backend = DockerBackend(hosts=["unix:///var/run/docker.sock", daemon.tcp])
        async with Pool(backend, boxes=4, spares=0) as pool:
            living = [engine.boxes for engine in backend.engines]
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(pool.run(f"print({n})")) for n in range(40)]
        return living, [task.result().stdout for task in tasks]

    assert run(spread()) == ([2, 2], [f"{n}\n" for n in range(40)])


@pytest.mark.docker
# The SDK leaks the socket of a connection that is refused while it tries.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_a_daemon_restarted_in_a_job_costs_a_retry_or_the_job_but_gives_no_verdict(daemon: Daemon, how):
    def restart() -> None:
        daemon.stop(how)
        daemon.start()

    async def graded():
        async with open_pool(boxes=2, spares=0, hosts=[daemon.unix]) as pool:
            solution = "import time\ntime.sleep(1.0)\ndef f(x): return 2 * x"
            job = asyncio.create_task(pool.grade(solution, "assert f(2) == 4", "tests", wall_s=30.0))
            await asyncio.sleep(0.2)
            restarting = threading.Thread(target=restart)
            restarting.start()
            try:
                verdict = (await job).ok
            except (BoxLost, EngineUnavailable):
                verdict = None
            await asyncio.to_thread(restarting.join)
            return verdict, (await pool.run("print(1)")).stdout

    verdict, after = run(graded())
    assert verdict in (True, None)
    assert after == "1\n"
