"""Sets that grow together."""


class Sets:
    def __init__(self, items=()):
        self.parent = {}
        self.sizes = {}
        for item in items:
            self.add(item)

    def add(self, item):
        if item not in self.parent:
            self.parent[item] = item
            self.sizes[item] = 1

    def find(self, item):
        """The item that stands for the set."""
        root = item
        while self.parent[root] != root:
            root = self.parent[root]
        while self.parent[item] != root:
            self.parent[item], item = root, self.parent[item]
        return root

    def join(self, a, b):
        """Make one set of two; False if they are one already. The larger set's root stays, the first one's of equals."""
        self.add(a)
        self.add(b)
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.sizes[a] < self.sizes[b]:
            a, b = b, a
        self.parent[b] = a
        self.sizes[a] += self.sizes[b]
        return True

    def same(self, a, b):
        return a in self.parent and b in self.parent and self.find(a) == self.find(b)

    def size(self, item):
        return self.sizes[self.find(item)]

    def groups(self):
        """Sorted lists of what belongs together, the largest first."""
        found = {}
        for item in self.parent:
            found.setdefault(self.find(item), []).append(item)
        return sorted((sorted(group) for group in found.values()), key=lambda group: (-len(group), group))


def spanning(edges):
    """Cheapest edges (a, b, cost) that connect all they can, in order of cost, and their total."""
    sets, chosen, total = Sets(), [], 0
    for a, b, cost in sorted(edges, key=lambda edge: (edge[2], edge[0], edge[1])):
        if sets.join(a, b):
            chosen.append((a, b, cost))
            total += cost
    return chosen, total


def islands(rows):
    """Sizes of the areas of # in a picture that hang together by sides, largest first."""
    cells = {(r, c) for r, row in enumerate(rows) for c, mark in enumerate(row) if mark == "#"}
    sets = Sets(cells)
    for r, c in cells:
        for other in ((r + 1, c), (r, c + 1)):
            if other in cells:
                sets.join((r, c), other)
    return [len(group) for group in sets.groups()]
