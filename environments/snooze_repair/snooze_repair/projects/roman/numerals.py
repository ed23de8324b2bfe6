"""Numbers in Roman numerals and in English words."""

ROMAN = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)
SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()


def to_roman(number):
    if not 1 <= number <= 3999:
        raise ValueError("Roman numerals go from 1 to 3999")
    text = ""
    for value, sign in ROMAN:
        while number >= value:
            text += sign
            number -= value
    return text


def from_roman(text):
    """The number; only the usual spelling is accepted."""
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for place, sign in enumerate(text):
        if sign not in values:
            raise ValueError(f"{sign!r} is no Roman digit")
        value = values[sign]
        after = values.get(text[place + 1 : place + 2], 0)
        total += -value if value < after else value
    if not text or to_roman(total) != text:
        raise ValueError(f"{text!r} is no Roman numeral")
    return total


def to_words(number):
    """English words for numbers below a million."""
    if number < 0:
        return "minus " + to_words(-number)
    if number >= 1000000:
        raise ValueError("too large")
    if number < 20:
        return SMALL[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return TENS[tens] + (f"-{SMALL[ones]}" if ones else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{SMALL[hundreds]} hundred" + (f" and {to_words(rest)}" if rest else "")
    thousands, rest = divmod(number, 1000)
    words = f"{to_words(thousands)} thousand"
    if not rest:
        return words
    return f"{words} and {to_words(rest)}" if rest < 100 else f"{words} {to_words(rest)}"


def ordinal(number):
    """1st, 2nd, 3rd, 4th, ... 11th"""
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
