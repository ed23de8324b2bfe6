"""Text with a cursor."""


class Buffer:
    def __init__(self, text=""):
        self.text = text
        self.at = 0

    def move(self, step):
        """Stay within the text; how far the cursor went."""
        before = self.at
        self.at = max(0, min(len(self.text), self.at + step))
        return self.at - before

    def insert(self, new):
        self.text = self.text[: self.at] + new + self.text[self.at :]
        self.at += len(new)

    def delete(self, count):
        """Remove letters before the cursor; what was removed."""
        count = min(count, self.at)
        gone = self.text[self.at - count : self.at]
        self.text = self.text[: self.at - count] + self.text[self.at :]
        self.at -= count
        return gone

    def place(self):
        """(line, column) of the cursor, from zero."""
        before = self.text[: self.at]
        return before.count("\n"), self.at - (before.rfind("\n") + 1)

    def word_left(self):
        """To the start of the word before the cursor."""
        while self.at > 0 and not self.text[self.at - 1].isalnum():
            self.at -= 1
        while self.at > 0 and self.text[self.at - 1].isalnum():
            self.at -= 1
        return self.at

    def find(self, what):
        """Put the cursor behind the next place, from the start again after the last one."""
        place = self.text.find(what, self.at)
        if place < 0:
            place = self.text.find(what)
        if place < 0:
            return False
        self.at = place + len(what)
        return True
