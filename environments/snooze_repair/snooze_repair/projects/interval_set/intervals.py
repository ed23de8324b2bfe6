"""Sets of whole numbers as half-open intervals [start, end)."""


class IntervalSet:
    """Intervals are kept sorted, apart from each other and not touching."""

    def __init__(self, pairs=()):
        self._pairs = []
        for start, end in pairs:
            self.add(start, end)

    def add(self, start, end):
        """Put in every number from start up to, not including, end."""
        if start >= end:
            return
        kept = []
        for low, high in self._pairs:
            if high < start or low > end:
                kept.append((low, high))
            else:
                start = min(start, low)
                end = max(end, high)
        kept.append((start, end))
        self._pairs = sorted(kept)

    def remove(self, start, end):
        """Take out every number from start up to, not including, end."""
        kept = []
        for low, high in self._pairs:
            if low < start:
                kept.append((low, min(high, start)))
            if high > end:
                kept.append((max(low, end), high))
        self._pairs = sorted(set(kept))

    def pairs(self):
        return list(self._pairs)

    def __contains__(self, number):
        return self.has(number)

    def has(self, number):
        return any(low <= number < high for low, high in self._pairs)

    def size(self):
        """How many numbers there are."""
        return sum(high - low for low, high in self._pairs)

    def gaps(self):
        """What lies between the intervals."""
        ends = [high for _, high in self._pairs[:-1]]
        starts = [low for low, _ in self._pairs[1:]]
        return list(zip(ends, starts))

    def overlap(self, start, end):
        """What the set and [start, end) have in common."""
        found = []
        for low, high in self._pairs:
            left, right = max(low, start), min(high, end)
            if left < right:
                found.append((left, right))
        return found

    def first_free(self, number):
        """The smallest number from `number` on that is not in the set."""
        for low, high in self._pairs:
            if low <= number < high:
                number = high
        return number
