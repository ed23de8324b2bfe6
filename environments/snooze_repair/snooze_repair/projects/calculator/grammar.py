"""Parts into a tree: numbers, ("name", n), ("neg", x), (operator, x, y), ("call", name, arguments)."""

from lexemes import split

LEVELS = (("+", "-"), ("*", "/", "%"))


class Parser:
    def __init__(self, text):
        self.parts = split(text)
        self.at = 0

    def peek(self):
        return self.parts[self.at] if self.at < len(self.parts) else ("end", "")

    def take(self, symbol):
        """Step over a symbol if it comes next."""
        if self.peek() == ("symbol", symbol):
            self.at += 1
            return True
        return False

    def expect(self, symbol):
        if not self.take(symbol):
            raise ValueError(f"wanted {symbol!r}, got {self.peek()[1]!r}")

    def parse(self):
        tree = self.binary(0)
        if self.peek()[0] != "end":
            raise ValueError(f"unexpected {self.peek()[1]!r}")
        return tree

    def binary(self, level):
        if level == len(LEVELS):
            return self.unary()
        tree = self.binary(level + 1)
        while self.peek()[0] == "symbol" and self.peek()[1] in LEVELS[level]:
            operator = self.peek()[1]
            self.at += 1
            tree = (operator, tree, self.binary(level + 1))
        return tree

    def unary(self):
        if self.take("-"):
            return ("neg", self.unary())
        return self.power()

    def power(self):
        base = self.atom()
        if self.take("^"):
            return ("^", base, self.unary())
        return base

    def atom(self):
        kind, value = self.peek()
        if kind == "number":
            self.at += 1
            return value
        if kind == "name":
            self.at += 1
            if self.take("("):
                return ("call", value, self.arguments())
            return ("name", value)
        self.expect("(")
        tree = self.binary(0)
        self.expect(")")
        return tree

    def arguments(self):
        found = []
        if self.take(")"):
            return found
        while True:
            found.append(self.binary(0))
            if self.take(")"):
                return found
            self.expect(",")
