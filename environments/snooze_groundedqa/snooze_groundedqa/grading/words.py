"""Vocabularies of the normaliser: number words, magnitudes, months, units, currencies."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


def _table(rows: Mapping[str, str]) -> Mapping[str, str]:
    """Every spelling → the first of its row's names; a row is "canonical": "other spellings"."""
    return MappingProxyType({s: name for name, others in rows.items() for s in (name, *others.split())})


def _count(names: str, start: int, step: int = 1) -> dict[str, int]:
    return {name: start + step * place for place, name in enumerate(names.split())}


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


SMALL: Mapping[str, int] = MappingProxyType(
    _count(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen",
        0,
    )
)
TENS: Mapping[str, int] = MappingProxyType(
    {**_count("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10), "fourty": 40}
)
ORDINALS: Mapping[str, int] = MappingProxyType(
    {
        **_count(
            "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
            "fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
            1,
        ),
        **_count("thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth hundredth", 30, 10),
        "thousandth": 1000,
    }
)
FRACTIONS: Mapping[str, int] = MappingProxyType(
    {
        "half": 2, "halves": 2, "quarter": 4, "quarters": 4, "thirds": 3, "fourths": 4, "fifths": 5, "sixths": 6,
        "sevenths": 7, "eighths": 8, "ninths": 9, "tenths": 10, "hundredths": 100, "third": 3, "fourth": 4, "fifth": 5,
        "sixth": 6, "eighth": 8, "tenth": 10,
    }
)  # fmt: skip
MAGNITUDES: Mapping[str, int] = MappingProxyType(
    {
        "hundred": 10**2, "thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6, "mil": 10**6, "billion": 10**9,
        "bn": 10**9, "trillion": 10**12, "tn": 10**12, "dozen": 12,
    }
)  # fmt: skip
MONTHS: Mapping[str, int] = MappingProxyType(
    {
        **_count("january february march april may june july august september october november december", 1),
        **_count("jan feb mar apr may jun jul aug sep oct nov dec", 1),
        "sept": 9,
    }
)
CURRENCY_SIGNS: Mapping[str, str] = MappingProxyType(
    {
        "us$": "usd", "a$": "aud", "c$": "cad", "hk$": "hkd", "nz$": "nzd", "$": "usd", "€": "eur", "£": "gbp", "¥": "jpy",
        "₹": "inr", "₽": "rub", "₩": "krw", "₿": "btc", "¢": "cent",
    }
)  # fmt: skip
UNITS: Mapping[str, str] = _table(
    {
        "usd": "dollar dollars", "eur": "euro euros", "gbp": "sterling", "pound": "pounds", "lb": "lbs", "jpy": "yen",
        "inr": "rupee rupees", "cent": "cents",
        "km": "kms kilometer kilometers kilometre kilometres", "m": "meter meters metre metres", "cm": "centimeter centimeters centimetre centimetres",
        "mm": "millimeter millimeters millimetre millimetres", "mi": "mile miles", "ft": "foot feet", "inch": "inches", "yd": "yard yards",
        "kg": "kgs kilo kilos kilogram kilograms", "g": "gram grams", "mg": "milligram milligrams", "oz": "ounce ounces", "ton": "tons", "t": "tonne tonnes",
        "l": "liter liters litre litres", "ml": "milliliter milliliters millilitre millilitres",
        "s": "sec secs second seconds 2nd", "ms": "millisecond milliseconds", "min": "mins minute minutes", "h": "hr hrs hour hours",
        "day": "days", "week": "weeks", "month": "months", "year": "years yr yrs", "century": "centuries", "decade": "decades",
        "mph": "", "km/h": "kph kmh", "m/s": "", "hz": "hertz", "khz": "", "mhz": "", "ghz": "", "w": "watt watts", "kw": "kilowatt kilowatts",
        "mw": "megawatt megawatts", "v": "volt volts", "kb": "", "mb": "megabyte megabytes", "gb": "gigabyte gigabytes", "tb": "terabyte terabytes",
        "acre": "acres", "ha": "hectare hectares", "km^2": "km2 sqkm", "m^2": "m2 sqm", "mi^2": "mi2 sqmi", "ft^2": "ft2 sqft", "m^3": "m3", "cm^3": "cm3 cc",
        "%": "percent pct", "°c": "celsius centigrade", "°f": "fahrenheit", "°": "degree degrees", "kelvin": "kelvins",
    }
)  # fmt: skip
"""Unit spellings, read only right after a number."""
AMBIGUOUS = frozenset({frozenset(("pound", "gbp")), frozenset(("pound", "lb"))})
"""Units that are the same under one reading of a word that has two."""
ROMAN_LOOKALIKES = _set("CC CD CM CV DC DI LI MC MD MI MM XL MIX DIM MILD CIVIL")
"""Upper-case words that could be read as Roman numerals and hardly ever are."""
BEFORE_ROMAN = _set(
    "war part type phase stage act book volume vol chapter article title class grade bowl level section mark "
    "category appendix"
)
"""Words after which a single I, V or X is a number."""
