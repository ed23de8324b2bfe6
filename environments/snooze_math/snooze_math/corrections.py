"""Label errors of GSM8K with their proofs; keyed by the question, because an index is not an identity."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """One wrong gold."""

    wrong: str
    """The published gold; the correction applies only where the source still says this."""
    right: str
    proof: str
    """Why, from the question alone."""


def question_key(question: str) -> str:
    """The first 16 hex digits of SHA-256 over the question, spacing and case ignored."""
    return hashlib.sha256(re.sub(r"\s+", " ", question).strip().lower().encode()).hexdigest()[:16]


CORRECTIONS = MappingProxyType(
    {
        "ad49f07894b998d7": Correction(
            wrong="4",
            right="6",
            proof="Loans 4 * 50,000 = 200,000, income missed in school 4 * 25,000 = 100,000, together 300,000; the extra pay "
            "is 3 * 25,000 - 25,000 = 50,000 a year; 300,000 / 50,000 = 6. The published solution computes 6 as well.",
        ),
        "ab3a161a655b3356": Correction(
            wrong="66",
            right="64",
            proof="5 * 5 - 1 = 24 right answers earn 48; four of five rounds are perfect and earn 4 * 4 = 16; 48 + 16 = 64. "
            "The published solution computes 64 as well.",
        ),
        "7b36dc9dd78bfe79": Correction(
            wrong="106",
            right="108",
            proof="Pizza 5 * 10 = 50, Robert's drinks 10 * 2 = 20, hamburgers 6 * 3 = 18, Teddy's drinks 10 * 2 = 20; "
            "50 + 20 + 18 + 20 = 108. The published solution computes 108 as well.",
        ),
        "fd33ca2372f2d2c4": Correction(
            wrong="140",
            right="120",
            proof="5 * 20 = 100 tanks and 20 trucks are 120 vehicles. The published solution computes 120 as well.",
        ),
    }
)


def corrected(question: str, gold: str) -> str:
    """The gold to use."""
    known = CORRECTIONS.get(question_key(question))
    return known.right if known is not None and known.wrong == gold else gold
