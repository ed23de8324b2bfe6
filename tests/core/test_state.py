"""Scheduler state: keyed by content, whole or not at all (D6, B4)."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from snoozing_env import CatalogueError, GroupOutcome, StateError, TaskInfo, build_scheduler
from snoozing_env.schedulers import Curriculum
from snoozing_env.schedulers.state import HEAD, load_snapshot, save_snapshot


def used(keys: list[str], seed: int = 0, rounds: int = 9) -> Curriculum:
    """A scheduler with some history: a third of its tasks mastered."""
    scheduler = build_scheduler({"snooze": {"mode": "jittered"}}, [TaskInfo(key=k) for k in keys], seed)
    assert isinstance(scheduler, Curriculum)
    for _ in range(rounds):
        for task in scheduler.draw(7).tolist():
            solved = 4 if int(re.sub(r"\D", "", keys[task])) % 3 == 0 else 2
            scheduler.observe(GroupOutcome(task=task, rewards_G=np.arange(4) < solved))
    return scheduler


KEYS = [f"task-{i}" for i in range(40)]


def by_key(scheduler: Curriculum) -> dict[str, tuple[float, ...]]:
    columns = scheduler.snapshot().columns
    names = sorted(set(columns) - {"order"})
    return {task.key: tuple(float(columns[n][i]) for n in names) for i, task in enumerate(scheduler.tasks)}


def test_a_saved_scheduler_goes_on_bit_for_bit(tmp_path: Path) -> None:
    original = used(KEYS)
    save_snapshot(original.snapshot(), tmp_path)
    twin = used(KEYS, seed=9, rounds=2)
    twin.restore(load_snapshot(tmp_path))
    for _ in range(30):
        a, b = original.draw(5), twin.draw(5)
        assert a.tolist() == b.tolist()
        for scheduler in (original, twin):
            scheduler.observe_many([GroupOutcome(task=int(t), rewards_G=[1.0, float(t % 2)]) for t in a])
    assert original.state_dict() == twin.state_dict()


def test_reordered_dropped_and_added_tasks_keep_lose_and_start_their_state(tmp_path: Path) -> None:
    original = used(KEYS)
    changed = [*reversed(KEYS[5:]), "task-100", "task-101"]
    scheduler = build_scheduler({"snooze": {"mode": "jittered"}}, [TaskInfo(key=k) for k in changed], 1)
    assert isinstance(scheduler, Curriculum)
    report = scheduler.restore(original.snapshot())
    assert (report.kept, report.fresh, report.dropped) == (35, 2, 5)
    assert str(report) == "35 tasks kept their state, 2 start fresh, 5 are gone"
    before, after = by_key(original), by_key(scheduler)
    assert all(after[k] == before[k] for k in KEYS[5:])
    assert after["task-100"] == by_key(used(["task-100"], rounds=0))["task-100"]
    drawn = {changed[t] for _ in range(37) for t in scheduler.draw(5).tolist()}
    assert len(drawn) == 37, "the walk holds every task once: all of them can be drawn, none twice while busy"


def test_a_checkpoint_of_another_task_set_is_refused_unless_merging_is_asked_for() -> None:
    state = used([f"task-{i}" for i in range(51)]).state_dict()
    other = build_scheduler(
        {"snooze": {"mode": "jittered"}}, [TaskInfo(key=f"task-{i}") for i in range(200)], 0
    )
    with pytest.raises(
        StateError, match=r"has 51 tasks, this run has 200, and they share 51; .*--merge-state"
    ):
        other.load_state_dict(state)
    assert other.load_state_dict(state, merge=True).kept == 51


def test_a_state_of_another_scheduler_or_schema_is_refused() -> None:
    state = used(KEYS).state_dict()
    scheduler = build_scheduler({}, [TaskInfo(key=k) for k in KEYS], 0)
    with pytest.raises(StateError, match=r"of a 'band' scheduler, this run configures 'uniform'"):
        scheduler.load_state_dict({**state, "kind": "band"})
    with pytest.raises(StateError, match=r"state schema 99, this version reads 1"):
        scheduler.load_state_dict({**state, "schema": 99})
    with pytest.raises(StateError, match=r"not a scheduler state: \['columns'"):
        scheduler.load_state_dict({"schema": 1, "kind": "uniform"})


def test_duplicate_keys_are_named() -> None:
    with pytest.raises(CatalogueError, match=r"tasks 0 and 2 share the key 'a'"):
        build_scheduler({}, [TaskInfo(key="a"), TaskInfo(key="b"), TaskInfo(key="a")], 0)
    with pytest.raises(CatalogueError, match=r"the task set is empty"):
        build_scheduler({}, [], 0)


def test_a_torn_or_tampered_state_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"no complete scheduler state in .* \(scheduler.json is missing\)"):
        load_snapshot(tmp_path)
    save_snapshot(used(KEYS).snapshot(), tmp_path)
    table = tmp_path / json.loads((tmp_path / HEAD).read_text())["table"]
    table.write_bytes(table.read_bytes()[:-9] + b"tampered!")
    with pytest.raises(StateError, match=r"does not match its digest"):
        load_snapshot(tmp_path)
    (tmp_path / HEAD).write_text("{")
    with pytest.raises(StateError, match=r"is not JSON"):
        load_snapshot(tmp_path)


def test_no_space_for_the_sidecar_is_named_and_leaves_the_old_state_whole(tmp_path: Path) -> None:
    scheduler = used(KEYS)
    save_snapshot(scheduler.snapshot(), tmp_path)
    before = load_snapshot(tmp_path)
    scheduler.draw(3)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(
        signal.SIGXFSZ, signal.SIG_IGN
    )  # a file-size limit fails writes as a full disk does
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        with pytest.raises(
            StateError, match=r"cannot save the scheduler state to .*; the previous state there is intact"
        ):
            save_snapshot(scheduler.snapshot(), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, previous)
    assert load_snapshot(tmp_path).meta == before.meta
    assert len(list(tmp_path.iterdir())) == 2, "no half-written file is left behind"


def test_a_kill_while_saving_leaves_the_old_or_the_new_state(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from snoozing_env import TaskInfo, build_scheduler
from snoozing_env.schedulers.state import save_snapshot
s = build_scheduler({{}}, [TaskInfo(key=str(i)) for i in range(3000)], 0)
print("ready", flush=True)
while True:
    s.draw(1); s.queue.number += 1
    save_snapshot(s.snapshot(), Path({str(tmp_path)!r}))
"""
    rng = np.random.default_rng(0)
    for _ in range(4):
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        try:
            child.wait(timeout=0.05 + float(rng.uniform(0, 0.1)))
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
        child.wait()
        child.stdout.close()
        if (tmp_path / HEAD).exists():
            assert len(load_snapshot(tmp_path).keys) == 3000


def test_a_task_costs_at_most_64_bytes_of_state() -> None:
    scheduler = build_scheduler({}, [TaskInfo(key=str(i)) for i in range(1000)], 0)
    assert isinstance(scheduler, Curriculum)
    columns = scheduler.snapshot().columns.values()
    assert sum(c.nbytes for c in columns) / 1000 <= 64
