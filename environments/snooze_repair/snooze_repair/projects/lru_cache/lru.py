"""A cache of fixed size."""


class Cache:
    """Keeps the `size` keys that were used last."""

    def __init__(self, size, default=None):
        if size < 1:
            raise ValueError("size must be at least 1")
        self.size = size
        self.default = default
        self.hits = 0
        self.misses = 0
        self._items = {}

    def get(self, key):
        """The value of a key, which now counts as used."""
        if key not in self._items:
            self.misses += 1
            return self.default
        value = self._items.pop(key)
        self._items[key] = value
        self.hits += 1
        return value

    def peek(self, key):
        """The value of a key, without using it."""
        return self._items.get(key, self.default)

    def put(self, key, value):
        """Store a value; returns the key that had to go, if any."""
        gone = None
        if key in self._items:
            del self._items[key]
        elif len(self._items) >= self.size:
            gone = next(iter(self._items))
            del self._items[gone]
        self._items[key] = value
        return gone

    def drop(self, key):
        """Forget a key; True if it was there."""
        if key in self._items:
            del self._items[key]
            return True
        return False

    def resize(self, size):
        """Change the size; returns the keys that had to go."""
        if size < 1:
            raise ValueError("size must be at least 1")
        gone = []
        while len(self._items) > size:
            oldest = next(iter(self._items))
            del self._items[oldest]
            gone.append(oldest)
        self.size = size
        return gone

    def keys(self):
        """Keys, least recently used first."""
        return list(self._items)

    def ratio(self):
        """Share of reads that were hits, 0 before the first read."""
        reads = self.hits + self.misses
        if reads == 0:
            return 0.0
        return self.hits / reads
