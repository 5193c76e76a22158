"""What is wrong with a message, in one sentence for people."""

from __future__ import annotations

from pydantic import ValidationError


def first_error(invalid: ValidationError) -> str:
    """Name the first field that is wrong and what is wrong with it, never what it holds."""
    error = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) for part in error["loc"]) or "data"
    more = invalid.error_count() - 1
    return f"{field}: {error['msg']}" + (f" (and {more} more)" if more else "")
