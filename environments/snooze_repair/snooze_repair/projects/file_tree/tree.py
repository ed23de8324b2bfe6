"""A small file system in memory."""

from names import PathError, full, matches, parts
from nodes import copy, size, step, walk


class Tree:
    def __init__(self):
        self.root = {}
        self.here = "/"

    def node(self, path):
        found = self.root
        for name in parts(path, self.here):
            found = step(found, name)
        return found

    def exists(self, path):
        try:
            self.node(path)
        except PathError:
            return False
        return True

    def _folder(self, path):
        """The folder that a path lies in, and the last name."""
        names = parts(path, self.here)
        if not names:
            raise PathError("the root cannot be changed")
        folder = self.node("/" + "/".join(names[:-1]))
        if isinstance(folder, str):
            raise PathError(f"{names[-2]} is a file")
        return folder, names[-1]

    def mkdir(self, path):
        folder, name = self._folder(path)
        if name in folder:
            raise PathError(f"{name} exists")
        folder[name] = {}

    def write(self, path, text, append=False):
        folder, name = self._folder(path)
        old = folder.get(name, "")
        if isinstance(old, dict):
            raise PathError(f"{name} is a folder")
        folder[name] = old + text if append else text

    def read(self, path):
        text = self.node(path)
        if isinstance(text, dict):
            raise PathError("a folder has no text")
        return text

    def list(self, path="."):
        """Sorted names; folders end in a slash."""
        folder = self.node(path)
        if isinstance(folder, str):
            return [parts(path, self.here)[-1]]
        return [name + ("/" if isinstance(folder[name], dict) else "") for name in sorted(folder)]

    def cd(self, path):
        if isinstance(self.node(path), str):
            raise PathError("not a folder")
        self.here = full(path, self.here)
        return self.here

    def remove(self, path, all=False):
        """A folder that is not empty needs `all`."""
        folder, name = self._folder(path)
        if step(folder, name) and isinstance(folder[name], dict) and not all:
            raise PathError(f"{name} is not empty")
        del folder[name]

    def copy(self, source, target):
        """Into the target if it is a folder, else as the target."""
        node = copy(self.node(source))
        folder, name = self._place(source, target)
        folder[name] = node

    def move(self, source, target):
        inside = full(target, self.here) + "/"
        if inside.startswith(full(source, self.here) + "/"):
            raise PathError("a folder cannot move into itself")
        old, old_name = self._folder(source)
        node = step(old, old_name)
        folder, name = self._place(source, target)
        del old[old_name]
        folder[name] = node

    def _place(self, source, target):
        if self.exists(target) and isinstance(self.node(target), dict):
            return self.node(target), parts(source, self.here)[-1]
        return self._folder(target)

    def find(self, pattern, path="."):
        """Full paths of files whose names match."""
        start = full(path, self.here).rstrip("/")
        return [p for p, _ in walk(self.node(path), start) if matches(p.rpartition("/")[2], pattern)]

    def size(self, path="."):
        return size(self.node(path))
