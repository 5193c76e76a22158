"""Filter expressions of lists, and pages [py-gce, the `filter` of each List request].

Covered: comparisons by `=` and `!=`, and `:*`, of one field each, in parentheses or not, joined by AND or OR; and those
by `eq` and `ne`, whose literal is a regular expression for the whole field. What else there is, is not implemented.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]
Test = Callable[[Json], bool]

_TERM = r"""(?P<field>[A-Za-z][\w.]*)\s*(?P<operator>!=|=|:|\beq\b|\bne\b)\s*(?P<value>"[^"]*"|'[^']*'|[^\s()"']+)"""
_TOKEN = re.compile(rf"\s*(?:(?P<open>\()|(?P<close>\))|(?P<join>AND|OR)(?=[\s(])|{_TERM})")
_REGULAR = ("eq", "ne")


class NotCoveredError(Exception):
    """The expression is none that is covered. The message is the expression."""


@dataclass(frozen=True, slots=True)
class _Term:
    field: str
    operator: str
    value: str

    def holds(self, item: Json) -> bool:
        found = _at(item, self.field.split("."))
        text = found if isinstance(found, str) else "" if found is None else str(found).lower()
        match self.operator:
            case "=":
                return text == self.value
            case "!=":
                return text != self.value
            case ":":
                return found is not None
            case "eq":
                return re.fullmatch(self.value, text) is not None
            case _:
                return re.fullmatch(self.value, text) is None


def parse(expression: str) -> Test:
    """Return the test of an expression. Raise NotCoveredError if it is not covered."""
    if not expression.strip():
        return lambda _: True
    tokens = _tokens(expression)
    alternatives, rest = _any_of(tokens, expression)
    if rest:
        raise NotCoveredError(expression)
    operators = {token.operator in _REGULAR for token in tokens if isinstance(token, _Term)}
    if len(operators) > 1:  # the two kinds cannot be mixed in one request [py-gce]
        raise NotCoveredError(expression)
    return alternatives


def _tokens(expression: str) -> list[_Term | str]:
    tokens: list[_Term | str] = []
    at, text = 0, expression.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise NotCoveredError(expression)
        at = found.end()
        if found["field"]:
            tokens.append(_term(found["field"], found["operator"], found["value"], expression))
        else:
            tokens.append(found["open"] or found["close"] or found["join"])
    return tokens


def _term(field: str, operator: str, value: str, expression: str) -> _Term:
    value = value[1:-1] if value[0] in "\"'" else value
    defined = operator == ":" and value == "*"
    if operator not in _REGULAR and (operator == ":" or "*" in value) and not defined:
        raise NotCoveredError(expression)
    if operator in _REGULAR:
        try:
            re.compile(value)
        except re.error as error:
            raise NotCoveredError(expression) from error
    return _Term(field, operator, value)


def _any_of(tokens: list[_Term | str], expression: str) -> tuple[Test, list[_Term | str]]:
    """Parse what OR joins; terms side by side, or joined by AND, must all hold: AND binds less than OR in AIP-160."""
    every: list[Test] = []
    while tokens and tokens[0] != ")":
        test, tokens = _one(tokens, expression)
        alternatives = [test]
        while tokens and tokens[0] == "OR":
            test, tokens = _one(tokens[1:], expression)
            alternatives.append(test)
        every.append(_or(alternatives))
        if tokens and tokens[0] == "AND":
            tokens = tokens[1:]
            if not tokens:
                raise NotCoveredError(expression)
    if not every:
        raise NotCoveredError(expression)
    return (lambda item: all(test(item) for test in every)), tokens


def _or(tests: list[Test]) -> Test:
    return lambda item: any(test(item) for test in tests)


def _one(tokens: list[_Term | str], expression: str) -> tuple[Test, list[_Term | str]]:
    match tokens:
        case [_Term() as term, *rest]:
            return term.holds, rest
        case ["(", *rest]:
            inner, rest = _any_of(rest, expression)
            if rest[:1] == [")"]:
                return inner, rest[1:]
        case _:
            pass
    raise NotCoveredError(expression)


def _at(item: Any, path: list[str]) -> Any:
    for name in path:
        if not isinstance(item, Mapping):
            return None
        item = item.get(name)
    return item


def page(items: Iterable[Any], size: int, token: str) -> tuple[list[Any], str] | None:
    """Return a page and the token of the next one, empty if it is the last; None: not a token that was given out."""
    if token and not re.fullmatch(r"page-[0-9]+", token):
        return None
    begin = int(token.removeprefix("page-") or 0)
    listed = list(items)
    end = begin + size
    return listed[begin:end], f"page-{end}" if end < len(listed) else ""
