"""Figures over the last values of a stream."""

from ring import Ring


class Moving:
    def __init__(self, size):
        self.ring = Ring(size)
        self.total = 0
        self.seen = 0

    def add(self, value):
        """The mean after this value."""
        old = self.ring.push(value)
        self.total += value
        if old is not None:
            self.total -= old
        self.seen += 1
        return self.mean()

    def mean(self):
        return self.total / self.ring.count if self.ring.count else 0.0

    def spread(self):
        """Largest minus smallest."""
        values = self.ring.values()
        return max(values) - min(values) if values else 0

    def variance(self):
        mean = self.mean()
        values = self.ring.values()
        if len(values) < 2:
            return 0.0
        return sum((value - mean) ** 2 for value in values) / (len(values) - 1)

    def trend(self):
        """1 if the newest value is the largest, -1 if it is the smallest, else 0."""
        values = self.ring.values()
        if len(values) < 2:
            return 0
        if values[-1] > max(values[:-1]):
            return 1
        if values[-1] < min(values[:-1]):
            return -1
        return 0


def smooth(values, weight=0.5):
    """Exponential mean: each result is weight * value + (1 - weight) * last result."""
    results = []
    for value in values:
        if not results:
            results.append(value)
        else:
            results.append(weight * value + (1 - weight) * results[-1])
    return results


def alarms(values, size, limit):
    """Places where a value is more than `limit` above the mean of the `size` values before it."""
    moving, found = Moving(size), []
    for place, value in enumerate(values):
        if moving.seen >= size and value - moving.mean() > limit:
            found.append(place)
        moving.add(value)
    return found
