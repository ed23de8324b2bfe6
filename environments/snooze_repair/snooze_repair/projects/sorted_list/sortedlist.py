"""A list that stays sorted."""


def lower(items, value):
    """The first place where the value could stand."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def upper(items, value):
    """The last place where the value could stand."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


class SortedList:
    def __init__(self, items=(), unique=False):
        self.unique = unique
        self.items = []
        for item in items:
            self.add(item)

    def add(self, item):
        """Put it where it belongs; False for a repetition in a unique list."""
        place = upper(self.items, item)
        if self.unique and place > 0 and self.items[place - 1] == item:
            return False
        self.items.insert(place, item)
        return True

    def remove(self, item):
        place = lower(self.items, item)
        if place == len(self.items) or self.items[place] != item:
            return False
        self.items.pop(place)
        return True

    def count(self, item):
        return upper(self.items, item) - lower(self.items, item)

    def rank(self, item):
        """How many are smaller."""
        return lower(self.items, item)

    def between(self, low, high):
        """Items from low to high, both included."""
        return self.items[lower(self.items, low) : upper(self.items, high)]

    def nearest(self, value):
        """The closest item, the smaller of two; None in an empty list."""
        if not self.items:
            return None
        place = lower(self.items, value)
        near = self.items[max(0, place - 1) : place + 1]
        return min(near, key=lambda item: (abs(item - value), item))

    def median(self):
        """The middle item, or the mean of the two in the middle."""
        size = len(self.items)
        if size == 0:
            raise ValueError("empty")
        if size % 2 == 1:
            return self.items[size // 2]
        return (self.items[size // 2 - 1] + self.items[size // 2]) / 2

    def percentile(self, percent):
        """The smallest item that at least so many percent do not exceed."""
        if not 0 < percent <= 100:
            raise ValueError("percent must be above 0 and at most 100")
        if not self.items:
            raise ValueError("empty")
        place = -(-len(self.items) * percent // 100) - 1
        return self.items[place]
