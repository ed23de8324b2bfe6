"""Jobs with priorities, retries and time limits; the clock is passed in."""


class Jobs:
    def __init__(self, retries=2, timeout=10):
        self.retries = retries
        self.timeout = timeout
        self.waiting = []
        self.running = {}
        self.done = []
        self.failed = []
        self.tries = {}

    def add(self, name, priority=0, after=0):
        """A job that may start at time `after`; higher priorities first."""
        if name in self.tries:
            raise ValueError(f"{name} exists")
        self.tries[name] = 0
        self.waiting.append((-priority, after, name))

    def take(self, now):
        """Start the next job that may; its name, or None."""
        ready = [job for job in self.waiting if job[1] <= now]
        if not ready:
            return None
        job = min(ready, key=lambda one: (one[0], self.tries[one[2]], one[2]))
        self.waiting.remove(job)
        self.tries[job[2]] += 1
        self.running[job[2]] = (now, job)
        return job[2]

    def finish(self, name):
        if name not in self.running:
            raise KeyError(name)
        del self.running[name]
        self.done.append(name)

    def fail(self, name, now):
        """Try again later, each time twice as late, or give up."""
        if name not in self.running:
            raise KeyError(name)
        _, (priority, _, _) = self.running.pop(name)
        if self.tries[name] > self.retries:
            self.failed.append(name)
            return False
        wait = 2 ** (self.tries[name] - 1)
        self.waiting.append((priority, now + wait, name))
        return True

    def check(self, now):
        """Fail what has run too long; sorted names."""
        late = sorted(name for name, (start, _) in self.running.items() if now - start >= self.timeout)
        for name in late:
            self.fail(name, now)
        return late

    def next_start(self):
        """When the earliest waiting job may start."""
        return min((after for _, after, _ in self.waiting), default=None)

    def summary(self):
        return {
            "waiting": len(self.waiting),
            "running": len(self.running),
            "done": len(self.done),
            "failed": len(self.failed),
        }
