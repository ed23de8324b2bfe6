"""Directed graphs with lengths."""


class Graph:
    def __init__(self):
        self.edges = {}

    def add(self, a, b, length=1, both=False):
        """An edge; `both` adds the way back. Of two edges between the same nodes the shorter counts."""
        if length < 0:
            raise ValueError("negative length")
        near = self.edges.setdefault(a, {})
        near[b] = min(length, near.get(b, length))
        self.edges.setdefault(b, {})
        if both:
            self.add(b, a, length)

    def nodes(self):
        return sorted(self.edges)

    def near(self, node):
        """Sorted (neighbour, length) pairs."""
        return sorted(self.edges[node].items())
