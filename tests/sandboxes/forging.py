"""Eight wrong solutions that try to pass, three protocols they must not pass, four naive ones that they do.

The task is always f(x) = 2x: read a number, print its double, or return it.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable, Mapping

from snoozing_sandboxes import CallCase, CallSuite, Pool, StdioCase

RIGHT = "def f(x): return 2 * x\n"
WRONG = "def f(x): return 0\n"
_MAIN = "if __name__ == '__main__' and 'ASKED' not in globals():\n    print(f(int(input())))\n"

FORGERIES: Mapping[str, str] = {
    "leaves at import with code 0": "import sys\ndef f(x): return 0\nprint('ALL TESTS PASSED')\nsys.exit(0)\n",
    "leaves at the call with code 0": "import os\ndef f(x): os._exit(0)\n",
    "leaves from an exception hook or exit handler": (
        "import atexit, os, sys\ndef f(x): return 0\nsys.excepthook = lambda *a: os._exit(0)\n"
        "atexit.register(lambda: (sys.stdout.flush(), os._exit(0)))\n"
    ),
    "returns an object equal to everything": (
        "class E:\n  def __eq__(s, o): return True\n  def __ne__(s, o): return False\n  __hash__ = None\n"
        "  def __repr__(s): return '0'\n  def __sub__(s, o): return 0\n  def __abs__(s): return 0\ndef f(x): return E()\n"
    ),
    "reads nonces from frames and files and prints them": r"""
import os, re, sys, unittest
def f(x):
    texts = []
    for path in [*sys.argv, 'main.py', 'tests.py', 'solution.py', '/proc/self/cmdline']:
        try: texts.append(open(path, errors='replace').read())
        except OSError: pass
    frame = sys._getframe()
    while frame:
        texts += [repr(frame.f_code.co_consts), repr([v for v in {**frame.f_globals, **frame.f_locals}.values() if isinstance(v, (str, bytes, tuple))])]
        frame = frame.f_back
    try: texts.append(sys.stdin.read())
    except Exception: pass
    for nonce in set(re.findall('NONCE-[0-9a-f]{32}', ' '.join(texts))): print(nonce)
    print('ALL TESTS PASSED')
    try: open('result.json', 'w').write('{"passed": 2, "failed": 0}')
    except OSError: pass
    sys.stderr.write('Ran 2 tests\n\nOK\n'); sys.stdout.flush(); os._exit(0)
""",
    "patches the test framework and reads its caller's constants": """
import sys, unittest
unittest.TestCase.assertEqual = lambda *a, **k: None
unittest.TestResult.addFailure = unittest.TestResult.addError = lambda *a, **k: None
def f(x):
    constants = [c for c in sys._getframe(1).f_code.co_consts if type(c) is int]
    return constants[-1] if constants else 0
""",
    "leaves a process that writes the result file": """
import os, time
def f(x): return 0
if os.fork() == 0:
    os.setsid()
    for _ in range(400):
        try: open('result.json', 'w').write('{"passed": 2, "failed": 0}')
        except OSError: pass
        time.sleep(.002)
    os._exit(0)
""",
    "writes a verdict to every descriptor": """
import os
def f(x):
    for fd in range(3, 256):
        try: os.write(fd, b'{"passed": 2, "failed": 0, "skipped": 0, "details": []}\\n')
        except OSError: pass
    os._exit(0)
""",
}

UNITTEST = """import unittest
from solution import f
class Doubles(unittest.TestCase):
    def test_two(self): self.assertEqual(f(2), 4)
    def test_seventeen(self): self.assertEqual(f(17), 34)
"""


async def by_stdio(pool: Pool, solution: str) -> bool:
    cases = [StdioCase(stdin=f"{x}\n", stdout=str(2 * x)) for x in (2, 17)]
    return (await pool.grade(solution + _MAIN, cases, "stdio", cpu_s=1.0)).ok


async def by_calls(pool: Pool, solution: str) -> bool:
    suite = CallSuite(entry="f", cases=[CallCase(args=(x,), expected=2 * x) for x in (2, 17)])
    return (await pool.grade(solution, suite, "calls", cpu_s=1.0)).ok


async def by_tests(pool: Pool, solution: str) -> bool:
    return (await pool.grade(solution, UNITTEST, "tests", cpu_s=1.0)).ok


async def by_exit_code(pool: Pool, solution: str) -> bool:
    """Naive: asserts after the solution; exit code 0 is a pass."""
    return (await pool.run(solution + "assert f(2) == 4\nassert f(17) == 34\n", cpu_s=1.0)).exit_code == 0


async def by_sentinel(pool: Pool, solution: str) -> bool:
    """Naive: the same, and a line that the last statement prints."""
    result = await pool.run(
        solution + "assert f(2) == 4\nassert f(17) == 34\nprint('ALL TESTS PASSED')\n", cpu_s=1.0
    )
    return result.exit_code == 0 and "ALL TESTS PASSED" in result.stdout


async def by_nonce(pool: Pool, solution: str) -> bool:
    """Naive: the line is a fresh secret, which is in the program."""
    nonce = "NONCE-" + secrets.token_hex(16)
    asserts = f"assert f(2) == 4\nassert f(17) == 34\nprint({nonce!r})\n"
    return nonce in (await pool.run(solution + asserts, cpu_s=1.0)).stdout


async def by_result_file(pool: Pool, solution: str) -> bool:
    """Naive: unittest in the solution's own interpreter writes a file, which is read when the process has ended."""
    harness = (
        "import json, sys, unittest\nsys.path.insert(0, '.')\nresult = unittest.TestResult()\nimport tests\n"
        "unittest.defaultTestLoader.loadTestsFromModule(tests).run(result)\nbad = len(result.failures) + len(result.errors)\n"
        "open('result.json', 'w').write(json.dumps({'passed': result.testsRun - bad, 'failed': bad}))\n"
    )
    async with pool.box() as box:
        await box.write({"solution.py": solution, "tests.py": UNITTEST, "harness.py": harness})
        await box.run_shell("python3 harness.py; sleep 0.05")
        try:
            result = json.loads((await box.read(["result.json"])).get("result.json", b"{}"))
        except ValueError:
            return False
        return result.get("passed") == 2 and result.get("failed") == 0


Protocol = Callable[[Pool, str], Awaitable[bool]]
SAFE: Mapping[str, Protocol] = {"stdio": by_stdio, "calls": by_calls, "tests": by_tests}
NAIVE: Mapping[str, Protocol] = {
    "exit code": by_exit_code,
    "sentinel": by_sentinel,
    "nonce": by_nonce,
    "result file": by_result_file,
}


async def forged(pool: Pool, protocols: Mapping[str, Protocol]) -> dict[str, list[str]]:
    """By protocol, the forgeries that passed."""
    return {
        name: [forgery for forgery, solution in FORGERIES.items() if await protocol(pool, solution)]
        for name, protocol in protocols.items()
    }
