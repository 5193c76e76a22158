"""Finds what another program was to fill in: `${NAME}` of envsubst and scripts, `{{ … }}` of Helm and Jinja. Pure.

| where                                    | `${NAME}`, `$NAME`                   | `{{ … }}`, `{% … %}`     |
|------------------------------------------|--------------------------------------|--------------------------|
| what runs in a container, or is its data | its own: a shell fills it in (LATER) | its own: a chat template |
| any other field                          | a placeholder                        | a placeholder            |
| a text that cannot be parsed             | in the line of the error             | in any line              |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

LATER = frozenset(
    {
        *("command", "args", "env", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
        *("data", "stringData", "binaryData", "kubectl.kubernetes.io/last-applied-configuration"),
    }
)
_TEMPLATE = r"\{\{.*?\}\}|\{%.*?%\}"
_PLACEHOLDER = re.compile(rf"{_TEMPLATE}|\$\{{\w+[^}}]*\}}|\$[A-Z][A-Z0-9_]+")
_MOST = 5
_LONGEST = 60
_REMEDY = "in first, as with `helm template` or `envsubst`"


def unfilled(body: Any) -> str | None:
    """Return a text that names the fields with placeholders and what to do, None without one."""
    found = list(dict.fromkeys(f"{path.lstrip('.')}: {_shown(text)}" for path, text in _found(body)))
    if not found:
        return None
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    what = "a placeholder: fill it" if len(found) == 1 else "placeholders: fill them"
    return f"{', '.join(found[:_MOST])}{more}: {what} {_REMEDY}"


def template_mark(text: str, line: int | None) -> str | None:
    """Return a text about a placeholder that may be why a text cannot be parsed, None without one.

    `line` is that of the error, counted from 0.
    """
    lines = text.splitlines()
    at_error = _PLACEHOLDER.search(lines[line]) if line is not None and line < len(lines) else None
    anywhere = ((number, re.search(_TEMPLATE, each)) for number, each in enumerate(lines))
    number, mark = (line, at_error) if at_error else next((each for each in anywhere if each[1]), (None, None))
    if mark is None or number is None:
        return None
    return f"line {number + 1} has the placeholder {_shown(mark[0])}: fill it {_REMEDY}"


def _found(body: Any) -> Iterator[tuple[str, str]]:
    """Yield the path of each field with a placeholder in its key or value, and the placeholder."""
    left, seen = [("", body)], set[int]()
    while left:
        path, value = left.pop()
        if isinstance(value, str):
            yield from ((path, mark) for mark in _PLACEHOLDER.findall(value)[:1])
        elif isinstance(value, Mapping | list) and id(value) not in seen:
            seen.add(id(value))
            inner = list(_inner(path, value))
            yield from ((path, mark) for key, _ in inner for mark in _PLACEHOLDER.findall(key.removeprefix(path))[:1])
            left.extend(reversed(inner))


def _inner(path: str, value: Mapping[Any, Any] | list[Any]) -> Iterator[tuple[str, Any]]:
    """Yield the paths and values in a value, with keys written as Kubernetes' own messages write them."""
    if isinstance(value, list):
        yield from ((f"{path}[{index}]", each) for index, each in enumerate(value))
        return
    for key, each in value.items():
        if key not in LATER:
            yield f"{path}[{key}]" if re.search(r"[./$]", str(key)) else f"{path}.{key}", each


def _shown(mark: str) -> str:
    return mark if len(mark) <= _LONGEST else f"{mark[:_LONGEST]}…"
