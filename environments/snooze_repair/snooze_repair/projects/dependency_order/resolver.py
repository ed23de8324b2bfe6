"""Which package to install first."""


class CycleError(ValueError):
    """Packages that need each other; `cycle` is the way round."""

    def __init__(self, cycle):
        super().__init__(" -> ".join(cycle))
        self.cycle = cycle


class Resolver:
    def __init__(self, needs=None):
        self.needs = {}
        for package, others in (needs or {}).items():
            self.add(package, others)

    def add(self, package, others=()):
        """`package` needs `others`; may be called again to add more."""
        known = self.needs.setdefault(package, [])
        for other in others:
            if other not in known:
                known.append(other)
            self.needs.setdefault(other, [])

    def order(self, *wanted):
        """Everything that the wanted packages need, each after what it needs; no arguments mean all."""
        done, path = [], []
        for package in wanted or list(self.needs):
            self._visit(package, done, path)
        return done

    def _visit(self, package, done, path):
        if package in done:
            return
        if package in path:
            raise CycleError([*path[path.index(package) :], package])
        if package not in self.needs:
            raise KeyError(package)
        path.append(package)
        for other in self.needs[package]:
            self._visit(other, done, path)
        path.pop()
        done.append(package)

    def all_needs(self, package):
        """Sorted names of everything that a package needs, directly or not."""
        return sorted(set(self.order(package)) - {package})

    def users(self, package):
        """Sorted names of the packages that need it directly."""
        return sorted(name for name, others in self.needs.items() if package in others)

    def removable(self, *kept):
        """Sorted names of what is not needed by the kept packages."""
        needed = set(self.order(*kept)) if kept else set()
        return sorted(name for name in self.needs if name not in needed)

    def levels(self):
        """Groups that can be installed at once, one after the other."""
        depth = {}
        for package in self.order():
            below = [depth[other] for other in self.needs[package]]
            depth[package] = max(below) + 1 if below else 0
        groups = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for package, level in depth.items():
            groups[level].append(package)
        return [sorted(group) for group in groups]
