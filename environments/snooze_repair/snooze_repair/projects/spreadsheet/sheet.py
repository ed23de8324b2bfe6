"""Cells with values and formulas."""

from cells import make_name, parse_name
from formulas import evaluate


class Sheet:
    def __init__(self):
        self.contents = {}
        self.known = {}

    def put(self, name, content):
        """A number, a text, or a formula that starts with =. None empties the cell."""
        name = make_name(*parse_name(name))
        if content is None:
            self.contents.pop(name, None)
        else:
            self.contents[name] = content
        self.known.clear()

    def get(self, name):
        """The value; "#DIV", "#LOOP" or "#ERR" where there is none."""
        name = make_name(*parse_name(name))
        try:
            return self._value(name, ())
        except ZeroDivisionError:
            return "#DIV"
        except RecursionError:
            return "#LOOP"
        except (ValueError, TypeError):
            return "#ERR"

    def _value(self, name, path):
        if name in path:
            raise RecursionError(name)
        content = self.contents.get(name)
        if not isinstance(content, str) or not content.startswith("="):
            return content
        if name not in self.known:
            self.known[name] = evaluate(content[1:], lambda other: self._value(other, (*path, name)))
        return self.known[name]

    def used(self):
        """Corners of the used area, None for an empty sheet."""
        places = [parse_name(name) for name in self.contents]
        if not places:
            return None
        columns, rows = zip(*places)
        return (make_name(min(columns), min(rows)), make_name(max(columns), max(rows)))
