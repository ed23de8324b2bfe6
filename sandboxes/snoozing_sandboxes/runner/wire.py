"""Frames between host and box, and plain values as JSON. No pickle anywhere: bytes from a box are never executed.

A frame is two u32 (bytes after them, bytes of header), a JSON header, then raw blobs whose lengths the header lists.
A value is JSON where JSON is exact, else a tagged list: ["i", hex] ["t", items] ["d", pairs] ... ["o", type name].
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Sequence
from typing import Any

HEAD = struct.Struct(">II")
MAX_FRAME = 64 << 20
MAX_DEPTH = 100
_EXACT = 2**53


class Malformed(Exception):
    """The other side did not keep the format; nothing it said may be used."""


class Opaque:
    """Stands for an object that is not plain data. Equal to nothing, itself included."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<not plain data: {self.name}>"


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """One frame."""
    text = json.dumps({**header, "blobs": [len(b) for b in blobs]}, separators=(",", ":")).encode()
    return b"".join((HEAD.pack(len(text) + sum(map(len, blobs)), len(text)), text, *blobs))


def lengths(head: bytes, limit: int = MAX_FRAME) -> tuple[int, int]:
    """(bytes that follow, bytes of header) of a frame's first eight bytes."""
    total, header = HEAD.unpack(head)
    if total > limit or header > total:
        raise Malformed(f"a frame of {total} bytes with a header of {header}; the limit is {limit}")
    return total, header


def unpack(body: bytes, header: int) -> tuple[dict[str, Any], list[bytes]]:
    """(header, blobs) of what followed a frame's first eight bytes."""
    try:
        fields = json.loads(body[:header])
        sizes = fields["blobs"]
        if not all(type(n) is int and n >= 0 for n in sizes) or sum(sizes) != len(body) - header:
            raise Malformed("the blob lengths do not add up to the frame")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Malformed(f"the frame's header is not what was agreed: {error}") from None
    blobs, at = [], header
    for size in sizes:
        blobs.append(body[at : at + size])
        at += size
    return fields, blobs


def read_exactly(fd: int, count: int) -> bytes:
    out = bytearray()
    while len(out) < count:
        chunk = os.read(fd, min(1 << 20, count - len(out)))
        if not chunk:
            raise EOFError("the other side closed the channel")
        out += chunk
    return bytes(out)


def read_frame(fd: int) -> tuple[dict[str, Any], list[bytes]]:
    total, header = lengths(read_exactly(fd, HEAD.size))
    return unpack(read_exactly(fd, total), header)


def write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def encode(value: Any, depth: int = 0, special: Callable[[Any], Any] | None = None) -> Any:
    """JSON for a value. Subclasses go as their base type, read with the base type's own methods: whatever
    they override is not asked. Objects become `special(object)`, by default ["o", name]."""
    if depth > MAX_DEPTH:
        raise ValueError(f"a value nested deeper than {MAX_DEPTH}")
    if value is None or value is True or value is False:
        return value
    for base, form in _SCALARS:
        if isinstance(value, base):
            return form(value)
    for base, tag, items in _CONTAINERS:
        if isinstance(value, base):
            return [tag, [encode(x, depth + 1, special) for x in items(value)]]
    if isinstance(value, dict):
        pairs = dict.items(value)
        return ["d", [[encode(k, depth + 1, special), encode(v, depth + 1, special)] for k, v in pairs]]
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return encode(value.tolist(), depth + 1, special)
    return special(value) if special else opaque(value)


def opaque(value: object) -> list[str]:
    """What is said of an object that is not plain data."""
    return ["o", f"{type(value).__module__}.{type(value).__qualname__}"[:160]]


def _int(value: int) -> Any:
    exact = int.__add__(value, 0)
    return exact if -_EXACT < exact < _EXACT else ["i", hex(exact)]


def _float(value: float) -> Any:
    return float.__add__(value, 0.0)  # JSON as Python writes it keeps every bit, NaN and the infinities


_SCALARS: tuple[tuple[type, Any], ...] = (
    (str, lambda v: str.__str__(v) if type(v) is str else str.__getitem__(v, slice(None))),
    (int, _int),
    (float, _float),
    (bytes, lambda v: ["b", bytes.hex(v)]),
    (complex, lambda v: ["c", complex.__add__(v, 0j).real, complex.__add__(v, 0j).imag]),
)
_CONTAINERS: tuple[tuple[type, str, Any], ...] = (
    (list, "l", list.__iter__),
    (tuple, "t", tuple.__iter__),
    (set, "S", set.__iter__),
    (frozenset, "F", frozenset.__iter__),
)


def decode(data: Any, depth: int = 0, special: Callable[[list[Any]], Any] | None = None) -> Any:
    """The value of encoded JSON; Malformed for anything else. Unknown tags go to `special`.

    Only for inside a box: it hashes what it is given, and keys can be made to collide.
    """
    if depth > MAX_DEPTH:
        raise Malformed("nested too deeply")
    if not isinstance(data, list):
        if isinstance(data, dict):
            raise Malformed("a bare JSON object")
        return data
    try:
        return _decode(data, depth, special)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise Malformed(f"not an encoded value: {error}") from None


def _decode(data: list[Any], depth: int, special: Callable[[list[Any]], Any] | None) -> Any:
    tag = data[0]
    if tag in ("l", "t", "S", "F"):
        kind = {"l": list, "t": tuple, "S": set, "F": frozenset}[tag]
        return kind([decode(x, depth + 1, special) for x in data[1]])
    if tag == "d":
        return {decode(k, depth + 1, special): decode(v, depth + 1, special) for k, v in data[1]}
    if tag == "i":
        return int(data[1], 16)
    if tag == "b":
        return bytes.fromhex(data[1])
    if tag == "c":
        return complex(data[1], data[2])
    if tag == "o":
        return Opaque(str(data[1]))
    if special is None:
        raise Malformed(f"unknown tag {tag!r}")
    return special(data)
