"""After a job: no process of its kept alive, no file of its kept, and the proof of both."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from snoozing_sandboxes.runner.confine import undumpable

_MAX_ENTRIES = 20000
_ROUNDS = 400


class Slot:
    """The slot as the supervisor sees it: two uids, the writable folders, the fork server.

    `uids` is empty in the unsafe local backend, where programs run under the caller's own identity: processes are then
    found as descendants (the supervisor is their subreaper), never by `kill(-1)`.
    """

    def __init__(self, uids: tuple[int, ...], folders: tuple[str, ...]) -> None:
        self.uids = uids
        self.folders = folders
        self.zygote = -1
        self.spare = -1
        """The child that waits for the next job; -1 once it has one."""
        self.orphans_cpu_s = 0.0

    def uid(self, role: str) -> int | None:
        return None if not self.uids else self.uids[0 if role == "S" else 1]

    def sweep(self) -> bool:
        """SIGKILL everything a job left; True when there was something. Needs no fork, so it works at the limit of
        processes, and one call kills all of a uid at once, so a fork bomb cannot outrun it."""
        self.reap()
        if not self.others():
            return False
        for turn in range(_ROUNDS):
            self._kill()
            self.reap()
            # kill(-1) does not report ESRCH reliably, so /proc decides when it is over.
            if not self.others():
                return True
            time.sleep(0.0005 if turn < 100 else 0.01)
        return True

    def others(self) -> list[int]:
        """Processes that are neither the supervisor nor its fork server."""
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
        if self.uids:
            return [p for p in pids if p not in (1, self.zygote, self.spare)]
        return [p for p in self._descendants(pids) if p not in (self.zygote, self.spare)]

    def reap(self) -> None:
        """Collect dead orphans and what they used."""
        while True:
            try:
                pid, _, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.zygote:
                os._exit(70)  # useless without it: the host replaces the box
            self.orphans_cpu_s += used.ru_utime + used.ru_stime

    def leave(self) -> NoReturn:
        """The host is gone. In a container the kernel kills the rest with PID 1; elsewhere it takes a sweep."""
        if not self.uids:
            self.sweep()
        os._exit(0)

    def wipe(self) -> bool:
        """Empty the writable folders; False when something is left, and the box must not be used again."""
        budget = _MAX_ENTRIES
        for folder in self.folders:
            if not os.listdir(folder):
                continue
            for uid in self.uids or (None,):
                with self._as(uid):
                    budget = _empty(folder, budget)
            if budget <= 0 or os.listdir(folder):
                return False
        return True

    def _kill(self) -> None:
        if not self.uids:
            for pid in self.others():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return
        for uid in self.uids:
            with self._as(uid), suppress(OSError):
                os.kill(-1, signal.SIGKILL)

    @contextmanager
    def _as(self, uid: int | None) -> Iterator[None]:
        """Act with a child's identity: the supervisor has no power over files or processes of others."""
        if uid is None:
            yield
            return
        os.setresgid(uid, uid, 0)
        os.setresuid(uid, uid, 0)
        try:
            yield
        finally:
            os.setresuid(0, 0, 0)
            os.setresgid(0, 0, 0)
            undumpable()  # a change of identity may have set it again (fs.suid_dumpable)

    def _descendants(self, pids: list[int]) -> list[int]:
        parents: dict[int, int] = {}
        for pid in pids:
            try:
                with open(f"/proc/{pid}/stat") as file:
                    parents[pid] = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
        found, grew = {os.getpid()}, True
        while grew:
            more = {pid for pid, parent in parents.items() if parent in found and pid not in found}
            grew = bool(more)
            found |= more
        return [pid for pid in found if pid != os.getpid()]


def _empty(folder: str, budget: int) -> int:
    """Remove what this identity may remove; returns what is left of the budget.

    Folders are flattened (their entries are hoisted to the top), so that depth never matters: 4,000 nested
    directories defeat every recursive remover.
    """
    top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    serial, prefix = 0, f".{os.urandom(8).hex()}."  # a name that nothing left here can have
    try:
        names = os.listdir(top)
        while names and budget > 0:
            hoisted = []
            for name in names:
                budget -= 1
                if budget <= 0:
                    return budget
                if _removed(top, name):
                    continue
                for entry in _entries(top, name):
                    budget -= 1
                    serial += 1
                    if budget <= 0:
                        return budget
                    if _hoisted(top, name, entry, f"{prefix}{serial}"):
                        hoisted.append(f"{prefix}{serial}")
                _removed(top, name)
            names = hoisted
        return budget
    finally:
        os.close(top)


def _removed(top: int, name: str) -> bool:
    for remove in (os.unlink, os.rmdir):
        try:
            remove(name, dir_fd=top)
            return True
        except OSError:
            pass
    return False


def _entries(top: int, name: str) -> list[str]:
    try:
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            return []
        os.chmod(name, 0o700, dir_fd=top)
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    except OSError:
        return []
    try:
        return os.listdir(inner)
    finally:
        os.close(inner)


def _hoisted(top: int, name: str, entry: str, to: str) -> bool:
    try:
        inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    except OSError:
        return False
    try:
        if _removed(inner, entry):
            return False
        try:
            os.chmod(entry, 0o700, dir_fd=inner)
            os.rename(entry, to, src_dir_fd=inner, dst_dir_fd=top)
        except OSError:
            return False
        return True
    finally:
        os.close(inner)
