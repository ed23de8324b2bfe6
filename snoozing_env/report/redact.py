"""A recipe as text that may be shown: secrets masked, laid out as the TOML it came from."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

MASK = "•••"
ALWAYS = re.compile(r"secret|passw", re.IGNORECASE)
UNLESS_NUMBER = re.compile(r"key|token(?!iz)", re.IGNORECASE)
"""`max_tokens = 128` and `tokenizer = "…"` are no secrets; `hub_token = "…"` is."""
USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")


def masked(name: str, value: object) -> object:
    """The value with anything secret replaced, judged by the name it is filed under."""
    if ALWAYS.search(name) and value is not None:
        return MASK
    if UNLESS_NUMBER.search(name) and value is not None and not isinstance(value, int | float):
        return MASK
    if isinstance(value, Mapping):
        return {str(k): masked(str(k), v) for k, v in cast(Mapping[object, object], value).items()}
    if isinstance(value, list | tuple):
        return [masked("", item) for item in cast(list[object], value)]
    return USERINFO.sub(MASK, value) if isinstance(value, str) else value


def flat(recipe: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    """`{"scheduler.kind": '"snooze"', …}`, masked; what a difference between two recipes is read off."""
    rows: dict[str, str] = {}
    for name, value in recipe.items():
        shown = masked(name, value)
        if isinstance(shown, dict):
            rows |= flat(cast(dict[str, object], shown), f"{prefix}{name}.")
        else:
            rows[prefix + name] = _value(shown)
    return rows


def to_toml(recipe: Mapping[str, object]) -> str:
    """The masked recipe as TOML; a value that TOML lacks (none) becomes a comment."""
    shown = cast(dict[str, object], masked("", recipe))
    return "\n".join(_table(shown, ())).strip() + "\n"


def _table(table: Mapping[str, object], path: tuple[str, ...]) -> list[str]:
    plain = {k: v for k, v in table.items() if not isinstance(v, dict)}
    lines = [f"\n[{'.'.join(map(_name, path))}]"] if path and plain else []
    lines += [
        f"{_name(k)} = {_value(v)}" if v is not None else f"# {_name(k)} is not set" for k, v in plain.items()
    ]
    for name, value in table.items():
        if isinstance(value, dict):
            lines += _table(cast(dict[str, object], value), (*path, name))
    return lines


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _value(value: object) -> str:
    if value in ("inf", "-inf", "nan"):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, cast(list[object], value)))}]"
    if isinstance(value, dict):
        items = cast(dict[str, object], value).items()
        return "{" + ", ".join(f"{_name(k)} = {_value(v)}" for k, v in items) + "}"
    return json.dumps(value, ensure_ascii=False, default=str)
