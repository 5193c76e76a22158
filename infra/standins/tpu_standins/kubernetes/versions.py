"""The version of Kubernetes that is built, and the Go that it takes: both are read from go.mod."""

import re
from pathlib import Path

MODULE = Path(__file__).parent
Version = tuple[int, ...]


def kubernetes_of(module: str) -> str:
    """Return the version of Kubernetes that this text of a go.mod requires, as its API server reports it."""
    return required("k8s.io/kubernetes", module)


def required(name: str, module: str) -> str:
    """Return the release of a module that this text of a go.mod requires. ValueError: it requires none."""
    return _found(rf"^\s*{re.escape(name)} (v\d+\.\d+\.\d+)\b", module)


def go_of(module: str) -> Version:
    """Return the oldest Go that this text of a go.mod admits."""
    return numbers(_found(r"^go (\S+)$", module))


def numbers(version: str) -> Version:
    """Return the numbers of `v1.36.3`, `go1.26.8` or a release candidate of one, which counts as its release."""
    match = re.match(r"(?:v|go)?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(each or 0) for each in match.groups()) if match else ()


def link_flags(version: str) -> str:
    """Return the linker's flags: no symbols, and the version that a program reports."""
    major, minor, _ = numbers(version)
    package = "k8s.io/component-base/version"
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X {package}.{name}={value}" for name, value in values.items())])


def pinned() -> str:
    """Return the version of Kubernetes of our go.mod."""
    return kubernetes_of((MODULE / "go.mod").read_text())


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise ValueError(f"nothing in go.mod matches {pattern}")
    return match[1]
