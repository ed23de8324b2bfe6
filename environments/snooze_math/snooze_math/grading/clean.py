"""One spelling for what people write in many: Unicode, LaTeX furniture, currency, thousands, markdown."""

from __future__ import annotations

import re
import unicodedata
from types import MappingProxyType

TEXT_OPEN, TEXT_CLOSE = "\ue000", "\ue001"
"""Mark what stood in `\\text{…}`: words there are words, not products of letters."""

_SYMBOLS = MappingProxyType(
    {
        "−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "×": "\\times ", "⋅": "\\cdot ", "·": "\\cdot ", "÷": "/",
        "∕": "/", "⁄": "/", "π": "\\pi ", "∞": "\\infty ", "√": "\\sqrt ", "≤": "\\le ", "≥": "\\ge ", "≠": "\\ne ",
        "∅": "\\emptyset ", "∪": "\\cup ", "∩": "\\cap ", "∈": "\\in ", "±": "\\pm ", "°": "^\\circ ", "≈": "\\approx ",
        "θ": "\\theta ", "ℝ": "\\reals ", "…": "\\ldots ", "’": "'", "‘": "'", "“": '"', "”": '"', "。": ".", "，": ",", "∶": ":",
    }
)  # fmt: skip
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_SUPERSCRIPT_RUN = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_FURNITURE = re.compile(
    r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|textstyle|limits|nolimits|mathstrut)(?![a-zA-Z])\.?|(?<!\\)\\[()\[\]]|\\phantom\{[^{}]*\}|\\(?:text)?color\{[^{}]*\}"
)
_SPACES = re.compile(r"(?<!\\)\\[,;: >]|\\q?quad(?![a-zA-Z])|~|\\enspace(?![a-zA-Z])|\s+|\\hspace\{[^{}]*\}")
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|mbox|hbox|underline|mathrm|mathbf|mathit|mathsf|operatorname\*?|boldsymbol|bold|bm|mathbb)"
    r"\s*\{([^{}]*)\}"
)
_FORMULA_FONT = re.compile(r"\\(?:underline|mathbf|boldsymbol|bold|bm|mathit|mathbb)\s*\{")
_BARE_FUNCTION = re.compile(r"(?<![\\A-Za-z])(sqrt|pi|sin|cos|tan|ln|log)(?![A-Za-z])")
_REPEATING = re.compile(r"(?<![\d.])(\d{0,30})\.(\d{0,30})\\(?:overline|bar)\s*\{(\d{1,30})\}")
_QUANTITY = re.compile(r"([-+]?\d[\d.,/]*)\s+([A-Za-z][A-Za-z ]*)")
_RENAMED = MappingProxyType(
    {"leq": "le", "leqslant": "le", "geq": "ge", "geqslant": "ge", "neq": "ne", "dfrac": "frac", "tfrac": "frac",
     "cfrac": "frac", "varnothing": "emptyset", "dots": "ldots", "cdots": "ldots", "lbrace": "{", "rbrace": "}",
     "lbrack": "[", "rbrack": "]", "lt": "<", "gt": ">", "degree": "^\\circ", "langle": "(", "rangle": ")", "R": "\\reals", "ast": "\\times", "colon": ":"}
)  # fmt: skip
_RENAME = re.compile(r"\\(" + "|".join(sorted(_RENAMED, key=len, reverse=True)) + r")(?![a-zA-Z])")
_CURRENCY = re.compile(r"\b(?:USD|EUR|GBP)\b|\\\$|\$|[€£¥₹]|\\(?:euro|pounds|yen)(?![a-zA-Z])")
_FRAC_SHORT = re.compile(r"\\frac\s*(?:(\d)|\{([^{}]*)\})\s*(?:(\d|[a-z])(?!\})|\{([^{}]*)\})")
_SQRT_SHORT = re.compile(r"\\sqrt\s*(?:(\d+|[a-z])|\(([^()]*)\))")
_MIXED = re.compile(r"(?<![\w./^{])(\d+) +(\d+)/(\d+)(?![\d/.])")
_THOUSANDS = re.compile(
    r"(?<![\d.,(\[{^_])(?<![(\[{] )\d{1,3}(?:([, ])(?!\s)\d{3})(?:\1\d{3})*(?:\.\d+)?(?![\d,])"
)
_REMARK = re.compile(
    r"\s*(?:\\\\)?\s*(?:"
    + TEXT_OPEN
    + r"\s*)?\([^()\d=]*[A-Za-z]{3,}[^()\d=]*\)(?:\s*"
    + TEXT_CLOSE
    + r")?\s*$"
)


