"""Describes validation errors in one line."""

from __future__ import annotations

from pydantic import ValidationError


def first_error(invalid: ValidationError) -> str:
    """Return the first invalid field and what is wrong with it, without its value."""
    error = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in error["loc"]) or "data"
    more = invalid.error_count() - 1
    return f"{field}: {error['msg']}" + (f" (and {more} more)" if more else "")
