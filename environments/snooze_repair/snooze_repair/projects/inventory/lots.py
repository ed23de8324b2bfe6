"""Goods that were bought at different prices."""


class Lots:
    """First in, first out."""

    def __init__(self):
        self.lots = []

    def add(self, amount, price):
        if amount <= 0:
            raise ValueError("nothing to add")
        if self.lots and self.lots[-1][1] == price:
            self.lots[-1] = (self.lots[-1][0] + amount, price)
        else:
            self.lots.append((amount, price))

    def amount(self):
        return sum(amount for amount, _ in self.lots)

    def value(self):
        return sum(amount * price for amount, price in self.lots)

    def take(self, amount):
        """Remove the oldest goods; what they had cost."""
        if amount > self.amount():
            raise ValueError("not enough")
        cost = 0
        while amount > 0:
            there, price = self.lots[0]
            used = min(there, amount)
            cost += used * price
            amount -= used
            if used == there:
                self.lots.pop(0)
            else:
                self.lots[0] = (there - used, price)
        return cost
