"""May this request pass? Time is passed in, in seconds."""


class Bucket:
    """A bucket holds up to `size` tokens and gains `rate` of them per second; a request takes some."""

    def __init__(self, size, rate):
        self.size = size
        self.rate = rate
        self.tokens = size
        self.last = 0

    def allow(self, now, cost=1):
        self._fill(now)
        if cost > self.tokens:
            return False
        self.tokens -= cost
        return True

    def wait(self, now, cost=1):
        """Seconds until a request of this cost would pass; None if it never will."""
        if cost > self.size:
            return None
        self._fill(now)
        missing = cost - self.tokens
        return max(0, missing / self.rate)

    def _fill(self, now):
        self.tokens = min(self.size, self.tokens + (now - self.last) * self.rate)
        self.last = now


class Window:
    """At most `limit` requests in any `span` seconds."""

    def __init__(self, limit, span):
        self.limit = limit
        self.span = span
        self.times = []

    def allow(self, now):
        self._forget(now)
        if len(self.times) >= self.limit:
            return False
        self.times.append(now)
        return True

    def left(self, now):
        self._forget(now)
        return self.limit - len(self.times)

    def _forget(self, now):
        self.times = [time for time in self.times if time > now - self.span]


class Limiter:
    """One window per user, and a ban for those who are refused too often in a row."""

    def __init__(self, limit, span, strikes=3, ban=60):
        self.limit = limit
        self.span = span
        self.strikes = strikes
        self.ban = ban
        self._windows = {}
        self._refused = {}
        self._banned = {}

    def allow(self, user, now):
        if now < self._banned.get(user, 0):
            return False
        window = self._windows.setdefault(user, Window(self.limit, self.span))
        if window.allow(now):
            self._refused[user] = 0
            return True
        self._refused[user] = self._refused.get(user, 0) + 1
        if self._refused[user] >= self.strikes:
            self._banned[user] = now + self.ban
            self._refused[user] = 0
        return False

    def banned(self, now):
        return sorted(user for user, end in self._banned.items() if end > now)
