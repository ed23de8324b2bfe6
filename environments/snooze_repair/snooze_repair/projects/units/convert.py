"""Quantities with units."""

FACTORS = {
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "in": 0.0254, "ft": 0.3048, "mi": 1609.344},
    "mass": {"mg": 0.000001, "g": 0.001, "kg": 1, "t": 1000, "lb": 0.45359237},
    "time": {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86400},
}
TEMPERATURES = ("C", "F", "K")


class UnitError(ValueError):
    """Units that are unknown or do not go together."""


def kind_of(unit):
    if unit in TEMPERATURES:
        return "temperature"
    for kind, units in FACTORS.items():
        if unit in units:
            return kind
    raise UnitError(f"unknown unit {unit}")


def convert(amount, source, target):
    """The amount in another unit of the same kind."""
    kind = kind_of(source)
    if kind != kind_of(target):
        raise UnitError(f"{source} and {target} do not go together")
    if kind == "temperature":
        return from_kelvin(to_kelvin(amount, source), target)
    return amount * FACTORS[kind][source] / FACTORS[kind][target]


def to_kelvin(amount, unit):
    if unit == "C":
        kelvin = amount + 273.15
    elif unit == "F":
        kelvin = (amount - 32) * 5 / 9 + 273.15
    else:
        kelvin = amount
    if kelvin < 0:
        raise UnitError("below absolute zero")
    return kelvin


def from_kelvin(kelvin, unit):
    if unit == "C":
        return kelvin - 273.15
    if unit == "F":
        return (kelvin - 273.15) * 9 / 5 + 32
    return kelvin


def parse(text):
    """ "3.5 km" or "3.5km" as (3.5, "km")."""
    text = text.strip()
    end = 0
    while end < len(text) and (text[end].isdigit() or text[end] in ".-"):
        end += 1
    try:
        amount = float(text[:end])
    except ValueError:
        raise UnitError(f"{text!r} has no amount") from None
    unit = text[end:].strip()
    kind_of(unit)
    return (amount, unit)


def add(first, second):
    """Sum of two quantities as text, in the unit of the first."""
    amount, unit = parse(first)
    other, other_unit = parse(second)
    return show(amount + convert(other, other_unit, unit), unit)


def show(amount, unit, digits=2):
    """Rounded, without needless zeros."""
    text = f"{round(amount, digits):.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text} {unit}"


def best_unit(amount, unit):
    """The largest unit of the kind in which the amount is at least 1, among metric ones and times."""
    names = {"length": ("mm", "cm", "m", "km"), "mass": ("mg", "g", "kg", "t"), "time": ("ms", "s", "min", "h", "d")}
    best = names[kind_of(unit)][0]
    for name in names[kind_of(unit)]:
        if convert(amount, unit, name) >= 1:
            best = name
    return show(convert(amount, unit, best), best)
