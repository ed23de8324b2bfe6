"""Values that expire. Time is a number that the caller passes in."""


class Store:
    def __init__(self, ttl=60):
        self.ttl = ttl
        self._rows = {}

    def put(self, key, value, now, ttl=None):
        """Keep a value until `now` plus its time to live."""
        life = self.ttl if ttl is None else ttl
        self._rows[key] = (value, now + life)

    def get(self, key, now, default=None):
        """The value, unless its time is over. A value lives up to, not including, its end."""
        if key not in self._rows:
            return default
        value, end = self._rows[key]
        if now >= end:
            del self._rows[key]
            return default
        return value

    def touch(self, key, now):
        """Start the default time to live again; False for a key that is gone."""
        value = self.get(key, now)
        if value is None:
            return False
        self._rows[key] = (value, now + self.ttl)
        return True

    def left(self, key, now):
        """Time that a key still has, 0 if it is gone."""
        if key not in self._rows:
            return 0
        return max(0, self._rows[key][1] - now)

    def sweep(self, now):
        """Remove what has expired; the number of removed keys."""
        old = [key for key, (_, end) in self._rows.items() if end <= now]
        for key in old:
            del self._rows[key]
        return len(old)

    def __len__(self):
        return len(self._rows)

    def next_end(self):
        """When the next key expires, None if nothing is kept."""
        if not self._rows:
            return None
        return min(end for _, end in self._rows.values())
