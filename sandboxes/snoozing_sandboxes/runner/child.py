"""From the fork to the program: a child takes its pipes, gives up its powers, reads its payload and runs it."""

from __future__ import annotations

import atexit
import fcntl
import os
import stat
import sys
import threading
import traceback
import types
from typing import Any, NoReturn

from snoozing_sandboxes.runner.confine import Filter, confine
from snoozing_sandboxes.runner.judge import judge
from snoozing_sandboxes.runner.serve import Server, answer_calls
from snoozing_sandboxes.runner.wire import pack, read_frame, write_all

PAYLOAD, FIRST_EXTRA = 3, 4
OVER_CAP = 3
"""Exit code of a read that is larger than allowed."""
_OUT_OF_THE_WAY = 64


def run_child(spec: dict[str, Any], fds: list[int], program: Filter | None) -> NoReturn:
    """`fds`: stdin, stdout, stderr, payload, then what the kind needs. Ends the process."""
    os.setsid()
    clear = [fcntl.fcntl(fd, fcntl.F_DUPFD, _OUT_OF_THE_WAY) for fd in fds]
    for place, fd in enumerate(clear):
        os.dup2(fd, place, inheritable=True)
    os.closerange(len(fds), 512)
    confine(spec["limits"], spec["uid"], program)
    os.umask(0o022 if spec["role"] == "S" else 0o077)
    os.chdir(spec["cwd"])
    header, blobs = read_frame(PAYLOAD)
    os.close(PAYLOAD)
    names = header.get("files", [])
    for name, content in zip(names, blobs[1:], strict=True):
        write_file(name, content)
    _KINDS[spec["kind"]](blobs[0], header)
    finish(0)


def write_file(name: str, content: bytes) -> None:
    """Replace `name`, never through a link or a pipe that the program left there."""
    folder = os.path.dirname(name)
    if folder:
        os.makedirs(folder, exist_ok=True)
    try:
        mode = os.lstat(name).st_mode
        if not stat.S_ISREG(mode):
            os.unlink(name)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
    fd = os.open(name, flags, 0o755 if content[:2] == b"#!" else 0o644)
    try:
        write_all(fd, content)
    finally:
        os.close(fd)


def finish(code: int) -> NoReturn:
    """End as an interpreter would (threads, atexit, flush) without tearing the forked heap down."""
    for last in (threading._shutdown, atexit._run_exitfuncs):  # type: ignore[attr-defined]
        try:
            last()
        except BaseException:
            traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            code = code or 120
    os._exit(code & 255)


def prepare_streams() -> None:
    """In the zygote, once: objects for descriptors 0 to 2, whatever a child will have there. Making them per child
    would touch, and so copy, a hundred pages."""
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False, buffering=1)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def prepare_environment() -> None:
    """In the zygote, once: the environment that programs see."""
    kept = {k: os.environ[k] for k in ("LD_LIBRARY_PATH",) if k in os.environ}
    os.environ.clear()
    os.environ.update(kept, PATH="/usr/local/bin:/usr/bin:/bin", LANG="C.UTF-8")
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", PYTHONHASHSEED="0")


def _environment(header: dict[str, Any]) -> dict[str, str]:
    return {**os.environ, "HOME": os.getcwd(), **header.get("env", {})}


def _as_script(header: dict[str, Any]) -> None:
    """What a fresh `python solution.py` would find."""
    os.environ.update({"HOME": os.getcwd(), **header.get("env", {})})
    sys.argv = ["solution.py", *header.get("argv", [])]
    sys.path.insert(0, os.getcwd())


def _shell(code: bytes, header: dict[str, Any]) -> None:
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    os.execve(shell, [shell, "-c", code.decode("utf-8", "surrogateescape")], _environment(header))


def _exec(_: bytes, header: dict[str, Any]) -> None:
    os.execvpe(header["argv"][0], header["argv"], _environment(header))


def _python(code: bytes, header: dict[str, Any]) -> None:
    _as_script(header)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__="solution.py", __builtins__=__builtins__)
    sys.modules["__main__"] = main
    status = 0
    try:
        exec(compile(code, "solution.py", "exec", dont_inherit=True), main.__dict__)
    except SystemExit as error:
        status = _exit_code(error)
    except BaseException as error:
        traceback.print_exception(type(error), error, error.__traceback__ and error.__traceback__.tb_next)
        status = 1
    finish(status)


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def _calls(code: bytes, header: dict[str, Any]) -> None:
    _as_script(header)
    answer_calls(code, header, FIRST_EXTRA)


def _serve(code: bytes, header: dict[str, Any]) -> None:
    _as_script(header)
    Server(code, FIRST_EXTRA).serve()
    os._exit(0)


def _judge(code: bytes, header: dict[str, Any]) -> None:
    judge(code, header, FIRST_EXTRA, FIRST_EXTRA + 1)


def _write(_: bytes, header: dict[str, Any]) -> None:
    """The files were written with the payload; nothing is left to do."""


def _read(_: bytes, header: dict[str, Any]) -> None:
    """Regular files by name, those below a folder too; links are not followed. One frame on stdout."""
    left, found = header["max_bytes"], {}
    for name in header["paths"]:
        for path in _regular(name):
            data = _content(path, left + 1)
            left -= len(data)
            if left < 0 and header["truncate"]:
                data, left = data[:-1], 0
            elif left < 0:
                print(f"more than {header['max_bytes']} bytes", file=sys.stderr)
                os._exit(OVER_CAP)
            found[path] = data
    write_all(1, pack({"paths": list(found)}, list(found.values())))
    os._exit(0)


def _regular(name: str) -> list[str]:
    try:
        mode = os.lstat(name).st_mode
    except OSError:
        return []
    if not stat.S_ISDIR(mode):
        return [name] if stat.S_ISREG(mode) else []
    paths = [os.path.join(at, file) for at, _, files in os.walk(name) for file in sorted(files)]
    return [path for path in paths if stat.S_ISREG(os.lstat(path).st_mode)]


def _content(path: str, most: int) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        parts, left = [], most
        while left > 0 and (chunk := os.read(fd, min(left, 1 << 20))):
            parts.append(chunk)
            left -= len(chunk)
        return b"".join(parts)
    finally:
        os.close(fd)


_KINDS = {
    "python": _python,
    "shell": _shell,
    "exec": _exec,
    "calls": _calls,
    "serve": _serve,
    "judge": _judge,
    "write": _write,
    "read": _read,
}
