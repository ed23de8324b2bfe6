"""Laws of the QA normaliser: which answers are the same, which are not, and that no input upsets it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from snooze_groundedqa import match
from snooze_groundedqa.grading.canonical import canonical
from snooze_groundedqa.grading.matching import f1
from snooze_groundedqa.grading.numbers import read_numbers, roman, written

SAME = {
    "case and articles": ["Rollo|rollo", "the Beatles|Beatles", "An Inspector Calls|inspector calls", "in the 10th century|10th century",
                          "University of the Arts|the University of Arts", "he was a king|he was king", "USD 5|usd 5"],
    "numbers": ["1,000,000|1000000", "1.50|1.5", "1 000 000|1,000,000", "1'000|1000", "1.0|1", ".5|0.5", "+5|5", "１０|10", "٢٠|20", "-5|−5"],
    "number words": ["twenty-one|21", "one hundred and five|105", "nineteen eighty-four|1984", "two million|2,000,000", "a dozen|12", "a hundred|100",
                     "two and a half|2.5", "half a million|500,000", "minus five|-5", "one point two five|1.25", "seventy years|70 years"],
    "magnitudes": ["2.5 million|2,500,000", "$1.5m|$1.5 million", "$5bn|US$5 billion", "two hundred thousand|200k"],
    "fractions": ["1/2|0.5", "half|1/2", "3½|3.5", "two thirds|2/3", "three-quarters|3/4", "3 1/2|3.5"],
    "ordinals": ["third|3rd", "twenty-first|21st", "tenth century|10th century"],
    "currency": ["$5|5 dollars", "$5 million|5 million", "€5|5 euros", "£10 million|10 million pounds", "USD 20|$20", "5€|€5"],
    "units": ["10 km|10 kilometres", "10km|10 km", "5 pounds|5 lbs", "20 °C|20 degrees Celsius", "10 m²|10 m2", "10 square kilometers|10 km²",
              "50%|50 percent", "5–10%|5-10 %", "45 minutes|forty-five min", "60 km/h|60 kilometers per hour", "5'10\"|5 feet 10 inches"],
    "dates": ["July 4, 1776|4 July 1776", "the 4th of July, 1776|1776-07-04", "Jul 1776|July 1776", "in 1066|1066", "May 5|5 May", "1960's|1960s",
              "AD 500|500 A.D.", "500 BC|500 B.C.", "13/7/1776|July 13, 1776"],
    "times": ["12:30 p.m.|12:30 PM", "5 pm|5:00 p.m.", "9 a.m.|9:00 AM", "5 o'clock|5:00 o'clock"],
    "ranges": ["1990–1995|1990 to 1995", "from 3 to 5|3-5", "between 3 and 5|3 – 5", "1990-95|1990–1995"],
    "roman": ["World War II|World War 2", "World War I|World War One", "Ⅻ|XII", "IV|iv", "World War II|world war ii", "Catherine II,|Catherine 2"],
    "acronyms": ["U.S.|US", "Washington, D.C.|Washington DC", "J. K. Rowling|JK Rowling", "j. k. rowling|JK Rowling", "Ph.D.|PhD", "St. Louis|St Louis", "AT&T|AT & T"],
    "quotes": ["“Hello”|Hello", "rock 'n' roll|rock n roll", "don’t|dont", "«Non»|\"Non\"", "'Paris'|Paris"],
    "dashes": ["COVID-19|COVID 19", "state—of—the—art|state of the art", "F-16|F 16"],
    "ends": ["Paris.|Paris", "Yahoo!|Yahoo", "(Paris)|Paris", "  Paris |Paris", "北京。|北京"],
    "lists": ["France, Germany|Germany and France", "A, B, and C|C, B and A", "red or blue|blue or red", "1, 2, 3|1,2,3", "tea; milk|milk; tea"],
    "unicode": ["ﬁne|fine", "Pari\u200bs|Paris", "H₂O|H2O", "Windows™|Windows", "é|e\u0301"],
    "labels": ["No. 1|number 1", "#1|No. 1"],
}  # fmt: skip
DIFFERENT = {
    "signs that belong to a name": ["C++|C", "C#|C++", "A+|A", "A-|A", "O-|O+", "Google+|Google", "AT&T|ATT", "R&B|RB", "x^2|x2"],
    "numbers": ["1.5|15", "-5|5", "1,5|1.5", "3.14|314", "10²|102", "1/2|12", "007|7", "1.2.3|123", "24/7|247", "fourteen|40", "12 345|12"],
    "currency and units": ["€5|5", "£5|$5", "50%|50", "10 km|10", "10 km|10 miles", "5 kg|5 g", "5 million|5 billion", "5'10\"|510"],
    "dates and times": ["July 4, 1776|July 5, 1776", "July 1776|1776", "500 BC|500 AD", "500 BC|500", "12:30|1230", "12:30 am|12:30 pm",
                        "7/4/1776|7/5/1776", "May 5|5"],
    "ranges": ["2–1|21", "1990-1995|1990", "10-20|1020", "555-1234|5551234"],
    "accents": ["café|cafe", "Müller|Muller", "São Paulo|Sao Paulo"],
    "words": ["New York|New York City", "Type A|Type", "Vitamin A deficiency|Vitamin deficiency", "well-known|wellknown", "he was a king|king he was", "not Paris|Paris", "John|John's book",
              "no one|no. 1", "red|red or blue", "red or blue|red and blue", "(1, 2)|(2, 1)", "France, France|France", "北京大学|北京", "10th|10"],
    "lone articles": ["The The|the", "The|a", "An|the"],
    "roman": ["World War II|World War I", "Henry VIII|Henry VII", "Malcolm X|Malcolm"],
    "abstentions": ["Paris|unanswerable", "unknown|unanswerable"],
}  # fmt: skip


def pairs(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [tuple(pair.split("|")) for rows in table.values() for pair in rows]  # pyright: ignore


@pytest.mark.shared
def test_every_hand_judged_case_is_right(shared_lines):
    for case in shared_lines("cases/qa_normalisation.jsonl"):
        assert match(case["gold"], case["answer"]) is case["correct"], case


@pytest.mark.parametrize(("gold", "answer"), pairs(SAME))
def test_the_same_answer_matches_however_it_is_written(gold, answer):
    assert match(gold, answer), (canonical(gold), canonical(answer))
    assert match(answer, gold)


@pytest.mark.parametrize(("gold", "answer"), pairs(DIFFERENT))
def test_another_answer_does_not_match_however_close(gold, answer):
    assert not match(gold, answer), (canonical(gold), canonical(answer))
    assert not match(answer, gold)


@pytest.mark.parametrize(
    "answer", ["unanswerable", "No answer", "Not answerable.", "UNANSWERABLE", "I don’t know", "N/A"]
)
def test_an_abstention_matches_the_missing_gold_and_no_other(answer):
    assert match("", answer)
    assert not match("Rollo", answer)


@pytest.mark.parametrize(
    "answer", ["", " ", ".", "the", "a", ",", "Rollo", "no", "None of them", "?", "unanswerable, or Rollo"]
)
def test_what_does_not_abstain_does_not_match_the_missing_gold(answer):
    assert not match("", answer)


@pytest.mark.parametrize("gold", ["The The", "An", "Rollo", "U.S.", "5"])
@pytest.mark.parametrize("answer", ["", " ", ".", "\u200b", '""'])
def test_nothing_matches_no_gold(gold, answer):
    assert not match(gold, answer)


MOSTLY_TEXT = st.text(max_size=60) | st.text(alphabet="0123456789.,-+/'\"()aAIVXm%$€ °&and;", max_size=40)


@settings(max_examples=300, deadline=None)
@given(MOSTLY_TEXT, MOSTLY_TEXT)
def test_matching_never_raises_is_symmetric_and_ignores_outer_space(one, other):
    if one.strip() and other.strip():
        assert match(one, other) == match(other, one)
        assert match(f" {one}\n", one)
        assert 0.0 <= f1(one, other) <= 1.0


@settings(max_examples=200, deadline=None)
@given(st.integers(-(10**9), 10**9), st.integers(0, 4))
def test_a_number_matches_its_grouped_and_padded_forms_and_no_neighbour(number, zeros):
    assert match(str(number), f"{number:,}")
    assert match(f"{number}.{'0' * zeros}5", f"{number:,}.{'0' * zeros}50")
    assert not match(str(number), str(number + 1))
    assert not match(f"{number}5", f"{number}.5")


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 999_999))
def test_number_words_read_back_as_the_number(number):
    assert read_numbers(spelled(number).replace("-", " ").split()) == [str(number)]


SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
TENS = "twenty thirty forty fifty sixty seventy eighty ninety"


def spelled(number: int) -> str:
    small, tens = SMALL.split(), TENS.split()
    if number < 20:
        return small[number]
    if number < 100:
        return tens[number // 10 - 2] + (f"-{small[number % 10]}" if number % 10 else "")
    if number < 1000:
        rest = f" and {spelled(number % 100)}" if number % 100 else ""
        return f"{small[number // 100]} hundred{rest}"
    rest = number % 1000
    joined = "" if not rest else f" and {spelled(rest)}" if rest < 100 else f" {spelled(rest)}"
    return f"{spelled(number // 1000)} thousand{joined}"


def test_roman_numerals_are_read_only_in_their_usual_form():
    assert [roman(word) for word in ("IV", "XLII", "MCMXCIX", "IIII", "VX", "ABC")] == [
        4,
        42,
        1999,
        None,
        None,
        None,
    ]


def test_values_are_written_as_their_shortest_decimal_or_as_a_ratio():
    from fractions import Fraction

    values = [Fraction("1.50"), Fraction(-1, 8), Fraction(1, 3), Fraction(10**12)]
    assert [written(value) for value in values] == ["1.5", "-0.125", "1/3", "1000000000000"]


def test_f1_is_the_token_overlap_of_squad():
    assert f1("the Norman conquest", "Norman conquest of England") == pytest.approx(2 * 2 / (2 + 4))
    assert f1("Rollo", "Paris") == 0.0
    assert f1("Rollo", "the Rollo.") == 1.0
