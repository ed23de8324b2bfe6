"""One spelling for the same text: what makes two prompts "the same" here, and nothing cleverer.

Case, Unicode form, spacing, thousands separators, inner punctuation and LaTeX dress are ignored; numbers and operators are kept,
because "23 + 45" and "23 * 45" are different tasks.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict

_COMMANDS = re.compile(
    r"\\(?:left|right|[bB]igg?[lrm]?|displaystyle|textstyle|text(?:bf|it|rm|tt)?|math(?:rm|bf|it|sf|bb|cal)|operatorname|"
    r"mbox|hbox|quad|qquad|boxed|begin|end|limits|nolimits|emph|underline)(?![a-zA-Z])\*?|\\[,;:! ]"
)
_DELIMITERS = re.compile(r"\\[()\[\]]|\$")
_FRACTION = re.compile(r"\\[dtc]?frac\s*(\{[^{}]*\}|\d)\s*(\{[^{}]*\}|\d)")
_SPELLED = (
    (re.compile(r"\\(?:times|cdot|ast)(?![a-zA-Z])"), " * "),
    (re.compile(r"\\div(?![a-zA-Z])"), " / "),
    (re.compile(r"\\(?:leq?|leqslant)(?![a-zA-Z])"), " <= "),
    (re.compile(r"\\(?:geq?|geqslant)(?![a-zA-Z])"), " >= "),
    (re.compile(r"\\(?:l?dots|cdots)(?![a-zA-Z])"), " "),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degree(?![a-zA-Z])"), " degrees "),
)
_THOUSANDS = re.compile(r"(?<=\d)(?:,|\{,\}|\\,)(?=\d{3}(?!\d))")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-(?=[^\W_])")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "—": " ", "×": "*", "·": "*", "÷": "/", "≤": "<=", "≥": ">=", "’": "'",
     "√": " sqrt ", "π": " pi ", "°": " degrees ", "$": ""}
)  # fmt: skip
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_WORD = re.compile(rf"[{_CJK}]|[^\W\d_{_CJK}]+|\d+(?:\.\d+)?|[-+*/^=<>]")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def words(text: str) -> list[str]:
    """The tokens that identify a text, in order: words, numbers and arithmetic signs; [] where it has none."""
    if "\\" in text:
        text = _without_latex(text)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS).casefold().replace("'", "")
    return _WORD.findall(_HYPHEN.sub(" ", _THOUSANDS.sub("", text)))


def text_hash(text: str) -> str:
    """16 hex digits of SHA-256 over the words: equal for texts that differ in dress only. A text without words hashes as it stands."""
    spelled = " ".join(words(text)) or f"raw {text}"
    return hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def longest_shared_run(one: str, other: str, *, within: int = 2000) -> str:
    """The longest run of words two texts share, looking at the first `within` words of each."""
    mine, theirs = words(one)[:within], words(other)[:within]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, word in enumerate(theirs):
        places[word].append(place)
    best = end = 0
    ending_at: dict[int, int] = {}
    for at, word in enumerate(mine):
        ending_at = {place: ending_at.get(place - 1, 0) + 1 for place in places[word]}
        if (longest := max(ending_at.values(), default=0)) > best:
            best, end = longest, at + 1
    return " ".join(mine[end - best : end])


def _without_latex(text: str) -> str:
    text = _DELIMITERS.sub("", _THOUSANDS.sub("", text))
    for _ in range(4):  # fractions in fractions; deeper ones keep their braces, which no word contains
        text, count = _FRACTION.subn(lambda m: f" {m[1].strip('{}')}/{m[2].strip('{}')} ", text)
        if not count:
            break
    text = _COMMANDS.sub(" ", text)
    for command, sign in _SPELLED:
        text = command.sub(sign, text)
    return text
