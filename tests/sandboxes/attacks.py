"""Programs that attack the box they run in, and what containment means for each. The health check follows every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from snoozing_sandboxes import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    name: str
    code: str
    contained: Callable[[Result], bool]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of Pool.run, or of Pool.grade with `tests`."""
    tests: str = ""
    """If set, `code` is a solution that these tests judge."""
    before: str = ""
    """A program that runs first in the same box."""


def ended(*statuses: str) -> Callable[[Result], bool]:
    return lambda result: result.status in statuses


def says(text: str) -> Callable[[Result], bool]:
    return lambda result: result.stdout.strip() == text


def never(*words: str) -> Callable[[Result], bool]:
    """It ran to its end and none of the words, each a success of the attack, was printed."""
    return lambda result: result.status == "ok" and not any(word in result.stdout for word in words)


DOORS = """
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def knock(name, door):
    try:
        value = door()
    except Exception as error:
        print(name, 'refused', getattr(error, 'errno', ''))
    else:
        print(name, 'refused' if value == -1 else 'OPEN')
"""

RESOURCES = (
    Attack(
        name="fork bomb",
        code="import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
        contained=ended("timeout"),
        options={"cpu_s": 1.0, "wall_s": 2.0},
    ),
    Attack(
        name="as many forks as there are",
        code="import os,time\nn=0\ntry:\n  while n<3000:\n    if os.fork()==0: time.sleep(30); os._exit(0)\n    n+=1\n"
        "except OSError: print(n<128)",
        contained=says("True"),
    ),
    Attack(
        name="as many threads as there are",
        code="import threading,time\nn=0\ntry:\n  while n<3000:\n"
        "    threading.Thread(target=time.sleep,args=(30,),daemon=True).start(); n+=1\nexcept RuntimeError: print(n<128)",
        contained=says("True"),
    ),
    Attack(
        name="memory of one process",
        code="x=[]\nwhile True: x.append(bytearray(1<<20))",
        contained=ended("memory"),
        options={"memory_mb": 128},
    ),
    Attack(
        name="memory beyond the box",
        code="x=[]\nwhile True: x.append(bytearray(1<<20))",
        contained=ended("memory"),
        options={"memory_mb": 4096, "cpu_s": 8.0},
    ),
    Attack(
        name="memory of twenty processes",
        code="import os,time\nfor i in range(20):\n  if os.fork()==0:\n    x=[]\n    while len(x)<400: x.append(bytearray(1<<20))\n"
        "    time.sleep(30)\ntime.sleep(30)",
        contained=ended("timeout", "memory"),
        options={"memory_mb": 1024, "wall_s": 4.0, "cpu_s": 8.0},
    ),
    Attack(
        name="decompression bomb",
        code="import zlib\nc=zlib.compressobj(9)\nz=b''.join(c.compress(b'0'*(1<<20)) for _ in range(300))+c.flush()\n"
        "x=[zlib.decompress(z) for _ in range(40)]",
        contained=ended("memory"),
    ),
    Attack(
        name="files and heap together",
        code="import os\nfor i in range(40):\n  for d in ('/box','/tmp','/dev/shm'):\n    try:\n"
        "      with open(f'{d}/f{i}','wb') as f: f.write(b'x'*(7<<20))\n    except OSError as e: print('full',e.errno); break",
        contained=lambda r: "full 28" in r.stdout or r.status == "memory" or r.signal == 9,
        options={"cpu_s": 8.0},
    ),
    Attack(
        name="one huge file",
        code="f=open('x','wb')\nfor i in range(100): f.write(b'x'*(1<<20)); f.flush()\nprint('written')",
        contained=lambda r: r.status in ("error", "crash") and "written" not in r.stdout,
    ),
    Attack(
        name="as many files as there are",
        code="n=0\ntry:\n  while n<200000: open(str(n),'w').close(); n+=1\nexcept OSError as e: print(n<10000,e.errno)",
        contained=says("True 28"),
        options={"cpu_s": 5.0},
    ),
    Attack(
        name="folders nested too deep for a recursive remover",
        code="import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')\nprint('deep')",
        contained=says("deep"),
    ),
    Attack(
        name="folders that forbid reading",
        code="import os\nos.mkdir('a'); os.mkdir('b'); open('b/c','w'); os.mkdir('b/d'); os.chmod('b',0); os.chmod('a',0)\nprint('shut')",
        contained=says("shut"),
    ),
    Attack(
        name="names that a wiper may stumble over",
        code="import os\nos.makedirs('.w1/x'); os.makedirs('.w2/.w1/.w3'); os.makedirs('a/.w1/b')\n"
        "for n in ('-rf','\\n','*','a b','\\udcff'): open(n,'w').close()\nprint('named')",
        contained=says("named"),
    ),
    Attack(name="stdout without end", code="while True: print('x'*1000)", contained=ended("output")),
    Attack(
        name="stderr without end",
        code="import os\nwhile True: os.write(2,b'y'*65536)",
        contained=ended("output"),
    ),
    Attack(
        name="sixty thousand writes of a byte",
        code="import os\nfor i in range(60000): os.write(1,b'x')",
        contained=lambda r: len(r.stdout) == 60000,
        options={"cpu_s": 5.0},
    ),
    Attack(
        name="sleep for ever",
        code="import time\ntime.sleep(1e9)",
        contained=ended("timeout"),
        options={"wall_s": 0.5},
    ),
    Attack(
        name="busy loop deaf to every signal",
        code="import signal\nfor s in range(1,65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError,ValueError): pass\n"
        "while True: pass",
        contained=ended("timeout"),
        options={"cpu_s": 0.5},
    ),
    Attack(
        name="forty busy processes",
        code="import os\nfor i in range(40):\n  if os.fork()==0:\n    while 1: pass\nwhile 1: pass",
        contained=ended("timeout"),
        options={"cpu_s": 0.5},
    ),
    Attack(
        name="short-lived forks that each stay under the limit",
        code="import os\nwhile True:\n  p=os.fork()\n  if p==0:\n    for i in range(10**6): pass\n    os._exit(0)\n  os.waitpid(p,0)",
        contained=ended("timeout"),
        options={"cpu_s": 0.6},
    ),
    Attack(
        name="stop itself and its group",
        code="import os\nos.kill(0,19)",
        contained=ended("timeout"),
        options={"wall_s": 0.5},
    ),
    Attack(
        name="a thread that never ends",
        code="import threading,time\nthreading.Thread(target=lambda: time.sleep(1e6)).start()\nprint('done')",
        contained=ended("timeout"),
        options={"wall_s": 0.5},
    ),
    Attack(
        name="an exit handler that never ends",
        code="import atexit,time\natexit.register(lambda: time.sleep(100))\nraise SystemExit(0)",
        contained=ended("timeout"),
        options={"wall_s": 0.5},
    ),
    Attack(
        name="recursion without end",
        code="import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n+1)+1\nf(0)",
        contained=ended("crash", "error", "memory", "timeout"),
    ),
    Attack(
        name="a null pointer",
        code="import ctypes\nctypes.string_at(0)",
        contained=lambda r: r.status == "crash" and r.signal == 11,
    ),
    Attack(
        name="a power too large to print",
        code="print(len(str(10**(10**9))))",
        contained=ended("timeout", "error", "memory"),
        options={"cpu_s": 0.5},
    ),
    Attack(name="input that never comes", code="input()", contained=lambda r: "EOFError" in r.stderr),
    Attack(
        name="every descriptor closed",
        code="import os\nos.closerange(0,1000)\nos._exit(3)",
        contained=lambda r: r.exit_code == 3,
    ),
    Attack(
        name="source that is no text",
        code="# -*- coding: utf-7 -*-\nprint('+ACcAKQ-')\n\x00",
        contained=ended("ok", "error"),
    ),
    Attack(
        name="output that is no text",
        code="import os\nos.write(1,b'\\xff\\xfe\\x80\\x00')\nprint('\\udcff')",
        contained=lambda r: r.status == "ok" and "�" in r.stdout,
    ),
)
