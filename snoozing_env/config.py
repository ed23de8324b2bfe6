"""Typed, frozen configuration: unknown keys are refused with a suggestion, never ignored."""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_config import BaseConfig  # pyright: ignore[reportMissingTypeStubs]

from snoozing_env.errors import ConfigError, did_you_mean

ConfigT = TypeVar("ConfigT", bound="FrozenConfig")


class FrozenConfig(BaseConfig):
    """Base of every config here: checked at birth, immutable, strict about its keys."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, validate_default=True
    )

    @model_validator(mode="before")
    @classmethod
    def _default_kinds(cls, data: Any) -> Any:
        """A table of several kinds that names none means the default's: `[scheduler.snooze]` alone is uniform."""
        if not isinstance(data, Mapping):
            return data
        filled = dict(typing.cast("Mapping[str, Any]", data))
        for name, field in cls.model_fields.items():
            given, kind = filled.get(name), getattr(field.default, "kind", None)
            if isinstance(given, Mapping) and kind is not None and "kind" not in given:
                filled[name] = {"kind": kind, **given}
        return filled


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
        loc = tuple(_without_tags(cls, [str(part) for part in problem["loc"]]))
        key = ".".join(loc)
        if problem["type"] == "extra_forbidden":
            known = sorted(_fields_at(cls, loc[:-1]))
            hint = did_you_mean(loc[-1], known) or f" Known keys: {', '.join(known)}."
            yield f"{where}: unknown key {key!r}.{hint}"
        elif problem["type"] == "union_tag_invalid":
            context = problem.get("ctx", {})
            tag = str(context.get("tag"))
            known = str(context.get("expected_tags")).replace("'", "").split(", ")
            yield f"{where}: '{key}.kind' {tag!r} is unknown.{did_you_mean(tag, known)} Known: {', '.join(known)}."
        elif problem["type"] == "missing":
            yield f"{where}: {key!r} is required and was not given."
        else:
            message = str(problem["msg"]).removeprefix("Value error, ")
            if problem["type"] == "value_error" and isinstance(problem["input"], Mapping):
                # Keys that do not go together: the message names them, and their table would drown it.
                yield f"{where}: {key!r}: {message}" if loc else f"{where}: {message}"
            else:
                yield f"{where}: {key!r}: {message} (got {problem['input']!r})"


def _fields_at(cls: type[BaseModel], path: Sequence[str]) -> set[str]:
    """Field names of the model(s) that sit at a dotted path."""
    models = [cls]
    for part in path:
        models = _descend(models, part) or models
    return {name for model in models for name in model.model_fields}


def _without_tags(cls: type[BaseModel], path: Sequence[str]) -> Iterator[str]:
    """The path as a recipe spells it: pydantic puts the kind it tried between a union's name and its key."""
    models = [cls]
    for part in path:
        tagged = [m for m in models if "kind" in m.model_fields and m.model_fields["kind"].default == part]
        if len(models) > 1 and tagged:
            models = tagged
        else:
            yield part
            models = _descend(models, part)


def _descend(models: Sequence[type[BaseModel]], part: str) -> list[type[BaseModel]]:
    return [
        inner
        for model in models
        if part in model.model_fields
        for inner in _models_in(model.model_fields[part].annotation)
    ]


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    origin = typing.get_origin(annotation)
    if origin in (typing.Union, types.UnionType, typing.Annotated, dict, list, tuple):
        return [model for arg in typing.get_args(annotation) for model in _models_in(arg)]
    return []
