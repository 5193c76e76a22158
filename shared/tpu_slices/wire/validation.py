"""Validates values by their types, and describes what is wrong in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

K = TypeVar("K")


@cache
def adapter_of(type_: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type; it is built when it is first needed, which takes some milliseconds for a large one.

    A function starts without those of the messages and records that it may never see.
    """
    return TypeAdapter(type_)


class Adapters(Mapping[K, TypeAdapter[Any]]):
    """The adapters of types, by what they are known by."""

    def __init__(self, types: Mapping[K, Any]) -> None:
        self._types = types

    def __getitem__(self, known_by: K) -> TypeAdapter[Any]:
        return adapter_of(self._types[known_by])

    def __iter__(self) -> Iterator[K]:
        return iter(self._types)

    def __len__(self) -> int:
        return len(self._types)


def first_error(invalid: ValidationError) -> str:
    """Return the first invalid field and what is wrong with it, without its value."""
    error = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in error["loc"]) or "data"
    more = invalid.error_count() - 1
    return f"{field}: {error['msg']}" + (f" (and {more} more)" if more else "")
