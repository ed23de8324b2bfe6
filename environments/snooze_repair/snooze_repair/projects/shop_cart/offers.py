"""Offers lower the price of lines; each takes {name: amount} and gives cents off."""

from goods import group, price


def three_for_two(name):
    """Every third one is free."""
    return lambda lines: lines.get(name, 0) // 3 * price(name)


def percent_off(percent, of_group, minimum=0):
    """Percent off a group's goods when they cost at least `minimum`."""

    def offer(lines):
        total = sum(amount * price(name) for name, amount in lines.items() if group(name) == of_group)
        return total * percent // 100 if total >= minimum else 0

    return offer


def bundle(names, cents):
    """So many cents off for each complete set of the names."""

    def offer(lines):
        return min(lines.get(name, 0) for name in names) * cents

    return offer
