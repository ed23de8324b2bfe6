"""What a container may do, as data: the flags of every box. check.py proves on the engine that they hold."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["FOLDERS", "LABEL", "OWNER_LABELS", "Hardening", "owner_labels"]

LABEL = "snoozing.sandbox"
OWNER_LABELS = ("snoozing.owner.boot", "snoozing.owner.pid", "snoozing.owner.start")
FOLDERS = ("/box", "/tmp", "/dev/shm")
"""All a program can write; the first is its working folder. Wiped after every job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardening:
    """Limits of the whole box; those of a job come on top."""

    memory_mb: int = 512
    """Memory and files together (tmpfs counts), no swap."""
    cpus: float = 1.0
    pids: int = 128
    folder_mb: int = 64
    """Size of each writable folder."""
    folder_inodes: int = 8192

    def options(self, uid: int) -> dict[str, Any]:
        """Keyword arguments of docker's `containers.create`."""
        tmpfs = f"rw,nosuid,nodev,size={self.folder_mb}m,nr_inodes={self.folder_inodes},mode=1777"
        return {
            "user": "0:0",  # PID 1 only, to become the job's uids; see cap_add
            "cap_drop": ["ALL"],
            "cap_add": ["SETUID", "SETGID"],
            "security_opt": ["no-new-privileges:true"],
            "network_mode": "none",
            "ipc_mode": "private",
            "read_only": True,
            "tmpfs": {"/box": f"exec,{tmpfs}", "/tmp": f"noexec,{tmpfs}"},
            "shm_size": "16m",
            "mem_limit": f"{self.memory_mb}m",
            "memswap_limit": f"{self.memory_mb}m",
            "nano_cpus": int(self.cpus * 1e9),
            "pids_limit": self.pids,
            "log_config": {"Type": "none"},
            "auto_remove": True,
            "hostname": "box",
            "working_dir": "/",
            "environment": {"PYTHONHASHSEED": "0"},
            "labels": {LABEL: "1", "snoozing.uid": str(uid), **owner_labels()},
        }


def owner_labels() -> dict[str, str]:
    """Who this process is, so that others can tell that it is gone: boot, process id, start time in ticks."""
    values = (boot_id(), str(os.getpid()), str(start_ticks(os.getpid())))
    return dict(zip(OWNER_LABELS, values, strict=True))


def boot_id() -> str:
    """This boot of this machine; the host name where the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def start_ticks(pid: int) -> int | None:
    """When a process started (process ids are used again); None if there is no such process, 0 if unknowable."""
    if not Path("/proc/self/stat").exists():
        return 0
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return None
