"""A warehouse: stock, reservations and what to order."""

from lots import Lots


class StockError(Exception):
    pass


class Stock:
    def __init__(self):
        self.goods = {}
        self.reserved = {}
        self.levels = {}
        self.profit = 0

    def receive(self, item, amount, price):
        self.goods.setdefault(item, Lots()).add(amount, price)

    def set_level(self, item, low, full):
        """Order up to `full` when fewer than `low` are free."""
        if low > full:
            raise StockError("low is above full")
        self.levels[item] = (low, full)

    def on_hand(self, item):
        return self.goods[item].amount() if item in self.goods else 0

    def free(self, item):
        """What is there and not reserved."""
        return self.on_hand(item) - sum(amount for name, amount in self.reserved.values() if name == item)

    def reserve(self, order, item, amount):
        if order in self.reserved:
            raise StockError(f"order {order} exists")
        if amount > self.free(item):
            raise StockError(f"only {self.free(item)} of {item} are free")
        self.reserved[order] = (item, amount)

    def cancel(self, order):
        return self.reserved.pop(order, None) is not None

    def ship(self, order, price):
        """Send a reserved order out; the profit on it."""
        if order not in self.reserved:
            raise StockError(f"no order {order}")
        item, amount = self.reserved.pop(order)
        gain = amount * price - self.goods[item].take(amount)
        self.profit += gain
        return gain

    def to_order(self):
        """{item: amount} that bring low items back to full."""
        wanted = {}
        for item, (low, full) in self.levels.items():
            if self.free(item) < low:
                wanted[item] = full - self.free(item)
        return wanted

    def value(self):
        return sum(lots.value() for lots in self.goods.values())
