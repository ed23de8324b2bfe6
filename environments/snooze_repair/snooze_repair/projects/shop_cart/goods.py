"""What the shop sells."""

GOODS = {
    "apple": {"price": 30, "group": "food"},
    "bread": {"price": 250, "group": "food"},
    "soap": {"price": 180, "group": "home"},
    "lamp": {"price": 4500, "group": "home"},
    "book": {"price": 1200, "group": "books"},
}
TAX = {"food": 5, "home": 20, "books": 10}


def price(name):
    """Cents."""
    if name not in GOODS:
        raise KeyError(name)
    return GOODS[name]["price"]


def group(name):
    return GOODS[name]["group"]


def tax(cents, name):
    """Tax on an amount, rounded to the nearest cent, a half up."""
    return (cents * TAX[group(name)] + 50) // 100
