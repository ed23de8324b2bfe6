"""The judge's view of the solution: plain data arrives as data, everything else as a proxy that answers little.

Only operations whose operand cannot reveal an expected value are passed on. Arithmetic, ordering and `in` would hand
the solution what the test expects and let it answer: `abs(f(x) - 4) < 1e-6` is true of an object with a lying
`__sub__`. They raise a BaseException, which `assertRaises(Exception)` cannot swallow.
"""

from __future__ import annotations

import builtins
import json
import socket
from typing import Any

from snoozing_sandboxes.runner.wire import Malformed, decode, encode

MAX_REPLY = 4 << 20


class SolutionDied(BaseException):
    """The solution's process is gone or broke the protocol; no test can go on."""


class NotPlainData(BaseException):
    """A test needs a value where the solution gave an object."""


class Link:
    """Requests to the solution's process, one JSON line each way, strictly in turn."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._lines = channel.makefile("rb")
        self._count = 0
        self._proxies: dict[int, Any] = {}
        self._exceptions: dict[int, type[Exception]] = {}

    def ask(self, op: str, **fields: Any) -> Any:
        """The value of a reply; what the solution raised is raised here as a builtin or a stand-in."""
        self._count += 1
        request = json.dumps({"id": self._count, "op": op, **fields}).encode() + b"\n"
        try:
            self._channel.sendall(request)
            line = self._lines.readline(MAX_REPLY)
        except OSError as error:
            raise SolutionDied(f"the solution's process is gone ({error})") from None
        if not line.endswith(b"\n"):
            raise SolutionDied("the solution's process is gone, or its reply is too long")
        try:
            reply = json.loads(line)
            if reply["id"] != self._count:
                raise SolutionDied("the solution's process answered out of turn")
            failure = reply.get("e")
            if failure is None:
                return reply["v"]
            error = self._exception(failure)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError, Malformed):
            raise SolutionDied("the solution's process broke the protocol") from None
        raise error

    def value(self, op: str, **fields: Any) -> Any:
        """The same, decoded: data or a proxy."""
        data = self.ask(op, **fields)
        try:
            return decode(data, special=self._special)
        except (Malformed, RecursionError):
            raise SolutionDied("the solution's process sent something that is no value") from None

    def wire(self, value: Any) -> Any:
        """A test's argument; proxies go back as the object they stand for."""
        return encode(value, special=_argument)

    def _special(self, data: list[Any]) -> Any:
        if data[0] == "x":
            return self._stand_in(int(data[1]), str(data[2]), data[3])
        if data[0] != "r":
            raise Malformed("unknown tag")
        number = int(data[1])
        if number not in self._proxies:
            self._proxies[number] = Proxy(self, number, str(data[2]))
        return self._proxies[number]

    def _exception(self, failure: list[Any]) -> Exception:
        name, message, bases, number = failure
        if number is None:
            return _builtin(bases)(str(message))
        return self._stand_in(int(number), str(name), bases)(str(message))

    def _stand_in(self, number: int, name: str, bases: list[str]) -> type[Exception]:
        """A class of ours for an exception class of theirs, with the nearest builtin as its base."""
        if number not in self._exceptions:
            known = [
                self._exceptions[n] for n in self._exceptions if self._exceptions[n].__name__ in bases[1:]
            ]
            self._exceptions[number] = type(name, (known[-1] if known else _builtin(bases),), {})
        return self._exceptions[number]


def _builtin(names: list[str]) -> type[Exception]:
    for name in names:
        kind = getattr(builtins, name, None) if isinstance(name, str) else None
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind
    return RuntimeError  # SystemExit, KeyboardInterrupt and the like end no test early


def _argument(value: Any) -> Any:
    if type(value) is not Proxy:
        kind = type(value).__qualname__
        raise NotPlainData(
            f"the test passes a {kind} to the solution; only plain data and its own objects cross"
        )
    return ["r", object.__getattribute__(value, "_number")]


def _link(proxy: Proxy) -> tuple[Link, int]:
    return object.__getattribute__(proxy, "_link"), object.__getattribute__(proxy, "_number")


class Proxy:
    """An object that lives in the solution's process. Never equal to data, never true or false, never a number."""

    __slots__ = ("_link", "_name", "_number")

    def __init__(self, link: Link, number: int, name: str) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_number", number)
        object.__setattr__(self, "_name", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _invoke(self, None, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        link, number = _link(self)
        return link.value("get", o=number, n=name)

    def __setattr__(self, name: str, value: Any) -> None:
        link, number = _link(self)
        link.ask("set", o=number, n=name, v=link.wire(value))

    def __getitem__(self, key: Any) -> Any:
        return _invoke(self, "__getitem__", (key,), {})

    def __setitem__(self, key: Any, value: Any) -> None:
        _invoke(self, "__setitem__", (key, value), {})

    def __delitem__(self, key: Any) -> None:
        _invoke(self, "__delitem__", (key,), {})

    def __enter__(self) -> Any:
        return _invoke(self, "__enter__", (), {})

    def __exit__(self, *_: object) -> None:
        _invoke(self, "__exit__", (None, None, None), {})

    def __len__(self) -> int:
        return _plain(_invoke(self, "__len__", (), {}), int)

    def __iter__(self) -> Any:
        link, number = _link(self)
        return iter(link.value("items", o=number))

    def __next__(self) -> Any:
        return _invoke(self, "__next__", (), {})

    def __str__(self) -> str:
        link, number = _link(self)
        return _plain(link.value("text", o=number, how="str"), str)

    def __repr__(self) -> str:
        link, number = _link(self)
        return _plain(link.value("text", o=number, how="repr"), str)

    def __hash__(self) -> int:
        return _link(self)[1]

    def __eq__(self, other: object) -> bool:
        return _same(self, other)

    def __ne__(self, other: object) -> bool:
        return not _same(self, other)


def _invoke(proxy: Proxy, method: str | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    link, number = _link(proxy)
    fields: dict[str, Any] = {"o": number, "a": [link.wire(x) for x in args]}
    fields["k"] = {name: link.wire(x) for name, x in kwargs.items()}
    return link.value("call", **fields, **({"method": method} if method else {}))


def _plain(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise NotPlainData(f"the solution gave {type(value).__name__} where {kind.__name__} is needed")
    return value


def _same(proxy: Proxy, other: object) -> bool:
    """Two objects of the solution: its own answer, since it made both. None: no. Data: the test cannot be decided,
    and `!= 4` must not pass for an object any more than `== 4`."""
    if type(other) is Proxy:
        link, number = _link(proxy)
        return link.ask("same", o=number, **{"with": _link(other)[1]}) is True
    if other is None:
        return False
    return _refuse(proxy)


def _refuse(proxy: Proxy, *_: object) -> Any:
    name = object.__getattribute__(proxy, "_name")
    raise NotPlainData(f"the solution returned an object where plain data is needed: {name}")


_REFUSED = [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "divmod",
    "rdivmod",
    "pow",
    "rpow",
    "matmul",
    "rmatmul",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "neg",
    "pos",
    "abs",
    "invert",
    "round",
    "trunc",
    "floor",
    "ceil",
    "lt",
    "le",
    "gt",
    "ge",
    "contains",
    "bool",
    "int",
    "float",
    "complex",
    "index",
    "bytes",
    "format",
]
for _name in _REFUSED:
    setattr(Proxy, f"__{_name}__", _refuse)
