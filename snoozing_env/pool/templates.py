"""Phrases that problems of a genre share without sharing anything else, over the words of text.py.

Contest problems end in the same sentences: 9 of 30 AIME problems have a 13-gram in common with other contests' problems
and nothing more. Words under a template are no evidence of contamination, for or against. In a large pool the document frequency
finds such phrases by itself; these are for small ones, where nothing is frequent.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from snoozing_env.types import Bools

_LETTERS = r"(?:\w(?: and)? )+"
_KIND = r"(?:(?:relatively|pairwise|mutually|prime|coprime|distinct|positive|nonnegative|non negative|real|and|all|both) )*"
TEMPLATES: tuple[str, ...] = (
    r"(?:(?:the|its|this|whose|answer|value|probability|area|sum|ratio|number|expected|it) )*(?:can be|may be|is|be) "
    r"(?:written|expressed|represented)(?: uniquely)?(?: in the form| in form| as)?(?: an?)?(?: irreducible| reduced| common)?"
    r"(?: fraction)?(?: in (?:lowest|simplest) (?:terms|form))?(?: \w(?: [-+*/^]| sqrt| pi)? ?\w?(?: / \w)?(?= where| with| for| and))?",
    rf"(?:where|with|for|and|if) {_LETTERS}(?:are )?{_KIND}(?:integers|numbers|primes)",
    rf"(?:find|determine|compute|what is) the (?:number|sum) of (?:all )?(?:ordered )?(?:pairs|triples|quadruples) {_LETTERS}of "
    rf"{_KIND}(?:integers|numbers)(?: such that| that satisfy| satisfying| for which)?",
    rf"(?:for|where|with) {_KIND}(?:integers|numbers) {_LETTERS}",
    r"(?:and )?(?:\w )?is not divisible by the square of any prime(?: number)?",
    r"gcd \w \w = 1",
    r"(?:find|compute|determine|what is|evaluate|calculate)(?: the value of)? \w(?: [+*-] \w){1,4}(?= |$)",
    r"(?:find|compute|determine|what is) the (?:remainder|residue) (?:when|if|obtained when)",
    r"(?:is|are) divided by \d+",
    r"(?:find|compute|determine|give) the last (?:two|three|\d+) digits of",
    r"(?:express|give|enter|write|leave|provide|report|state)(?: your| the| an?)?(?: final| exact)? answers?"
    r"(?: (?:as|in|to|with|inside|within|using|rounded|an?|the|nearest|common|mixed|improper|simplified|simplest|reduced|exact|"
    r"lowest|terms|form|radical|interval|notation|fraction|number|integer|whole|decimal|decimals|places?|tenth|hundredth|thousandth|"
    r"cent|degree|percent|comma|separated|list|of|pi|boxed|sqrt|ordered|pair|triple|two|three|one|\d+|and|or|by|separate|commas|if|"
    r"there|is|are|more|than|them))*",
    r"(?:please )?(?:lets|let us|think|reason|solve)(?: \w+){0,4} step by step"
    r"(?: and put your final answer (?:within|in|inside) (?:boxed)?)?",
    r"put your (?:final )?answer (?:within|in|inside)(?: the)?(?: boxed)?",
    r"the last line of your response should be(?: of the)?(?: following)?(?: form| format)?(?: answer)?",
    r"(?:solve|answer) the following (?:math |mathematics |word )?(?:problem|question)(?: efficiently and clearly)?",
    r"write a (?:python )?(?:function|program|script) (?:that|to|which)",
    r"(?:since|as|because) the answer (?:may|can|might|could) be (?:very |too )?large (?:return|print|output|give) it modulo(?: \d+)?",
    r"(?:read the )?(?:passage|context|text)(?: below| above)? (?:and )?answer the (?:following )?question(?: using only)?"
    r"(?: based on)?(?: the)?(?: information)?(?: in)?(?: the)?(?: passage| context| text)?",
)
"""Regular expressions over words joined by single blanks. Extend them with `templates` in the config."""


class TemplateMask:
    """Marks the words of a text that a template covers."""

    def __init__(self, extra: Sequence[str] = ()) -> None:
        self._patterns = [re.compile(rf"(?<!\S){pattern}(?!\S)") for pattern in (*TEMPLATES, *extra)]

    def __call__(self, words: Sequence[str]) -> Bools:
        """[W] True where the word is part of a template."""
        text = " ".join(words)
        ends = np.cumsum([len(word) + 1 for word in words])
        masked = np.zeros(len(words), np.bool_)
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                first = int(np.searchsorted(ends, match.start(), side="right"))
                last = int(np.searchsorted(ends, match.end(), side="left"))
                masked[first : last + 1] = True
        return masked
