"""The texts of some modules, by which one sees whether examples have each of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

_GAP = "…"
_WORDS = re.compile(r"[a-z]{2,}[,:]? [a-z`]+")


def texts_of(modules: Iterable[ModuleType]) -> Iterator[str]:
    """Yield each text of several words that is no docstring, with `…` for what is inserted."""
    for module in modules:
        tree = ast.parse(Path(str(module.__file__)).read_text())
        apart = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                apart |= {id(each) for each in ast.walk(node) if isinstance(each, ast.Constant) and each in node.values}
            if id(node) not in apart and _WORDS.search(text := _text(node)):
                yield text


def _text(node: ast.AST) -> str:
    """Return a text, empty for what is none."""
    match node:
        case ast.JoinedStr():
            return "".join(_text(each) or _GAP for each in node.values)
        case ast.Constant(value=str(value)):
            return value
        case _:
            return ""


def has(told: str, text: str) -> bool:
    """Return whether something was told with a text of `texts_of`."""
    return re.search(".+".join(map(re.escape, text.split(_GAP))), told) is not None
