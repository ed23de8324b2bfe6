"""Runs inside a sandbox as any untrusted program would, tries the doors, and prints what it found as JSON.

Standard library only, no imports of ours: the text of this file is what is sent. It may well run where nothing holds
it, as root even: so no probe changes anything that it does not undo, and what cannot be undone is tried with arguments
that must fail later than the permission check.
"""

import ctypes
import errno
import json
import os
import resource
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)
found = {}
REFUSED = (errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EAFNOSUPPORT)
NAME = f"snoozing-probe-{os.getpid()}-{time.monotonic_ns()}"
IPC_PRIVATE, IPC_RMID = 0, 0


def attempt(name, door):
    """What came of it: "open" plus what it gave, or the error."""
    try:
        value = door()
    except BaseException as error:
        found[name] = "shut: " + type(error).__name__ + " " + str(getattr(error, "errno", "") or "")
        return
    found[name] = "open: " + str(value)[:80]


def call(value):
    """A system call's result. Any error but a refusal means that the kernel got as far as looking at the arguments."""
    code = ctypes.get_errno()
    if value == -1 and code in REFUSED:
        raise OSError(code, "refused")
    return f"returned {value}, errno {code if value == -1 else 0}"


def in_child(door):
    """Try it in a fork, since success would change this process."""

    def tried():
        child = os.fork()
        if child == 0:
            try:
                door()
                os._exit(0)
            except BaseException:
                os._exit(1)
        if os.waitpid(child, 0)[1]:
            raise OSError(errno.EPERM, "refused")
        return "done"

    return tried


def connect(address):
    with socket.socket() as line:
        line.settimeout(0.5)
        line.connect(address)
        return "connected"


def open_socket(family, kind, protocol=0):
    socket.socket(family, kind, protocol).close()
    return "a socket"


def create(folder):
    """A new file, removed again."""
    path = os.path.join(folder, NAME)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return "created"


def opens(path, how):
    """Only opened, neither read nor written: what lies there is not ours."""
    os.close(os.open(path, how | os.O_NONBLOCK))
    return "opened"


def make_device():
    path = "/tmp/" + NAME
    os.mknod(path, 0o60600, os.makedev(254, 0))
    os.unlink(path)


def ptrace_own_child():
    child = os.fork()
    if child == 0:
        time.sleep(2)
        os._exit(0)
    try:
        return call(libc.ptrace(16, child, 0, 0))
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0x40000000)


def shared_memory():
    number = libc.shmget(IPC_PRIVATE, 4096, 0o1600)
    given = call(number)
    libc.shmctl(number, IPC_RMID, None)
    return given


def semaphore():
    number = libc.semget(IPC_PRIVATE, 1, 0o1600)
    given = call(number)
    libc.semctl(number, 0, IPC_RMID)
    return given


def message_queue():
    name = b"/" + NAME.encode()
    given = call(libc.mq_open(name, 0o102, 0o600, None))
    libc.mq_unlink(name)
    return given


def forks():
    children = []
    try:
        while len(children) < 600:
            child = os.fork()
            if child == 0:
                time.sleep(20)
                os._exit(0)
            children.append(child)
    except OSError:
        pass
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return len(children)


def status():
    with open("/proc/self/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def writable_mb():
    """Space a program can fill, [MB, files] by writable mount."""
    sizes = {}
    with open("/proc/self/mountinfo") as file:
        for line in file:
            path = line.split()[4]
            if os.path.isdir(path) and os.access(path, os.W_OK):
                room = os.statvfs(path)
                sizes[path] = [room.f_blocks * room.f_frsize >> 20, room.f_files]
    return sizes


ADDRESSES = {"internet": ("1.1.1.1", 53), "gateway": ("172.17.0.1", 22), "metadata": ("169.254.169.254", 80)}
FAMILIES = {"vsock": (40, 1), "netlink": (16, 3), "packet": (17, 3), "alg": (38, 5), "raw": (2, 3, 1)}
ENGINES = ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock")
NUMBERS = {"x86_64": (425, 323, 321, 298, 250), "aarch64": (425, 282, 280, 241, 219)}.get(os.uname().machine)

for label, address in ADDRESSES.items():
    attempt(f"network {label}", lambda address=address: connect(address))
for label, arguments in FAMILIES.items():
    attempt(f"socket {label}", lambda arguments=arguments: open_socket(*arguments))
for folder in ("/", "/usr", "/etc", "/var", "/root", "/dev", "/sys"):
    attempt(f"write {folder}", lambda folder=folder: create(folder))
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
    attempt(f"write {path}", lambda path=path: opens(path, os.O_WRONLY))
for pid in {1, os.getppid()} - {os.getpid()}:
    who = "init" if pid == 1 else "parent"
    for name in ("environ", "mem", "maps", "fd/0", "fd/1"):
        attempt(f"process {who} {name}", lambda pid=pid, name=name: opens(f"/proc/{pid}/{name}", os.O_RDONLY))
    attempt(f"process {who} signal", lambda pid=pid: os.kill(pid, 0) or "may signal")
attempt("call ptrace", ptrace_own_child)
if NUMBERS:
    uring, uffd, bpf, perf, keyctl = NUMBERS
    attempt("call io_uring", lambda: call(libc.syscall(uring, 8, None)))
    attempt("call userfaultfd", lambda: call(libc.syscall(uffd, 1)))
    attempt("call bpf", lambda: call(libc.syscall(bpf, 0, None, 0)))
    attempt("call perf_event_open", lambda: call(libc.syscall(perf, None, 0, -1, -1, 0)))
    attempt("call keyctl", lambda: call(libc.syscall(keyctl, 0, -3, 0)))
attempt("call unshare", in_child(lambda: call(libc.unshare(0x10000000))))
attempt("call mount", lambda: call(libc.mount(b"none", b"/tmp", b"no such file system", 0, None)))
attempt("call chroot", in_child(lambda: os.chroot("/tmp")))
attempt("call mknod", make_device)
attempt("call setuid", in_child(lambda: os.setuid(0)))
attempt("ipc shared memory", shared_memory)
attempt("ipc semaphore", semaphore)
attempt("ipc message queue", message_queue)
attempt("engine socket", lambda: next(path for path in ENGINES if os.path.exists(path)))

facts = {"uid": os.getuid(), "forks": forks(), "writable": writable_mb(), "status": {}, "limits": {}}
facts["interfaces"] = sorted(os.listdir("/sys/class/net"))
for name in ("CapEff", "CapPrm", "CapAmb", "NoNewPrivs", "Seccomp"):
    facts["status"][name] = status().get(name)
for name in ("CORE", "AS", "NPROC", "NOFILE", "FSIZE", "CPU", "MSGQUEUE"):
    facts["limits"][name] = resource.getrlimit(getattr(resource, "RLIMIT_" + name))[0]
found["facts"] = facts
print(json.dumps(found))
