"""Solutions that attack their judge. Each is wrong; contained means that no test it should fail passes."""

from __future__ import annotations

from snoozing_sandboxes import GradeResult, Result

from tests.sandboxes.attacks import Attack

TWICE = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n  def test_a(self): self.assertEqual(f(2),4)\n  def test_b(self): self.assertEqual(f(3),6)\n"
EQUAL = (
    "class E:\n"
    + "".join(
        f"  def __{n}__(s,*a): return True\n"
        for n in ("eq", "ne", "bool", "lt", "gt", "le", "ge", "contains")
    )
    + "".join(
        f"  def __{n}__(s,*a): return s\n" for n in ("add", "sub", "rsub", "mul", "abs", "call", "getitem")
    )
    + "  def __float__(s): return 4.0\n  def __round__(s,n=0): return 4\n  def __len__(s): return 1\n  def __hash__(s): return 0\n  def __iter__(s): return iter([s])\n"
)


def nothing_passed(result: Result) -> bool:
    return isinstance(result, GradeResult) and result.passed == 0 and result.failed > 0


VERDICTS = (
    Attack(
        name="exits at the call",
        code="import os\ndef f(x): os._exit(0)",
        tests=TWICE,
        contained=nothing_passed,
    ),
    Attack(name="exits at import", code="import sys\nsys.exit(0)", tests=TWICE, contained=nothing_passed),
    Attack(
        name="an object equal to everything",
        code=EQUAL + "def f(x): return E()",
        tests="assert f(2)==4\nassert 4==f(2)\nassert not (f(2)!=4)\nassert f(2)!=5\nassert f(2) in [4]\nassert [f(2)]==[4]\nassert {'a':f(2)}=={'a':4}\nassert f(2)\n",
        contained=nothing_passed,
    ),
    Attack(
        name="operators that lie",
        code=EQUAL + "def f(x): return E()",
        tests="assert abs(f(2.0)-4.0)<1e-6\nassert f(2.0)>3.9\nassert 4.0 in f(2.0)\nassert round(f(2.0))==4\nassert float(f(2))==4\n",
        contained=nothing_passed,
    ),
    Attack(
        name="subclasses of plain types that lie",
        code="class I(int):\n  def __eq__(s,o): return True\n  __hash__=int.__hash__\nclass L(list):\n  def __eq__(s,o): return True\nclass S(str):\n  def __eq__(s,o): return True\n  __hash__=str.__hash__\ndef f(x): return I(999)\ndef g(x): return L()\ndef h(x): return S('no')",
        tests="assert f(2)==4\nassert 4==f(2)\nassert g(1)==[1]\nassert [1]==g(1)\nassert h(1)=='yes'\n",
        contained=nothing_passed,
    ),
    Attack(
        name="unittest and builtins replaced",
        code="import unittest,builtins,sys,gc\nunittest.TestCase.assertEqual=lambda *a,**k:None\nunittest.TestResult.wasSuccessful=lambda s:True\nbuiltins.AssertionError=Warning\nbuiltins.isinstance=lambda *a:True\nbuiltins.compile=lambda *a,**k:None\ndef f(x): return 0",
        tests=TWICE,
        contained=nothing_passed,
    ),
    Attack(
        name="builtins exported to the judge",
        code="class AssertionError(Exception): pass\ndef abs(x): return 0\ndef isinstance(*a): return True\ndef len(x): return 1\n__all__=['AssertionError','abs','isinstance','len','f']\ndef f(x): return 0",
        tests="assert abs(f(2)-4)<1e-6\nassert len([f(2)])==2\n" + TWICE,
        contained=nothing_passed,
    ),
    Attack(
        name="tests of its own exported to the judge",
        code="def test_mine(): pass\ndef check(c): pass\nimport unittest\nclass T(unittest.TestCase):\n  def test_ok(s): pass\ndef f(x): return 0",
        tests="def check(candidate):\n  assert candidate(2)==4\n",
        options={"entry": "f"},
        contained=nothing_passed,
    ),
    Attack(
        name="answers before the question",
        code="import os,json\nfor i in range(0,12):\n  try: os.write(4,json.dumps({'id':i,'v':4}).encode()+b'\\n')\n  except OSError: pass\ndef f(x): return 0",
        tests="def check(c):\n  assert c(2)==4\n  assert c(3)==6\n",
        options={"entry": "f"},
        contained=nothing_passed,
    ),
    Attack(
        name="garbage for an answer",
        code="import os\ndef f(x):\n  os.write(4,b'\\xff\\x00garbage\\n{\\n')\n  return 0",
        tests=TWICE,
        contained=nothing_passed,
    ),
    Attack(
        name="an answer nested a hundred thousand deep",
        code="import os\ndef f(x):\n  os.write(4,b'{\"id\":3,\"v\":'+b'[\"l\",['*100000+b']]'*100000+b'}\\n')\n  return 4",
        tests="def check(c):\n  assert c(2)==5\n",
        options={"entry": "f"},
        contained=nothing_passed,
    ),
    Attack(
        name="an answer without end",
        code="import os\ndef f(x):\n  while True: os.write(4,b'x'*65536)",
        tests=TWICE,
        contained=nothing_passed,
    ),
    Attack(
        name="exceptions that end tests early",
        code="import unittest\ndef f(x): raise unittest.SkipTest('skip me')\ndef g(x): raise KeyboardInterrupt\ndef h(x): raise SystemExit(0)",
        tests="import unittest\nfrom solution import f,g,h\nclass T(unittest.TestCase):\n  def test_a(s): s.assertEqual(f(2),4)\n  def test_b(s): s.assertEqual(g(3),6)\n  def test_c(s): s.assertEqual(h(3),6)\n",
        contained=nothing_passed,
    ),
    Attack(
        name="death where an exception is expected",
        code="import os\ndef f(x): os._exit(1)",
        tests="import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n  def test_a(s):\n    with s.assertRaises(Exception): f(2)\n",
        contained=nothing_passed,
    ),
    Attack(
        name="a look into the judge",
        code="import os\nfor p in os.listdir('/proc'):\n  if p.isdigit() and int(p) not in (1,os.getpid()):\n    for f in ('mem','fd','environ','maps','cwd','root'):\n      try: (os.listdir if f in ('fd','cwd','root') else open)(f'/proc/{p}/{f}'); print('REACHED',p,f)\n      except OSError: pass\n    try: os.kill(int(p),9); print('KILLED',p)\n    except OSError: pass\ndef f(x): return 2*x",
        tests="SECRET='expected'\nassert f(2)==4\n",
        contained=lambda r: isinstance(r, GradeResult) and r.passed == 1 and r.stdout == "",
    ),
    Attack(
        name="the judge asked for what it expects",
        code="import sys\nseen=[]\nclass E:\n  def __eq__(s,o): seen.append(o); return True\n  def __sub__(s,o): seen.append(o); return 0\n  __hash__=None\ndef f(x): return seen[-1] if seen else E()",
        tests="assert f(2)==4\nassert f(2)-4==0\nassert f(2)==4\n",
        contained=nothing_passed,
    ),
    Attack(
        name="no answer at all",
        code="import time\ndef f(x): time.sleep(1000)",
        tests=TWICE,
        options={"wall_s": 0.6},
        contained=nothing_passed,
    ),
)
