"""Words that were given up for the field's own stay out: of names, stored fields, messages, files and what people read.

Why: docs/adr/0033. A word is matched as a part of a name (`due_at`, `sentence` in `longest_sentence`), in any case.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import yaml

from tests.house.sources import text, tracked, tree
from tpu_slices.domain.model import facts, questions
from tpu_slices.domain.model.clusters import ClusterSettings
from tpu_slices.domain.records.rejected import RejectedMessage
from tpu_slices.ports import publisher
from tpu_slices.ports.store import Record
from tpu_slices.wire.documents import COLLECTIONS
from tpu_slices.wire.messages import ReconcileRequest

GIVEN_UP = (
    "nudge", "nudges", "nudged", "nudging", "governor", "governors", "guardian", "guardians", "heir", "heirs", "estate",
    "inherit", "inherited", "inheritance", "neighbour", "berth", "berths", "aboard", "ledger", "taker", "takers",
    "wish", "wishes", "prose", "untold", "outlook", "verdict", "sentence", "turned", "because", "desk", "doors",
    "foreign", "leaving", "audit", "picture", "sight", "sights",
)  # fmt: skip
"""Of names in the product."""
UNMISTAKABLE = (
    "nudge", "nudges", "nudged", "governor", "governors", "guardian", "guardians", "heir", "heirs", "berth", "berths",
    "untold", "outlook", "wishes", "desire_because", "due_at", "report_due_at", "wanted_at", "want_ttl", "look_again",
)  # fmt: skip
"""Of any text: they mean nothing else here."""
MEANT_OTHERWISE = {"_AuditLog", "_inherited", "INHERITED"}
"""Google's audit log; what a process inherits of its environment."""
ELSEWHERE = ("infra/standins/", "tests/cluster/")
"""The stand-ins for Compute Engine, GKE and Kubernetes have these systems' words, and their tests."""
TELLS_OF_THEM = ("tests/house/test_words.py", "docs/adr/", "CHANGELOG.md")
FIELDS_GIVEN_UP = (
    *GIVEN_UP, "says", "said", "turn", "turns", "told", "wants", "wanted", "want", "due", "occupant", "watch", "cell",
    "width", "why", "body", "fault", "heard",
)  # fmt: skip
"""Of stored and sent fields."""


def searched(*endings: str) -> list[str]:
    return [name for name in tracked(*endings) if not name.startswith((*ELSEWHERE, *TELLS_OF_THEM))]


def parts(name: str) -> set[str]:
    """Return the words of a name in snake_case, CamelCase or kebab-case."""
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_").split("_"))


def names_in(module: str) -> Iterator[tuple[str, int]]:
    """Yield every name that a module gives or uses, with its line, and its own."""
    yield Path(module).stem, 0
    for node in ast.walk(tree(module)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.Name():
                yield node.id, node.lineno
            case ast.Attribute():
                yield node.attr, node.lineno
            case ast.arg() | ast.keyword() if node.arg:
                yield node.arg, node.lineno
            case _:
                pass


def test_no_name_has_a_word_that_was_given_up() -> None:
    named = [(word, f"{module}:{line} {word}") for module in searched(".py") for word, line in names_in(module)]
    words = {word for word, _ in named} - MEANT_OTHERWISE
    given_up = {word for word in words if parts(word) & {*GIVEN_UP}}
    assert len(words) > 5000
    assert [place for word, place in named if word in given_up] == []


def test_no_text_has_a_word_that_means_nothing_else() -> None:
    words = re.compile(rf"\b({'|'.join(UNMISTAKABLE)})\b", re.IGNORECASE)
    names = searched(".py", ".md", ".yaml", ".tf", ".json", ".toml", "Makefile", "Dockerfile")
    found = [
        f"{name}:{number}: {line.strip()}"
        for name in names
        for number, line in enumerate(text(name).splitlines(), start=1)
        if words.search(line)
    ]
    assert found == []


def fields_of(kind: Any) -> Iterator[str]:
    """Yield the fields of a dataclass and of the dataclasses in it."""
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        for field in fields(kind):
            yield f"{kind.__name__}.{field.name}"
            yield from fields_of(hints[field.name])
    for argument in get_args(kind):
        yield from fields_of(argument)


def test_no_stored_or_sent_field_has_a_word_that_was_given_up() -> None:
    sent = (facts.Fact, questions.AnyQuestion, publisher.SliceUpdate, publisher.WorkloadUpdate, ReconcileRequest)
    named = {name for kind in (Record, RejectedMessage, ClusterSettings, *sent) for name in fields_of(kind)}
    assert len(named) > 100
    assert {name for name in named - MEANT_OTHERWISE if parts(name.partition(".")[2]) & {*FIELDS_GIVEN_UP}} == set()


def test_no_collection_topic_or_subscription_has_a_word_that_was_given_up() -> None:
    messaging = yaml.safe_load(text("infra/messaging.yaml"))
    named = {*COLLECTIONS.values(), *messaging["topics"], *messaging["subscriptions"], *messaging["schedules"]}
    assert {name for name in named if parts(name) & {*GIVEN_UP, "watches", "jobsets"}} == set()


def test_a_docstring_opens_with_what_is_returned_or_done() -> None:
    """As PEP 257 has it; "Say", "Give", "Take" and "Tell" leave open what comes of the call."""
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    opening = re.compile(r"(Say|Give|Take|Tell|Look whether)\b")
    openings = [
        (name, (ast.get_docstring(node) or "").partition("\n")[0])
        for name in searched(".py")
        for node in ast.walk(tree(name))
        if isinstance(node, documented)
    ]
    assert [each for each in openings if opening.match(each[1])] == []
