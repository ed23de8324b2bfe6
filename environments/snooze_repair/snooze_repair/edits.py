"""A bug as the smallest change of text that makes it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace


class EditError(ValueError):
    """An edit that does not fit its file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace `old` at character `at` of a file by `new`."""

    path: str
    at: int
    old: str
    new: str
    kind: str
    """The operator that made it; see operators.py."""

    def apply(self, text: str) -> str:
        """Raises EditError where `old` does not stand there."""
        found = text[self.at : self.at + len(self.old)]
        if found != self.old:
            raise EditError(f"{self.path} has {found!r} at {self.at}, this edit replaces {self.old!r}")
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def inverse(self) -> Edit:
        """The edit that repairs what this one broke."""
        return replace(self, old=self.new, new=self.old)


def applied(files: Mapping[str, str], edit: Edit) -> dict[str, str]:
    """The project with one file changed."""
    return {**files, edit.path: edit.apply(files[edit.path])}


class Source:
    """A file as text and tree, with the places of nodes in the text. Files are ASCII, so columns are characters."""

    def __init__(self, path: str, text: str) -> None:
        if not text.isascii():
            raise EditError(f"{path} holds characters outside ASCII, which Python's columns count as bytes")
        self.path = path
        self.text = text
        self.tree = ast.parse(text, path)
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """[start, end) of a node with a place of its own."""
        line, column, end_line, end_column = (
            getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
        )
        return self._starts[line - 1] + column, self._starts[end_line - 1] + end_column

    def of(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def lines(self, node: ast.stmt) -> tuple[int, int]:
        """[start, end) of a statement's whole lines."""
        assert node.end_lineno is not None
        return self._starts[node.lineno - 1], self._starts[node.end_lineno]

    def edit(self, span: tuple[int, int], new: str, kind: str) -> Edit:
        start, end = span
        return Edit(path=self.path, at=start, old=self.text[start:end], new=new, kind=kind)
