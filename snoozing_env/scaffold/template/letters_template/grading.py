"""What a reply says, and whether that is right."""

from __future__ import annotations

TAIL = 200
"""Characters at the end of a reply that are read; a megabyte of text costs no more than a line."""
AROUND = ".,:;!?\"'`*()[]<>"
"""Marks that may stand around the answer."""


def said(reply: str) -> str:
    """The last word of a reply, "" where it says nothing. One word only: a list of guesses must not pay."""
    words = reply[-TAIL:].split()
    return words[-1].strip(AROUND).lower() if words else ""


def right(answer: str, reply: str) -> bool:
    """Whether the reply ends with the answer."""
    return said(reply) == answer
