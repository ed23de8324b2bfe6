"""The last values of a stream."""


class Ring:
    """A buffer of fixed size that overwrites its oldest value."""

    def __init__(self, size):
        if size < 1:
            raise ValueError("size must be at least 1")
        self.slots = [None] * size
        self.start = 0
        self.count = 0

    def push(self, value):
        """Add a value; the one that was overwritten, or None."""
        size = len(self.slots)
        place = (self.start + self.count) % size
        old = None
        if self.count == size:
            old = self.slots[place]
            self.start = (self.start + 1) % size
        else:
            self.count += 1
        self.slots[place] = value
        return old

    def pop(self):
        """Take the oldest value out."""
        if self.count == 0:
            raise IndexError("the ring is empty")
        value = self.slots[self.start]
        self.slots[self.start] = None
        self.start = (self.start + 1) % len(self.slots)
        self.count -= 1
        return value

    def values(self):
        """Oldest first."""
        size = len(self.slots)
        return [self.slots[(self.start + i) % size] for i in range(self.count)]

    def last(self, n=1):
        """The n newest values, oldest of them first."""
        return self.values()[max(0, self.count - n) :]
