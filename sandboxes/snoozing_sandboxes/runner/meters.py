"""What a job used, as the kernel counts it: cgroups of both versions, processes where there is no cgroup of ours."""

from __future__ import annotations

import os
from collections.abc import Iterator

from snoozing_sandboxes.runner.sweep import Slot

_CPU_FILES = (
    ("/sys/fs/cgroup/cpuacct/cpuacct.usage", 1e-9),
    ("/sys/fs/cgroup/cpu,cpuacct/cpuacct.usage", 1e-9),
    ("/sys/fs/cgroup/cpu.stat", 1e-6),
)
_OOM_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def _lines(path: str) -> Iterator[list[str]]:
    try:
        with open(path) as file:
            for line in file:
                yield line.split()
    except OSError:
        return


def oom_kills() -> int:
    """Kernel's count for this container (cgroup v2, then v1). A child's death does not set State.OOMKilled."""
    for path in _OOM_FILES:
        for words in _lines(path):
            if words[0] == "oom_kill":
                return int(words[1])
    return 0


def cpu_s(slot: Slot) -> float:
    """CPU seconds of everything in this box so far; in the local backend of the processes now alive."""
    if not slot.uids:
        return _tree_cpu_s(slot)
    for path, unit in _CPU_FILES:
        for words in _lines(path):
            if len(words) == 1 or words[0] == "usage_usec":
                return int(words[-1]) * unit
    return _tree_cpu_s(slot)


def _tree_cpu_s(slot: Slot) -> float:
    ticks = 0
    for pid in slot.others():
        for words in _lines(f"/proc/{pid}/stat"):
            fields = " ".join(words).rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
