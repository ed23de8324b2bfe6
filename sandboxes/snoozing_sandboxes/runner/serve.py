"""The solution's process under the protocols `calls` and `tests`: it runs the solution and sends plain data out.

Everything here shares an interpreter with the untrusted program, which may replace any of it. That is harmless:
what leaves is bytes, and the reader on the other side takes them as values or not at all.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import types
from typing import Any

from snoozing_sandboxes.runner.wire import decode, encode, opaque, write_all


def load(source: bytes, name: str) -> types.ModuleType:
    """The solution as module `name`: from its source, or imported from the box's files when there is none."""
    if not source:
        return importlib.import_module(name)
    module = types.ModuleType(name)
    module.__file__ = "solution.py"
    sys.modules[name] = module
    exec(compile(source, "solution.py", "exec", dont_inherit=True), module.__dict__)
    return module


def answer_calls(source: bytes, header: dict[str, Any], out: int) -> None:
    """One line for the load, then one per call: {"v": value} or {"e": [type, message]}."""
    try:
        function: Any = load(source, header["module"])
        for part in header["entry"].split("."):
            function = getattr(function, part)
    except BaseException as error:
        traceback.print_exc()
        write_all(out, json.dumps({"e": _described(error)[:2]}).encode() + b"\n")
        return
    write_all(out, b'{"v":null}\n')
    for arguments, keywords in header["calls"]:
        try:
            value = function(*map(decode, arguments), **{k: decode(v) for k, v in keywords.items()})
            reply: dict[str, Any] = {"v": encode(value)}
        except BaseException as error:
            reply = {"e": _described(error)[:2]}
        write_all(out, json.dumps(reply).encode() + b"\n")


class Server:
    """Answers the judge's requests, one JSON line each; objects that are not plain data stay here under a number."""

    def __init__(self, source: bytes, fd: int) -> None:
        self._source = source
        self._fd = fd
        self._objects: dict[int, Any] = {}

    def serve(self) -> None:
        with open(self._fd, "rb", closefd=False) as requests:
            for line in requests:
                request = json.loads(line)
                try:
                    reply: dict[str, Any] = {"v": getattr(self, "_" + request["op"])(request)}
                except BaseException as error:
                    reply = {"e": [*_described(error), self._reference_of(type(error))]}
                write_all(self._fd, json.dumps({"id": request["id"], **reply}).encode() + b"\n")

    def _load(self, request: dict[str, Any]) -> Any:
        module = load(self._source if request["first"] else b"", request["name"])
        exported = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
        return [self._keep(module), [str(n) for n in exported]]

    def _call(self, request: dict[str, Any]) -> Any:
        function = self._objects[request["o"]]
        if "method" in request:
            function = getattr(function, request["method"])
        arguments = [self._arrive(x) for x in request["a"]]
        return self._leave(function(*arguments, **{k: self._arrive(v) for k, v in request["k"].items()}))

    def _get(self, request: dict[str, Any]) -> Any:
        return self._leave(getattr(self._objects[request["o"]], request["n"]))

    def _set(self, request: dict[str, Any]) -> Any:
        setattr(self._objects[request["o"]], request["n"], self._arrive(request["v"]))

    def _same(self, request: dict[str, Any]) -> Any:
        return bool(self._objects[request["o"]] == self._objects[request["with"]])

    def _items(self, request: dict[str, Any]) -> Any:
        return ["l", [self._leave(x) for x in self._objects[request["o"]]]]

    def _text(self, request: dict[str, Any]) -> Any:
        return (repr if request["how"] == "repr" else str)(self._objects[request["o"]])

    def _keep(self, value: Any) -> int:
        number = id(value)
        self._objects[number] = value
        return number

    def _reference_of(self, kind: type) -> int | None:
        return self._keep(kind) if kind.__module__ not in ("builtins",) else None

    def _leave(self, value: Any) -> Any:
        return encode(value, special=self._refer)

    def _refer(self, value: Any) -> Any:
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["x", self._keep(value), value.__name__, [b.__name__ for b in value.__mro__]]
        return ["r", self._keep(value), opaque(value)[1]]

    def _arrive(self, data: Any) -> Any:
        return decode(data, special=lambda reference: self._objects[reference[1]])


def _described(error: BaseException) -> list[Any]:
    kind = type(error)
    return [kind.__name__, str(error)[:2000], [base.__name__ for base in kind.__mro__]]
