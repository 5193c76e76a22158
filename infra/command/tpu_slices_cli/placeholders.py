"""Finds what is still to be filled in, and tells whether slices depend on it. Pure.

Placeholders are `${NAME}` of envsubst and scripts, `{{ … }}` of Helm and Jinja, and `<NAME>`, which people fill in.

| where                                    | what becomes of a placeholder                                         |
|------------------------------------------|-----------------------------------------------------------------------|
| what runs in a container, or is its data | it is its own: a shell fills it in, or a chat template has it (LATER) |
| a field that slices depend on (_DECIDES) | nothing is planned before it is filled in                             |
| any other field                          | it is warned of, and planned all the same                             |
| a text that cannot be parsed             | plan names it if it is in the line of the error, Helm's in any line    |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LATER = frozenset(
    {
        *("command", "args", "env", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),
        *("data", "stringData", "binaryData", "kubectl.kubernetes.io/last-applied-configuration"),
    }
)
_COUNTS = "replicas|parallelism|completions|size"
_MODES = "completionMode|managedBy|subGroupPolicy|coordinator|network"
_PLACES = "nodeSelector|affinity|tolerations|topologySpreadConstraints"
_KEYS = (
    r"tpu-provisioner\.cloud\.google\.com/|cloud\.google\.com/(gke-|reservation-)|(alpha\.)?(jobset|leaderworkerset)\.sigs\.k8s\.io/|batch\.kubernetes\.io/"
    r"|kueue\.x-k8s\.io/queue-name|autoscaling\.x-k8s\.io/|cluster-autoscaler\.kubernetes\.io/"
)
_DECIDES = re.compile(
    r"metadata\.(name|generateName|namespace)$"
    rf"|(.*\.)?metadata\.(labels|annotations)\[({_KEYS})"
    r"|spec\.replicatedJobs\[\d+\]\.name$"
    rf"|(?!.*(metadata|volumes)[.\[]).*\.({_COUNTS}|{_MODES}|{_PLACES})(?![^.\[])"
    r"|.*[cC]ontainers\[\d+\]\.resources\b"
)
"""The paths of the fields, with all that is in them, that slices depend on."""
_TEMPLATE = r"\{\{.*?\}\}|\{%.*?%\}"
_BY_HAND = r"<[A-Za-z][\w .-]*>"
_PLACEHOLDER = re.compile(rf"{_TEMPLATE}|\$\{{\w+[^}}]*\}}|\$[A-Z][A-Z0-9_]+|{_BY_HAND}")
_MOST = 5
_LONGEST = 60
_PROGRAMS = ", as with `helm template` or `envsubst`"


@dataclass(frozen=True, slots=True)
class Unfilled:
    """The fields of an object with placeholders, each as `PATH: PLACEHOLDER`."""

    deciding: Sequence[str] = ()
    """Those that slices depend on."""
    others: Sequence[str] = ()

    @property
    def refusal(self) -> str:
        """What to do before anything can be planned; empty: nothing."""
        what = "a placeholder: fill it in first", "placeholders: fill them in first"
        by_hand = all(re.search(rf": {_BY_HAND}$", each) for each in self.deciding)
        return _listed(self.deciding, what) + ("" if by_hand else _PROGRAMS)

    @property
    def warning(self) -> str:
        """What to do before the object is created; empty: nothing."""
        it, them = "this placeholder: fill it in", "these placeholders: fill them in"
        before = "before you apply the file"
        return _listed(self.others, (f"no slice depends on {it} {before}", f"no slice depends on {them} {before}"))


def unfilled(body: Mapping[str, Any], *, decides: bool = False) -> Unfilled:
    """Return the placeholders in an object; `decides`: slices depend on all of its spec."""
    found = list(dict.fromkeys((path.lstrip("."), _shown(mark)) for path, mark in _found(body)))
    deciding = [each for each in found if _DECIDES.match(each[0]) or (decides and each[0].startswith("spec."))]
    others = [each for each in found if each not in deciding]
    return Unfilled(*([f"{path}: {mark}" for path, mark in some] for some in (deciding, others)))


def _listed(fields: Sequence[str], one_or_several: tuple[str, str]) -> str:
    if not fields:
        return ""
    more = f" and {len(fields) - _MOST} more" if len(fields) > _MOST else ""
    return f"{', '.join(fields[:_MOST])}{more}: {one_or_several[len(fields) > 1]}"


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
    return f"line {number + 1} has the placeholder {_shown(mark[0])}: fill it in first{_PROGRAMS}"


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
