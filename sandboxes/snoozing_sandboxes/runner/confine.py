"""What a child gives up before it reads a byte of its program: limits, identity, system calls."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = (
    1,
    4,
    22,
    36,
    38,
)
libc = ctypes.CDLL(None, use_errno=True)
_PYTHON = ctypes.PyDLL(None, use_errno=True)
_CHILD_NICE = 19

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_DENIED = {
    "x86_64": """101 310 311 29 30 31 64 65 66 220 68 69 70 71 240 241 425 426 427 323 298 321
    248 249 250 312 438 304 447 272 308 165 135 179 163 167 169 175 246 278""",
    "aarch64": """117 270 271 194 196 195 190 193 191 192 186 189 188 187 180 181 425 426 427 282
    241 280 217 218 219 272 438 265 447 97 268 40 92 60 89 224 142 105 104 75""",
}
"""ptrace, process_vm_*, SysV shm/sem/msg, mq_open/unlink, io_uring, userfaultfd, perf, bpf, keys, kcmp, pidfd_getfd,
open_by_handle_at, memfd_secret, unshare, setns, mount, personality, quotactl, acct, swapon, reboot, init_module,
kexec_load, vmsplice."""
_SOCKET = {"x86_64": 41, "aarch64": 198}
_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _JUMP_EQ, _JUMP_GE, _RETURN = 0x20, 0x15, 0x35, 0x06


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("jt", ctypes.c_ubyte),
        ("jf", ctypes.c_ubyte),
        ("k", ctypes.c_uint),
    )


class Filter(ctypes.Structure):
    """A seccomp program (struct sock_fprog)."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def build_filter(*, inet: bool = True) -> Filter | None:
    """The filter for this machine, stacked on the engine's own; None where the architecture is unknown.

    Sockets are AF_UNIX and, with `inet`, AF_INET(6): `--network none` does not stop AF_VSOCK, which reaches the
    hypervisor. A call through another ABI is killed or refused, since its numbers mean other calls.
    """
    machine = platform.machine()
    if machine not in _ARCH:
        return None
    code = [(_LOAD, 0, 0, 4), (_JUMP_EQ, 1, 0, _ARCH[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    if machine == "x86_64":
        code += [(_JUMP_GE, 0, 1, 0x40000000), refuse]
    for number in map(int, _DENIED[machine].split()):
        code += [(_JUMP_EQ, 0, 1, number), refuse]
    families = (_AF_UNIX, _AF_INET, _AF_INET6) if inet else (_AF_UNIX,)
    code += [(_JUMP_EQ, 0, len(families) + 2, _SOCKET[machine]), (_LOAD, 0, 0, 16)]
    code += [(_JUMP_EQ, len(families) - i, 0, family) for i, family in enumerate(families)]
    code += [(_RETURN, 0, 0, _ERRNO | errno.EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    array = (_Instruction * len(code))(*[_Instruction(*fields) for fields in code])
    program = Filter(len(code), array)
    program.keep = array  # type: ignore[attr-defined]  # the pointer does not keep it alive
    return program


def bare_fork() -> int:
    """fork(2) without Python's hooks, which repair locks and threads that a single-threaded caller does not have, and
    touch, so copy, two hundred pages in doing so. `random` is not seeded anew: a program draws the same each time."""
    pid = int(_PYTHON.fork())
    if pid < 0:
        raise OSError(ctypes.get_errno(), "fork")
    return pid


def undumpable() -> None:
    """No ptrace, no /proc/PID/mem, environ or fd for anyone without CAP_SYS_PTRACE."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


COMMON_LIMITS = {"core": 0, "memlock": 0, "msgqueue": 0, "sigpending": 256, "stack": 64 << 20, "nofile": 256}
"""The zygote holds these already, so that its children need not."""


def limit(name: str, value: int) -> None:
    """Soft and hard alike, at most what is allowed already."""
    which = getattr(resource, f"RLIMIT_{name.upper()}")
    ceiling = resource.getrlimit(which)[1]
    value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
    resource.setrlimit(which, (value, value))


def _die_first() -> None:
    """When memory runs out, the program goes and its supervisor stays."""
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, b"1000")
    except OSError:
        pass
    finally:
        os.close(fd)


def confine(limits: dict[str, Any], uid: int | None, program: Filter | None) -> None:
    """Limits, then identity, then system calls; after this nothing can be taken back.

    `uid` None keeps the caller's identity (the unsafe local backend).
    """
    _die_first()
    for name, value in limits.items():
        if value != COMMON_LIMITS.get(name):
            limit(name, value)
    if uid is not None:
        # Within the box only (its cgroup is scheduled as one): the supervisor gets its turn under a fork bomb.
        os.nice(_CHILD_NICE)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if program is not None and libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the seccomp filter was refused")
