"""A cart and its bill."""

from goods import price, tax
from offers import bundle, percent_off, three_for_two

OFFERS = {
    "apples": three_for_two("apple"),
    "home10": percent_off(10, "home", minimum=5000),
    "reader": bundle(("book", "lamp"), 700),
}


class Cart:
    def __init__(self, codes=()):
        self.lines = {}
        self.codes = [code for code in codes if code in OFFERS]

    def add(self, name, amount=1):
        if amount < 1:
            raise ValueError("amount must be at least 1")
        price(name)
        self.lines[name] = self.lines.get(name, 0) + amount

    def remove(self, name, amount=None):
        """Take some out, all of them without an amount."""
        there = self.lines.get(name, 0)
        if amount is None or amount >= there:
            self.lines.pop(name, None)
        else:
            self.lines[name] = there - amount

    def subtotal(self):
        return sum(amount * price(name) for name, amount in self.lines.items())

    def savings(self):
        """The best single offer is used; offers do not add up."""
        return max((OFFERS[code](self.lines) for code in self.codes), default=0)

    def shipping(self):
        """Free from 50.00 after savings, and for an empty cart."""
        rest = self.subtotal() - self.savings()
        return 0 if rest >= 5000 or not self.lines else 490

    def taxes(self):
        return sum(tax(amount * price(name), name) for name, amount in self.lines.items())

    def total(self):
        return self.subtotal() - self.savings() + self.taxes() + self.shipping()

    def bill(self):
        rows = [f"{amount} x {name}: {amount * price(name)}" for name, amount in sorted(self.lines.items())]
        if self.savings():
            rows.append(f"savings: -{self.savings()}")
        return [*rows, f"total: {self.total()}"]
