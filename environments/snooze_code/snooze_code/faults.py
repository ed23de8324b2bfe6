"""Published problems that are wrong, cannot be decided or take too long, with the proof; left out unless asked for.

Keyed by the publisher's own id, because a position in a file is not an identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_MEDIAN = "the docstring says median([-10, 4, 6, 1000, 10, 20]) is 15.0; sorted, the middle two are 6 and 10, so 8.0"
_ONES = (
    "the docstring sorts [1, 5, 2, 3, 4] to [1, 2, 3, 4, 5], the tests want [1, 2, 4, 3, 5]; it speaks of non-negative "
    "integers and shows negative ones"
)
_PRIMES = (
    "the docstring promises a < 100, the tests ask for 125 and 1001 and for products that are not of primes"
)
_ROOT = (
    "the tests of EvalPlus compare with the one root that the reference finds from 0 by Newton's method, whichever of "
    "several zeros the solution is allowed to return"
)
_SLOW = "one input makes the reference itself work for over 20 CPU seconds"

FAULTS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "humaneval": MappingProxyType(
            {"HumanEval/47": _MEDIAN, "HumanEval/75": _PRIMES, "HumanEval/116": _ONES}
        ),
        "humaneval_plus": MappingProxyType({"HumanEval/32": _ROOT}),
        "mbpp_plus": MappingProxyType({"Mbpp/255": _SLOW, "Mbpp/599": _SLOW}),
    }
)
"""Source → publisher's id → why."""
