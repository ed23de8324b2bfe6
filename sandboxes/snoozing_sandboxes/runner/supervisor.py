"""PID 1 of a box: the only process that talks to the host, and the only one that outlives a job."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from snoozing_sandboxes.runner.confine import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, libc, undumpable
from snoozing_sandboxes.runner.job import Job
from snoozing_sandboxes.runner.sweep import Slot
from snoozing_sandboxes.runner.wire import pack, read_frame, write_all
from snoozing_sandboxes.runner.zygote import quiet_signals, serve_forks

_HOST_IN, _HOST_OUT = 0, 1


def main(settings: dict[str, Any]) -> NoReturn:
    """`settings`: uids, folders (the first is the working folder), preload, site, inet. Serves until stdin closes."""
    undumpable()
    quiet_signals(signal.SIG_IGN)
    local = not settings["uids"]
    if local:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    slot = Slot(tuple(settings["uids"]), tuple(settings["folders"]))
    control = _start_zygote(slot, settings, local=local)
    ready = json.loads(control.recv(65536))
    hello = {"python": sys.version.split()[0], "uid": os.getuid(), **ready}
    write_all(_HOST_OUT, pack(hello))
    while True:
        control.send(b'{"breed": true}')  # forks while the host is busy with the last answer
        try:
            header, blobs = read_frame(_HOST_IN)
        except EOFError:
            slot.leave()
        slot.spare = json.loads(control.recv(65536))["spare"]
        write_all(_HOST_OUT, _answer(header, blobs, slot, control, base_kb=ready["base_kb"]))


def _start_zygote(slot: Slot, settings: dict[str, Any], *, local: bool) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    slot.zygote = os.fork()
    if slot.zygote:
        theirs.close()
        return ours
    ours.close()
    quiet_signals(signal.SIG_DFL)
    if local:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (_HOST_IN, _HOST_OUT):
        os.dup2(null, fd)
    try:
        serve_forks(theirs, settings)
    finally:
        os._exit(71)


def _answer(
    header: dict[str, Any], blobs: list[bytes], slot: Slot, control: socket.socket, *, base_kb: int
) -> bytes:
    if header["op"] == "reset":
        leftover = slot.sweep()
        return pack({"id": header["id"], "leftover": leftover, "clean": slot.wipe()})
    if header["op"] == "sweep":
        return pack({"id": header["id"], "leftover": slot.sweep(), "clean": True})
    header["limits"]["base_kb"] = base_kb
    try:
        return Job(header, blobs, slot, control).run()
    except OSError:
        # The supervisor ran out of descriptors or pipes: the job is undecided and the box is not to be trusted.
        slot.sweep()
        return pack(
            {
                "id": header["id"],
                "status": "internal",
                "error": traceback.format_exc()[-1500:],
                "clean": False,
            }
        )
