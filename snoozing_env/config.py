"""Typed, frozen configuration: unknown keys are refused with a suggestion, never ignored."""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_config import BaseConfig  # pyright: ignore[reportMissingTypeStubs]

from snoozing_env.errors import ConfigError, did_you_mean

ConfigT = TypeVar("ConfigT", bound="FrozenConfig")


class FrozenConfig(BaseConfig):
    """Base of every config here: checked at birth, immutable, strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True
    )


def parse_config(cls: type[ConfigT], data: Mapping[str, Any] | ConfigT, *, where: str = "config") -> ConfigT:
    """`data` as a validated `cls`.

    Raises:
        ConfigError: one line per problem, each naming the key, what came and (for a typo) the nearest key.
    """
    if isinstance(data, cls):
        return data
    try:
        return cls.model_validate(copy.deepcopy(dict(typing.cast("Mapping[str, Any]", data))))
    except ValidationError as error:
        raise ConfigError("\n".join(explain(cls, error, where=where))) from error


def explain(cls: type[BaseModel], error: ValidationError, *, where: str = "config") -> Iterator[str]:
    """Each problem of a validation error as a sentence with the dotted key."""
    for problem in error.errors():
        loc = tuple(str(part) for part in problem["loc"])
        key = ".".join(loc) or "the whole"
        if problem["type"] == "extra_forbidden":
            known = sorted(_fields_at(cls, loc[:-1]))
            hint = did_you_mean(loc[-1], known) or f" Known keys: {', '.join(known)}."
            yield f"{where}: unknown key {key!r}.{hint}"
        elif problem["type"] == "missing":
            yield f"{where}: {key!r} is required and was not given."
        else:
            message = str(problem["msg"]).removeprefix("Value error, ")
            yield f"{where}: {key!r}: {message} (got {problem['input']!r})"


def _fields_at(cls: type[BaseModel], path: tuple[str, ...]) -> set[str]:
    """Field names of the model(s) that sit at a dotted path; a union's tag in the path is skipped."""
    models = [cls]
    for part in path:
        inner = [
            m
            for model in models
            if part in model.model_fields
            for m in _models_in(model.model_fields[part].annotation)
        ]
        models = inner or models
    return {name for model in models for name in model.model_fields}


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated, dict, list, tuple):
        return [model for arg in typing.get_args(annotation) for model in _models_in(arg)]
    return []
