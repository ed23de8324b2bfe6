"""A queue that gives the most urgent entry first: a binary heap with first come, first served among equals."""


class Queue:
    def __init__(self, largest_first=False):
        self.sign = -1 if largest_first else 1
        self._heap = []
        self._count = 0

    def __len__(self):
        return len(self._heap)

    def push(self, priority, item):
        self._heap.append((self.sign * priority, self._count, item))
        self._count += 1
        self._up(len(self._heap) - 1)

    def pop(self):
        if not self._heap:
            raise IndexError("the queue is empty")
        first = self._heap[0]
        last = self._heap.pop()
        if self._heap:
            self._heap[0] = last
            self._down(0)
        return first[2]

    def peek(self):
        """The next item, or None."""
        return self._heap[0][2] if self._heap else None

    def change(self, item, priority):
        """Give an item another priority; False if it is not waiting."""
        for at, (_, count, waiting) in enumerate(self._heap):
            if waiting == item:
                self._heap[at] = (self.sign * priority, count, item)
                self._up(at)
                self._down(at)
                return True
        return False

    def drain(self):
        """All items in order; the queue is empty then."""
        items = []
        while self._heap:
            items.append(self.pop())
        return items

    def _up(self, at):
        while at > 0:
            parent = (at - 1) // 2
            if self._heap[parent][:2] <= self._heap[at][:2]:
                break
            self._swap(at, parent)
            at = parent

    def _down(self, at):
        while True:
            child = 2 * at + 1
            if child >= len(self._heap):
                break
            if child + 1 < len(self._heap) and self._heap[child + 1][:2] < self._heap[child][:2]:
                child += 1
            if self._heap[at][:2] <= self._heap[child][:2]:
                break
            self._swap(at, child)
            at = child

    def _swap(self, a, b):
        self._heap[a], self._heap[b] = self._heap[b], self._heap[a]


def k_best(numbers, k, largest=True):
    """The k largest (or smallest) numbers, best first."""
    queue = Queue(largest_first=largest)
    for number in numbers:
        queue.push(number, number)
    return [queue.pop() for _ in range(min(k, len(queue)))]


def merge(*lists):
    """Sorted lists merged into one."""
    queue = Queue()
    for number, items in enumerate(lists):
        if items:
            queue.push(items[0], (number, 0))
    merged = []
    while len(queue) > 0:
        number, at = queue.pop()
        merged.append(lists[number][at])
        if at + 1 < len(lists[number]):
            queue.push(lists[number][at + 1], (number, at + 1))
    return merged
