"""A buffer with undo and redo."""

from buffer import Buffer


class Editor:
    """Changes are ("insert" or "delete", place before, text)."""

    def __init__(self, text="", limit=100):
        self.buffer = Buffer(text)
        self.limit = limit
        self.done = []
        self.undone = []
        self.clip = ""

    def type(self, text):
        """Letters typed one after the other are undone together, up to a blank."""
        last = self.done[-1] if self.done else None
        at = self.buffer.at
        self.buffer.insert(text)
        joins = last and last[0] == "insert" and last[1] + len(last[2]) == at
        if joins and not text.isspace() and not last[2][-1].isspace():
            self.done[-1] = ("insert", last[1], last[2] + text)
        else:
            self._remember("insert", at, text)
        self.undone.clear()

    def erase(self, count=1):
        at = self.buffer.at
        gone = self.buffer.delete(count)
        if gone:
            self._remember("delete", at - len(gone), gone)
            self.undone.clear()
        return gone

    def cut(self, count):
        self.clip = self.erase(count)

    def paste(self):
        if self.clip:
            at = self.buffer.at
            self.buffer.insert(self.clip)
            self._remember("insert", at, self.clip)
            self.undone.clear()

    def _remember(self, kind, at, text):
        self.done.append((kind, at, text))
        if len(self.done) > self.limit:
            self.done.pop(0)

    def undo(self):
        if not self.done:
            return False
        kind, at, text = self.done.pop()
        self._play("delete" if kind == "insert" else "insert", at, text)
        self.undone.append((kind, at, text))
        return True

    def redo(self):
        if not self.undone:
            return False
        kind, at, text = self.undone.pop()
        self._play(kind, at, text)
        self.done.append((kind, at, text))
        return True

    def _play(self, kind, at, text):
        if kind == "insert":
            self.buffer.at = at
            self.buffer.insert(text)
        else:
            self.buffer.at = at + len(text)
            self.buffer.delete(len(text))

    def text(self):
        return self.buffer.text