def clean(text: str) -> str:
    """`text` in one spelling; never raises, idempotent on its own output except for text marks."""
    text = _ascii(text)
    text = (
        re.sub(r"\\!\s*", "", text)
        .replace("{,}", ",")
        .replace("{:}", ":")
        .replace("\\mathbb{R}", "\\reals ")
        .replace("\\%", "%")
    )
    text = _RENAME.sub(lambda match: _renamed(match[1]), text)
    text = _FURNITURE.sub("", text)
    text = _CURRENCY.sub(" ", text)
    text = _SPACES.sub(" ", text)
    text = _mark_text(text)
    text = re.sub(r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-zA-Z])", " degrees ", text)
    text = _REPEATING.sub(_repeating, text)
    text = re.sub(r"(?<=\d) ?[xX] ?(?=10 ?\^)", r"\\times ", text)
    text = re.sub(r"\binfinity\b", r"\\infty ", text, flags=re.I)
    text = _BARE_FUNCTION.sub(r"\\\1", text)
    text = _short_forms(text)
    text = _strip_ends(text)
    if len(text) < 500 and text[:1] not in ("(", TEXT_OPEN):
        text = _strip_ends(_REMARK.sub("", text))
    return re.sub(r" +", " ", _numbers(text)).strip()


def _renamed(name: str) -> str:
    to = _RENAMED[name]
    return f"\\{to} " if to.isalpha() else f"\\{to}" if to in "{}" else to


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    text = _SUPERSCRIPT_RUN.sub(lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", text)
    out = []
    for char in text:
        if char in _SYMBOLS:
            out.append(_SYMBOLS[char])
        elif unicodedata.category(char) in ("Cf", "Co", "Cc") and char not in "\n\t":
            continue
        elif unicodedata.decomposition(char).startswith("<fraction>"):
            top, _, bottom = unicodedata.normalize("NFKC", char).partition("⁄")
            out.append(f"\\frac{{{top}}}{{{bottom}}}")
        else:
            out.append(unicodedata.normalize("NFKC", char))
    return "".join(out)


def _mark_text(text: str) -> str:
    for _ in range(4):  # \textbf{\text{...}}
        marked = _TEXT.sub(_text_or_formula, text)
        if marked == text:
            break
        text = marked
    return text.replace(TEXT_OPEN + TEXT_OPEN, TEXT_OPEN).replace(TEXT_CLOSE + TEXT_CLOSE, TEXT_CLOSE)


def _text_or_formula(match: re.Match[str]) -> str:
    inside = match[1].strip()
    if quantity := _QUANTITY.fullmatch(inside):
        return f" {quantity[1]} {TEXT_OPEN}{quantity[2]}{TEXT_CLOSE} "
    # \mathbf{v}, \text{7}, \text{(B)} hold a formula or a letter; \text{cm}, \text{m}, \text{m/s} hold words.
    words = re.search(r"[A-Za-z]{2}", inside) or re.fullmatch(r"[mgshl]|[a-zA-Z][/.][a-zA-Z.]+", inside)
    if _FORMULA_FONT.match(match[0]) or not words:
        return f" {inside} "
    return f" {TEXT_OPEN}{match[1]}{TEXT_CLOSE} "


def _short_forms(text: str) -> str:
    def fraction(match: re.Match[str]) -> str:
        top = match[1] if match[1] is not None else match[2]
        bottom = match[3] if match[3] is not None else match[4]
        return f"\\frac{{{top}}}{{{bottom}}}"

    text = _FRAC_SHORT.sub(fraction, text)
    text = _SQRT_SHORT.sub(lambda match: f"\\sqrt{{{match[1] or match[2]}}}", text)
    return re.sub(r"\\tfrac|\\dfrac", r"\\frac", text)


def _strip_ends(text: str) -> str:
    text = re.sub(r"^(?:\s|[*_`]|\\approx(?![a-z])|=|~|\\\\)+|(?:\s|[.,;*_`]|\\\\)+$", "", text)
    # An odd dot inside the closing mark of a text: "\text{east.}"
    return re.sub(rf"\.\s*{TEXT_CLOSE}$", TEXT_CLOSE, text)


def _repeating(match: re.Match[str]) -> str:
    """0.1\\overline{6} → 15/90."""
    whole, fixed, period = match[1] or "0", match[2], match[3]
    bottom = int("9" * len(period) + "0" * len(fixed))
    return f"\\frac{{{int(whole + fixed + period) - int(whole + fixed)}}}{{{bottom}}}"


def _numbers(text: str) -> str:
    text = _MIXED.sub(r"\1\\frac{\2}{\3}", text)
    return _THOUSANDS.sub(lambda match: match[0].replace(",", "").replace(" ", ""), text)
